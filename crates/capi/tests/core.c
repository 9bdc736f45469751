/* The core of the interface on a server with zoo.ovsschema: everything a program does, once. Arguments: the schema, the remote. */
#include "check.h"

static corvid_config *config;
static corvid_table keepers, animals;
static corvid_column name, age, wage, is_chief, nickname, languages, ids, owned, photo, species, cfg;

static void
configure(const char *path)
{
    char *schema = read_file(path);
    OK(corvid_config_new(schema, &config));
    free(schema);
    int all = CORVID_MODE_READ | CORVID_MODE_TRACK;
    OK(corvid_config_table(config, "Keeper", &keepers));
    OK(corvid_config_table(config, "Animal", &animals));
    OK(corvid_config_column(config, "Keeper", "name", all, &name));
    OK(corvid_config_column(config, "Keeper", "age", all, &age));
    OK(corvid_config_column(config, "Keeper", "wage", CORVID_MODE_READ, &wage));
    OK(corvid_config_column(config, "Keeper", "is_chief", CORVID_MODE_WRITE, &is_chief));
    OK(corvid_config_column(config, "Keeper", "nickname", CORVID_MODE_READ, &nickname));
    OK(corvid_config_column(config, "Keeper", "languages", all, &languages));
    OK(corvid_config_column(config, "Keeper", "external_ids", CORVID_MODE_READ, &ids));
    OK(corvid_config_column(config, "Keeper", "animals", CORVID_MODE_READ, &owned));
    OK(corvid_config_column(config, "Keeper", "photo", CORVID_MODE_ON_DEMAND, &photo));
    OK(corvid_config_column(config, "Animal", "species", CORVID_MODE_READ, &species));
    OK(corvid_config_column(config, "Settings", "cfg", CORVID_MODE_READ, &cfg));
    CHECK(corvid_config_column(config, "Keeper", "nmae", 0, NULL) == CORVID_ERR_SCHEMA);
    CHECK(strstr(corvid_error_text(), "nmae") != NULL);
    CHECK(corvid_config_column(config, "Keeper", "name", CORVID_MODE_TRACK, NULL) == CORVID_ERR_ARGUMENT);
}

static corvid_row
insert(corvid_txn *txn, const char *text, int64_t years)
{
    corvid_row row;
    corvid_atom atom = corvid_atom_string(text), number = corvid_atom_integer(years);
    OK(corvid_txn_insert(txn, keepers, &row));
    OK(corvid_txn_write(txn, row, name, &atom, NULL, 1));
    OK(corvid_txn_write(txn, row, age, &number, NULL, 1));
    return row;
}

