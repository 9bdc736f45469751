/* The names of Open vSwitch's ovsdb-idl.h. They are macros, because a program that links
 * libopenvswitch has functions of these names. */

#ifndef CORVID_COMPAT_IDL_H
#define CORVID_COMPAT_IDL_H 1

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include "corvid.h"
#include "corvid-compat-memory.h"
#include "corvid-compat-ovsdb-data.h"
#include "corvid-compat-poll-loop.h"
#include "corvid-compat-vlog.h"

/* A `struct ovsdb_idl` of Open vSwitch's library is another type. Its header, included later, adds
 * nothing. */
#ifdef OVSDB_IDL_H
#error "Open vSwitch's ovsdb-idl.h is included: corvid-idl-compat.h takes its place"
#endif
#define OVSDB_IDL_H 1
#define OVSDB_IDL_PROVIDER_H 1

/* Headers that programs get by Open vSwitch's ovsdb-idl.h. */
#if defined(CORVID_WITH_OPENVSWITCH) && defined(__has_include)
#if __has_include(<ovsdb-data.h>)
#include <ovsdb-condition.h>
#include <ovsdb-data.h>
#include <ovsdb-types.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The replica: functions whose arguments differ. */

static inline void
corvid_compat_add_comment(struct corvid_idl_txn *txn, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = corvid_compat_format(format, args);
    va_end(args);
    corvid_idl_txn_add_comment(txn, text);
    free(text);
}

static inline struct corvid_idl_index *
corvid_compat_index_create1(struct corvid_idl *idl, const struct corvid_idl_column *a)
{
    const struct corvid_idl_index_column columns[] = {{a, NULL, 0}};
    return corvid_idl_index_create(idl, columns, 1);
}

static inline struct corvid_idl_index *
corvid_compat_index_create2(struct corvid_idl *idl, const struct corvid_idl_column *a,
                            const struct corvid_idl_column *b)
{
    const struct corvid_idl_index_column columns[] = {{a, NULL, 0}, {b, NULL, 0}};
    return corvid_idl_index_create(idl, columns, 2);
}

static inline void
corvid_compat_condition_init(struct corvid_idl_condition *condition)
{
    const struct corvid_idl_condition empty = CORVID_IDL_CONDITION_INIT;
    *condition = empty;
}

static inline bool
corvid_compat_track_is_set(const struct corvid_idl_table *table)
{
    return corvid_idl_track_is_set(table->idl, table->class_);
}

/* Functions that log, or that register events: messages go to the program's log, and events to its
 * loop. */

static inline struct corvid_idl *
corvid_compat_idl_create(const char *remote, const struct corvid_idl_class *class_,
                         bool monitor_everything, bool retry)
{
    struct corvid_idl *idl = corvid_idl_create(remote, class_, monitor_everything, retry);
    corvid_compat_log_forward();
    return idl;
}

static inline void
corvid_compat_idl_set_remote(struct corvid_idl *idl, const char *remote, bool retry)
{
    corvid_idl_set_remote(idl, remote, retry);
    corvid_compat_log_forward();
}

static inline void
corvid_compat_idl_run(struct corvid_idl *idl)
{
    corvid_compat_forget_reads();
    corvid_idl_run(idl);
    corvid_compat_log_forward();
}

static inline void
corvid_compat_idl_wait(struct corvid_idl *idl)
{
    corvid_idl_wait(idl);
    corvid_compat_poll_forward();
}

/* Calls that block do so in the loop of the program, which knows of signals that are to end it. */

static inline void
corvid_compat_idl_get_initial_snapshot(struct corvid_idl *idl)
{
    corvid_compat_log_forward();
    if (!corvid_compat_is_loop_theirs()) {
        corvid_idl_get_initial_snapshot(idl);
        return;
    }
    corvid_compat_idl_run(idl);
    while (corvid_idl_is_alive(idl) && !corvid_idl_has_ever_connected(idl)) {
        corvid_compat_idl_wait(idl);
        poll_block();
        corvid_compat_idl_run(idl);
    }
}

static inline enum corvid_txn_status
corvid_compat_idl_txn_commit(struct corvid_idl_txn *txn)
{
    int status = corvid_idl_txn_commit(txn);
    corvid_compat_log_forward();
    return (enum corvid_txn_status) status;
}

static inline enum corvid_txn_status
corvid_compat_idl_txn_commit_block(struct corvid_idl_txn *txn)
{
    struct corvid_idl *idl = corvid_idl_txn_get_idl(txn);
    corvid_compat_log_forward();
    if (!corvid_compat_is_loop_theirs()) {
        return (enum corvid_txn_status) corvid_idl_txn_commit_block(txn);
    }
    int status = corvid_idl_txn_commit(txn);
    while (status == CORVID_TXN_INCOMPLETE) {
        corvid_compat_idl_run(idl);
        if (!corvid_idl_is_alive(idl)) {
            return (enum corvid_txn_status) corvid_idl_txn_commit_block(txn);
        }
        status = corvid_idl_txn_commit(txn);
        if (status == CORVID_TXN_INCOMPLETE) {
            corvid_compat_idl_wait(idl);
            poll_block();
        }
    }
    return (enum corvid_txn_status) status;
}

