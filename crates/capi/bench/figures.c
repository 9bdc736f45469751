/* Figures of libcorvid on a server with an empty zoo: loading, reading, looking up, changing, over both layers. `crates/examples/src/bin/client-figures.rs` measures the same for the client for
 * Rust, and make bench-c prints both. Arguments: the schema, the remote, the number of rows. */
#include "../tests/check.h"
#include "zoo-idl.h"
#include <time.h>

#define CHANGES 2000
#define BATCH 1000

static double
cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* For parts that wait for nothing. */
static double
wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static void
figure(const char *name, double value)
{
    printf("%s\t%.4g\n", name, value);
}

static corvid_config *config;
static corvid_table keepers;
static corvid_column name, age, ids;

static corvid_client *
load(const char *remote)
{
    corvid_client *client;
    OK(corvid_client_new(config, remote, &client));
    wait_for_contents(client);
    return client;
}

static void
fill(corvid_client *client, int rows)
{
    double begun = cpu();
    for (int i = 0; i < rows;) {
        corvid_txn *txn;
        OK(corvid_txn_new(client, &txn));
        for (int end = i + BATCH; i < end && i < rows; i++) {
            char text[32];
            corvid_row row;
            snprintf(text, sizeof text, "keeper-%d", i);
            corvid_atom atom = corvid_atom_string(text), number = corvid_atom_integer(i % 100);
            corvid_atom keys[] = {corvid_atom_string("owner"), corvid_atom_string("serial")};
            corvid_atom values[] = {corvid_atom_string("zoo"), atom};
            OK(corvid_txn_insert(txn, keepers, &row));
            OK(corvid_txn_write(txn, row, name, &atom, NULL, 1));
            OK(corvid_txn_write(txn, row, age, &number, NULL, 1));
            OK(corvid_txn_write(txn, row, ids, keys, values, 2));
        }
        CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
        OK(corvid_txn_free(txn));
    }
    figure("insert, CPU us/row", (cpu() - begun) * 1e6 / rows);
}

static void
read_all(corvid_client *client, int count)
{
    corvid_rows *rows;
    int64_t sum = 0;
    size_t letters = 0;
    double begun = wall();
    OK(corvid_rows_new(client, keepers, &rows));
    const corvid_row *data = corvid_rows_data(rows);
    size_t n = corvid_rows_count(rows);
    const corvid_column columns[] = {name, age};
    for (size_t i = 0; i < n; i++) {
        char text[64];
        corvid_atom atoms[2];
        OK(corvid_get_columns(client, data[i], columns, 2, atoms, text, sizeof text));
        sum += atoms[1].value.integer;
        letters += strlen(text);
    }
    OK(corvid_rows_free(rows));
    CHECK(n == (size_t) count && sum > 0 && letters > 0);
    figure("read two columns of each row, ns/row", (wall() - begun) * 1e9 / count);
}

/* The names of all rows, so that printing them is not measured. */
static char (*
names_of(int count))[32]
{
    char (*names)[32] = (char (*)[32]) calloc((size_t) count, sizeof *names);
    CHECK(names != NULL);
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "keeper-%d", i);
    }
    return names;
}

static void
look_up(corvid_client *client, int count)
{
    corvid_index *index;
    char (*names)[32] = names_of(count);
    OK(corvid_index_new(client, keepers, &name, NULL, 1, &index));
    double begun = wall();
    for (int i = 0; i < count; i++) {
        corvid_row row;
        corvid_atom atom = corvid_atom_string(names[i]);
        const corvid_key_part key = CORVID_KEY_PART(&atom, NULL, 1);
        OK(corvid_index_find(index, &key, &row));
    }
    figure("look a row up by name, ns", (wall() - begun) * 1e9 / count);
    free(names);
    OK(corvid_index_free(index));
}

static void
change(corvid_client *client)
{
    corvid_rows *rows;
    OK(corvid_rows_new(client, keepers, &rows));
    corvid_row row = corvid_rows_data(rows)[0];
    OK(corvid_rows_free(rows));
    double begun = cpu();
    for (int i = 0; i < CHANGES; i++) {
        corvid_txn *txn;
        corvid_atom number = corvid_atom_integer(1000 + i);
        OK(corvid_txn_new(client, &txn));
        OK(corvid_txn_write(txn, row, age, &number, NULL, 1));
        CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
        OK(corvid_txn_free(txn));
    }
    figure("change one column, CPU us/txn", (cpu() - begun) * 1e6 / CHANGES);
}

static void
typed(const char *remote, int count)
{
    double begun = cpu();
    struct corvid_idl *idl = corvid_idl_create(remote, &zoo_idl_class, false, true);
    corvid_idl_add_column(idl, &zoo_keeper_col_name);
    corvid_idl_add_column(idl, &zoo_keeper_col_age);
    corvid_idl_add_column(idl, &zoo_keeper_col_external_ids);
    corvid_idl_get_initial_snapshot(idl);
    figure("typed: load, CPU us/row", (cpu() - begun) * 1e6 / count);
    const struct corvid_idl_index_column columns[] = {{&zoo_keeper_col_name, NULL, 0}};
    struct corvid_idl_index *index = corvid_idl_index_create(idl, columns, 1);

    const struct zoo_keeper *keeper;
    int64_t sum = 0;
    size_t letters = 0;
    begun = wall();
    ZOO_KEEPER_FOR_EACH (keeper, idl) {
        sum += keeper->age;
        letters += strlen(keeper->name);
    }
    CHECK(sum > 0 && letters > 0);
    figure("typed: read two columns of each row, ns/row", (wall() - begun) * 1e9 / count);

    struct zoo_keeper *key = zoo_keeper_index_init_row(index);
    char (*names)[32] = names_of(count);
    begun = wall();
    for (int i = 0; i < count; i++) {
        zoo_keeper_index_set_name(key, names[i]);
        CHECK(zoo_keeper_index_find(index, key) != NULL);
    }
    figure("typed: look a row up by name, ns", (wall() - begun) * 1e9 / count);
    free(names);
    zoo_keeper_index_destroy_row(key);

    keeper = zoo_keeper_first(idl);
    begun = cpu();
    for (int i = 0; i < CHANGES; i++) {
        struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
        zoo_keeper_set_age(keeper, 5000 + i);
        CHECK(corvid_idl_txn_commit_block(txn) == CORVID_TXN_SUCCESS);
        corvid_idl_txn_destroy(txn);
    }
    figure("typed: change one column, CPU us/txn", (cpu() - begun) * 1e6 / CHANGES);
    corvid_idl_destroy(idl);
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 4);
    int rows = atoi(argv[3]);
    char *schema = read_file(argv[1]);
    OK(corvid_config_new(schema, &config));
    free(schema);
    OK(corvid_config_table(config, "Keeper", &keepers));
    OK(corvid_config_column(config, "Keeper", "name", CORVID_MODE_READ, &name));
    OK(corvid_config_column(config, "Keeper", "age", CORVID_MODE_READ, &age));
    OK(corvid_config_column(config, "Keeper", "external_ids", CORVID_MODE_READ, &ids));
    corvid_client *client = load(argv[2]);
    fill(client, rows);
    OK(corvid_client_free(client));
    double begun = cpu();
    client = load(argv[2]);
    figure("load, CPU us/row", (cpu() - begun) * 1e6 / rows);
    read_all(client, rows);
    look_up(client, rows);
    change(client);
    OK(corvid_client_free(client));
    OK(corvid_config_free(config));
    typed(argv[2], rows);
    return 0;
}
