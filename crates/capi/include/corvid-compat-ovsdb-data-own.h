/* Values of any column, for programs that do not link Open vSwitch's library: atoms, data, their
 * types, and what can be done with them without text.
 *
 * Data are sorted by their keys, and no key is there twice, but after ovsdb_datum_add_unsafe, which
 * ovsdb_datum_sort_unique makes good. */

#ifndef CORVID_COMPAT_OVSDB_DATA_OWN_H
#define CORVID_COMPAT_OVSDB_DATA_OWN_H 1

#include <float.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "corvid.h"
#include "corvid-compat-memory.h"
#include "corvid-compat-smap.h"
#include "corvid-compat-uuid.h"

/* Open vSwitch's headers, included later, add nothing. */
#define OVSDB_DATA_H 1
#define OVSDB_TYPES_H 1

#ifdef __cplusplus
extern "C" {
#endif

/* Types. The structs are those of corvid.h, because descriptions of columns have them. */
#define ovsdb_atomic_type corvid_type
#define OVSDB_TYPE_VOID CORVID_TYPE_VOID
#define OVSDB_TYPE_INTEGER CORVID_TYPE_INTEGER
#define OVSDB_TYPE_REAL CORVID_TYPE_REAL
#define OVSDB_TYPE_BOOLEAN CORVID_TYPE_BOOLEAN
#define OVSDB_TYPE_STRING CORVID_TYPE_STRING
#define OVSDB_TYPE_UUID CORVID_TYPE_UUID
#define OVSDB_N_TYPES 6
#define ovsdb_base_type corvid_idl_base_type
#define ovsdb_type corvid_idl_type
#define ovsdb_datum corvid_idl_values
#define ovsdb_atom corvid_idl_atom

/* A base type without constraints. */
static inline struct ovsdb_base_type
corvid_compat_base(enum ovsdb_atomic_type type)
{
    struct ovsdb_base_type base;
    memset(&base, 0, sizeof base);
    base.type = type;
    if (type == OVSDB_TYPE_INTEGER) {
        base.integer.min = INT64_MIN;
        base.integer.max = INT64_MAX;
    } else if (type == OVSDB_TYPE_REAL) {
        base.real.min = -DBL_MAX;
        base.real.max = DBL_MAX;
    } else if (type == OVSDB_TYPE_STRING) {
        base.string.maxLen = UINT_MAX;
    }
    return base;
}

/* Types of one value. */
static const struct ovsdb_type ovsdb_type_integer __attribute__((unused)) = {
    {OVSDB_TYPE_INTEGER, NULL, {{INT64_MIN, INT64_MAX}}}, {OVSDB_TYPE_VOID, NULL, {{0, 0}}}, 1, 1};
static const struct ovsdb_type ovsdb_type_boolean __attribute__((unused)) = {
    {OVSDB_TYPE_BOOLEAN, NULL, {{0, 0}}}, {OVSDB_TYPE_VOID, NULL, {{0, 0}}}, 1, 1};
static const struct ovsdb_type ovsdb_type_uuid __attribute__((unused)) = {
    {OVSDB_TYPE_UUID, NULL, {{0, 0}}}, {OVSDB_TYPE_VOID, NULL, {{0, 0}}}, 1, 1};

static inline bool
ovsdb_type_is_scalar(const struct ovsdb_type *type)
{
    return type->value.type == OVSDB_TYPE_VOID && type->n_min == 1 && type->n_max == 1;
}

static inline bool
ovsdb_type_is_optional(const struct ovsdb_type *type)
{
    return type->n_min == 0;
}

static inline bool
ovsdb_type_is_composite(const struct ovsdb_type *type)
{
    return type->n_max > 1;
}

static inline bool
ovsdb_type_is_set(const struct ovsdb_type *type)
{
    return type->value.type == OVSDB_TYPE_VOID && (type->n_min != 1 || type->n_max != 1);
}

static inline bool
ovsdb_type_is_map(const struct ovsdb_type *type)
{
    return type->value.type != OVSDB_TYPE_VOID;
}

static inline bool
ovsdb_type_is_optional_scalar(const struct ovsdb_type *type)
{
    return type->value.type == OVSDB_TYPE_VOID && type->n_min == 0 && type->n_max == 1;
}

static inline const char *
ovsdb_atomic_type_to_string(enum ovsdb_atomic_type type)
{
    static const char *const names[] = {"void", "integer", "real", "boolean", "string", "uuid"};
    return (unsigned int) type < OVSDB_N_TYPES ? names[type] : "<invalid>";
}

/* Atoms. Strings are copies that their atom owns. */

/* The string of an atom. Open vSwitch's atoms hold it as JSON. */
#define json_string(STRING) ((STRING)->string)

static inline struct corvid_idl_string *
ovsdb_atom_string_create(const char *text)
{
    size_t size = strlen(text) + 1;
    struct corvid_idl_string *made = (struct corvid_idl_string *) corvid_compat_alloc(
        NULL, sizeof *made + size);
    made->string = (char *) memcpy(made + 1, text, size);
    return made;
}

static inline struct corvid_idl_string *
ovsdb_atom_string_create_nocopy(char *text)
{
    struct corvid_idl_string *made = ovsdb_atom_string_create(text);
    free(text);
    return made;
}

static inline void
ovsdb_atom_init_default(union ovsdb_atom *atom, enum ovsdb_atomic_type type)
{
    memset(atom, 0, sizeof *atom);
    if (type == OVSDB_TYPE_STRING) {
        atom->s = ovsdb_atom_string_create("");
    }
}

static inline void
ovsdb_atom_clone(union ovsdb_atom *made, const union ovsdb_atom *atom, enum ovsdb_atomic_type type)
{
    *made = *atom;
    if (type == OVSDB_TYPE_STRING) {
        made->s = ovsdb_atom_string_create(atom->s->string);
    }
}

static inline void
ovsdb_atom_destroy(union ovsdb_atom *atom, enum ovsdb_atomic_type type)
{
    if (type == OVSDB_TYPE_STRING) {
        free(atom->s);
    }
}

static inline int
ovsdb_atom_compare_3way(const union ovsdb_atom *a, const union ovsdb_atom *b,
                        enum ovsdb_atomic_type type)
{
    switch (type) {
    case OVSDB_TYPE_INTEGER:
        return a->integer < b->integer ? -1 : a->integer > b->integer;
    case OVSDB_TYPE_REAL:
        return a->real < b->real ? -1 : a->real > b->real;
    case OVSDB_TYPE_BOOLEAN:
        return a->boolean - b->boolean;
    case OVSDB_TYPE_STRING:
        return strcmp(a->s->string, b->s->string);
    case OVSDB_TYPE_UUID:
        return uuid_compare_3way(&a->uuid, &b->uuid);
    default:
        return 0;
    }
}

static inline bool
ovsdb_atom_equals(const union ovsdb_atom *a, const union ovsdb_atom *b, enum ovsdb_atomic_type type)
{
    return !ovsdb_atom_compare_3way(a, b, type);
}

static inline bool
ovsdb_atom_is_default(const union ovsdb_atom *atom, enum ovsdb_atomic_type type)
{
    union ovsdb_atom other;
    ovsdb_atom_init_default(&other, type);
    bool is_default = ovsdb_atom_equals(atom, &other, type);
    ovsdb_atom_destroy(&other, type);
    return is_default;
}

/* Data. */

static inline void
ovsdb_datum_init_empty(struct ovsdb_datum *datum)
{
    memset(datum, 0, sizeof *datum);
}

#define OVSDB_DATUM_INITIALIZER {0, NULL, NULL, NULL}

/* Copies share their elements until one of them changes. `*refcnt` counts the copies. */
static inline void
ovsdb_datum_destroy(struct ovsdb_datum *datum, const struct ovsdb_type *type)
{
    if (datum->refcnt && --*datum->refcnt) {
        ovsdb_datum_init_empty(datum);
        return;
    }
    free(datum->refcnt);
    for (unsigned int i = 0; i < datum->n; i++) {
        ovsdb_atom_destroy(&datum->keys[i], type->key.type);
        if (datum->values) {
            ovsdb_atom_destroy(&datum->values[i], type->value.type);
        }
    }
    free(datum->keys);
    free(datum->values);
    ovsdb_datum_init_empty(datum);
}

static inline void
ovsdb_datum_clone(struct ovsdb_datum *made, const struct ovsdb_datum *datum)
{
    struct ovsdb_datum *held = (struct ovsdb_datum *) (uintptr_t) datum;
    /* Without elements it may still own memory. */
    if (datum->keys && !datum->refcnt) {
        held->refcnt = (unsigned int *) corvid_compat_alloc(NULL, sizeof *held->refcnt);
        *held->refcnt = 1;
    }
    *made = *datum;
    if (made->refcnt) {
        ++*made->refcnt;
    }
}

/* Gives a datum elements of its own, before they change. */
static inline void
ovsdb_datum_unshare(struct ovsdb_datum *datum, const struct ovsdb_type *type)
{
    if (!datum->refcnt || *datum->refcnt == 1) {
        return;
    }
    struct ovsdb_datum shared = *datum;
    size_t size = shared.n * sizeof *shared.keys;
    ovsdb_datum_init_empty(datum);
    datum->n = shared.n;
    datum->keys = (union ovsdb_atom *) corvid_compat_alloc(NULL, size);
    datum->values = shared.values ? (union ovsdb_atom *) corvid_compat_alloc(NULL, size) : NULL;
    for (unsigned int i = 0; i < shared.n; i++) {
        ovsdb_atom_clone(&datum->keys[i], &shared.keys[i], type->key.type);
        if (shared.values) {
            ovsdb_atom_clone(&datum->values[i], &shared.values[i], type->value.type);
        }
    }
    --*shared.refcnt;
}

/* Makes room for `n` elements. */
static inline void
corvid_compat_datum_resize(struct ovsdb_datum *datum, const struct ovsdb_type *type, unsigned int n)
{
    size_t size = n * sizeof *datum->keys;
    datum->keys = (union ovsdb_atom *) corvid_compat_alloc(datum->keys, size);
    if (ovsdb_type_is_map(type)) {
        datum->values = (union ovsdb_atom *) corvid_compat_alloc(datum->values, size);
    }
}

/* Adds an element without regard to the order. With `range_end`, adds all integers from the key to
 * it. */
static inline void
ovsdb_datum_add_unsafe(struct ovsdb_datum *datum, const union ovsdb_atom *key,
                       const union ovsdb_atom *value, const struct ovsdb_type *type,
                       const union ovsdb_atom *range_end)
{
    ovsdb_datum_unshare(datum, type);
    unsigned int n = range_end ? (unsigned int) (range_end->integer - key->integer) + 1 : 1;
    corvid_compat_datum_resize(datum, type, datum->n + n);
    for (unsigned int i = 0; i < n; i++) {
        union ovsdb_atom *place = &datum->keys[datum->n];
        ovsdb_atom_clone(place, key, type->key.type);
        if (range_end) {
            place->integer += i;
        }
        if (ovsdb_type_is_map(type)) {
            ovsdb_atom_clone(&datum->values[datum->n], value, type->value.type);
        }
        datum->n++;
    }
}

static inline void
corvid_compat_datum_swap(struct ovsdb_datum *datum, unsigned int a, unsigned int b)
{
    union ovsdb_atom held = datum->keys[a];
    datum->keys[a] = datum->keys[b];
    datum->keys[b] = held;
    if (datum->values) {
        held = datum->values[a];
        datum->values[a] = datum->values[b];
        datum->values[b] = held;
    }
}

static inline int
corvid_compat_datum_order(const struct ovsdb_datum *datum, unsigned int a, unsigned int b,
                          const struct ovsdb_type *type)
{
    int order = ovsdb_atom_compare_3way(&datum->keys[a], &datum->keys[b], type->key.type);
    if (!order && datum->values) {
        order = ovsdb_atom_compare_3way(&datum->values[a], &datum->values[b], type->value.type);
    }
    return order;
}

/* Lets an element sink to its place among the first `n` of a heap. */
static inline void
corvid_compat_datum_sink(struct ovsdb_datum *datum, unsigned int at, unsigned int n,
                         const struct ovsdb_type *type)
{
    for (;;) {
        unsigned int child = 2 * at + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && corvid_compat_datum_order(datum, child, child + 1, type) < 0) {
            child++;
        }
        if (corvid_compat_datum_order(datum, at, child, type) >= 0) {
            return;
        }
        corvid_compat_datum_swap(datum, at, child);
        at = child;
    }
}

