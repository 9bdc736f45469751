/* The names of Open vSwitch's smap.h: maps of strings. With CORVID_WITH_OPENVSWITCH they are Open
 * vSwitch's own, and this header has the conversion between them and libcorvid.
 *
 * Maps of the program belong to it: smap_destroy frees them. Those in structs of rows are only
 * read. */

#ifndef CORVID_COMPAT_SMAP_H
#define CORVID_COMPAT_SMAP_H 1

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "corvid.h"
#include "corvid-compat-memory.h"
#include "corvid-compat-uuid.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef CORVID_WITH_OPENVSWITCH

/* libcorvid calls these functions for maps in the structs of rows: generated code names them in its
 * `corvid_idl_class`. */

static inline void
corvid_compat_map_init(void *map)
{
    smap_init((struct smap *) map);
}

static inline void
corvid_compat_map_fill(void *map, const corvid_smap_node *nodes, size_t n)
{
    struct smap *smap = (struct smap *) map;
    smap_clear(smap);
    for (size_t i = 0; i < n; i++) {
        smap_add(smap, nodes[i].key, nodes[i].value);
    }
}

static inline void
corvid_compat_map_destroy(void *map)
{
    smap_destroy((struct smap *) map);
}

/* The number of pairs; 0 for NULL, which setters take as the empty map. */
static inline size_t
corvid_compat_map_count(const struct smap *smap)
{
    return smap ? smap_count(smap) : 0;
}

/* Makes atoms of the pairs. They borrow the strings of the map. */
static inline void
corvid_compat_map_atoms(const struct smap *smap, struct corvid_atom *keys,
                        struct corvid_atom *values)
{
    const struct smap_node *node;
    size_t i = 0;
    if (smap) {
        SMAP_FOR_EACH (node, smap) {
            keys[i] = corvid_atom_string(node->key);
            values[i] = corvid_atom_string(node->value);
            i++;
        }
    }
}

#else

#define SMAP_INITIALIZER(SMAP) {NULL, 0}
#define SMAP_CONST_INIT(SMAP) {NULL, 0}
/* NODE may be a pointer to a constant or not. */
#define SMAP_FOR_EACH(NODE, SMAP) \
    for ((NODE) = corvid_compat_nodes(SMAP); \
         (SMAP)->n && (NODE) < (SMAP)->nodes + (SMAP)->n; (NODE)++)

static inline struct smap_node *
corvid_compat_nodes(const struct smap *smap)
{
    return (struct smap_node *) (uintptr_t) smap->nodes;
}

static inline void
smap_init(struct smap *smap)
{
    smap->nodes = NULL;
    smap->n = 0;
}

static inline void
smap_clear(struct smap *smap)
{
    for (size_t i = 0; i < smap->n; i++) {
        free((void *) (uintptr_t) smap->nodes[i].key);
        free((void *) (uintptr_t) smap->nodes[i].value);
    }
    free((void *) (uintptr_t) smap->nodes);
    smap_init(smap);
}

static inline void
smap_destroy(struct smap *smap)
{
    if (smap) {
        smap_clear(smap);
    }
}

static inline struct smap_node *
smap_get_node(const struct smap *smap, const char *key)
{
    for (size_t i = 0; i < smap->n; i++) {
        if (!strcmp(smap->nodes[i].key, key)) {
            return corvid_compat_nodes(smap) + i;
        }
    }
    return NULL;
}

static inline struct smap_node *
smap_add_nocopy(struct smap *smap, char *key, char *value)
{
    struct smap_node *nodes = (struct smap_node *) (uintptr_t) smap->nodes;
    nodes = (struct smap_node *) corvid_compat_alloc(nodes, (smap->n + 1) * sizeof *nodes);
    nodes[smap->n].key = key;
    nodes[smap->n].value = value;
    smap->nodes = nodes;
    return &nodes[smap->n++];
}

static inline struct smap_node *
smap_add(struct smap *smap, const char *key, const char *value)
{
    return smap_add_nocopy(smap, corvid_compat_strdup(key), corvid_compat_strdup(value));
}

static inline bool
smap_add_once(struct smap *smap, const char *key, const char *value)
{
    if (smap_get_node(smap, key)) {
        return false;
    }
    smap_add(smap, key, value);
    return true;
}