static inline void
corvid_compat_idl_txn_wait(const struct corvid_idl_txn *txn)
{
    corvid_idl_txn_wait(txn);
    corvid_compat_poll_forward();
}

static inline struct corvid_idl_txn *
corvid_compat_idl_loop_run(struct corvid_idl_loop *loop)
{
    corvid_compat_forget_reads();
    struct corvid_idl_txn *txn = corvid_idl_loop_run(loop);
    corvid_compat_log_forward();
    return txn;
}

static inline int
corvid_compat_idl_loop_commit_and_wait(struct corvid_idl_loop *loop)
{
    int result = corvid_idl_loop_commit_and_wait(loop);
    corvid_compat_log_forward();
    corvid_compat_poll_forward();
    return result;
}

#ifdef __cplusplus
}
#endif

/* Types. */
#define ovsdb_idl corvid_idl
#define ovsdb_idl_class corvid_idl_class
#define ovsdb_idl_table_class corvid_idl_table_class
#define ovsdb_idl_table corvid_idl_table
#define ovsdb_idl_column corvid_idl_column
#define ovsdb_idl_row corvid_idl_row
#define ovsdb_idl_txn corvid_idl_txn
#define ovsdb_idl_loop corvid_idl_loop
#define ovsdb_idl_condition corvid_idl_condition
#define ovsdb_idl_index corvid_idl_index
#define ovsdb_idl_index_column corvid_idl_index_column
#define ovsdb_idl_cursor corvid_idl_cursor
#define ovsdb_idl_txn_status corvid_txn_status
#define ovsdb_idl_change corvid_row_change

/* Constants. */
#define TXN_UNCOMMITTED CORVID_TXN_UNCOMMITTED
#define TXN_UNCHANGED CORVID_TXN_UNCHANGED
#define TXN_INCOMPLETE CORVID_TXN_INCOMPLETE
#define TXN_ABORTED CORVID_TXN_ABORTED
#define TXN_SUCCESS CORVID_TXN_SUCCESS
#define TXN_TRY_AGAIN CORVID_TXN_TRY_AGAIN
#define TXN_NOT_LOCKED CORVID_TXN_NOT_LOCKED
#define TXN_ERROR CORVID_TXN_ERROR
#define OVSDB_IDL_CHANGE_INSERT CORVID_ROW_INSERT
#define OVSDB_IDL_CHANGE_MODIFY CORVID_ROW_MODIFY
#define OVSDB_IDL_CHANGE_DELETE CORVID_ROW_DELETE
#define OVSDB_IDL_CHANGE_MAX 3
#define OVSDB_IDL_MONITOR (1 << 0)
#define OVSDB_IDL_ALERT (1 << 1)
#define OVSDB_IDL_TRACK (1 << 2)
#define OVSDB_IDL_WRITE_CHANGED_ONLY (1 << 3)
#define OVSDB_INDEX_ASC 0
#define OVSDB_INDEX_DESC 1
#ifndef OVSDB_LIB_CONDITION_H
#define OVSDB_LIB_CONDITION_H 1
enum ovsdb_function {
    OVSDB_F_FALSE,
    OVSDB_F_TRUE,
    OVSDB_F_EQ,
    OVSDB_F_INCLUDES,
    OVSDB_F_LE,
    OVSDB_F_LT,
    OVSDB_F_GE,
    OVSDB_F_GT,
    OVSDB_F_EXCLUDES,
    OVSDB_F_NE,
    OVSDB_F_LAST = OVSDB_F_NE
};
#endif
#define OVSDB_IDL_LOOP_INITIALIZER(IDL) CORVID_IDL_LOOP_INIT(IDL)
#define OVSDB_IDL_CONDITION_INIT(CONDITION) CORVID_IDL_CONDITION_INIT