static void
write_and_read(corvid_client *client)
{
    corvid_txn *txn, *second;
    corvid_row ann, owl, row;
    char text[64];
    size_t length;
    int64_t integer;
    double real;
    bool boolean;

    OK(corvid_txn_new(client, &txn));
    CHECK(corvid_txn_new(client, &second) == CORVID_ERR_TXN_OPEN);
    CHECK(corvid_client_run(client, NULL) == CORVID_ERR_TXN_OPEN);
    OK(corvid_txn_add_comment(txn, "a first keeper"));
    ann = insert(txn, "ann", 40);
    OK(corvid_txn_insert(txn, animals, &owl));
    corvid_atom atom = corvid_atom_string("owl");
    OK(corvid_txn_write(txn, owl, species, &atom, NULL, 1));
    OK(corvid_txn_add_value(txn, ann, owned, corvid_atom_uuid(owl.uuid)));
    OK(corvid_txn_add_value(txn, ann, languages, corvid_atom_string("Welsh")));
    OK(corvid_txn_set_key(txn, ann, ids, corvid_atom_string("badge"), corvid_atom_string("17")));
    atom = corvid_atom_real(12.5);
    OK(corvid_txn_write(txn, ann, wage, &atom, NULL, 1));
    atom = corvid_atom_boolean(true);
    OK(corvid_txn_write(txn, ann, is_chief, &atom, NULL, 1));
    CHECK(corvid_txn_write(txn, ann, wage, &atom, NULL, 1) == CORVID_ERR_TYPE);
    CHECK(corvid_txn_write(txn, ann, age, NULL, NULL, 0) == CORVID_ERR_TYPE);
    CHECK(corvid_txn_write(txn, ann, species, &atom, NULL, 1) == CORVID_ERR_COLUMN);
    atom = corvid_atom_real(1e308 * 10);
    CHECK(corvid_txn_write(txn, ann, wage, &atom, NULL, 1) == CORVID_ERR_TYPE);
    /* The transaction shows what it has written. */
    OK(corvid_get_integer(client, ann, age, &integer));
    CHECK(integer == 40);
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    CHECK(corvid_txn_add_comment(txn, "late") == CORVID_ERR_TXN_CLOSED);
    CHECK(corvid_txn_error_text(txn, text, sizeof text, NULL) == CORVID_ERR_NONE);
    OK(corvid_txn_inserted(txn, ann, &row));
    CHECK(corvid_get_integer(client, ann, age, &integer) == CORVID_ERR_ROW_GONE);
    OK(corvid_txn_free(txn));

    OK(corvid_get_string(client, row, name, text, sizeof text, &length));
    CHECK(length == 3 && !strcmp(text, "ann"));
    OK(corvid_get_string(client, row, name, text, 3, &length));
    CHECK(length == 3 && !strcmp(text, "an"));
    OK(corvid_get_string(client, row, name, NULL, 0, &length));
    CHECK(corvid_get_string(client, row, nickname, text, sizeof text, NULL) == CORVID_ERR_NONE);
    OK(corvid_get_real(client, row, wage, &real));
    CHECK(real == 12.5);
    OK(corvid_get_boolean(client, row, is_chief, &boolean));
    CHECK(boolean);
    CHECK(corvid_get_boolean(client, row, age, &boolean) == CORVID_ERR_TYPE);

    corvid_atom atoms[4];
    const corvid_column some[] = {name, age, nickname, wage};
    OK(corvid_get_columns(client, row, some, 4, atoms, text, sizeof text));
    CHECK(!strcmp(atoms[0].value.string, "ann") && atoms[1].value.integer == 40 && atoms[3].value.real == 12.5);
    CHECK(atoms[2].kind == CORVID_TYPE_VOID);
    CHECK(corvid_get_columns(client, row, some, 4, atoms, text, 3) == CORVID_ERR_LIMIT);
    CHECK(corvid_get_columns(client, row, &owned, 1, atoms, NULL, 0) == CORVID_ERR_TYPE);

    corvid_datum *datum;
    OK(corvid_read(client, row, ids, &datum));
    CHECK(corvid_datum_count(datum) == 1);
    CHECK(!strcmp(corvid_datum_keys(datum)[0].value.string, "badge"));
    CHECK(!strcmp(corvid_datum_values(datum)[0].value.string, "17"));
    OK(corvid_datum_free(datum));
    OK(corvid_read(client, row, owned, &datum));
    CHECK(corvid_datum_count(datum) == 1 && corvid_datum_values(datum) == NULL);
    OK(corvid_row_find(client, animals, corvid_datum_keys(datum)[0].value.uuid, &owl));
    OK(corvid_datum_free(datum));
    OK(corvid_get_string(client, owl, species, text, sizeof text, NULL));
    CHECK(!strcmp(text, "owl"));
    CHECK(corvid_get_uuid(client, row, owned, &owl.uuid) == CORVID_ERR_TYPE);
}

