/* The client library for OVSDB, the database of Open vSwitch and OVN. libcorvid(3) is the introduction.
 *
 * Rules that hold for every function:
 *
 * - Handles (pointers to the structs without members) are numbers that the library looks up. A null handle, one that was freed or one of another type is
 *   reported as CORVID_ERR_HANDLE; it is never followed.
 * - The other pointers must point to memory of the stated size. Null is reported as CORVID_ERR_NULL where it is not allowed.
 * - A result other than CORVID_OK means that nothing has changed. corvid_error_text says more. Misuse is logged too.
 * - Strings are UTF-8 and end with a NUL byte. The library copies those that it is given.
 * - Only functions whose name ends in _new or whose comment says "free" allocate something that the caller frees.
 * - Any thread may call any function. Calls for one client wait for one another. The library calls
 *   nothing of the caller but its log handler and the functions that a class names (corvid_idl_map_functions, and the code of synthetic columns).
 * - Structs that the caller allocates begin with their size: begin with their initializer, such as CORVID_WAIT_INIT. Plain values (corvid_atom, corvid_row, corvid_change,
 *   corvid_column, corvid_table) never change.
 *
 * Functions of corvid_idl are for code that ovsdb-idlc makes of a schema. They report failures by corvid_error_text and the log alone. Structs of rows belong to the library.
 */

#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ != 8
#error "libcorvid is for 64-bit systems: the structs of typed rows have 64-bit places"
#endif

#ifndef CORVID_H
#define CORVID_H