static inline void
smap_add_format(struct smap *smap, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    smap_add_nocopy(smap, corvid_compat_strdup(key), corvid_compat_format(format, args));
    va_end(args);
}

static inline void
smap_remove(struct smap *smap, const char *key)
{
    const struct smap_node *node = smap_get_node(smap, key);
    if (node) {
        struct smap_node *held = (struct smap_node *) (uintptr_t) node;
        free((void *) (uintptr_t) held->key);
        free((void *) (uintptr_t) held->value);
        *held = smap->nodes[smap->n - 1];
        smap->n--;
    }
}

static inline void
smap_replace(struct smap *smap, const char *key, const char *value)
{
    const struct smap_node *node = smap_get_node(smap, key);
    if (node) {
        /* The key and the value may be those of the pair itself. */
        struct smap_node *held = (struct smap_node *) (uintptr_t) node;
        char *copy = corvid_compat_strdup(value);
        free((void *) (uintptr_t) held->value);
        held->value = copy;
    } else {
        smap_add(smap, key, value);
    }
}

static inline const char *
smap_get_def(const struct smap *smap, const char *key, const char *def)
{
    const struct smap_node *node = smap_get_node(smap, key);
    return node ? node->value : def;
}

static inline const char *
smap_get(const struct smap *smap, const char *key)
{
    return smap_get_def(smap, key, NULL);
}

static inline bool
smap_get_bool(const struct smap *smap, const char *key, bool def)
{
    const char *value = smap_get_def(smap, key, "");
    return def ? strcasecmp(value, "false") != 0 : !strcasecmp(value, "true");
}

/* The getters of numbers return the default unless the whole value is a decimal number within the
 * range of the type. */

static inline unsigned long long int
smap_get_ullong(const struct smap *smap, const char *key, unsigned long long int def)
{
    const char *value = smap_get_def(smap, key, "");
    char *end;
    errno = 0;
    unsigned long long int number = strtoull(value, &end, 10);
    return errno || end == value || *end ? def : number;
}

static inline bool
corvid_compat_number(const char *value, long long int least, long long int greatest,
                     long long int *number)
{
    char *end;
    errno = 0;
    *number = strtoll(value, &end, 10);
    return !errno && end != value && !*end && *number >= least && *number <= greatest;
}

static inline int
smap_get_int(const struct smap *smap, const char *key, int def)
{
    long long int number;
    const char *value = smap_get_def(smap, key, "");
    return corvid_compat_number(value, INT_MIN, INT_MAX, &number) ? (int) number : def;
}

static inline unsigned int
smap_get_uint(const struct smap *smap, const char *key, unsigned int def)
{
    long long int number;
    const char *value = smap_get_def(smap, key, "");
    return corvid_compat_number(value, 0, UINT_MAX, &number) ? (unsigned int) number : def;
}

static inline bool
smap_is_empty(const struct smap *smap)
{
    return !smap->n;
}

static inline size_t
smap_count(const struct smap *smap)
{
    return smap->n;
}

static inline void
smap_clone(struct smap *to, const struct smap *from)
{
    smap_init(to);
    for (size_t i = 0; i < from->n; i++) {
        smap_add(to, from->nodes[i].key, from->nodes[i].value);
    }
}

static inline bool
smap_equal(const struct smap *a, const struct smap *b)
{
    bool is_equal = a->n == b->n;
    for (size_t i = 0; is_equal && i < a->n; i++) {
        const char *value = smap_get(b, a->nodes[i].key);
        is_equal = value && !strcmp(value, a->nodes[i].value);
    }
    return is_equal;
}

static inline struct smap
corvid_compat_smap(const struct smap_node *nodes, size_t n)
{
    struct smap smap;
    smap.nodes = nodes;
    smap.n = n;
    return smap;
}

/* Maps of one pair and of two as expressions. They must not be changed or freed, and are good within
 * the block. */
#ifdef __cplusplus
}
/* A place for each use, since C++ has no array that lives as long as the block. */
#define CORVID_COMPAT_NODES(N, ...) \
    ([](const struct smap_node (&nodes)[N]) -> const struct smap_node * { \
        static thread_local struct smap_node kept[N]; \
        for (size_t i = 0; i < N; i++) { \
            kept[i] = nodes[i]; \
        } \
        return kept; \
    }({__VA_ARGS__}))