static void
change_and_list(corvid_client *client)
{
    corvid_txn *txn;
    corvid_row bob;
    corvid_changes *changes;
    corvid_datum *old;
    bool updated;

    OK(corvid_changes_clear(client));
    OK(corvid_txn_new(client, &txn));
    bob = insert(txn, "bob", 30);
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    OK(corvid_txn_inserted(txn, bob, &bob));
    OK(corvid_txn_free(txn));
    OK(corvid_changes_new(client, keepers, &changes));
    CHECK(corvid_changes_count(changes) == 1 && corvid_changes_data(changes)->is_new);
    CHECK(!memcmp(&corvid_changes_data(changes)->row, &bob, sizeof bob));
    OK(corvid_changes_free(changes));
    OK(corvid_changes_clear(client));

    OK(corvid_txn_new(client, &txn));
    corvid_atom number = corvid_atom_integer(31);
    OK(corvid_txn_verify(txn, bob, age));
    OK(corvid_txn_write(txn, bob, age, &number, NULL, 1));
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    OK(corvid_txn_free(txn));
    OK(corvid_changes_new(client, keepers, &changes));
    CHECK(corvid_changes_count(changes) == 1 && !corvid_changes_data(changes)->is_new);
    OK(corvid_changes_is_updated(changes, 0, age, &updated));
    CHECK(updated);
    OK(corvid_changes_is_updated(changes, 0, name, &updated));
    CHECK(!updated);
    OK(corvid_changes_old(changes, 0, age, &old));
    CHECK(corvid_datum_keys(old)->value.integer == 30);
    OK(corvid_datum_free(old));
    CHECK(corvid_changes_old(changes, 0, name, &old) == CORVID_ERR_NONE);
    CHECK(corvid_changes_is_updated(changes, 7, age, &updated) == CORVID_ERR_ARGUMENT);
    OK(corvid_changes_free(changes));

    /* A deleted row can be read until the changes are cleared. */
    char text[8];
    OK(corvid_txn_new(client, &txn));
    OK(corvid_txn_delete(txn, bob));
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    OK(corvid_txn_free(txn));
    OK(corvid_get_string(client, bob, name, text, sizeof text, NULL));
    OK(corvid_changes_clear(client));
    CHECK(corvid_get_string(client, bob, name, text, sizeof text, NULL) == CORVID_ERR_ROW_GONE);
}

static void
refuse_and_give_up(corvid_client *client)
{
    corvid_txn *txn;
    char text[1000];
    int64_t sum;
    corvid_row row;

    OK(corvid_txn_new(client, &txn));
    insert(txn, "ann", 1);
    CHECK(commit(client, txn) == CORVID_TXN_ERROR);
    OK(corvid_txn_error_text(txn, text, sizeof text, NULL));
    CHECK(strstr(text, "constraint violation") != NULL);
    CHECK(!strcmp(corvid_txn_status_name(corvid_txn_status_of(txn)), "error"));
    OK(corvid_txn_free(txn));

    OK(corvid_txn_new(client, &txn));
    insert(txn, "cid", 1);
    OK(corvid_txn_abort(txn));
    CHECK(corvid_txn_status_of(txn) == CORVID_TXN_ABORTED);
    OK(corvid_txn_free(txn));
    OK(corvid_txn_new(client, &txn));
    CHECK(commit(client, txn) == CORVID_TXN_UNCHANGED);
    OK(corvid_txn_free(txn));

    OK(corvid_txn_new(client, &txn));
    OK(corvid_txn_insert(txn, (corvid_table){cfg.table}, &row));
    OK(corvid_txn_increment(txn, row, cfg, true));
    CHECK(corvid_txn_increment(txn, row, cfg, true) == CORVID_ERR_TXN);
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    OK(corvid_txn_incremented(txn, &sum));
    CHECK(sum == 1);
    OK(corvid_txn_free(txn));

    OK(corvid_txn_new(client, &txn));
    OK(corvid_txn_set_read_only(txn, true));
    CHECK(corvid_txn_insert(txn, keepers, &row) == CORVID_ERR_TXN);
    OK(corvid_txn_free(txn));

    corvid_uuid uuid;
    OK(corvid_uuid_parse("6731fef6-0102-4304-8506-0708090a0b0c", &uuid));
    OK(corvid_uuid_format(uuid, text));
    CHECK(!strcmp(text, "6731fef6-0102-4304-8506-0708090a0b0c"));
    CHECK(corvid_uuid_parse("6731", &uuid) == CORVID_ERR_ARGUMENT);
    OK(corvid_txn_new(client, &txn));
    corvid_atom atom = corvid_atom_string("eve");
    OK(corvid_txn_insert_persistent(txn, keepers, uuid, &row));
    OK(corvid_txn_write(txn, row, name, &atom, NULL, 1));
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    OK(corvid_txn_free(txn));
    OK(corvid_row_find(client, keepers, uuid, &row));
    OK(corvid_txn_new(client, &txn));
    OK(corvid_txn_delete(txn, row));
    OK(corvid_txn_set_dry_run(txn));
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    OK(corvid_row_find(client, keepers, uuid, &row));
    OK(corvid_txn_free(txn));
}