/* Generated from crates/capi/src by cbindgen: edit the sources. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The version that the program is compiled with; corvid_version tells the one that it runs with.
#define CORVID_VERSION "0.1.0"
#define CORVID_VERSION_MAJOR 0
#define CORVID_VERSION_MINOR 1
#define CORVID_VERSION_PATCH 0

// The version of generated code. A replica is made only of a class that has the library's.
#define CORVID_IDL_VERSION 1

// Structs that the caller allocates begin with their size, which these set.
#define CORVID_WAIT_INIT {sizeof(struct corvid_wait), -1, 0, -1}
#define CORVID_SESSION_INIT {sizeof(struct corvid_session), false, false, false, false, 0, 0}
#define CORVID_HISTORY_QUESTION_INIT(READ) \
  {sizeof(struct corvid_history_question), (READ), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}
#define CORVID_HISTORY_PROGRESS_INIT {sizeof(struct corvid_history_progress), 0, 0}
#define CORVID_CLAUSE(COLUMN, FUNCTION, KEYS, VALUES, COUNT) \
  {sizeof(struct corvid_clause), (COLUMN), (FUNCTION), (KEYS), (VALUES), (COUNT)}
#define CORVID_KEY_PART(KEYS, VALUES, COUNT) \
  {sizeof(struct corvid_key_part), (KEYS), (VALUES), (COUNT)}
#define CORVID_IDL_CONDITION_INIT {sizeof(struct corvid_idl_condition), NULL, 0}
#define CORVID_IDL_LOOP_INIT(IDL) \
  {sizeof(struct corvid_idl_loop), (IDL), 0, NULL, 0, NULL, 0, 0}

// Types of atoms.
typedef enum corvid_type {
  // None: a set has no values.
  CORVID_TYPE_VOID = 0,
  // `integer`
  CORVID_TYPE_INTEGER = 1,
  // `real`
  CORVID_TYPE_REAL = 2,
  // `boolean`
  CORVID_TYPE_BOOLEAN = 3,
  // `string`
  CORVID_TYPE_STRING = 4,
  // `uuid`, also of a row that is referred to.
  CORVID_TYPE_UUID = 5,
} corvid_type;

#if defined(CORVID_IDL_COMPAT) || defined(CORVID_WITH_OPENVSWITCH)
// The same types under the names of Open vSwitch's library.
#include "corvid-compat-types.h"
#else
// A UUID: the numbers of its text, from left to right, eight hexadecimal digits each.
typedef struct corvid_uuid {
  uint32_t parts[4];
} corvid_uuid;

// One pair of a map of strings.
typedef struct corvid_smap_node {
  // The key.
  const char *key;
  // The value.
  const char *value;
} corvid_smap_node;

// A map of strings, in ascending order of keys. In the struct of a row it belongs to the library.
typedef struct corvid_smap {
  // The pairs.
  const corvid_smap_node *nodes;
  // How many there are.
  size_t n;
} corvid_smap;

// A map of strings in the struct of a row.
typedef corvid_smap corvid_idl_smap;
#endif

// The head of the struct of a row. It belongs to the library.
typedef struct corvid_idl_row {
  // The identity of the row; of one that was inserted in the open transaction, a provisional one.
  corvid_uuid uuid;
  // The table of the row.
  const struct corvid_idl_table *table;
} corvid_idl_row;

// A string of an atom.
typedef struct corvid_idl_string {
  char *string;
} corvid_idl_string;

// An atom of a type that is known from elsewhere.
typedef union corvid_idl_atom {
  int64_t integer;
  double real;
  bool boolean;
  struct corvid_idl_string *s;
  corvid_uuid uuid;
} corvid_idl_atom;

// The elements of a set, or the keys and values of a map.
typedef struct corvid_idl_values {
  unsigned int n;
  union corvid_idl_atom *keys;
  // Null for a set.
  union corvid_idl_atom *values;
  // Null: the memory is not shared.
  unsigned int *refcnt;
} corvid_idl_values;

// Constraints of types. Without one, integers and reals have the limits of their types, and lengths 0
// and UINT_MAX.
struct corvid_idl_integer_constraints {
  int64_t min, max;
};
struct corvid_idl_real_constraints {
  double min, max;
};
struct corvid_idl_string_constraints {
  unsigned int minLen, maxLen;
};
struct corvid_idl_uuid_constraints {
  // The table that is referred to; null for none.
  char *refTableName;
  void *refTable;
  // 0 for a strong reference, 1 for a weak one.
  int refType;
};

// The type of keys or of values.
typedef struct corvid_idl_base_type {
  enum corvid_type type;
  // The values that are allowed; null for all.
  struct corvid_idl_values *enum_;
  union {
    struct corvid_idl_integer_constraints integer;
    struct corvid_idl_real_constraints real;
    struct corvid_idl_string_constraints string;
    struct corvid_idl_uuid_constraints uuid;
  };
} corvid_idl_base_type;

// The type of a column.
typedef struct corvid_idl_type {
  struct corvid_idl_base_type key;
  // Of the type CORVID_TYPE_VOID for a set.
  struct corvid_idl_base_type value;
  unsigned int n_min;
  // UINT_MAX without a limit.
  unsigned int n_max;
} corvid_idl_type;

// The type of a column in the description of the column. In programs of Open vSwitch's library that
// link it too, it is that library's.
#ifdef CORVID_OVSDB_TYPES
#define CORVID_IDL_COLUMN_TYPE struct ovsdb_type
#else
#define CORVID_IDL_COLUMN_TYPE struct corvid_idl_type
#endif

// A column of a generated struct. A constant of generated code.
typedef struct corvid_idl_column {
  // Its name in the schema.
  const char *name;
  // Where its member is, for a map that of the keys.
  size_t offset;
  // Where the member with the values of a map is; 0 for none.
  size_t value_offset;
  // Where the member with the number of elements is; 0 for none.
  size_t count_offset;
  // Whether rows may be changed in it, by the schema.
  bool is_mutable;
  // Whether the database does not have it, and the program computes it.
  bool is_synthetic;
  // Its type.
  CORVID_IDL_COLUMN_TYPE type;
} corvid_idl_column;

// The result of a call.
typedef enum corvid_error {
  // The call succeeded.
  CORVID_OK = 0,
  // A required pointer is null.
  CORVID_ERR_NULL = 1,
  // A handle is null, was freed, is of another type, or its client was freed.
  CORVID_ERR_HANDLE = 2,
  // An argument is out of its range or malformed.
  CORVID_ERR_ARGUMENT = 3,
  // The schema has no such table or column, or is no schema.
  CORVID_ERR_SCHEMA = 4,
  // A remote is malformed, or needs TLS files that are missing.
  CORVID_ERR_REMOTE = 5,
  // The row is not there, or no longer.
  CORVID_ERR_ROW_GONE = 6,
  // The column belongs to another table, is not replicated, or is immutable.
  CORVID_ERR_COLUMN = 7,
  // The value has another type than the column, or breaks its constraints.
  CORVID_ERR_TYPE = 8,
  // A transaction is open, which the call does not allow.
  CORVID_ERR_TXN_OPEN = 9,
  // The transaction is not open any more.
  CORVID_ERR_TXN_CLOSED = 10,
  // The transaction does not allow this: it is read-only, the UUID is in use, or it increments a
  // column already.
  CORVID_ERR_TXN = 11,
  // The client is not connected, or has no contents yet.
  CORVID_ERR_NOT_CONNECTED = 12,
  // There is nothing of the kind: the end of a cursor, no such value, no log message.
  CORVID_ERR_NONE = 13,
  // Too many objects, or the system refused a resource.
  CORVID_ERR_LIMIT = 14,
  // The library has failed, now or earlier with this client. The client is unusable: free it.
  CORVID_ERR_PANIC = 15,
  // The client was connected by the process that this one was forked from. See
  // corvid_inherit_connections.
  CORVID_ERR_FORKED = 16,
} corvid_error;

// How a client treats a column: one of READ, WRITE and ON_DEMAND, with the others added by `|`.
typedef enum corvid_mode {
  // The column is replicated. Its changes move the change number.
  CORVID_MODE_READ = 1,
  // The column is replicated for writing: changes of it wake nobody, and writes of the present
  // value are dropped.
  CORVID_MODE_WRITE = 2,
  // The column is not replicated; its values come when they are fetched.
  CORVID_MODE_ON_DEMAND = 4,
  // With READ: changes of it are listed by corvid_changes_new.
  CORVID_MODE_TRACK = 8,
  // With READ: writes of the present value are dropped.
  CORVID_MODE_CHANGED_ONLY = 16,
} corvid_mode;

// The status of a transaction.
typedef enum corvid_txn_status {
  // It is open.
  CORVID_TXN_UNCOMMITTED = 0,
  // There was nothing to send.
  CORVID_TXN_UNCHANGED = 1,
  // It was sent; the answer is not there yet. Run the client and ask again.
  CORVID_TXN_INCOMPLETE = 2,
  // It was given up before it was committed.
  CORVID_TXN_ABORTED = 3,
  // It was committed, and the replica shows it.
  CORVID_TXN_SUCCESS = 4,
  // It was not committed, or that is unknown, for a temporary reason. When corvid_client_seqno
  // differs from what it was before the commit, make the transaction again.
  CORVID_TXN_TRY_AGAIN = 5,
  // The lock is not held.
  CORVID_TXN_NOT_LOCKED = 6,
  // It was refused; corvid_txn_error_text says why.
  CORVID_TXN_ERROR = 7,
} corvid_txn_status;

// Levels of log messages.
typedef enum corvid_level {
  // Something failed that needs attention.
  CORVID_LEVEL_ERROR = 1,
  // Something is odd, such as misuse of the library.
  CORVID_LEVEL_WARN = 2,
  // Connections, and other changes of state.
  CORVID_LEVEL_INFO = 3,
  // Details.
  CORVID_LEVEL_DEBUG = 4,
} corvid_level;

// Functions of clauses.
typedef enum corvid_function {
  // `==`
  CORVID_FUNCTION_EQUAL = 0,
  // `!=`
  CORVID_FUNCTION_NOT_EQUAL = 1,
  // `<`
  CORVID_FUNCTION_LESS = 2,
  // `<=`
  CORVID_FUNCTION_LESS_OR_EQUAL = 3,
  // `>`
  CORVID_FUNCTION_GREATER = 4,
  // `>=`
  CORVID_FUNCTION_GREATER_OR_EQUAL = 5,
  // `includes`
  CORVID_FUNCTION_INCLUDES = 6,
  // `excludes`
  CORVID_FUNCTION_EXCLUDES = 7,
} corvid_function;

// The state of a lock.
typedef enum corvid_lock_state {
  // The client wants no lock.
  CORVID_LOCK_UNSET = 0,
  // It is requested.
  CORVID_LOCK_REQUESTED = 1,
  // Another client holds it.
  CORVID_LOCK_CONTENDED = 2,
  // This client holds it.
  CORVID_LOCK_HELD = 3,
  // The server refused the request. The next connection asks again.
  CORVID_LOCK_REFUSED = 4,
} corvid_lock_state;

// The status of a fetch.
typedef enum corvid_fetch_status {
  // The answer is not there yet.
  CORVID_FETCH_PENDING = 0,
  // The values are in the replica.
  CORVID_FETCH_SUCCESS = 1,
  // The row is no longer there.
  CORVID_FETCH_ROW_GONE = 2,
  // The server refused.
  CORVID_FETCH_ERROR = 3,
  // The connection ended first.
  CORVID_FETCH_DISCONNECTED = 4,
} corvid_fetch_status;

// Kinds of changes.
typedef enum corvid_row_change {
  // The row was inserted.
  CORVID_ROW_INSERT = 0,
  // The row changed.
  CORVID_ROW_MODIFY = 1,
  // The row was deleted.
  CORVID_ROW_DELETE = 2,
} corvid_row_change;

// Notations of corvid_text_write.
typedef enum corvid_notation {
  // That of tools: `[a, "b c"]`.
  CORVID_NOTATION_TEXT = 0,
  // That of tools without brackets and quotes: `a b c`.
  CORVID_NOTATION_BARE = 1,
  // JSON as in messages: `["set",["a","b c"]]`.
  CORVID_NOTATION_JSON = 2,
} corvid_notation;

// The part of the history that a reading reads. Its lines are those that `ovsdb-tool --json`
// prints.
typedef enum corvid_history_read {
  // The files of the history.
  CORVID_READ_FILES = 0,
  // The commits, oldest first.
  CORVID_READ_LOG = 1,
  // The rows that differ between two moments.
  CORVID_READ_DIFF = 2,
  // The schema at a moment.
  CORVID_READ_SCHEMA = 3,
} corvid_history_read;

// The status of a reading or query.
typedef enum corvid_history_status {
  // The next page is not there yet. Run the client and ask again.
  CORVID_HISTORY_PENDING = 0,
  // A page is there: corvid_history_lines.
  CORVID_HISTORY_PAGE = 1,
  // It has ended: the page before was the last one.
  CORVID_HISTORY_DONE = 2,
  // The server does not read history: it is an older release or another program.
  CORVID_HISTORY_UNSUPPORTED = 3,
  // The server refused; corvid_history_error_text says why.
  CORVID_HISTORY_REFUSED = 4,
  // The connection ended first. Ask again from the beginning.
  CORVID_HISTORY_LOST = 5,
} corvid_history_status;

// Changes at one moment: a copy that does not change. Free it with corvid_changes_free.
typedef struct corvid_changes corvid_changes;

// A client of one database. Free it with corvid_client_free.
typedef struct corvid_client corvid_client;

// The settings of a client before it is made. Free it with corvid_config_free.
typedef struct corvid_config corvid_config;

// A position in an index that survives any change of its row. Free it with corvid_cursor_free.
typedef struct corvid_cursor corvid_cursor;

// A value of a column: a copy that does not change. Free it with corvid_datum_free.
typedef struct corvid_datum corvid_datum;

// A reading of the history, or a query of a moment, under way. Free it with corvid_history_free.
typedef struct corvid_history corvid_history;

// A replica with typed rows. Free it with corvid_idl_destroy. One thread at a time uses it,
// because the program reads the structs of rows without a lock.
typedef struct corvid_idl corvid_idl;

// The clauses of a condition.
typedef struct corvid_idl_clauses corvid_idl_clauses;

// An index of a typed replica. It lasts as long as the replica and needs no free.
typedef struct corvid_idl_index corvid_idl_index;

// A transaction of a replica. Free it with corvid_idl_txn_destroy.
typedef struct corvid_idl_txn corvid_idl_txn;

// The rows of a table in the order of some of its columns. Free it with corvid_index_free.
typedef struct corvid_index corvid_index;

// Rows at one moment: a copy that does not change. Free it with corvid_rows_free.
typedef struct corvid_rows corvid_rows;

// Names of rows that a command creates. Free it with corvid_symbols_free.
typedef struct corvid_symbols corvid_symbols;

// A transaction. Free it with corvid_txn_free.
typedef struct corvid_txn corvid_txn;

// A table, by its number in the schema of the client.
typedef struct corvid_table {
  // The number. With 32 bits a corvid_row has no padding, so memcmp compares rows.
  uint32_t number;
} corvid_table;

// A row: a plain value that may be copied and kept. It holds no columns.
typedef struct corvid_row {
  // Its table.
  struct corvid_table table;
  // Its identity. Of a row that was inserted here, until the server knows it, a provisional one.
  corvid_uuid uuid;
} corvid_row;

// A row that changed.
typedef struct corvid_change {
  // The row. A deleted one can be read until corvid_changes_clear.
  struct corvid_row row;
  // It was inserted. Together with `is_deleted`: it was inserted and deleted again.
  bool is_new;
  // It was deleted.
  bool is_deleted;
  // The change number of the last change of the row.
  uint64_t seqno;
} corvid_change;

// A column, by its numbers in the schema of the client.
typedef struct corvid_column {
  // The number of the table.
  uint16_t table;
  // The number of the column.
  uint16_t number;
} corvid_column;

// The events to wait for before the next corvid_client_run. Begin with CORVID_WAIT_INIT.
typedef struct corvid_wait {
  // `sizeof(corvid_wait)`, set by the caller.
  size_t size;
  // The descriptor to poll, which belongs to the library and is good until the next
  // corvid_client_run; -1 for none.
  int fd;
  // The events of poll(2) to wait for: POLLIN, POLLOUT, both or neither.
  int16_t events;
  // How long to wait at most, in milliseconds, as for poll(2); -1 for ever.
  int timeout_ms;
} corvid_wait;

// The state of a session. Begin with CORVID_SESSION_INIT.
typedef struct corvid_session {
  // `sizeof(corvid_session)`, set by the caller.
  size_t size;
  // Whether a connection is established.
  bool connected;
  // Whether the replica is complete and receives the server's changes.
  bool synced;
  // Whether contents have ever arrived.
  bool has_contents;
  // Whether the client is connected or going to try.
  bool alive;
  // A corvid_lock_state.
  int lock;
  // Grows whenever a connection is established or ends.
  uint64_t seqno;
} corvid_session;

// The value of an atom.
typedef union corvid_atom_value {
  // CORVID_TYPE_INTEGER
  int64_t integer;
  // CORVID_TYPE_REAL
  double real;
  // CORVID_TYPE_BOOLEAN: 0 is false.
  uint8_t boolean;
  // CORVID_TYPE_STRING
  const char *string;
  // CORVID_TYPE_UUID
  corvid_uuid uuid;
} corvid_atom_value;

// One element of a set, a key or a value.
typedef struct corvid_atom {
  // A corvid_type, which says which member of `value` holds.
  int kind;
  // The value.
  union corvid_atom_value value;
} corvid_atom;

// One clause of a condition. CORVID_CLAUSE sets all members.
typedef struct corvid_clause {
  // `sizeof(corvid_clause)`, set by the caller.
  size_t size;
  // The column.
  struct corvid_column column;
  // A corvid_function.
  int function;
  // The elements or keys that the column is compared with.
  const struct corvid_atom *keys;
  // The values of a map; null for a set.
  const struct corvid_atom *values;
  // How many there are.
  size_t count;
} corvid_clause;

// A question about the history. Begin with CORVID_HISTORY_QUESTION_INIT. Members that are null, or
// 0, restrict nothing. A moment is text such as "HEAD~3", "-2h", "2026-11-28T10:00Z",
// "@1700000000000" (ms since the Unix epoch) or the id of a commit; a time without a zone is
// one of UTC.
typedef struct corvid_history_question {
  // `sizeof(corvid_history_question)`, set by the caller.
  size_t size;
  // A corvid_history_read.
  int read;
  // Of a log: its last commits only, this many.
  uint64_t newest;
  // Of a log or difference: rows of this table.
  const char *table;
  // Of a log or difference: rows whose UUID begins like this.
  const char *row;
  // Of a log or difference: rows of which this column has changed.
  const char *column;
  // Of a log: commits with this text in their client or comment.
  const char *client;
  // Of a log: changes after this moment.
  const char *since;
  // Of a log: changes up to this moment.
  const char *until;
  // Of a difference: the first moment. It is needed.
  const char *from;
  // Of a difference: the second moment. It is needed.
  const char *to;
  // Of a schema: the moment. It is needed.
  const char *at;
} corvid_history_question;

// How far a reading has come. Begin with CORVID_HISTORY_PROGRESS_INIT.
typedef struct corvid_history_progress {
  // `sizeof(corvid_history_progress)`, set by the caller.
  size_t size;
  // The date that the last page has reached, ms since the Unix epoch; 0 if it is not known.
  int64_t at_ms;
  // The part of the history that has been read, 0 to 1.
  double done;
} corvid_history_progress;

// One column of the key of an index: its elements, or its pairs. CORVID_KEY_PART sets all members.
typedef struct corvid_key_part {
  // `sizeof(corvid_key_part)`, set by the caller.
  size_t size;
  // The elements or keys.
  const struct corvid_atom *keys;
  // The values of a map; null for a set.
  const struct corvid_atom *values;
  // How many there are.
  size_t count;
} corvid_key_part;

// A handler of the program for log messages: a corvid_level and one line of text. Null: none.
typedef void (*corvid_log_handler)(int level, const char *text);

// A condition. CORVID_IDL_CONDITION_INIT is the empty one, which no row meets. Free it with
// corvid_idl_condition_destroy.
typedef struct corvid_idl_condition {
  // `sizeof(struct corvid_idl_condition)`, set by the caller.
  size_t size;
  // Its clauses; null for none.
  struct corvid_idl_clauses *clauses;
  // Every row meets it, if it is not 0.
  uint8_t is_true;
} corvid_idl_condition;

// A table of generated code. A constant.
typedef struct corvid_idl_table_class {
  // Its name in the schema.
  const char *name;
  // Its columns.
  const corvid_idl_column *columns;
  // How many there are.
  size_t n_columns;
  // The size of the struct of a row.
  size_t row_size;
  // Computes the synthetic columns of a row; null if there are none. It may read the replica,
  // and must not change it.
  void (*parse)(corvid_idl_row *row);
  // Frees what `parse` has allocated, before the next `parse` of the row and before the row's
  // end.
  void (*unparse)(corvid_idl_row *row);
  // Rows stay without a reference to them. For the program; the library reads the schema.
  bool is_root;
  // The table has one row at most. For the program.
  bool is_singleton;
} corvid_idl_table_class;

// Functions for maps of strings in structs of rows whose type is not corvid_smap. A constant
// of generated code. The functions must not call the library.
typedef struct corvid_idl_map_functions {
  // The size of a map in bytes.
  size_t size;
  // Makes an empty map in memory without a value.
  void (*init)(void *map);
  // Replaces the pairs of a map by copies of `n` others.
  void (*fill)(void *map, const corvid_smap_node *nodes, size_t n);
  // Frees what a map owns.
  void (*destroy)(void *map);
} corvid_idl_map_functions;

// A database of generated code. A constant. The layouts of columns, tables, rows, index columns
// and cursors belong to its version.
typedef struct corvid_idl_class {
  // CORVID_IDL_VERSION of the header that the code was compiled with.
  unsigned int version;
  // `sizeof(struct corvid_idl_column)` of the code.
  size_t column_size;
  // Its name.
  const char *database;
  // Its schema, as JSON.
  const char *schema;
  // Its tables.
  const struct corvid_idl_table_class *tables;
  // How many there are.
  size_t n_tables;
  // Functions for maps of strings in rows; null if the maps are corvid_smap.
  const struct corvid_idl_map_functions *maps;
} corvid_idl_class;

// The state of a main loop. Begin with CORVID_IDL_LOOP_INIT.
typedef struct corvid_idl_loop {
  // `sizeof(struct corvid_idl_loop)`, set by the caller.
  size_t size;
  // The replica.
  struct corvid_idl *idl;
  // At this change number another attempt would fail as the last one did.
  unsigned int skip_seqno;
  // The transaction that was sent.
  struct corvid_idl_txn *committing_txn;
  // The change number before the commit.
  unsigned int precommit_seqno;
  // The transaction of this turn.
  struct corvid_idl_txn *open_txn;
  // The program's: the configuration that the database has.
  int64_t cur_cfg;
  // The program's: the configuration that the transaction brings.
  int64_t next_cfg;
} corvid_idl_loop;

// A column of an index, and its direction: 0 ascending, 1 descending.
typedef struct corvid_idl_index_column {
  // The column.
  const corvid_idl_column *column;
  // Null: comparison functions are not supported.
  const uint8_t *comparer;
  // The direction.
  int order;
} corvid_idl_index_column;

// A position in an index: a plain value.
typedef struct corvid_idl_cursor {
  // The index.
  struct corvid_idl_index *index;
  // The row that it is at; null at the end.
  corvid_idl_row *row;
  // The number of the position.
  uint64_t position;
} corvid_idl_cursor;

// A table of a replica. It belongs to the library and lasts as long as the replica.
typedef struct corvid_idl_table {
  // Its description.
  const struct corvid_idl_table_class *class_;
  // Its replica.
  struct corvid_idl *idl;
} corvid_idl_table;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library that the program runs with, "MAJOR.MINOR.PATCH". `CORVID_VERSION` is
// the version that it was compiled with. A constant of the library.
const char *corvid_version(void);

// The version of generated code that the library reads: its `CORVID_IDL_VERSION`, which a class
// must have.
unsigned int corvid_idl_version(void);

// Lists the rows of a table with a change of a column of the mode CORVID_MODE_TRACK since
// corvid_changes_clear, in the order of their first change. Free the list with
// corvid_changes_free.
enum corvid_error corvid_changes_new(const struct corvid_client *client,
                                     struct corvid_table table,
                                     struct corvid_changes **changes);

// The number of changes in a list; 0 for a handle that is none.
size_t corvid_changes_count(const struct corvid_changes *changes);

// The changes of a list: an array of corvid_changes_count elements, which belongs to the list and
// stays valid until corvid_changes_free. Null for a handle that is none.
const struct corvid_change *corvid_changes_data(const struct corvid_changes *changes);

// Whether a column is among those that changed in the change at `index`. If none is, a row changed
// that this row refers to.
enum corvid_error corvid_changes_is_updated(const struct corvid_changes *changes,
                                            size_t index,
                                            struct corvid_column column,
                                            bool *updated);

// The value of a changed column before the change at `index`. Free it with corvid_datum_free.
// CORVID_ERR_NONE: the column did not change, or the row is new.
enum corvid_error corvid_changes_old(const struct corvid_changes *changes,
                                     size_t index,
                                     struct corvid_column column,
                                     struct corvid_datum **datum);

// Frees a list. Null is fine.
enum corvid_error corvid_changes_free(struct corvid_changes *changes);

// Clears the changes of all tables.
enum corvid_error corvid_changes_clear(struct corvid_client *client);

// Makes a client of settings, which stay with the caller. `remotes` is a comma-separated list such
// as "ssl:10.0.0.1:6641,ssl:10.0.0.2:6641" or "unix:/run/openvswitch/db.sock". The first attempt
// to connect begins with the first corvid_client_run. Free the client with corvid_client_free.
enum corvid_error corvid_client_new(const struct corvid_config *config,
                                    const char *remotes,
                                    struct corvid_client **client);

// Closes the connection and frees a client. Null is fine. Handles of its transactions, indexes and
// cursors report CORVID_ERR_HANDLE from then on, and are to be freed all the same.
enum corvid_error corvid_client_free(struct corvid_client *client);

// Does all work that needs no waiting: connects, receives, applies updates, sends. `*changed` says
// whether the replica changed; `changed` may be null. Call it when corvid_client_wait says so.
// CORVID_ERR_TXN_OPEN: a transaction is open.
enum corvid_error corvid_client_run(struct corvid_client *client, bool *changed);

// Sends what is due, and tells the events to wait for. `wait` fits poll(2): the descriptor changes
// with the connection, so ask before each wait.
enum corvid_error corvid_client_wait(struct corvid_client *client, struct corvid_wait *wait);

// The change number: it grows with every visible change of the replica. 0 for a handle that is
// none.
uint64_t corvid_client_seqno(const struct corvid_client *client);

// The state of the session.
enum corvid_error corvid_client_session(const struct corvid_client *client, struct corvid_session *session);

// Copies the failure that keeps the client from its contents, in words, into `buffer`, cut to
// `size` bytes with its NUL. `*length` is the length of the whole text; `length` may be null.
// CORVID_ERR_NONE: there is no failure.
enum corvid_error corvid_client_failure(const struct corvid_client *client,
                                        char *buffer,
                                        size_t size,
                                        size_t *length);

// Connects to other remotes; a connection to one that is still listed is kept.
enum corvid_error corvid_client_set_remotes(struct corvid_client *client, const char *remotes);

// Whether the client connects only to the leader of a cluster.
enum corvid_error corvid_client_set_leader_only(struct corvid_client *client, bool leader_only);

// After how many milliseconds of silence the client probes the server; 0 never.
enum corvid_error corvid_client_set_probe_interval(struct corvid_client *client, uint32_t interval_ms);

// Asks the server for a lock, in place of another one; null gives it back. While a lock is set,
// transactions of a client that does not hold it end as CORVID_TXN_NOT_LOCKED.
// corvid_client_session tells whether it is held.
enum corvid_error corvid_client_set_lock(struct corvid_client *client, const char *name);

// Ends the connection and makes another one.
enum corvid_error corvid_client_reconnect(struct corvid_client *client);

// Chooses the rows of a table that are replicated: those for which any of the clauses holds;
// without clauses none. `*seqno` is the number that corvid_condition_seqno must reach before the
// condition is in force; `seqno` may be null. CORVID_ERR_TYPE: a server would refuse a clause, and
// the condition in force stays.
enum corvid_error corvid_condition_set(struct corvid_client *client,
                                       struct corvid_table table,
                                       const struct corvid_clause *clauses,
                                       size_t count,
                                       uint64_t *seqno);

// Replicates all rows of a table, as it is without a condition.
enum corvid_error corvid_condition_set_all(struct corvid_client *client,
                                           struct corvid_table table,
                                           uint64_t *seqno);

// The number up to which conditions are in force: compare with `>=`. 0 for a handle that is none.
uint64_t corvid_condition_seqno(const struct corvid_client *client);

// Copies the server's error, as JSON, into `buffer`, cut to `size` bytes with its NUL, if the
// server refused the condition whose number is `seqno` (corvid_condition_set). Ask once
// corvid_condition_seqno has reached the number: the condition before it is in force again.
// `*length` is the length of the whole text; `length` may be null, and so may `buffer` if `size`
// is 0. CORVID_ERR_NONE: the server did not refuse it, or conditions were set after it.
enum corvid_error corvid_condition_refusal(const struct corvid_client *client,
                                           uint64_t seqno,
                                           char *buffer,
                                           size_t size,
                                           size_t *length);

// Makes settings for the database whose schema is given as JSON. Free them with
// corvid_config_free. CORVID_ERR_SCHEMA: it is no schema.
enum corvid_error corvid_config_new(const char *schema, struct corvid_config **config);

// Frees settings. Null is fine. Clients that were made of them do not need them any more.
enum corvid_error corvid_config_free(struct corvid_config *config);

// Looks a table up by name. CORVID_ERR_SCHEMA: there is none.
enum corvid_error corvid_config_table(const struct corvid_config *config,
                                      const char *name,
                                      struct corvid_table *table);

// Looks a column up by the names of its table and its own, and has the client treat it so; `mode`
// is made of corvid_mode, or 0 to look it up only. `*column` names the column in calls for the
// client; `column` may be null. CORVID_ERR_SCHEMA: there is none.
enum corvid_error corvid_config_column(const struct corvid_config *config,
                                       const char *table,
                                       const char *name,
                                       int mode,
                                       struct corvid_column *column);

// Replicates the rows of a table, with or without columns.
enum corvid_error corvid_config_add_table(const struct corvid_config *config, struct corvid_table table);

// Replicates every column of every table, in a mode made of corvid_mode.
enum corvid_error corvid_config_add_everything(const struct corvid_config *config, int mode);

// Sets the files for `ssl:` remotes: the private key, the certificate and the certificate of the
// CA, each in PEM. They are read when a connection is made.
enum corvid_error corvid_config_set_tls(const struct corvid_config *config,
                                        const char *private_key,
                                        const char *certificate,
                                        const char *ca_certificate);

// Whether the client connects only to the leader of a cluster. The default is true.
enum corvid_error corvid_config_set_leader_only(const struct corvid_config *config, bool leader_only);

// Whether the client tries to connect for ever, or each remote once. The default is true.
enum corvid_error corvid_config_set_retry(const struct corvid_config *config, bool retry);

// Whether remotes are tried in random order. The default is true.
enum corvid_error corvid_config_set_shuffle(const struct corvid_config *config, bool shuffle);

// After how many milliseconds of silence the client probes the server; 0 never. The default is
// 5000 over a network and never on this machine.
enum corvid_error corvid_config_set_probe_interval(const struct corvid_config *config, uint32_t interval_ms);

// A lock that the client asks for (corvid_client_set_lock); null for none, the default.
enum corvid_error corvid_config_set_lock(const struct corvid_config *config, const char *name);

// The text of the last failure of a call by this thread; empty if there was none. It belongs to
// the library and stays valid until the thread's next failure.
const char *corvid_error_text(void);

// The name of a code, for messages: "CORVID_ERR_NULL". A constant of the library.
const char *corvid_error_name(int code);

// Fetches a column of one row that has the mode CORVID_MODE_ON_DEMAND. `*fetch` is the number to
// ask corvid_fetch_status_of about.
enum corvid_error corvid_fetch_row(struct corvid_client *client,
                                   struct corvid_row row,
                                   struct corvid_column column,
                                   uint64_t *number);

// Fetches a column of all rows.
enum corvid_error corvid_fetch_column(struct corvid_client *client,
                                      struct corvid_column column,
                                      uint64_t *number);

// Fetches every column of a table that is fetched on demand.
enum corvid_error corvid_fetch_table(struct corvid_client *client,
                                     struct corvid_table table,
                                     uint64_t *number);

// The status of a fetch; `*status` is a corvid_fetch_status. A final status is returned once.
// CORVID_ERR_NONE: there is no such fetch, or its end was returned.
enum corvid_error corvid_fetch_status_of(struct corvid_client *client, uint64_t number, int *status);

// Begins to read the history of the database from the server, as `ovsdb-client log` does. Take its
// pages with corvid_history_next. A part that is missing, such as a file, is logged as a warning.
// CORVID_ERR_ARGUMENT: every server would refuse the question, such as one for a difference with
// `since`. Free the reading with corvid_history_free.
//
// ```c
// corvid_history_question question = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_LOG);
// corvid_history *history;
// int status;
//
// question.table = "Port";
// question.since = "-2h";
// corvid_history_new(client, &question, &history);
// for (;;) {
//     corvid_history_next(history, &status);
//     if (status == CORVID_HISTORY_PENDING) {
//         turn(client);       // polls what corvid_client_wait says, then corvid_client_run
//     } else if (status == CORVID_HISTORY_PAGE) {
//         for (size_t i = 0; i < corvid_history_count(history); i++) {
//             puts(corvid_history_lines(history)[i]);
//         }
//     } else {
//         break;              // CORVID_HISTORY_DONE, or a failure
//     }
// }
// corvid_history_free(history);
// ```
enum corvid_error corvid_history_new(struct corvid_client *client,
                                     const struct corvid_history_question *question,
                                     struct corvid_history **history);

// Begins to execute `select` operations of RFC 7047, a JSON array, on the contents at a moment,
// under the schema that the database had then. Their results, a JSON array too, come as a page of
// one line. CORVID_ERR_ARGUMENT: the operations are not a JSON array. Free it with
// corvid_history_free.
enum corvid_error corvid_history_select_new(struct corvid_client *client,
                                            const char *moment,
                                            const char *operations,
                                            struct corvid_history **history);

// Lets go of the page at hand, and takes or asks for the next one; `*status` is a
// corvid_history_status. The next corvid_client_run sends the request. The server answers within a
// second or so, also with a page without lines, and reads no further before it is asked to. After
// a minute without a call it ends the reading.
enum corvid_error corvid_history_next(struct corvid_history *history, int *status);

// The number of lines of the page at hand; 0 without one, and for a handle that is none.
size_t corvid_history_count(const struct corvid_history *history);

// The lines of the page at hand, each a JSON text: an array of corvid_history_count elements. It
// belongs to the reading and stays valid until the next corvid_history_next or
// corvid_history_free, of any thread. Null for a handle that is none.
const char *const *corvid_history_lines(const struct corvid_history *history);

// Tells how far a reading has come with its last page.
enum corvid_error corvid_history_progress_of(const struct corvid_history *history,
                                             struct corvid_history_progress *progress);

// Copies the server's error, JSON, after CORVID_HISTORY_REFUSED, into `buffer`, cut to `size`
// bytes with its NUL. `*length` is the length of the whole text; `length` may be null, and so may
// `buffer` if `size` is 0. CORVID_ERR_NONE: there is no error.
enum corvid_error corvid_history_error_text(const struct corvid_history *history,
                                            char *buffer,
                                            size_t size,
                                            size_t *length);

// Frees a reading or query. One that has not ended is canceled, also at the server. Null is fine.
enum corvid_error corvid_history_free(struct corvid_history *history);

// Makes an index over `count` columns of a table, in ascending order, or in descending order of
// those whose element of `descending` is true; `descending` may be null. The columns must be
// replicated. The library keeps the index up to date until the client is freed. Free the handle
// with corvid_index_free.
enum corvid_error corvid_index_new(struct corvid_client *client,
                                   struct corvid_table table,
                                   const struct corvid_column *columns,
                                   const bool *descending,
                                   size_t count,
                                   struct corvid_index **index);

// Frees the handle of an index. Null is fine.
enum corvid_error corvid_index_free(struct corvid_index *index);

// Finds the first row whose columns equal a key, which has one part for each column of the index.
// CORVID_ERR_NONE: there is none.
enum corvid_error corvid_index_find(const struct corvid_index *index,
                                    const struct corvid_key_part *key,
                                    struct corvid_row *row);

// Lists the rows from one key to another, both included, in the order of the index; a null key is
// without bound. Free the list with corvid_rows_free.
enum corvid_error corvid_index_range(const struct corvid_index *index,
                                     const struct corvid_key_part *from,
                                     const struct corvid_key_part *to,
                                     struct corvid_rows **rows);

// Makes a cursor at the first row that is not before a key; with a null key at the first row. Free
// it with corvid_cursor_free.
enum corvid_error corvid_cursor_new(const struct corvid_index *index,
                                    const struct corvid_key_part *from,
                                    struct corvid_cursor **cursor);

// The row that a cursor is at. CORVID_ERR_NONE: it is at the end, or the row was deleted.
enum corvid_error corvid_cursor_row(const struct corvid_cursor *cursor, struct corvid_row *row);

// Goes to the row after the position that the cursor's row had, even if that row has moved or was
// deleted.
enum corvid_error corvid_cursor_next(struct corvid_cursor *cursor);

// Goes to the next row if its key is the same, else to the end.
enum corvid_error corvid_cursor_next_equal(struct corvid_cursor *cursor);

// Frees a cursor. Null is fine.
enum corvid_error corvid_cursor_free(struct corvid_cursor *cursor);

// Has a function of the program called for each log message, on a thread that calls the library,
// at the end of a call or while it blocks. The handler may call the library, and must return.
// Several threads may call it at once, and it may still run in another thread when it has been
// replaced. Null: messages of CORVID_LEVEL_WARN and above go to standard error, as they do at the
// start. That no server can be reached is a CORVID_LEVEL_INFO for a handler; without a handler it
// goes to standard error.
enum corvid_error corvid_log_set_handler(corvid_log_handler handler);

// Chooses the least important level that is kept; corvid_level has the values, 0 keeps nothing.
// The default is CORVID_LEVEL_INFO.
enum corvid_error corvid_log_set_level(int level);

// Takes the oldest log message of the library into `buffer`, cut to `size` bytes with its NUL: one
// line, with control characters as escapes of JSON. `*level` is a corvid_level; it may be null.
// The library keeps the last 1000 messages of all clients. The first call also ends the writing of
// warnings to standard error, so make it at the start. CORVID_ERR_NONE: there is none;
// corvid_error_text stays as it is.
enum corvid_error corvid_log_next(int *level, char *buffer, size_t size);

// Registers a descriptor for the next corvid_poll_block of this thread; `events` is made of POLLIN
// and POLLOUT.
enum corvid_error corvid_poll_fd(int fd, int16_t events);

// Limits the next corvid_poll_block of this thread to some milliseconds from now; 0 lets it return
// at once.
enum corvid_error corvid_poll_timer(int64_t timeout_ms);

// Takes one of the events that are registered for the next corvid_poll_block of this thread, for
// a program that waits in a loop of its own: a descriptor with its events, or a time limit with
// the descriptor -1. CORVID_ERR_NONE: none is left; corvid_error_text stays as it is.
enum corvid_error corvid_poll_next(struct corvid_wait *wait);

// Waits until one of the registered descriptors is ready, the time has come or a signal arrives.
// Forgets what was registered.
enum corvid_error corvid_poll_block(void);

// Gives the clients that the parent has connected to this process, a child that was just forked.
// For daemons that detach after they have run a client. The parent must not use its clients any
// more, not even free them. Without this call, functions that would use such a client in the child
// return CORVID_ERR_FORKED, and the parent's connection is not touched. A client that has not run
// yet may be used in the child as it is.
void corvid_inherit_connections(void);

// Ends the blocking calls of this process, those that wait now and those to come, until
// corvid_interrupt_clear: corvid_idl_txn_commit_block returns CORVID_TXN_INCOMPLETE,
// corvid_idl_get_initial_snapshot returns without a snapshot. It may be called in a signal
// handler.
void corvid_interrupt(void);

// Lets blocking calls wait again.
void corvid_interrupt_clear(void);

// Lists the rows of a table, in no particular order. Free the list with corvid_rows_free.
enum corvid_error corvid_rows_new(const struct corvid_client *client,
                                  struct corvid_table table,
                                  struct corvid_rows **rows);

// The number of rows in a list; 0 for a handle that is none.
size_t corvid_rows_count(const struct corvid_rows *rows);

// The rows of a list: an array of corvid_rows_count elements, which belongs to the list and stays
// valid until corvid_rows_free. Null for a handle that is none.
const struct corvid_row *corvid_rows_data(const struct corvid_rows *rows);

// Frees a list. Null is fine.
enum corvid_error corvid_rows_free(struct corvid_rows *rows);

// The number of rows of a table.
enum corvid_error corvid_row_count(const struct corvid_client *client,
                                   struct corvid_table table,
                                   size_t *count);

// Finds a row by UUID, which is also how references are followed. CORVID_ERR_ROW_GONE: it is not
// there.
enum corvid_error corvid_row_find(const struct corvid_client *client,
                                  struct corvid_table table,
                                  corvid_uuid uuid,
                                  struct corvid_row *row);

// Reads a column of a row, of any type; a column that is not replicated shows its default. A
// deleted row shows its last values as long as its deletion is listed by corvid_changes_new. The
// datum is a copy: free it with corvid_datum_free.
enum corvid_error corvid_read(const struct corvid_client *client,
                              struct corvid_row row,
                              struct corvid_column column,
                              struct corvid_datum **datum);

// Reads a column of at most one integer. CORVID_ERR_NONE: it is empty.
enum corvid_error corvid_get_integer(const struct corvid_client *client,
                                     struct corvid_row row,
                                     struct corvid_column column,
                                     int64_t *value);

// Reads a column of at most one real. CORVID_ERR_NONE: it is empty.
enum corvid_error corvid_get_real(const struct corvid_client *client,
                                  struct corvid_row row,
                                  struct corvid_column column,
                                  double *value);

// Reads a column of at most one boolean. CORVID_ERR_NONE: it is empty.
enum corvid_error corvid_get_boolean(const struct corvid_client *client,
                                     struct corvid_row row,
                                     struct corvid_column column,
                                     bool *value);

// Reads a column of at most one UUID or reference. CORVID_ERR_NONE: it is empty.
enum corvid_error corvid_get_uuid(const struct corvid_client *client,
                                  struct corvid_row row,
                                  struct corvid_column column,
                                  corvid_uuid *value);

// Copies a column of at most one string into `buffer`, cut to `size` bytes with its NUL. `*length`
// is the length of the whole string; `length` may be null, and so may `buffer` if `size` is 0.
// CORVID_ERR_NONE: the column is empty.
enum corvid_error corvid_get_string(const struct corvid_client *client,
                                    struct corvid_row row,
                                    struct corvid_column column,
                                    char *buffer,
                                    size_t size,
                                    size_t *length);

// Reads several columns of a row in one call, each of at most one element. `atoms` gets one atom
// for each column, of type CORVID_TYPE_VOID where the column is empty. Strings are copied into
// `buffer` of `size` bytes, each with its NUL, and the atoms point there; `buffer` may be null if
// `size` is 0. After an error their contents are undefined. CORVID_ERR_LIMIT: the buffer is too
// small.
enum corvid_error corvid_get_columns(const struct corvid_client *client,
                                     struct corvid_row row,
                                     const struct corvid_column *columns,
                                     size_t count,
                                     struct corvid_atom *atoms,
                                     char *buffer,
                                     size_t size);

// The name of a status, as the reference's tools print it: "try again". A constant of the library.
const char *corvid_txn_status_name(int status);

// Opens a transaction. Free it with corvid_txn_free. While it is open, all threads see its
// changes, and corvid_client_run fails. CORVID_ERR_TXN_OPEN: one is open.
enum corvid_error corvid_txn_new(struct corvid_client *client, struct corvid_txn **txn);

// Frees a transaction; aborts it if it is open. Null is fine. One that was sent may still be
// committed.
enum corvid_error corvid_txn_free(struct corvid_txn *txn);

// Sends the changes. `*status` is a corvid_txn_status, which corvid_txn_status_of returns from
// then on; `status` may be null.
enum corvid_error corvid_txn_commit(struct corvid_txn *txn, int *status);

// Gives a transaction up. One that was sent may still be committed.
enum corvid_error corvid_txn_abort(struct corvid_txn *txn);

// The status of a transaction, a corvid_txn_status; -1 for a handle that is none.
int corvid_txn_status_of(const struct corvid_txn *txn);

// Copies the server's error, as JSON, into `buffer`, cut to `size` bytes with its NUL. `*length`
// is the length of the whole text; `length` may be null. CORVID_ERR_NONE: the status is not
// CORVID_TXN_ERROR.
enum corvid_error corvid_txn_error_text(const struct corvid_txn *txn,
                                        char *buffer,
                                        size_t size,
                                        size_t *length);

// Inserts a row with all columns at their defaults. It goes by a provisional UUID, until the
// server gives it another (corvid_txn_inserted).
enum corvid_error corvid_txn_insert(struct corvid_txn *txn,
                                    struct corvid_table table,
                                    struct corvid_row *row);

// Inserts a row that keeps the given UUID on the server; draw it at random. CORVID_ERR_TXN: the
// UUID is in use.
enum corvid_error corvid_txn_insert_persistent(struct corvid_txn *txn,
                                               struct corvid_table table,
                                               corvid_uuid uuid,
                                               struct corvid_row *row);

// Deletes a row. Of a table that is not a root this only hides it here: the server deletes it when
// the last strong reference goes.
enum corvid_error corvid_txn_delete(struct corvid_txn *txn, struct corvid_row row);

// Writes a column as a whole: `count` elements of a set, or `count` pairs of a map. `values` is
// null for a set. References are the UUIDs of rows. Earlier changes of elements are gone; later
// ones change what was written. The library copies everything.
enum corvid_error corvid_txn_write(struct corvid_txn *txn,
                                   struct corvid_row row,
                                   struct corvid_column column,
                                   const struct corvid_atom *keys,
                                   const struct corvid_atom *values,
                                   size_t count);

// Adds a value to a set. Other clients may change other elements at the same time.
enum corvid_error corvid_txn_add_value(struct corvid_txn *txn,
                                       struct corvid_row row,
                                       struct corvid_column column,
                                       struct corvid_atom value);

// Removes a value from a set.
enum corvid_error corvid_txn_remove_value(struct corvid_txn *txn,
                                          struct corvid_row row,
                                          struct corvid_column column,
                                          struct corvid_atom value);

// Sets the value at a key of a map.
enum corvid_error corvid_txn_set_key(struct corvid_txn *txn,
                                     struct corvid_row row,
                                     struct corvid_column column,
                                     struct corvid_atom key,
                                     struct corvid_atom value);

// Removes a key from a map.
enum corvid_error corvid_txn_remove_key(struct corvid_txn *txn,
                                        struct corvid_row row,
                                        struct corvid_column column,
                                        struct corvid_atom key);

// Commits only if a column still holds what it holds here; else the status becomes
// CORVID_TXN_TRY_AGAIN. Call it before writing the column.
enum corvid_error corvid_txn_verify(struct corvid_txn *txn,
                                    struct corvid_row row,
                                    struct corvid_column column);

// Adds one to an integer column at the end of the transaction, if anything else changes or if
// `force`. One of a transaction is possible.
enum corvid_error corvid_txn_increment(struct corvid_txn *txn,
                                       struct corvid_row row,
                                       struct corvid_column column,
                                       bool force);

// The sum that corvid_txn_increment made. CORVID_ERR_NONE: the transaction has not succeeded or
// incremented nothing.
enum corvid_error corvid_txn_incremented(const struct corvid_txn *txn, int64_t *value);

// The row that an inserted row has become on the server. CORVID_ERR_NONE: the transaction has not
// succeeded or did not insert it.
enum corvid_error corvid_txn_inserted(const struct corvid_txn *txn,
                                      struct corvid_row row,
                                      struct corvid_row *inserted);

// Adds a line to the comment that the server logs.
enum corvid_error corvid_txn_add_comment(struct corvid_txn *txn, const char *text);

// Has the server execute the transaction and roll it back; reported as success.
enum corvid_error corvid_txn_set_dry_run(struct corvid_txn *txn);

// Refuses changes from now on, or accepts them again.
enum corvid_error corvid_txn_set_read_only(struct corvid_txn *txn, bool read_only);

// Runs and waits until the contents have come, or until corvid_interrupt, or no server is left to
// try: corvid_idl_has_ever_connected tells.
void corvid_idl_get_initial_snapshot(struct corvid_idl *replica);

// As corvid_idl_get_initial_snapshot, for at most some milliseconds; -1 for ever.
// CORVID_ERR_NOT_CONNECTED: the contents have not come; corvid_error_text tells why.
enum corvid_error corvid_idl_get_initial_snapshot_timeout(struct corvid_idl *replica, int64_t timeout_ms);

// Commits a transaction, and runs the replica and waits until the status is final.
// CORVID_TXN_INCOMPLETE after corvid_interrupt. Without a server that is left to try, the
// transaction is aborted.
int corvid_idl_txn_commit_block(struct corvid_idl_txn *txn);

// As corvid_idl_txn_commit_block, for at most some milliseconds; -1 for ever.
// CORVID_TXN_INCOMPLETE: the time is over, and the transaction may still be committed. Call it
// again, or give up.
int corvid_idl_txn_commit_block_timeout(struct corvid_idl_txn *txn, int64_t timeout_ms);

// The type that a column has at the last server, or null if the server has no such column. It
// belongs to the library and lasts as long as the replica.
const corvid_idl_type *corvid_idl_server_column_type(const struct corvid_idl *replica,
                                                     const corvid_idl_column *column);

// Empties a condition.
void corvid_idl_condition_clear(struct corvid_idl_condition *condition);

// Frees what a condition holds, and empties it.
void corvid_idl_condition_destroy(struct corvid_idl_condition *condition);

// Adds a clause. `function` is an enum ovsdb_function: 0 false, 1 true, 2 ==, 3 includes, 4 <=, 5
// <, 6 >=, 7 >, 8 excludes, 9 !=. `values` is null for a set.
void corvid_idl_condition_add_clause(struct corvid_idl_condition *condition,
                                     int function,
                                     const corvid_idl_column *column,
                                     const struct corvid_atom *keys,
                                     const struct corvid_atom *values,
                                     size_t count);

// Chooses the rows of a table that are replicated. Returns the number that
// corvid_idl_get_condition_seqno must reach before the condition is in force. A condition that a
// server would refuse is logged and changes nothing; the number is 0 then.
unsigned int corvid_idl_set_condition(struct corvid_idl *replica,
                                      const struct corvid_idl_table_class *class_,
                                      const struct corvid_idl_condition *condition);

// The number up to which conditions are in force: compare with `>=`.
unsigned int corvid_idl_get_condition_seqno(const struct corvid_idl *replica);

// Makes a replica of a class that ovsdb-idlc has made. It connects once corvid_idl_set_remote
// gives it remotes. Null after a failure, which corvid_error_text explains. Free it with
// corvid_idl_destroy.
struct corvid_idl *corvid_idl_create_unconnected(const struct corvid_idl_class *class_,
                                                 bool monitor_everything);

// As corvid_idl_create_unconnected, with remotes; `retry` as in corvid_idl_set_remote.
struct corvid_idl *corvid_idl_create(const char *remote,
                                     const struct corvid_idl_class *class_,
                                     bool monitor_everything,
                                     bool retry);

// Frees a replica, its rows and their structs. Null is fine.
void corvid_idl_destroy(struct corvid_idl *replica);

// Connects to one of the remotes of a comma-separated list, for ever or, without `retry`, once
// each. Null ends the session.
void corvid_idl_set_remote(struct corvid_idl *replica, const char *remote, bool retry);

// Sets the files for `ssl:` remotes, in place of those of the process
// (corvid_tls_set_private_key_file), from the next connection on.
enum corvid_error corvid_idl_set_tls(struct corvid_idl *replica,
                                     const char *private_key,
                                     const char *certificate,
                                     const char *ca_certificate);

// Whether remotes are tried in random order; the next corvid_idl_set_remote heeds it.
void corvid_idl_set_shuffle_remotes(struct corvid_idl *replica, bool shuffle);

// Whether the client connects only to the leader of a cluster. The default is true.
void corvid_idl_set_leader_only(struct corvid_idl *replica, bool leader_only);

// After how many milliseconds of silence the server is probed; 0 never.
void corvid_idl_set_probe_interval(const struct corvid_idl *replica, int interval_ms);

// Ends the connection and makes another one.
void corvid_idl_force_reconnect(struct corvid_idl *replica);

// Asks the server for a lock, in place of another one; null gives it back.
void corvid_idl_set_lock(struct corvid_idl *replica, const char *name);

// Replicates a column, and the rows that it may refer to. Like all calls that choose columns,
// before the first corvid_idl_run.
void corvid_idl_add_column(struct corvid_idl *replica, const corvid_idl_column *column);

// Replicates the rows of a table, with or without columns.
void corvid_idl_add_table(struct corvid_idl *replica, const struct corvid_idl_table_class *class_);

// Takes a column out of the replica.
void corvid_idl_omit(struct corvid_idl *replica, const corvid_idl_column *column);

// Replicates a column without alerts on its changes.
void corvid_idl_omit_alert(struct corvid_idl *replica, const corvid_idl_column *column);

// Drops writes of the present value to a column, or not.
void corvid_idl_set_write_changed_only(struct corvid_idl *replica,
                                       const corvid_idl_column *column,
                                       bool enable);

// The same for all columns that are replicated with alerts.
void corvid_idl_set_write_changed_only_all(struct corvid_idl *replica, bool enable);

// Tracks changes of a column; replicates it if it was not.
void corvid_idl_track_add_column(struct corvid_idl *replica, const corvid_idl_column *column);

// Tracks changes of every column that is replicated with alerts by now.
void corvid_idl_track_add_all(struct corvid_idl *replica);

// Does all work that needs no waiting, and brings the structs of rows up to date. No transaction
// may be open.
void corvid_idl_run(struct corvid_idl *replica);

// Tells the events to wait for before the next corvid_idl_run.
enum corvid_error corvid_idl_wait_for(struct corvid_idl *replica, struct corvid_wait *wait);

// Registers these events for corvid_poll_block.
void corvid_idl_wait(struct corvid_idl *replica);

// The change number: it grows with every visible change of the replica.
unsigned int corvid_idl_get_seqno(const struct corvid_idl *replica);

// Whether contents have ever arrived.
bool corvid_idl_has_ever_connected(const struct corvid_idl *replica);

// Whether the session is connected or going to try.
bool corvid_idl_is_alive(const struct corvid_idl *replica);

// Whether a connection is established.
bool corvid_idl_is_connected(const struct corvid_idl *replica);

// Whether the lock is held, by the server's last message.
bool corvid_idl_has_lock(const struct corvid_idl *replica);

// Whether another client holds the lock.
bool corvid_idl_is_lock_contended(const struct corvid_idl *replica);

// Whether the last server has a table.
bool corvid_idl_server_has_table(const struct corvid_idl *replica,
                                 const struct corvid_idl_table_class *class_);

// Whether the last server has a column.
bool corvid_idl_server_has_column(const struct corvid_idl *replica, const corvid_idl_column *column);

// Runs the replica of a loop, and opens the transaction of this turn. Null: the last one is still
// being committed, or nothing has changed since it failed.
struct corvid_idl_txn *corvid_idl_loop_run(struct corvid_idl_loop *state);

// Commits the transaction of this turn, and registers the events of the loop for
// corvid_poll_block. Returns 1 if nothing is in progress and all is committed, 0 after a failure,
// -1 while a transaction is in progress.
int corvid_idl_loop_commit_and_wait(struct corvid_idl_loop *state);

// Frees the transactions and the replica of a loop. Null is fine.
void corvid_idl_loop_destroy(struct corvid_idl_loop *state);

// Makes an index over `n` columns of one table, which must be replicated. Null after a failure. It
// is freed with the replica.
struct corvid_idl_index *corvid_idl_index_create(struct corvid_idl *replica,
                                                 const struct corvid_idl_index_column *columns,
                                                 size_t n);

// Makes a key for an index: a struct without a place in the database, all columns at their
// defaults. Free it with corvid_idl_index_destroy_row.
corvid_idl_row *corvid_idl_index_init_row(const struct corvid_idl_index *index);

// Frees a key. Null is fine.
void corvid_idl_index_destroy_row(const corvid_idl_row *row);

// Sets a column of a key. The members of its struct do not show it. A key with a value that cannot
// be that of the column matches nothing.
void corvid_idl_index_write(const corvid_idl_row *row,
                            const corvid_idl_column *column,
                            const struct corvid_atom *atoms,
                            const struct corvid_atom *values,
                            size_t count);

// The first row whose columns equal a key, or null.
corvid_idl_row *corvid_idl_index_find(const struct corvid_idl_index *index, const corvid_idl_row *key);

// Compares two rows or keys as an index does: less than, equal to or greater than 0. Null comes
// after everything.
int corvid_idl_index_compare(const struct corvid_idl_index *index,
                             const corvid_idl_row *left,
                             const corvid_idl_row *right);

// A cursor at the first row of an index.
struct corvid_idl_cursor corvid_idl_cursor_first(struct corvid_idl_index *index);

// A cursor at the first row that equals a key, or at the end.
struct corvid_idl_cursor corvid_idl_cursor_first_eq(struct corvid_idl_index *index,
                                                    const corvid_idl_row *key);

// A cursor at the first row that is not before a key; a null key is before all.
struct corvid_idl_cursor corvid_idl_cursor_first_ge(struct corvid_idl_index *index,
                                                    const corvid_idl_row *key);

// Goes to the next row.
void corvid_idl_cursor_next(struct corvid_idl_cursor *cursor);

// Goes to the next row if its key is the same, else to the end.
void corvid_idl_cursor_next_eq(struct corvid_idl_cursor *cursor);

// The row that a cursor is at, or null at the end.
corvid_idl_row *corvid_idl_cursor_data(const struct corvid_idl_cursor *cursor);

// The first row of a table, or null. Rows come in no particular order. The struct belongs to the
// library: it is good until the row is gone and corvid_idl_run is called after that.
corvid_idl_row *corvid_idl_first_row(const struct corvid_idl *replica,
                                     const struct corvid_idl_table_class *class_);

// The row after another one, or null.
corvid_idl_row *corvid_idl_next_row(const corvid_idl_row *row);

// The row of a UUID, or null.
corvid_idl_row *corvid_idl_get_row_for_uuid(const struct corvid_idl *replica,
                                            const struct corvid_idl_table_class *class_,
                                            const corvid_uuid *uuid);

// The handle of a table, or null. It belongs to the library and lasts as long as the replica.
const struct corvid_idl_table *corvid_idl_table_get(const struct corvid_idl *replica,
                                                    const struct corvid_idl_table_class *class_);

// Reads a column of a row as the open transaction has it, with changes of single elements, which
// members of the struct do not show. Free the datum with corvid_datum_free.
enum corvid_error corvid_idl_read(const corvid_idl_row *row,
                                  const corvid_idl_column *column,
                                  struct corvid_datum **datum);

// Whether a column of a row may be written: it is mutable, or the open transaction inserted the
// row.
bool corvid_idl_is_mutable(const corvid_idl_row *row, const corvid_idl_column *column);

// Whether a row is a key of an index, which has no place in the database.
bool corvid_idl_row_is_synthetic(const corvid_idl_row *row);

// Why the replica has no server: 0 without a reason, EOF if the server closed the connection, else
// a number of errno.h. A server that was left, because it lacks the database for example, is
// EPROTO; the log tells more.
int corvid_idl_get_last_error(const struct corvid_idl *replica);

// Connects for ever from now on, also after a corvid_idl_set_remote without `retry`.
void corvid_idl_enable_reconnect(struct corvid_idl *replica);

// Forgets which state of a cluster's log the replica has seen, so that a cluster that was built
// from scratch is not taken for a stale server.
void corvid_idl_reset_min_index(struct corvid_idl *replica);

// Whether the server may tell of changes of its databases, such as a conversion of the schema,
// without closing the connection. From the next connection on. The default is true.
void corvid_idl_set_db_change_aware(struct corvid_idl *replica, bool aware);

// From now on, a write of a column that is replicated with alerts makes its transaction fail. For
// programs that write only columns that they have named to corvid_idl_omit_alert.
void corvid_idl_verify_write_only(struct corvid_idl *replica);

// The class that the replica was made of, or null.
const struct corvid_idl_class *corvid_idl_get_class(const struct corvid_idl *replica);

// Counts what the replica holds: `*cells` are its rows times their replicated columns, and
// `*transactions` those that were sent and are not answered. Both may be null.
void corvid_idl_count(const struct corvid_idl *replica, uint64_t *cells, uint64_t *transactions);

// Makes an empty table of symbols. Free it with corvid_symbols_free.
enum corvid_error corvid_symbols_new(struct corvid_symbols **symbols);

// Frees a table of symbols. Null is fine.
enum corvid_error corvid_symbols_free(struct corvid_symbols *symbols);

// Adds a name with its UUID, or gives a name that is there this UUID.
enum corvid_error corvid_symbols_add(struct corvid_symbols *symbols, const char *name, corvid_uuid uuid);

// Tells the symbol at `index`, in the order in which names were added or first read: copies its
// name into `buffer`, cut to `size` bytes with its NUL. `*named` is whether a text has named it.
// CORVID_ERR_NONE: there are not so many.
enum corvid_error corvid_symbols_get(const struct corvid_symbols *symbols,
                                     size_t index,
                                     char *buffer,
                                     size_t size,
                                     corvid_uuid *uuid,
                                     bool *named);

// Reads a value of a column from text, such as `[1, 2]` or `{k=v}`. `@NAME` stands for the UUID
// that `symbols` has for the name; `symbols` may be null. Free the datum with corvid_datum_free.
// After a failure the message for the user is in `buffer`, cut to `size` bytes with its NUL.
enum corvid_error corvid_text_read(const corvid_idl_type *column_type,
                                   const char *text,
                                   struct corvid_symbols *symbols,
                                   struct corvid_datum **datum,
                                   char *buffer,
                                   size_t size);

// Reads one atom from text, or a range of integers such as `1-3`, whose elements are in the datum.
// Otherwise as corvid_text_read.
enum corvid_error corvid_text_read_atom(const corvid_idl_base_type *base_type,
                                        const char *text,
                                        struct corvid_symbols *symbols,
                                        struct corvid_datum **datum,
                                        char *buffer,
                                        size_t size);

// Copies a value of a column as text into `buffer`, cut to `size` bytes with its NUL. `*length` is
// the length of the whole text; `length` may be null, and so may `buffer` if `size` is 0.
// `notation` is a corvid_notation.
enum corvid_error corvid_text_write(const corvid_idl_type *column_type,
                                    const struct corvid_atom *keys,
                                    const struct corvid_atom *values,
                                    size_t count,
                                    int notation,
                                    char *buffer,
                                    size_t size,
                                    size_t *length);

// Sets the file of the private key for `ssl:` remotes of all replicas without files of their own,
// from the next connection on. Null changes nothing.
enum corvid_error corvid_tls_set_private_key_file(const char *file);

// Sets the file of the certificate, as corvid_tls_set_private_key_file.
enum corvid_error corvid_tls_set_certificate_file(const char *file);

// Sets the file of the certificate of the CA, as corvid_tls_set_private_key_file. With `bootstrap`
// a file that is missing is written with the certificate that the first server shows.
enum corvid_error corvid_tls_set_ca_certificate_file(const char *file, bool bootstrap);

// Sets the protocols that connections may use, such as "TLSv1.3", as the option `--ssl-protocols`
// of servers, for all replicas without files of their own. Null changes nothing.
enum corvid_error corvid_tls_set_protocols(const char *protocols);

// Sets the ciphers of TLS 1.2 that connections may use, as the option `--ssl-ciphers` of servers,
// for all replicas without files of their own. Null changes nothing.
enum corvid_error corvid_tls_set_ciphers(const char *ciphers);

// Sets the file of the certificates that are sent to peers after the own one, as the option
// `--peer-ca-cert` of servers, for all replicas without files of their own. Null changes nothing.
enum corvid_error corvid_tls_set_peer_ca_certificate_file(const char *file);

// Sets the ciphersuites of TLS 1.3 that connections may use, as the option `--ssl-ciphersuites` of
// servers, for all replicas without files of their own. Null changes nothing.
enum corvid_error corvid_tls_set_ciphersuites(const char *ciphersuites);

// Sets the name that connections ask servers for (SNI), as the option `--ssl-server-name` of
// servers, for all replicas without files of their own. Null changes nothing.
enum corvid_error corvid_tls_set_server_name(const char *name);

// Whether the process has a file of a private key, of a certificate or of the certificate of a CA.
bool corvid_tls_is_configured(void);

// The first row of a table that changed since corvid_idl_track_clear, in the order of first
// changes, or null. A deleted row shows its last values until then.
corvid_idl_row *corvid_idl_track_get_first(const struct corvid_idl *replica,
                                           const struct corvid_idl_table_class *class_);

// The next one, or null.
corvid_idl_row *corvid_idl_track_get_next(const corvid_idl_row *row);

// Whether a column is among those that changed. If none is, a row changed that this row refers to.
bool corvid_idl_track_is_updated(const corvid_idl_row *row, const corvid_idl_column *column);

// The change number of the last change of a kind since corvid_idl_track_clear; 0 for none.
// `change` is a corvid_row_change.
unsigned int corvid_idl_row_get_seqno(const corvid_idl_row *row, int change);

// A number that grows with every change of rows of a table.
unsigned int corvid_idl_table_get_seqno(const struct corvid_idl *replica,
                                        const struct corvid_idl_table_class *class_);

// Whether any column of a table is tracked.
bool corvid_idl_track_is_set(const struct corvid_idl *replica, const struct corvid_idl_table_class *class_);

// Clears the changes of all tables, and frees the structs of rows that are gone.
void corvid_idl_track_clear(struct corvid_idl *replica);

// Opens a transaction; null if one is open. Free it with corvid_idl_txn_destroy.
struct corvid_idl_txn *corvid_idl_txn_create(struct corvid_idl *replica);

// Frees a transaction; aborts it if it is open. Null is fine.
void corvid_idl_txn_destroy(struct corvid_idl_txn *txn);

// Commits a transaction if it is open; returns its status, a corvid_txn_status. Call it again
// after corvid_idl_run while it is CORVID_TXN_INCOMPLETE. Structs of rows that it inserted are
// gone at the next run.
int corvid_idl_txn_commit(struct corvid_idl_txn *txn);

// Gives a transaction up. One that was sent may still be committed.
void corvid_idl_txn_abort(struct corvid_idl_txn *txn);

// Lets the next corvid_poll_block of this thread return at once if the status is final.
void corvid_idl_txn_wait(const struct corvid_idl_txn *txn);

// The server's error as JSON, or the name of the status. It belongs to the transaction and is good
// until the next call.
const char *corvid_idl_txn_get_error(const struct corvid_idl_txn *txn);

// The sum that corvid_idl_txn_increment made, once the transaction has succeeded; else 0.
int64_t corvid_idl_txn_get_increment_new_value(const struct corvid_idl_txn *txn);

// The UUID that the server gave an inserted row, once the transaction has succeeded; else null. It
// belongs to the transaction.
const corvid_uuid *corvid_idl_txn_get_insert_uuid(const struct corvid_idl_txn *txn,
                                                  const corvid_uuid *provisional);

// The replica of a transaction, or null.
struct corvid_idl *corvid_idl_txn_get_idl(const struct corvid_idl_txn *txn);

// The open transaction of the replica of a row, or null.
struct corvid_idl_txn *corvid_idl_txn_get(const corvid_idl_row *row);

// Adds a line to the comment that the server logs.
void corvid_idl_txn_add_comment(struct corvid_idl_txn *txn, const char *text);

// Has the server execute the transaction and roll it back.
void corvid_idl_txn_set_dry_run(struct corvid_idl_txn *txn);

// Refuses changes from now on, or accepts them again.
void corvid_idl_txn_assert_read_only(struct corvid_idl_txn *txn, bool read_only);

// Adds one to an integer column at the end of the transaction, if anything else changes or if
// `force`.
void corvid_idl_txn_increment(struct corvid_idl_txn *txn,
                              const corvid_idl_row *row,
                              const corvid_idl_column *column,
                              bool force);

// Inserts a row into a table, with all columns at their defaults. With `persist` it keeps the UUID
// on the server; a null UUID lets the library choose. Null after a failure.
corvid_idl_row *corvid_idl_txn_insert(struct corvid_idl_txn *txn,
                                      const struct corvid_idl_table_class *class_,
                                      const corvid_uuid *uuid,
                                      bool persist);

// Deletes a row. Walks over the table do not show it any more; its struct stays until the next
// run.
void corvid_idl_txn_delete(const corvid_idl_row *row);

// Commits only if a column still holds what it holds here. Call it before writing the column.
void corvid_idl_txn_verify(const corvid_idl_row *row, const corvid_idl_column *column);

// Writes a column as a whole, as corvid_txn_write does; elements that are given twice count once.
// A value that breaks a constraint of the schema makes the commit fail with the server's error. A
// value that cannot be sent, and any other failure, makes the commit fail too, and is logged.
void corvid_idl_txn_write(const corvid_idl_row *row,
                          const corvid_idl_column *column,
                          const struct corvid_atom *keys,
                          const struct corvid_atom *values,
                          size_t count);

// Adds a value to a set.
void corvid_idl_txn_add_value(const corvid_idl_row *row,
                              const corvid_idl_column *column,
                              struct corvid_atom value);

// Removes a value from a set.
void corvid_idl_txn_remove_value(const corvid_idl_row *row,
                                 const corvid_idl_column *column,
                                 struct corvid_atom value);

// Sets the value at a key of a map.
void corvid_idl_txn_set_key(const corvid_idl_row *row,
                            const corvid_idl_column *column,
                            struct corvid_atom key,
                            struct corvid_atom value);

// Removes a key from a map.
void corvid_idl_txn_remove_key(const corvid_idl_row *row,
                               const corvid_idl_column *column,
                               struct corvid_atom key);

// The number of elements; 0 for a handle that is none.
size_t corvid_datum_count(const struct corvid_datum *datum);

// The elements of a set, or the keys of a map: an array of corvid_datum_count atoms in ascending
// order. It and its strings belong to the datum and stay valid until corvid_datum_free. Null for a
// handle that is none.
const struct corvid_atom *corvid_datum_keys(const struct corvid_datum *datum);

// The values of a map, in the order of its keys; as corvid_datum_keys. Null for a set.
const struct corvid_atom *corvid_datum_values(const struct corvid_datum *datum);

// Frees a datum, its arrays and its strings. Null is fine. No other thread may be using its
// arrays.
enum corvid_error corvid_datum_free(struct corvid_datum *datum);

// An integer atom.
struct corvid_atom corvid_atom_integer(int64_t integer);

// A real atom.
struct corvid_atom corvid_atom_real(double real);

// A boolean atom.
struct corvid_atom corvid_atom_boolean(bool boolean);

// A string atom. It borrows `string`, which must live as long as the atom is used.
struct corvid_atom corvid_atom_string(const char *string);

// A UUID atom, for a reference the UUID of the row.
struct corvid_atom corvid_atom_uuid(corvid_uuid uuid);

// Reads a UUID from its 36 characters. CORVID_ERR_ARGUMENT: the text is none.
enum corvid_error corvid_uuid_parse(const char *text, corvid_uuid *uuid);

// Writes the 36 characters of a UUID and a NUL into `buffer`, which has at least 37 bytes.
enum corvid_error corvid_uuid_format(corvid_uuid uuid, char *buffer);

// A new random UUID. It is all zeros if the system has no random numbers, which corvid_error_text
// tells.
corvid_uuid corvid_uuid_random(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CORVID_H */
