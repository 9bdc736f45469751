/* Every function with arguments that are wrong: null, freed handles, handles of another type, numbers and addresses that never were handles. Each call must return; valgrind and the
 * test's end tell whether anything was touched that should not be. Arguments: the schema, the remote. */
#include "check.h"

static uint64_t state = 88172645463325252u;

static uint64_t
next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#define POOL 64
static void *pool[POOL];

/* A handle of any kind and state. Those that calls make go into the pool too. */
static void *
any(void)
{
    static int local;
    switch (next() % 8) {
    case 0:
        return NULL;
    case 1:
        return (void *) (uintptr_t) next();
    case 2:
        return &local;
    default:
        return pool[next() % POOL];
    }
}

static void
keep(void *handle)
{
    if (handle != NULL) {
        pool[next() % POOL] = handle;
    }
}

static const char *
text(void)
{
    static const char *texts[] = {NULL, "", "Keeper", "name", "unix:/nowhere", "\xff\xfe", "{}", "Animal", "age", "photo"};
    return texts[next() % 10];
}

static corvid_table
table(void)
{
    corvid_table table = {(uint16_t) (next() % 8 == 0 ? next() : next() % 4)};
    return table;
}

static corvid_column
column(void)
{
    corvid_column column = {(uint16_t) table().number, (uint16_t) (next() % 8 == 0 ? next() : next() % 16)};
    return column;
}

static corvid_row kept_row;

static corvid_row
row(void)
{
    corvid_row row = kept_row;
    if (next() % 3 == 0) {
        row.table = table();
    }
    if (next() % 3 == 0) {
        row.uuid.parts[next() % 4] ^= 1;
    }
    return row;
}

static corvid_atom
atom(void)
{
    switch (next() % 7) {
    case 0:
        return corvid_atom_integer((int64_t) next());
    case 1:
        return corvid_atom_real((double) next() * 1e300);
    case 2:
        return corvid_atom_boolean(next() % 2);
    case 3:
        return corvid_atom_string(text());
    case 4:
        return corvid_atom_uuid(kept_row.uuid);
    case 5: {
        corvid_atom odd = corvid_atom_integer(1);
        odd.kind = (int) next();
        return odd;
    }
    default:
        return corvid_atom_string("owl");
    }
}

/* An address for a result, or none. */
#define OUT(PLACE) (next() % 4 ? (PLACE) : NULL)