/* Sorts, and removes elements whose key is there already. */
static inline size_t
ovsdb_datum_sort_unique(struct ovsdb_datum *datum, const struct ovsdb_type *type)
{
    ovsdb_datum_unshare(datum, type);
    for (unsigned int i = datum->n / 2; i-- > 0;) {
        corvid_compat_datum_sink(datum, i, datum->n, type);
    }
    for (unsigned int n = datum->n; n > 1; n--) {
        corvid_compat_datum_swap(datum, 0, n - 1);
        corvid_compat_datum_sink(datum, 0, n - 1, type);
    }
    unsigned int kept = 0;
    for (unsigned int i = 0; i < datum->n; i++) {
        if (kept && ovsdb_atom_equals(&datum->keys[kept - 1], &datum->keys[i], type->key.type)) {
            ovsdb_atom_destroy(&datum->keys[i], type->key.type);
            if (datum->values) {
                ovsdb_atom_destroy(&datum->values[i], type->value.type);
            }
        } else {
            corvid_compat_datum_swap(datum, kept++, i);
        }
    }
    datum->n = kept;
    return kept;
}

static inline void
ovsdb_datum_init_default(struct ovsdb_datum *datum, const struct ovsdb_type *type)
{
    ovsdb_datum_init_empty(datum);
    if (type->n_min) {
        union ovsdb_atom key, value;
        ovsdb_atom_init_default(&key, type->key.type);
        ovsdb_atom_init_default(&value, type->value.type);
        ovsdb_datum_add_unsafe(datum, &key, &value, type, NULL);
        ovsdb_atom_destroy(&key, type->key.type);
        ovsdb_atom_destroy(&value, type->value.type);
    }
}