static void
find_in_order(corvid_client *client)
{
    corvid_index *by_age;
    corvid_cursor *cursor;
    corvid_rows *rows;
    corvid_txn *txn;
    corvid_row row, cid;
    const corvid_column columns[] = {age, name};
    const bool descending[] = {true, false};

    OK(corvid_index_new(client, keepers, columns, descending, 2, &by_age));
    CHECK(corvid_index_new(client, keepers, &photo, NULL, 0, &by_age) == CORVID_ERR_COLUMN);
    OK(corvid_txn_new(client, &txn));
    cid = insert(txn, "cid", 70);
    insert(txn, "dan", 70);
    corvid_atom seventy = corvid_atom_integer(70), forty = corvid_atom_integer(40);
    corvid_atom text = corvid_atom_string("cid"), empty = corvid_atom_string("");
    const corvid_key_part key[] = {CORVID_KEY_PART(&seventy, NULL, 1), CORVID_KEY_PART(&text, NULL, 1)};
    const corvid_key_part at_forty[] = {CORVID_KEY_PART(&forty, NULL, 1), CORVID_KEY_PART(&empty, NULL, 1)};
    OK(corvid_index_find(by_age, key, &row));
    CHECK(!memcmp(&row, &cid, sizeof row));
    CHECK(corvid_index_find(by_age, at_forty, &row) == CORVID_ERR_NONE);
    OK(corvid_index_range(by_age, NULL, at_forty, &rows));
    CHECK(corvid_rows_count(rows) == 2);
    CHECK(!memcmp(corvid_rows_data(rows), &cid, sizeof cid));
    OK(corvid_rows_free(rows));
    int count = 0;
    OK(corvid_cursor_new(by_age, key, &cursor));
    for (; corvid_cursor_row(cursor, &row) == CORVID_OK; corvid_cursor_next(cursor)) {
        count++;
        OK(corvid_txn_delete(txn, row));
    }
    CHECK(count == 4);
    OK(corvid_cursor_free(cursor));
    OK(corvid_txn_free(txn));
    OK(corvid_cursor_new(by_age, NULL, &cursor));
    OK(corvid_cursor_next_equal(cursor));
    CHECK(corvid_cursor_row(cursor, &row) == CORVID_ERR_NONE);
    OK(corvid_cursor_free(cursor));
    OK(corvid_index_free(by_age));
}