static void
call(void)
{
    void *made = NULL;
    corvid_row found = kept_row;
    corvid_atom atoms[3] = {atom(), atom(), atom()}, values[3] = {atom(), atom(), atom()};
    corvid_key_part key[2] = {CORVID_KEY_PART(atoms, NULL, next() % 3),
                              CORVID_KEY_PART(OUT(atoms), OUT(values), next() % 3)};
    corvid_clause clauses[2] = {
        CORVID_CLAUSE(column(), (int) (next() % 10), OUT(atoms), OUT(values), next() % 3),
        CORVID_CLAUSE(column(), (int) next(), atoms, NULL, 1)};
    corvid_column columns[2] = {column(), column()};
    bool flags[2] = {false, true};
    char buffer[16];
    size_t size = next() % 17, length;
    int64_t integer;
    double real;
    bool boolean;
    int number;
    uint64_t wide;
    corvid_uuid uuid = kept_row.uuid;
    corvid_wait wait = CORVID_WAIT_INIT;
    corvid_session session = CORVID_SESSION_INIT;
    /* Sizes that were not set, or not in all structs of an array. */
    if (next() % 8 == 0) {
        key[next() % 2].size = next() % sizeof *key;
        clauses[next() % 2].size = next() % sizeof *clauses;
        wait.size = next() % sizeof wait;
        session.size = next() % sizeof session;
    }

    switch (next() % 74) {
    case 0: corvid_config_new(text(), OUT((corvid_config **) &made)); break;
    case 1: corvid_config_free(any()); break;
    case 2: { corvid_table t; corvid_config_table(any(), text(), OUT(&t)); break; }
    case 3: corvid_config_column(any(), text(), text(), (int) (next() % 40), OUT(columns)); break;
    case 4: corvid_config_add_table(any(), table()); break;
    case 5: corvid_config_add_everything(any(), (int) (next() % 20)); break;
    case 6: corvid_config_set_tls(any(), text(), text(), text()); break;
    case 7: corvid_config_set_leader_only(any(), true); break;
    case 8: corvid_config_set_retry(any(), true); break;
    case 9: corvid_config_set_shuffle(any(), true); break;
    case 10: corvid_config_set_probe_interval(any(), (uint32_t) next()); break;
    case 11: corvid_config_set_lock(any(), text()); break;
    case 12: corvid_client_new(any(), text(), OUT((corvid_client **) &made)); break;
    case 13: if (next() % 16 == 0) { corvid_client_free(any()); } break;
    case 14: corvid_client_run(any(), OUT(&boolean)); break;
    case 15: corvid_client_wait(any(), OUT(&wait)); break;
    case 16: corvid_client_seqno(any()); break;
    case 17: corvid_client_session(any(), OUT(&session)); break;
    case 18: corvid_client_failure(any(), OUT(buffer), size, OUT(&length)); break;
    case 19: corvid_client_set_remotes(any(), text()); break;
    case 20: corvid_client_set_leader_only(any(), false); break;
    case 21: corvid_client_set_probe_interval(any(), 0); break;
    case 22: corvid_client_set_lock(any(), text()); break;
    case 23: corvid_client_reconnect(any()); break;
    case 24: corvid_rows_new(any(), table(), OUT((corvid_rows **) &made)); break;
    case 25:
        corvid_rows_count(any());
        corvid_get_columns(any(), row(), OUT(columns), next() % 3, OUT(atoms), OUT(buffer), size < 16 ? size : 16);
        break;
    case 26: corvid_rows_data(any()); break;
    case 27: corvid_rows_free(any()); break;
    case 28: corvid_row_count(any(), table(), OUT(&length)); break;
    case 29: corvid_row_find(any(), table(), kept_row.uuid, OUT(&found)); break;
    case 30: corvid_read(any(), row(), column(), OUT((corvid_datum **) &made)); break;
    case 31: corvid_get_integer(any(), row(), column(), OUT(&integer)); break;
    case 32: corvid_get_real(any(), row(), column(), OUT(&real)); break;
    case 33: corvid_get_boolean(any(), row(), column(), OUT(&boolean)); break;
    case 34: corvid_get_uuid(any(), row(), column(), OUT(&uuid)); break;
    case 35: corvid_get_string(any(), row(), column(), OUT(buffer), size < 16 ? size : 16, OUT(&length)); break;
    case 36: corvid_datum_count(any()); break;
    case 37: corvid_datum_keys(any()); break;
    case 38: corvid_datum_values(any()); break;
    case 39: corvid_datum_free(any()); break;
    case 40: corvid_txn_new(any(), OUT((corvid_txn **) &made)); break;
    case 41: corvid_txn_free(any()); break;
    case 42: corvid_txn_commit(any(), OUT(&number)); break;
    case 43: corvid_txn_abort(any()); break;
    case 44: corvid_txn_status_of(any()); break;
    case 45: corvid_txn_error_text(any(), OUT(buffer), size < 16 ? size : 16, OUT(&length)); break;
    case 46: case 47:
        if (corvid_txn_insert(any(), table(), OUT(&found)) == CORVID_OK) { kept_row = found; }
        break;
    case 48: corvid_txn_insert_persistent(any(), table(), kept_row.uuid, OUT(&found)); break;
    case 49: corvid_txn_delete(any(), row()); break;
    case 50: case 51: corvid_txn_write(any(), row(), column(), OUT(atoms), OUT(values), next() % 4); break;
    case 52: corvid_txn_add_value(any(), row(), column(), atom()); break;
    case 53: corvid_txn_remove_value(any(), row(), column(), atom()); break;
    case 54: corvid_txn_set_key(any(), row(), column(), atom(), atom()); break;
    case 55: corvid_txn_remove_key(any(), row(), column(), atom()); break;
    case 56: corvid_txn_verify(any(), row(), column()); break;
    case 57: corvid_txn_increment(any(), row(), column(), true); break;
    case 58: corvid_txn_incremented(any(), OUT(&integer)); break;
    case 59: corvid_txn_inserted(any(), row(), OUT(&found)); break;
    case 60: corvid_txn_add_comment(any(), text()); corvid_txn_set_read_only(any(), false); break;
    case 61: corvid_txn_set_dry_run(any()); break;
    case 62: corvid_condition_set(any(), table(), OUT(clauses), next() % 3, OUT(&wide)); break;
    case 63: corvid_condition_set_all(any(), table(), OUT(&wide)); corvid_condition_seqno(any()); break;
    case 64: corvid_fetch_row(any(), row(), column(), OUT(&wide)); break;
    case 65: corvid_fetch_column(any(), column(), OUT(&wide)); corvid_fetch_table(any(), table(), OUT(&wide)); break;
    case 66: corvid_fetch_status_of(any(), next() % 100, OUT(&number)); break;
    case 67:
        corvid_changes_new(any(), table(), OUT((corvid_changes **) &made));
        corvid_changes_count(any());
        corvid_changes_data(any());
        corvid_changes_is_updated(any(), next() % 3, column(), OUT(&boolean));
        break;
    case 68: {
        void *old = NULL;
        corvid_changes_old(any(), next() % 3, column(), OUT((corvid_datum **) &old));
        keep(old);
        corvid_changes_clear(any());
        corvid_changes_free(any());
        break;
    }
    case 69:
        /* Each stays for as long as its client. */
        if (next() % 8 == 0) { corvid_index_new(any(), table(), OUT(columns), OUT(flags), next() % 3, OUT((corvid_index **) &made)); }
        break;
    case 70:
        corvid_index_find(any(), OUT(key), OUT(&found));
        corvid_index_range(any(), OUT(key), OUT(key), OUT((corvid_rows **) &made));
        if (next() % 16 == 0) { corvid_index_free(any()); }
        break;
    case 71: {
        corvid_history_question question = CORVID_HISTORY_QUESTION_INIT((int) (next() % 5));
        question.table = text();
        question.at = text();
        if (next() % 8 == 0) {
            question.size = next() % sizeof question;
        }
        corvid_history_new(any(), OUT(&question), OUT((corvid_history **) &made));
        break;
    }
    case 72: {
        corvid_history *query = NULL;
        corvid_history_progress progress = CORVID_HISTORY_PROGRESS_INIT;
        corvid_history_select_new(any(), text(), text(), OUT(&query));
        keep(query);
        corvid_history_next(any(), OUT(&number));
        corvid_history_count(any());
        corvid_history_lines(any());
        corvid_history_progress_of(any(), OUT(&progress));
        corvid_history_error_text(any(), OUT(buffer), size < 16 ? size : 16, OUT(&length));
        corvid_history_free(any());
        break;
    }
    default: {
        corvid_cursor *cursor = NULL;
        corvid_cursor_new(any(), OUT(key), OUT(&cursor));
        keep(cursor);
        corvid_cursor_row(any(), OUT(&found));
        corvid_cursor_next(any());
        corvid_cursor_next_equal(any());
        corvid_cursor_free(any());
        corvid_uuid_parse(text(), OUT(&uuid));
        corvid_log_next(OUT(&number), OUT(buffer), size < 16 ? size : 16);
        corvid_log_set_level((int) (next() % 8));
        corvid_error_name((int) next());
        corvid_txn_status_name((int) next());
        break;
    }
    }
    keep(made);
}

