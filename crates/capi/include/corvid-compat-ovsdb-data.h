/* The names of Open vSwitch's ovsdb-data.h and ovsdb-types.h: values of any column, and how they come
 * to libcorvid and from it. With CORVID_WITH_OPENVSWITCH the values are Open vSwitch's own. */

#ifndef CORVID_COMPAT_OVSDB_DATA_H
#define CORVID_COMPAT_OVSDB_DATA_H 1

#include <assert.h>

#include "corvid.h"
#include "corvid-compat-memory.h"
#include "corvid-compat-uuid.h"

/* Without the headers of Open vSwitch's values, the program cannot name any. */
#if !defined(CORVID_WITH_OPENVSWITCH) || defined(CORVID_OVSDB_TYPES)

#ifdef CORVID_WITH_OPENVSWITCH
#include <openvswitch/json.h>
#ifdef __has_include
#if __has_include(<ovsdb-data.h>)
#include <ovsdb-data.h>
#include <ovsdb-types.h>
#else
#include <lib/ovsdb-data.h>
#include <lib/ovsdb-types.h>
#endif
#else
#include <ovsdb-data.h>
#include <ovsdb-types.h>
#endif
#else
#include "corvid-compat-ovsdb-data-own.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Makes an atom of libcorvid of one of a datum. It borrows the string. */
static inline struct corvid_atom
corvid_compat_atom_of(const union ovsdb_atom *atom, enum ovsdb_atomic_type type)
{
    switch (type) {
    case OVSDB_TYPE_INTEGER:
        return corvid_atom_integer(atom->integer);
    case OVSDB_TYPE_REAL:
        return corvid_atom_real(atom->real);
    case OVSDB_TYPE_BOOLEAN:
        return corvid_atom_boolean(atom->boolean);
    case OVSDB_TYPE_STRING:
        return corvid_atom_string(json_string(atom->s));
    case OVSDB_TYPE_UUID:
        return corvid_atom_uuid(atom->uuid);
    default: {
        struct corvid_atom none = corvid_atom_integer(0);
        none.kind = CORVID_TYPE_VOID;
        return none;
    }
    }
}

/* Makes an atom of a datum of one of libcorvid. It owns a copy of the string. */
static inline void
corvid_compat_atom_to(union ovsdb_atom *made, const struct corvid_atom *atom)
{
    switch (atom->kind) {
    case CORVID_TYPE_INTEGER:
        made->integer = atom->value.integer;
        break;
    case CORVID_TYPE_REAL:
        made->real = atom->value.real;
        break;
    case CORVID_TYPE_BOOLEAN:
        made->boolean = atom->value.boolean;
        break;
    case CORVID_TYPE_STRING:
        made->s = ovsdb_atom_string_create(atom->value.string);
        break;
    case CORVID_TYPE_UUID:
        made->uuid = atom->value.uuid;
        break;
    default:
        break;
    }
}

/* The elements of a datum as atoms of libcorvid: keys, then values. The caller frees them. */
static inline struct corvid_atom *
corvid_compat_datum_atoms(const struct ovsdb_datum *datum, enum ovsdb_atomic_type key_type,
                          enum ovsdb_atomic_type value_type)
{
    size_t n = datum->n, halves = value_type == OVSDB_TYPE_VOID ? 1 : 2;
    struct corvid_atom *atoms = (struct corvid_atom *) corvid_compat_alloc(
        NULL, n * halves * sizeof *atoms);
    for (size_t i = 0; i < n; i++) {
        atoms[i] = corvid_compat_atom_of(&datum->keys[i], key_type);
        if (halves == 2) {
            atoms[n + i] = corvid_compat_atom_of(&datum->values[i], value_type);
        }
    }
    return atoms;
}

/* Makes a datum of one of libcorvid, which is freed. */
static inline void
corvid_compat_datum_take(struct ovsdb_datum *made, corvid_datum *datum)
{
    size_t n = corvid_datum_count(datum);
    const struct corvid_atom *keys = corvid_datum_keys(datum);
    const struct corvid_atom *values = corvid_datum_values(datum);
    ovsdb_datum_init_empty(made);
    if (n) {
        made->keys = (union ovsdb_atom *) corvid_compat_alloc(NULL, n * sizeof *made->keys);
        for (size_t i = 0; i < n; i++) {
            corvid_compat_atom_to(&made->keys[i], &keys[i]);
        }
        if (values) {
            made->values = (union ovsdb_atom *) corvid_compat_alloc(NULL, n * sizeof *made->values);
            for (size_t i = 0; i < n; i++) {
                corvid_compat_atom_to(&made->values[i], &values[i]);
            }
        }
        made->n = (unsigned int) n;
    }
    corvid_datum_free(datum);
}

/* Values that ovsdb_idl_read has handed out in this thread since its last run. */
struct corvid_compat_read {
    struct corvid_compat_read *next;
    struct ovsdb_datum datum;
    const struct corvid_idl_column *column;
};

__attribute__((weak)) __thread struct corvid_compat_read *corvid_compat_reads = NULL;