/* Functions. */
#define ovsdb_idl_create corvid_compat_idl_create
#define ovsdb_idl_create_unconnected corvid_idl_create_unconnected
#define ovsdb_idl_set_remote corvid_compat_idl_set_remote
#define ovsdb_idl_destroy corvid_idl_destroy
#define ovsdb_idl_set_shuffle_remotes corvid_idl_set_shuffle_remotes
#define ovsdb_idl_set_leader_only corvid_idl_set_leader_only
#define ovsdb_idl_set_probe_interval corvid_idl_set_probe_interval
#define ovsdb_idl_force_reconnect corvid_idl_force_reconnect
#define ovsdb_idl_run corvid_compat_idl_run
#define ovsdb_idl_wait corvid_compat_idl_wait
#define ovsdb_idl_get_initial_snapshot corvid_compat_idl_get_initial_snapshot
#define ovsdb_idl_get_seqno corvid_idl_get_seqno
#define ovsdb_idl_has_ever_connected corvid_idl_has_ever_connected
#define ovsdb_idl_is_alive corvid_idl_is_alive
#define ovsdb_idl_is_connected corvid_idl_is_connected
#define ovsdb_idl_add_column corvid_idl_add_column
#define ovsdb_idl_add_table corvid_idl_add_table
#define ovsdb_idl_omit corvid_idl_omit
#define ovsdb_idl_omit_alert corvid_idl_omit_alert
#define ovsdb_idl_set_write_changed_only corvid_idl_set_write_changed_only
#define ovsdb_idl_set_write_changed_only_all corvid_idl_set_write_changed_only_all
#define ovsdb_idl_track_add_column corvid_idl_track_add_column
#define ovsdb_idl_track_add_all corvid_idl_track_add_all
#define ovsdb_idl_track_get_first corvid_idl_track_get_first
#define ovsdb_idl_track_get_next corvid_idl_track_get_next
#define ovsdb_idl_track_is_updated corvid_idl_track_is_updated
#define ovsdb_idl_track_clear corvid_idl_track_clear
#define ovsdb_idl_table_get_seqno corvid_idl_table_get_seqno
#define ovsdb_idl_row_get_seqno corvid_idl_row_get_seqno
#define ovsdb_idl_set_lock corvid_idl_set_lock
#define ovsdb_idl_has_lock corvid_idl_has_lock
#define ovsdb_idl_is_lock_contended corvid_idl_is_lock_contended
#define ovsdb_idl_server_has_table corvid_idl_server_has_table
#define ovsdb_idl_server_has_column corvid_idl_server_has_column
#define ovsdb_idl_get_row_for_uuid corvid_idl_get_row_for_uuid
#define ovsdb_idl_first_row corvid_idl_first_row
#define ovsdb_idl_next_row corvid_idl_next_row
#define ovsdb_idl_is_mutable corvid_idl_is_mutable
#define ovsdb_idl_row_is_synthetic corvid_idl_row_is_synthetic
#define ovsdb_idl_txn_create corvid_idl_txn_create
#define ovsdb_idl_txn_destroy corvid_idl_txn_destroy
#define ovsdb_idl_txn_set_dry_run corvid_idl_txn_set_dry_run
#define ovsdb_idl_txn_increment corvid_idl_txn_increment
#define ovsdb_idl_txn_wait corvid_compat_idl_txn_wait
#define ovsdb_idl_txn_commit corvid_compat_idl_txn_commit
#define ovsdb_idl_txn_commit_block corvid_compat_idl_txn_commit_block
#define ovsdb_idl_txn_abort corvid_idl_txn_abort
#define ovsdb_idl_txn_assert_read_only corvid_idl_txn_assert_read_only
#define ovsdb_idl_txn_get_error corvid_idl_txn_get_error
#define ovsdb_idl_txn_get_increment_new_value corvid_idl_txn_get_increment_new_value
#define ovsdb_idl_txn_get_insert_uuid corvid_idl_txn_get_insert_uuid
#define ovsdb_idl_txn_get corvid_idl_txn_get
#define ovsdb_idl_txn_get_idl corvid_idl_txn_get_idl
#define ovsdb_idl_txn_verify corvid_idl_txn_verify
#define ovsdb_idl_txn_delete corvid_idl_txn_delete
#define ovsdb_idl_loop_run corvid_compat_idl_loop_run
#define ovsdb_idl_loop_commit_and_wait corvid_compat_idl_loop_commit_and_wait
#define ovsdb_idl_loop_destroy corvid_idl_loop_destroy
#define ovsdb_idl_condition_clear corvid_idl_condition_clear
#define ovsdb_idl_condition_destroy corvid_idl_condition_destroy
#define ovsdb_idl_set_condition corvid_idl_set_condition
#define ovsdb_idl_get_condition_seqno corvid_idl_get_condition_seqno
#define ovsdb_idl_index_create corvid_idl_index_create
#define ovsdb_idl_index_init_row corvid_idl_index_init_row
#define ovsdb_idl_index_destroy_row corvid_idl_index_destroy_row
#define ovsdb_idl_index_find corvid_idl_index_find
#define ovsdb_idl_index_compare corvid_idl_index_compare
#define ovsdb_idl_cursor_first corvid_idl_cursor_first
#define ovsdb_idl_cursor_first_eq corvid_idl_cursor_first_eq
#define ovsdb_idl_cursor_first_ge corvid_idl_cursor_first_ge
#define ovsdb_idl_cursor_next corvid_idl_cursor_next
#define ovsdb_idl_cursor_next_eq corvid_idl_cursor_next_eq
#define ovsdb_idl_cursor_data corvid_idl_cursor_data
#define ovsdb_idl_txn_add_comment corvid_compat_add_comment
#define ovsdb_idl_txn_status_to_string corvid_txn_status_name
#define ovsdb_idl_index_create1 corvid_compat_index_create1
#define ovsdb_idl_index_create2 corvid_compat_index_create2
#define ovsdb_idl_condition_init corvid_compat_condition_init
#define ovsdb_idl_condition_is_true(CONDITION) ((CONDITION)->is_true)
#define ovsdb_idl_condition_add_clause_true(CONDITION) ((void) ((CONDITION)->is_true = true))
#define ovsdb_idl_track_is_set corvid_compat_track_is_set

#include "corvid-compat-idl-session.h"

#endif