/* The kinds that have a free function: one call of each is the right one. */
static void
free_any(void *handle)
{
    corvid_config_free(handle);
    corvid_rows_free(handle);
    corvid_datum_free(handle);
    corvid_txn_free(handle);
    corvid_changes_free(handle);
    corvid_cursor_free(handle);
    corvid_index_free(handle);
    corvid_client_free(handle);
}

int
main(int argc, char *argv[])
{
    corvid_config *config;
    corvid_client *client;
    int calls = argc > 3 ? atoi(argv[3]) : 60000;

    CHECK(argc >= 3);
    char *schema = read_file(argv[1]);
    for (int round = 0; round < 4; round++) {
        OK(corvid_config_new(schema, &config));
        OK(corvid_config_add_everything(config, CORVID_MODE_READ | CORVID_MODE_TRACK));
        OK(corvid_config_column(config, "Keeper", "photo", CORVID_MODE_ON_DEMAND, NULL));
        OK(corvid_client_new(config, argv[2], &client));
        wait_for_contents(client);
        pool[0] = config;
        pool[1] = pool[2] = pool[3] = client;
        for (int i = 0; i < calls / 4; i++) {
            call();
            if (i % 50 == 0) {
                corvid_client_run(client, NULL);
                keep(client);
            }
        }
        for (int i = 0; i < POOL; i++) {
            free_any(pool[i]);
            pool[i] = NULL;
        }
        free_any(client);
        free_any(config);
    }
    /* Nothing of it has done harm: a client works as ever. */
    size_t count;
    corvid_table keepers;
    OK(corvid_config_new(schema, &config));
    OK(corvid_config_table(config, "Keeper", &keepers));
    OK(corvid_config_add_table(config, keepers));
    OK(corvid_client_new(config, argv[2], &client));
    wait_for_contents(client);
    OK(corvid_row_count(client, keepers, &count));
    OK(corvid_client_free(client));
    OK(corvid_config_free(config));
    free(schema);
    puts("ok");
    return 0;
}