/* Frees the values that were read, but for what clones of them share. Runs of replicas call it. */
static inline void
corvid_compat_forget_reads(void)
{
    while (corvid_compat_reads) {
        struct corvid_compat_read *read = corvid_compat_reads;
        corvid_compat_reads = read->next;
        ovsdb_datum_destroy(&read->datum, &read->column->type);
        free(read);
    }
}

/* The value of a column, as the open transaction has it. It is good until a replica
 * runs in this thread. Of a row that is gone it is the default, and the log has an error. */
static inline const struct ovsdb_datum *
corvid_compat_read_column(const struct corvid_idl_row *row, const struct corvid_idl_column *column)
{
    struct corvid_compat_read *read = (struct corvid_compat_read *) corvid_compat_alloc(
        NULL, sizeof *read);
    corvid_datum *datum = NULL;
    memset(read, 0, sizeof *read);
    read->column = column;
    if (corvid_idl_read(row, column, &datum) == CORVID_OK) {
        corvid_compat_datum_take(&read->datum, datum);
    } else {
        /* Programs read the element of a column that always has one. */
        ovsdb_datum_init_default(&read->datum, &column->type);
    }
    read->next = corvid_compat_reads;
    corvid_compat_reads = read;
    return &read->datum;
}

/* The same for a column whose types the program expects. */
static inline const struct ovsdb_datum *
corvid_compat_get_column(const struct corvid_idl_row *row, const struct corvid_idl_column *column,
                         enum ovsdb_atomic_type key_type, enum ovsdb_atomic_type value_type)
{
    assert(column->type.key.type == key_type);
    assert(column->type.value.type == value_type);
    (void) key_type;
    (void) value_type;
    return corvid_compat_read_column(row, column);
}

/* Writes a column. The datum stays the caller's. */
static inline void
corvid_compat_write_clone(const struct corvid_idl_row *row, const struct corvid_idl_column *column,
                          const struct ovsdb_datum *datum)
{
    bool is_map = column->type.value.type != OVSDB_TYPE_VOID;
    struct corvid_atom *atoms = corvid_compat_datum_atoms(datum, column->type.key.type,
                                                          column->type.value.type);
    corvid_idl_txn_write(row, column, atoms, is_map ? atoms + datum->n : NULL, datum->n);
    free(atoms);
}

/* Writes a column, and frees the contents of the datum. */
static inline void
corvid_compat_write(const struct corvid_idl_row *row, const struct corvid_idl_column *column,
                    struct ovsdb_datum *datum)
{
    corvid_compat_write_clone(row, column, datum);
    ovsdb_datum_destroy(datum, &column->type);
}

/* Changes of single elements. They free the datum, which was allocated, with its contents. */

static inline void
corvid_compat_write_elements(const struct corvid_idl_row *row,
                             const struct corvid_idl_column *column, struct ovsdb_datum *datum,
                             bool is_removal)
{
    bool is_map = column->type.value.type != OVSDB_TYPE_VOID;
    for (unsigned int i = 0; i < datum->n; i++) {
        struct corvid_atom key = corvid_compat_atom_of(&datum->keys[i], column->type.key.type);
        if (!is_map) {
            (is_removal ? corvid_idl_txn_remove_value : corvid_idl_txn_add_value)(row, column, key);
        } else if (is_removal) {
            corvid_idl_txn_remove_key(row, column, key);
        } else {
            corvid_idl_txn_set_key(
                row, column, key,
                corvid_compat_atom_of(&datum->values[i], column->type.value.type));
        }
    }
    struct ovsdb_type type = column->type;
    if (!datum->values) {
        /* Keys of a map that are to be removed. */
        type.value.type = OVSDB_TYPE_VOID;
    }
    ovsdb_datum_destroy(datum, &type);
    free(datum);
}

static inline void
corvid_compat_write_partial(const struct corvid_idl_row *row,
                            const struct corvid_idl_column *column, struct ovsdb_datum *datum)
{
    corvid_compat_write_elements(row, column, datum, false);
}

static inline void
corvid_compat_delete_partial(const struct corvid_idl_row *row,
                             const struct corvid_idl_column *column, struct ovsdb_datum *datum)
{
    corvid_compat_write_elements(row, column, datum, true);
}

/* Sets a column of the key of an index, and frees the contents of the datum. */
static inline void
corvid_compat_index_write(const struct corvid_idl_row *row, const struct corvid_idl_column *column,
                          struct ovsdb_datum *datum, const struct corvid_idl_table_class *class_)
{
    bool is_map = column->type.value.type != OVSDB_TYPE_VOID;
    struct corvid_atom *atoms = corvid_compat_datum_atoms(datum, column->type.key.type,
                                                          column->type.value.type);
    (void) class_;
    corvid_idl_index_write(row, column, atoms, is_map ? atoms + datum->n : NULL, datum->n);
    free(atoms);
    ovsdb_datum_destroy(datum, &column->type);
}