extern "C" {
#else
#define CORVID_COMPAT_NODES(N, ...) ((const struct smap_node[N]) {__VA_ARGS__})
#endif
#define CORVID_COMPAT_NODE(KEY, VALUE) \
    {(char *) (uintptr_t) (KEY), (char *) (uintptr_t) (VALUE)}
#define SMAP_CONST1(SMAP, KEY, VALUE) \
    corvid_compat_smap(CORVID_COMPAT_NODES(1, CORVID_COMPAT_NODE(KEY, VALUE)), 1)
#define SMAP_CONST2(SMAP, K1, V1, K2, V2) \
    corvid_compat_smap( \
        CORVID_COMPAT_NODES(2, CORVID_COMPAT_NODE(K1, V1), CORVID_COMPAT_NODE(K2, V2)), 2)

/* Removes a pair of a map of the program. Another pair takes its place. */
static inline void
smap_remove_node(struct smap *smap, const struct smap_node *node)
{
    struct smap_node *held = (struct smap_node *) (uintptr_t) node;
    free((void *) (uintptr_t) held->key);
    free((void *) (uintptr_t) held->value);
    *held = smap->nodes[--smap->n];
}

/* A walk that may remove the pair that it is at. From the last pair to the first, because the last
 * pair takes the place of one that is removed. The form with NEXT is for older programs. */
#define SMAP_FOR_EACH_SAFE_SHORT(NODE, SMAP) \
    for (size_t corvid_left_ = (SMAP)->n; \
         corvid_left_ ? ((NODE) = corvid_compat_nodes(SMAP) + corvid_left_ - 1, 1) : 0; corvid_left_--)
#define SMAP_FOR_EACH_SAFE_LONG(NODE, NEXT, SMAP) \
    for (size_t corvid_left_ = (SMAP)->n; \
         corvid_left_ ? ((NODE) = corvid_compat_nodes(SMAP) + corvid_left_ - 1, (NEXT) = (NODE), 1) : 0; \
         corvid_left_--)
#define CORVID_COMPAT_PICK(A, B, C, NAME, ...) NAME
#define SMAP_FOR_EACH_SAFE(...) \
    CORVID_COMPAT_PICK(__VA_ARGS__, SMAP_FOR_EACH_SAFE_LONG, SMAP_FOR_EACH_SAFE_SHORT, 0) \
    (__VA_ARGS__)

/* Takes a pair out of a map. The caller frees the strings; one that it does not want (null) is freed
 * here. */
static inline void
smap_steal(struct smap *smap, struct smap_node *node, char **key, char **value)
{
    if (key) {
        *key = node->key;
        node->key = NULL;
    }
    if (value) {
        *value = node->value;
        node->value = NULL;
    }
    smap_remove_node(smap, node);
}

/* Whether the value of a key is a UUID, which then is in `*uuid`. */
static inline bool
smap_get_uuid(const struct smap *smap, const char *key, struct uuid *uuid)
{
    return uuid_from_string(uuid, smap_get_def(smap, key, ""));
}

static inline int
corvid_compat_compare_nodes(const void *a, const void *b)
{
    const struct smap_node *const *left = (const struct smap_node *const *) a;
    const struct smap_node *const *right = (const struct smap_node *const *) b;
    return strcmp((*left)->key, (*right)->key);
}

/* The pairs in the order of their keys: an array of smap_count elements, which the caller frees;
 * NULL for an empty map. */
static inline const struct smap_node **
smap_sort(const struct smap *smap)
{
    if (!smap->n) {
        return NULL;
    }
    const struct smap_node **nodes = (const struct smap_node **) corvid_compat_alloc(
        NULL, smap->n * sizeof *nodes);
    for (size_t i = 0; i < smap->n; i++) {
        nodes[i] = &smap->nodes[i];
    }
    qsort(nodes, smap->n, sizeof *nodes, corvid_compat_compare_nodes);
    return nodes;
}

static inline void
smap_swap(struct smap *a, struct smap *b)
{
    struct smap held = *a;
    *a = *b;
    *b = held;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