static void
restrict_and_fetch(corvid_client *client)
{
    uint64_t promised, fetch;
    size_t count;
    int status;
    char text[8];
    corvid_rows *rows;
    corvid_atom atom = corvid_atom_string("ann");
    corvid_clause clause = CORVID_CLAUSE(name, CORVID_FUNCTION_EQUAL, &atom, NULL, 1);

    OK(corvid_condition_set(client, keepers, &clause, 1, &promised));
    while (corvid_condition_seqno(client) < promised) {
        turn(client);
    }
    OK(corvid_row_count(client, keepers, &count));
    CHECK(count == 1);
    clause.function = 99;
    CHECK(corvid_condition_set(client, keepers, &clause, 1, NULL) == CORVID_ERR_ARGUMENT);
    /* A string has no order: the condition in force stays, and later ones work. */
    clause.function = CORVID_FUNCTION_LESS;
    CHECK(corvid_condition_set(client, keepers, &clause, 1, &promised) == CORVID_ERR_TYPE);
    CHECK(strstr(corvid_error_text(), "\"<\" operator may not be applied to column name") != NULL);
    turn(client);
    OK(corvid_row_count(client, keepers, &count));
    CHECK(count == 1);
    OK(corvid_condition_set_all(client, keepers, &promised));
    while (corvid_condition_seqno(client) < promised) {
        turn(client);
    }
    OK(corvid_rows_new(client, keepers, &rows));
    CHECK(corvid_rows_count(rows) == 2);
    OK(corvid_fetch_row(client, corvid_rows_data(rows)[0], photo, &fetch));
    do {
        turn(client);
        OK(corvid_fetch_status_of(client, fetch, &status));
    } while (status == CORVID_FETCH_PENDING);
    CHECK(status == CORVID_FETCH_SUCCESS);
    CHECK(corvid_fetch_status_of(client, fetch, &status) == CORVID_ERR_NONE);
    OK(corvid_get_string(client, corvid_rows_data(rows)[0], photo, text, sizeof text, NULL));
    CHECK(corvid_fetch_column(client, name, &fetch) == CORVID_ERR_COLUMN);
    OK(corvid_fetch_table(client, keepers, &fetch));
    OK(corvid_rows_free(rows));
}

static void
lock(corvid_client *client)
{
    corvid_session session = CORVID_SESSION_INIT;
    corvid_txn *txn;
    corvid_row row;
    int status;

    OK(corvid_client_set_lock(client, "zoo"));
    OK(corvid_txn_new(client, &txn));
    OK(corvid_txn_insert(txn, keepers, &row));
    OK(corvid_txn_commit(txn, &status));
    CHECK(status == CORVID_TXN_NOT_LOCKED);
    OK(corvid_txn_free(txn));
    do {
        turn(client);
        OK(corvid_client_session(client, &session));
    } while (session.lock != CORVID_LOCK_HELD);
    OK(corvid_client_set_lock(client, NULL));
}

int
main(int argc, char *argv[])
{
    corvid_client *client;
    corvid_row row = {{0}, {{0}}};
    char text[200];
    int level;

    CHECK(argc == 3);
    configure(argv[1]);
    CHECK(corvid_client_new(config, "localhost", &client) == CORVID_ERR_REMOTE);
    CHECK(corvid_client_new(config, "ssl:127.0.0.1:1", &client) == CORVID_ERR_REMOTE);
    OK(corvid_client_new(config, argv[2], &client));
    OK(corvid_config_free(config));
    wait_for_contents(client);
    CHECK(corvid_client_failure(client, text, sizeof text, NULL) == CORVID_ERR_NONE);
    write_and_read(client);
    change_and_list(client);
    refuse_and_give_up(client);
    find_in_order(client);
    restrict_and_fetch(client);
    lock(client);

    uint64_t seqno = corvid_client_seqno(client);
    OK(corvid_client_reconnect(client));
    wait_for_contents(client);
    CHECK(corvid_client_seqno(client) > seqno);
    CHECK(corvid_log_next(&level, text, sizeof text) == CORVID_OK);
    while (corvid_log_next(&level, text, sizeof text) == CORVID_OK) {
        CHECK(level >= CORVID_LEVEL_ERROR && level <= CORVID_LEVEL_INFO);
    }

    /* Handles of a client that was freed report it, and are freed all the same. */
    corvid_txn *txn;
    OK(corvid_txn_new(client, &txn));
    OK(corvid_client_free(client));
    CHECK(corvid_client_run(client, NULL) == CORVID_ERR_HANDLE);
    CHECK(corvid_txn_insert(txn, keepers, &row) == CORVID_ERR_HANDLE);
    OK(corvid_txn_free(txn));
    CHECK(corvid_txn_free(txn) == CORVID_ERR_HANDLE);
    OK(corvid_client_free(NULL));
    puts("ok");
    return 0;
}