static inline void
corvid_compat_add_clause(struct corvid_idl_condition *condition, int function,
                         const struct corvid_idl_column *column, const struct ovsdb_datum *datum)
{
    bool is_map = column->type.value.type != OVSDB_TYPE_VOID;
    struct corvid_atom *atoms = corvid_compat_datum_atoms(datum, column->type.key.type,
                                                          column->type.value.type);
    corvid_idl_condition_add_clause(condition, function, column, atoms,
                                    is_map ? atoms + datum->n : NULL, datum->n);
    free(atoms);
}

#ifdef CORVID_WITH_OPENVSWITCH

/* Fills the values that a column lists. The constructor of generated code calls it. */
static inline void
corvid_compat_enumerate(struct ovsdb_datum *datum, const char *const texts[], unsigned int n)
{
    ovsdb_datum_init_empty(datum);
    datum->keys = (union ovsdb_atom *) corvid_compat_alloc(NULL, n * sizeof *datum->keys);
    for (unsigned int i = 0; i < n; i++) {
        datum->keys[i].s = ovsdb_atom_string_create(texts[i]);
    }
    datum->n = n;
}

/* Types of the server's columns as Open vSwitch's library has them: one for each column that the
 * program asks for, as long as it runs. */
struct corvid_compat_type {
    struct corvid_compat_type *next;
    const struct corvid_idl_column *column;
    struct ovsdb_type type;
};

__attribute__((weak)) __thread struct corvid_compat_type *corvid_compat_types = NULL;

static inline void
corvid_compat_base_type(struct ovsdb_base_type *made, const struct corvid_idl_base_type *base)
{
    ovsdb_base_type_init(made, (enum ovsdb_atomic_type) base->type);
    if (base->type == CORVID_TYPE_INTEGER) {
        made->integer.min = base->integer.min;
        made->integer.max = base->integer.max;
    } else if (base->type == CORVID_TYPE_REAL) {
        made->real.min = base->real.min;
        made->real.max = base->real.max;
    } else if (base->type == CORVID_TYPE_STRING) {
        made->string.minLen = base->string.minLen;
        made->string.maxLen = base->string.maxLen;
    } else if (base->type == CORVID_TYPE_UUID && base->uuid.refTableName) {
        made->uuid.refTableName = corvid_compat_strdup(base->uuid.refTableName);
        made->uuid.refType = (enum ovsdb_ref_type) base->uuid.refType;
    }
    if (base->enum_) {
        const struct corvid_idl_values *values = base->enum_;
        struct ovsdb_datum *datum = (struct ovsdb_datum *) corvid_compat_alloc(
            NULL, sizeof *datum);
        ovsdb_datum_init_empty(datum);
        datum->n = values->n;
        datum->keys = (union ovsdb_atom *) corvid_compat_alloc(NULL,
                                                              values->n * sizeof *datum->keys);
        for (unsigned int i = 0; i < values->n; i++) {
            if (base->type == CORVID_TYPE_STRING) {
                datum->keys[i].s = ovsdb_atom_string_create(values->keys[i].s->string);
            } else {
                memcpy(&datum->keys[i], &values->keys[i], sizeof datum->keys[i]);
            }
        }
        made->enum_ = datum;
    }
}

/* The type that a column has at the server, or null. It is good until the program asks for the same
 * column again. */
static inline const struct ovsdb_type *
corvid_compat_server_type(const struct corvid_idl *idl, const struct corvid_idl_column *column)
{
    const struct corvid_idl_type *from = corvid_idl_server_column_type(idl, column);
    struct corvid_compat_type *each = corvid_compat_types;
    if (!from) {
        return NULL;
    }
    while (each && each->column != column) {
        each = each->next;
    }
    if (each) {
        ovsdb_type_destroy(&each->type);
    } else {
        each = (struct corvid_compat_type *) corvid_compat_alloc(NULL, sizeof *each);
        each->column = column;
        each->next = corvid_compat_types;
        corvid_compat_types = each;
    }
    corvid_compat_base_type(&each->type.key, &from->key);
    corvid_compat_base_type(&each->type.value, &from->value);
    each->type.n_min = from->n_min;
    each->type.n_max = from->n_max;
    return &each->type;
}

#endif

#ifdef __cplusplus
}
#endif

#define ovsdb_idl_read corvid_compat_read_column
#define ovsdb_idl_get corvid_compat_get_column
#define ovsdb_idl_txn_write corvid_compat_write
#define ovsdb_idl_txn_write_clone corvid_compat_write_clone
#define ovsdb_idl_txn_write_partial_map corvid_compat_write_partial
#define ovsdb_idl_txn_delete_partial_map corvid_compat_delete_partial
#define ovsdb_idl_txn_write_partial_set corvid_compat_write_partial
#define ovsdb_idl_txn_delete_partial_set corvid_compat_delete_partial
#define ovsdb_idl_index_write corvid_compat_index_write
#define ovsdb_idl_condition_add_clause corvid_compat_add_clause
#ifdef CORVID_WITH_OPENVSWITCH
#define ovsdb_idl_server_column_type corvid_compat_server_type
#else
#define ovsdb_idl_server_column_type corvid_idl_server_column_type
#include "corvid-compat-ovsdb-text-own.h"
#endif

#else

static inline void
corvid_compat_forget_reads(void)
{
}

#endif
#endif
