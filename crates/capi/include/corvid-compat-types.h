/* The types that libcorvid and programs of Open vSwitch's library share: `struct uuid` and
 * `struct smap`. corvid.h includes this header if CORVID_IDL_COMPAT or CORVID_WITH_OPENVSWITCH is
 * defined.
 *
 * With CORVID_WITH_OPENVSWITCH both structs are those of Open vSwitch's own headers. The structs of
 * rows contain them, so define it for the whole program, generated code included. Without it both
 * structs are defined here. */

#ifndef CORVID_COMPAT_TYPES_H
#define CORVID_COMPAT_TYPES_H 1

#include <stddef.h>
#include <stdint.h>

#ifdef CORVID_WITH_OPENVSWITCH

/* In angle brackets: a file of this name next to this header is not the one. */
#include <openvswitch/uuid.h>
#ifdef __has_include
#if __has_include(<smap.h>)
#include <smap.h>
#include <uuid.h>
#else
#include <lib/smap.h>
#include <lib/uuid.h>
#endif
#else
#include <smap.h>
#include <uuid.h>
#endif

/* Descriptions of columns have the type of that library, where its headers are at hand. */
#ifdef __has_include
#if __has_include(<ovsdb-types.h>)
#define CORVID_OVSDB_TYPES 1
#include <ovsdb-types.h>
#elif __has_include(<lib/ovsdb-types.h>)
#define CORVID_OVSDB_TYPES 1
#include <lib/ovsdb-types.h>
#endif
#endif

/* One pair of a map of strings, on its way between libcorvid and a `struct smap`. */
typedef struct corvid_smap_node {
    const char *key;
    const char *value;
} corvid_smap_node;

#else

/* The structs of rows would contain one `struct smap`, and the program would read another. */
#ifdef SMAP_H
#error "Open vSwitch's smap.h is included: compile the whole program with -DCORVID_WITH_OPENVSWITCH"
#endif

/* A UUID, as in Open vSwitch's header: the numbers of its text, from left to right, eight
 * hexadecimal digits each. The same layout, so Open vSwitch's header may be included before. */
#ifndef OPENVSWITCH_UUID_H
#define OPENVSWITCH_UUID_H 1
struct uuid {
    uint32_t parts[4];
};
#endif

/* One pair of a map of strings. */
struct smap_node {
    char *key;
    char *value;
};

/* A map of strings. In the struct of a row it belongs to the library. */
struct smap {
    const struct smap_node *nodes;
    size_t n;
};

typedef struct smap_node corvid_smap_node;
typedef struct smap corvid_smap;

#endif

typedef struct uuid corvid_uuid;
/* A map of strings in the struct of a row. */
typedef struct smap corvid_idl_smap;

#endif