static inline bool
ovsdb_datum_is_default(const struct ovsdb_datum *datum, const struct ovsdb_type *type)
{
    if (datum->n != type->n_min) {
        return false;
    }
    for (unsigned int i = 0; i < datum->n; i++) {
        if (!ovsdb_atom_is_default(&datum->keys[i], type->key.type)
            || (datum->values && !ovsdb_atom_is_default(&datum->values[i], type->value.type))) {
            return false;
        }
    }
    return true;
}

/* Whether a key is there, and where. */
static inline bool
ovsdb_datum_find_key(const struct ovsdb_datum *datum, const union ovsdb_atom *key,
                     enum ovsdb_atomic_type type, unsigned int *place)
{
    unsigned int low = 0, high = datum->n;
    while (low < high) {
        unsigned int middle = (low + high) / 2;
        int order = ovsdb_atom_compare_3way(key, &datum->keys[middle], type);
        if (!order) {
            if (place) {
                *place = middle;
            }
            return true;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return false;
}

/* The place of a pair, or of a key of a set; UINT_MAX if it is not there. */
static inline unsigned int
corvid_compat_datum_find(const struct ovsdb_datum *a, unsigned int i, const struct ovsdb_datum *b,
                         const struct ovsdb_type *type)
{
    unsigned int place;
    bool is_there = ovsdb_datum_find_key(b, &a->keys[i], type->key.type, &place)
                    && (!a->values || !b->values
                        || ovsdb_atom_equals(&a->values[i], &b->values[place], type->value.type));
    return is_there ? place : UINT_MAX;
}

/* By the number of elements first, then by keys, then by values. */
static inline int
ovsdb_datum_compare_3way(const struct ovsdb_datum *a, const struct ovsdb_datum *b,
                         const struct ovsdb_type *type)
{
    int order = a->n < b->n ? -1 : a->n > b->n;
    for (unsigned int i = 0; !order && i < a->n; i++) {
        order = ovsdb_atom_compare_3way(&a->keys[i], &b->keys[i], type->key.type);
    }
    for (unsigned int i = 0; !order && ovsdb_type_is_map(type) && i < a->n; i++) {
        order = ovsdb_atom_compare_3way(&a->values[i], &b->values[i], type->value.type);
    }
    return order;
}

static inline bool
ovsdb_datum_equals(const struct ovsdb_datum *a, const struct ovsdb_datum *b,
                   const struct ovsdb_type *type)
{
    return !ovsdb_datum_compare_3way(a, b, type);
}

/* Whether `b` has every element of `a`. */
static inline bool
ovsdb_datum_includes_all(const struct ovsdb_datum *a, const struct ovsdb_datum *b,
                         const struct ovsdb_type *type)
{
    for (unsigned int i = 0; i < a->n; i++) {
        if (corvid_compat_datum_find(a, i, b, type) == UINT_MAX) {
            return false;
        }
    }
    return true;
}

/* Whether `b` has no element of `a`. */
static inline bool
ovsdb_datum_excludes_all(const struct ovsdb_datum *a, const struct ovsdb_datum *b,
                         const struct ovsdb_type *type)
{
    for (unsigned int i = 0; i < a->n; i++) {
        if (corvid_compat_datum_find(a, i, b, type) != UINT_MAX) {
            return false;
        }
    }
    return true;
}

/* Adds the elements of `b` whose keys `a` does not have. */
static inline void
ovsdb_datum_union(struct ovsdb_datum *a, const struct ovsdb_datum *b, const struct ovsdb_type *type)
{
    unsigned int n = a->n;
    for (unsigned int i = 0; i < b->n; i++) {
        struct ovsdb_datum former = *a;
        former.n = n;
        if (!ovsdb_datum_find_key(&former, &b->keys[i], type->key.type, NULL)) {
            const union ovsdb_atom *value = b->values ? &b->values[i] : NULL;
            ovsdb_datum_add_unsafe(a, &b->keys[i], value, type, NULL);
        }
    }
    ovsdb_datum_sort_unique(a, type);
}

/* Removes the elements that `b` has, where `b` is a set of keys or pairs. */
static inline void
ovsdb_datum_subtract(struct ovsdb_datum *a, const struct ovsdb_type *a_type,
                     const struct ovsdb_datum *b, const struct ovsdb_type *b_type)
{
    unsigned int kept = 0;
    (void) b_type;
    ovsdb_datum_unshare(a, a_type);
    for (unsigned int i = 0; i < a->n; i++) {
        if (corvid_compat_datum_find(a, i, b, a_type) != UINT_MAX) {
            ovsdb_atom_destroy(&a->keys[i], a_type->key.type);
            if (a->values) {
                ovsdb_atom_destroy(&a->values[i], a_type->value.type);
            }
        } else {
            corvid_compat_datum_swap(a, kept++, i);
        }
    }
    a->n = kept;
}

static inline void
ovsdb_datum_from_smap(struct ovsdb_datum *datum, const struct smap *smap)
{
    const struct smap_node *node;
    struct ovsdb_type type = ovsdb_type_uuid;
    type.key = type.value = corvid_compat_base(OVSDB_TYPE_STRING);
    type.n_max = UINT_MAX;
    ovsdb_datum_init_empty(datum);
    SMAP_FOR_EACH (node, smap) {
        union ovsdb_atom key, value;
        key.s = ovsdb_atom_string_create(node->key);
        value.s = ovsdb_atom_string_create(node->value);
        ovsdb_datum_add_unsafe(datum, &key, &value, &type, NULL);
        ovsdb_atom_destroy(&key, OVSDB_TYPE_STRING);
        ovsdb_atom_destroy(&value, OVSDB_TYPE_STRING);
    }
    ovsdb_datum_sort_unique(datum, &type);
}

#ifdef __cplusplus
}
#endif

#endif
