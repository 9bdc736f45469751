/* More names of Open vSwitch's ovsdb-idl.h and ovsdb-idl-provider.h: the session, the class, what a
 * replica costs, rows of any table. Included by corvid-compat-idl.h. */

#ifndef CORVID_COMPAT_IDL_SESSION_H
#define CORVID_COMPAT_IDL_SESSION_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "corvid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of a column. */
static inline const struct corvid_idl_table_class *
corvid_compat_table_class_from_column(const struct corvid_idl_class *class_,
                                      const struct corvid_idl_column *column)
{
    for (size_t i = 0; i < class_->n_tables; i++) {
        const struct corvid_idl_table_class *table = &class_->tables[i];
        /* Compared as numbers, because the column is in one of these arrays only. */
        uintptr_t first = (uintptr_t) table->columns, place = (uintptr_t) column;
        if (place >= first && place < (uintptr_t) (table->columns + table->n_columns)) {
            return table;
        }
    }
    return NULL;
}

static inline const char *
corvid_compat_usage_name(char *name, size_t size, const char *what, const struct corvid_idl *idl)
{
    const struct corvid_idl_class *class_ = corvid_idl_get_class(idl);
    snprintf(name, size, "%s-%s", what, class_ ? class_->database : "");
    return name;
}

static inline const struct corvid_idl_row *
corvid_compat_txn_insert(struct corvid_idl_txn *txn, const struct corvid_idl_table_class *class_,
                         const corvid_uuid *uuid)
{
    return corvid_idl_txn_insert(txn, class_, uuid, false);
}

static inline const struct corvid_idl_row *
corvid_compat_txn_insert_persist(struct corvid_idl_txn *txn,
                                 const struct corvid_idl_table_class *class_,
                                 const corvid_uuid *uuid)
{
    return corvid_idl_txn_insert(txn, class_, uuid, true);
}

#ifdef __cplusplus
}
#endif

#define ovsdb_idl_get_last_error corvid_idl_get_last_error
#define ovsdb_idl_enable_reconnect corvid_idl_enable_reconnect
#define ovsdb_idl_reset_min_index corvid_idl_reset_min_index
#define ovsdb_idl_set_db_change_aware corvid_idl_set_db_change_aware
#define ovsdb_idl_verify_write_only corvid_idl_verify_write_only
#define ovsdb_idl_get_class corvid_idl_get_class
#define ovsdb_idl_table_class_from_column corvid_compat_table_class_from_column
#define ovsdb_idl_txn_insert corvid_compat_txn_insert
#define ovsdb_idl_txn_insert_persist_uuid corvid_compat_txn_insert_persist
/* The replica checks each update as it is applied. */
#define ovsdb_idl_check_consistency(IDL) ((void) (IDL))

/* Adds to a `struct simap` of the program, whose header the program includes. */
#define ovsdb_idl_get_memory_usage(IDL, USAGE) \
    do { \
        const struct corvid_idl *idl__ = (IDL); \
        uint64_t cells__ = 0, txns__ = 0; \
        char name__[100]; \
        corvid_idl_count(idl__, &cells__, &txns__); \
        simap_increase(USAGE, corvid_compat_usage_name(name__, sizeof name__, "idl-cells", idl__), \
                       (unsigned int) cells__); \
        simap_increase( \
            USAGE, \
            corvid_compat_usage_name(name__, sizeof name__, "idl-outstanding-txns", idl__), \
            (unsigned int) txns__); \
    } while (0)

#endif
