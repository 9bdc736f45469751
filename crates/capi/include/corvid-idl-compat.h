/* The names of Open vSwitch's client library for C over those of libcorvid, so that a program which was written for the one compiles with the other. The program includes this header in
 * place of ovsdb-idl.h, poll-loop.h, smap.h, uuid.h and openvswitch/vlog.h, and the header that `ovsdb-idlc c` makes in place of the generated one.
 *
 * docs/c-tutorial.md, "Porting", lists the names that are not here. `uuid`, `smap` and the names of the library become macros, so include headers of the system before this one. */

#ifndef CORVID_IDL_COMPAT_H
#define CORVID_IDL_COMPAT_H 1

#include <corvid.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that the program cannot go on without. */
static inline void *
corvid_compat_alloc(void *memory, size_t size)
{
    void *made = realloc(memory, size ? size : 1);
    if (!made) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return made;
}

static inline char *
corvid_compat_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return (char *) memcpy(corvid_compat_alloc(NULL, size), text, size);
}

/* UUIDs. */

#define UUID_LEN 36
#define UUID_FMT "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x"
#define CORVID_COMPAT_4(U, I) (U)->bytes[I], (U)->bytes[I + 1], (U)->bytes[I + 2], (U)->bytes[I + 3]
#define UUID_ARGS(U) CORVID_COMPAT_4(U, 0), CORVID_COMPAT_4(U, 4), CORVID_COMPAT_4(U, 8), CORVID_COMPAT_4(U, 12)

static inline bool
uuid_equals(const struct corvid_uuid *a, const struct corvid_uuid *b)
{
    return !memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

static inline int
uuid_compare_3way(const struct corvid_uuid *a, const struct corvid_uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

static inline bool
uuid_is_zero(const struct corvid_uuid *uuid)
{
    static const struct corvid_uuid zero = {{0}};
    return uuid_equals(uuid, &zero);
}

static inline void
uuid_zero(struct corvid_uuid *uuid)
{
    memset(uuid, 0, sizeof *uuid);
}

static inline bool
uuid_from_string(struct corvid_uuid *uuid, const char *text)
{
    bool is_good = corvid_uuid_parse(text, uuid) == CORVID_OK;
    if (!is_good) {
        uuid_zero(uuid);
    }
    return is_good;
}

/* The first bytes are random in random UUIDs. */
static inline size_t
uuid_hash(const struct corvid_uuid *uuid)
{
    uint32_t word;
    memcpy(&word, uuid->bytes, sizeof word);
    return word;
}

/* Maps of strings. Those of the program belong to it: smap_destroy frees them. Those in structs of rows are only read. */

#define SMAP_INITIALIZER(SMAP) {NULL, 0}
#define SMAP_CONST_INIT(SMAP) {NULL, 0}
#define SMAP_FOR_EACH(NODE, SMAP) \
    for ((NODE) = (SMAP)->nodes; (SMAP)->n && (NODE) < (SMAP)->nodes + (SMAP)->n; (NODE)++)

static inline void
smap_init(struct corvid_smap *smap)
{
    smap->nodes = NULL;
    smap->n = 0;
}

static inline void
smap_clear(struct corvid_smap *smap)
{
    for (size_t i = 0; i < smap->n; i++) {
        free((void *) (uintptr_t) smap->nodes[i].key);
        free((void *) (uintptr_t) smap->nodes[i].value);
    }
    free((void *) (uintptr_t) smap->nodes);
    smap_init(smap);
}

static inline void
smap_destroy(struct corvid_smap *smap)
{
    if (smap) {
        smap_clear(smap);
    }
}

static inline const struct corvid_smap_node *
smap_get_node(const struct corvid_smap *smap, const char *key)
{
    for (size_t i = 0; i < smap->n; i++) {
        if (!strcmp(smap->nodes[i].key, key)) {
            return &smap->nodes[i];
        }
    }
    return NULL;
}

static inline void
smap_add_nocopy(struct corvid_smap *smap, char *key, char *value)
{
    struct corvid_smap_node *nodes = (struct corvid_smap_node *) (uintptr_t) smap->nodes;
    nodes = (struct corvid_smap_node *) corvid_compat_alloc(nodes, (smap->n + 1) * sizeof *nodes);
    nodes[smap->n].key = key;
    nodes[smap->n].value = value;
    smap->nodes = nodes;
    smap->n++;
}

static inline void
smap_add(struct corvid_smap *smap, const char *key, const char *value)
{
    smap_add_nocopy(smap, corvid_compat_strdup(key), corvid_compat_strdup(value));
}

static inline bool
smap_add_once(struct corvid_smap *smap, const char *key, const char *value)
{
    if (smap_get_node(smap, key)) {
        return false;
    }
    smap_add(smap, key, value);
    return true;
}

static inline char *
corvid_compat_format(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length < 0 ? 1 : (size_t) length + 1;
    char *text = (char *) corvid_compat_alloc(NULL, size);
    text[0] = '\0';
    vsnprintf(text, size, format, args);
    return text;
}

static inline void
smap_add_format(struct corvid_smap *smap, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    smap_add_nocopy(smap, corvid_compat_strdup(key), corvid_compat_format(format, args));
    va_end(args);
}

static inline void
smap_remove(struct corvid_smap *smap, const char *key)
{
    const struct corvid_smap_node *node = smap_get_node(smap, key);
    if (node) {
        struct corvid_smap_node *held = (struct corvid_smap_node *) (uintptr_t) node;
        free((void *) (uintptr_t) held->key);
        free((void *) (uintptr_t) held->value);
        *held = smap->nodes[smap->n - 1];
        smap->n--;
    }
}

static inline void
smap_replace(struct corvid_smap *smap, const char *key, const char *value)
{
    smap_remove(smap, key);
    smap_add(smap, key, value);
}

static inline const char *
smap_get_def(const struct corvid_smap *smap, const char *key, const char *def)
{
    const struct corvid_smap_node *node = smap_get_node(smap, key);
    return node ? node->value : def;
}

static inline const char *
smap_get(const struct corvid_smap *smap, const char *key)
{
    return smap_get_def(smap, key, NULL);
}

static inline bool
smap_get_bool(const struct corvid_smap *smap, const char *key, bool def)
{
    const char *value = smap_get_def(smap, key, "");
    return def ? strcasecmp(value, "false") != 0 : !strcasecmp(value, "true");
}

/* The getters of numbers return the default unless the whole value is a decimal number within the
 * range of the type. */

static inline unsigned long long int
smap_get_ullong(const struct corvid_smap *smap, const char *key, unsigned long long int def)
{
    const char *value = smap_get_def(smap, key, "");
    char *end;
    errno = 0;
    unsigned long long int number = strtoull(value, &end, 10);
    return errno || end == value || *end ? def : number;
}

static inline bool
corvid_compat_number(const char *value, long long int least, long long int greatest, long long int *number)
{
    char *end;
    errno = 0;
    *number = strtoll(value, &end, 10);
    return !errno && end != value && !*end && *number >= least && *number <= greatest;
}

static inline int
smap_get_int(const struct corvid_smap *smap, const char *key, int def)
{
    long long int number;
    return corvid_compat_number(smap_get_def(smap, key, ""), INT_MIN, INT_MAX, &number) ? (int) number : def;
}

static inline unsigned int
smap_get_uint(const struct corvid_smap *smap, const char *key, unsigned int def)
{
    long long int number;
    return corvid_compat_number(smap_get_def(smap, key, ""), 0, UINT_MAX, &number) ? (unsigned int) number : def;
}

static inline bool
smap_is_empty(const struct corvid_smap *smap)
{
    return !smap->n;
}

static inline size_t
smap_count(const struct corvid_smap *smap)
{
    return smap->n;
}

static inline void
smap_clone(struct corvid_smap *to, const struct corvid_smap *from)
{
    smap_init(to);
    for (size_t i = 0; i < from->n; i++) {
        smap_add(to, from->nodes[i].key, from->nodes[i].value);
    }
}

static inline bool
smap_equal(const struct corvid_smap *a, const struct corvid_smap *b)
{
    bool is_equal = a->n == b->n;
    for (size_t i = 0; is_equal && i < a->n; i++) {
        const char *value = smap_get(b, a->nodes[i].key);
        is_equal = value && !strcmp(value, a->nodes[i].value);
    }
    return is_equal;
}

/* The log: to standard error, that of the library too. */

#define VLOG_DEFINE_THIS_MODULE(MODULE) static const char corvid_compat_module[] = #MODULE
#define VLOG_FATAL(...) (corvid_compat_log(corvid_compat_module, "EMER", __VA_ARGS__), exit(EXIT_FAILURE))
#define VLOG_ERR(...) corvid_compat_log(corvid_compat_module, "ERR", __VA_ARGS__)
#define VLOG_WARN(...) corvid_compat_log(corvid_compat_module, "WARN", __VA_ARGS__)
#define VLOG_INFO(...) corvid_compat_log(corvid_compat_module, "INFO", __VA_ARGS__)
#define VLOG_DBG(...) ((void) 0)

static inline void
corvid_compat_log(const char *module, const char *level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s|%s|", module, level);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* The main loop. */

static inline void
poll_block(void)
{
    static const char *const levels[] = {"EMER", "ERR", "WARN", "INFO", "DBG"};
    char text[1024];
    int level;
    while (corvid_log_next(&level, text, sizeof text) == CORVID_OK) {
        corvid_compat_log("corvid", levels[level], "%s", text);
    }
    corvid_poll_block();
}

static inline void
poll_immediate_wake(void)
{
    corvid_poll_timer(0);
}

static inline void
poll_timer_wait(long long int ms)
{
    corvid_poll_timer(ms);
}

static inline void
poll_fd_wait(int fd, short int events)
{
    corvid_poll_fd(fd, events);
}

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
corvid_compat_index_create2(struct corvid_idl *idl, const struct corvid_idl_column *a, const struct corvid_idl_column *b)
{
    const struct corvid_idl_index_column columns[] = {{a, NULL, 0}, {b, NULL, 0}};
    return corvid_idl_index_create(idl, columns, 2);
}

static inline void
corvid_compat_condition_init(struct corvid_idl_condition *condition)
{
    condition->clauses = NULL;
    condition->is_true = false;
}

static inline bool
corvid_compat_track_is_set(const struct corvid_idl_table *table)
{
    return corvid_idl_track_is_set(table->idl, table->class_);
}

#ifdef __cplusplus
}
#endif

/* Types. */
#define uuid corvid_uuid
#define smap corvid_smap
#define smap_node corvid_smap_node
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
#define OVSDB_INDEX_ASC 0
#define OVSDB_INDEX_DESC 1
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
#define OVSDB_IDL_LOOP_INITIALIZER(IDL) {(IDL), 0, NULL, 0, NULL, 0, 0}
#define OVSDB_IDL_CONDITION_INIT(CONDITION) {NULL, false}

/* TLS settings of the process. */
#define stream_ssl_set_private_key_file corvid_tls_set_private_key_file
#define stream_ssl_set_certificate_file corvid_tls_set_certificate_file
#define stream_ssl_set_ca_cert_file corvid_tls_set_ca_certificate_file
#define stream_ssl_set_protocols corvid_tls_set_protocols
#define stream_ssl_set_ciphers corvid_tls_set_ciphers
static inline void
stream_ssl_set_key_and_cert(const char *private_key, const char *certificate)
{
    corvid_tls_set_private_key_file(private_key);
    corvid_tls_set_certificate_file(certificate);
}

/* Functions. */
#define ovsdb_idl_create corvid_idl_create
#define ovsdb_idl_create_unconnected corvid_idl_create_unconnected
#define ovsdb_idl_set_remote corvid_idl_set_remote
#define ovsdb_idl_destroy corvid_idl_destroy
#define ovsdb_idl_set_shuffle_remotes corvid_idl_set_shuffle_remotes
#define ovsdb_idl_set_leader_only corvid_idl_set_leader_only
#define ovsdb_idl_set_probe_interval corvid_idl_set_probe_interval
#define ovsdb_idl_force_reconnect corvid_idl_force_reconnect
#define ovsdb_idl_run corvid_idl_run
#define ovsdb_idl_wait corvid_idl_wait
#define ovsdb_idl_get_initial_snapshot corvid_idl_get_initial_snapshot
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
#define ovsdb_idl_txn_wait corvid_idl_txn_wait
#define ovsdb_idl_txn_commit corvid_idl_txn_commit
#define ovsdb_idl_txn_commit_block corvid_idl_txn_commit_block
#define ovsdb_idl_txn_abort corvid_idl_txn_abort
#define ovsdb_idl_txn_assert_read_only corvid_idl_txn_assert_read_only
#define ovsdb_idl_txn_get_error corvid_idl_txn_get_error
#define ovsdb_idl_txn_get_increment_new_value corvid_idl_txn_get_increment_new_value
#define ovsdb_idl_txn_get_insert_uuid corvid_idl_txn_get_insert_uuid
#define ovsdb_idl_txn_get corvid_idl_txn_get
#define ovsdb_idl_txn_get_idl corvid_idl_txn_get_idl
#define ovsdb_idl_txn_verify corvid_idl_txn_verify
#define ovsdb_idl_txn_delete corvid_idl_txn_delete
#define ovsdb_idl_loop_run corvid_idl_loop_run
#define ovsdb_idl_loop_commit_and_wait corvid_idl_loop_commit_and_wait
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

#endif
