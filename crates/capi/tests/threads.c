/* Several threads use one client: one runs it, others read and write, one makes and frees clients. Arguments: the schema, the remote. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

#define READERS 3
#define ROUNDS 300

static corvid_client *client;
static corvid_config *config;
static corvid_table keepers;
static corvid_column name, age;
static atomic_bool is_over;
static atomic_int lists;
/* Transactions are one at a time, and the runner must not meet an open one for long. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static void *
run(void *argument)
{
    (void) argument;
    while (!atomic_load(&is_over)) {
        corvid_wait wait = CORVID_WAIT_INIT;
        corvid_error error = corvid_client_run(client, NULL);
        CHECK(error == CORVID_OK || error == CORVID_ERR_TXN_OPEN);
        OK(corvid_client_wait(client, &wait));
        struct pollfd pollfd = {wait.fd, wait.events, 0};
        poll(&pollfd, wait.fd >= 0 ? 1 : 0, 1);
    }
    return NULL;
}

static void *
read_rows(void *argument)
{
    (void) argument;
    while (!atomic_load(&is_over)) {
        corvid_rows *rows;
        OK(corvid_rows_new(client, keepers, &rows));
        for (size_t i = 0; i < corvid_rows_count(rows); i++) {
            char text[32];
            int64_t years;
            corvid_error error = corvid_get_string(client, corvid_rows_data(rows)[i], name, text, sizeof text, NULL);
            CHECK(error == CORVID_OK || error == CORVID_ERR_ROW_GONE);
            error = corvid_get_integer(client, corvid_rows_data(rows)[i], age, &years);
            CHECK(error == CORVID_OK || error == CORVID_ERR_ROW_GONE);
        }
        OK(corvid_rows_free(rows));
        atomic_fetch_add(&lists, 1);
    }
    return NULL;
}

static void *
write_rows(void *argument)
{
    const char *prefix = argument;
    for (int i = 0; i < ROUNDS / 10; i++) {
        char text[32];
        corvid_txn *txn;
        corvid_row row;
        snprintf(text, sizeof text, "%s%d", prefix, i);
        corvid_atom atom = corvid_atom_string(text);
        pthread_mutex_lock(&writing);
        OK(corvid_txn_new(client, &txn));
        OK(corvid_txn_insert(txn, keepers, &row));
        OK(corvid_txn_write(txn, row, name, &atom, NULL, 1));
        OK(corvid_txn_commit(txn, NULL));
        pthread_mutex_unlock(&writing);
        while (corvid_txn_status_of(txn) == CORVID_TXN_INCOMPLETE) {
            poll(NULL, 0, 1);
        }
        CHECK(corvid_txn_status_of(txn) == CORVID_TXN_SUCCESS);
        OK(corvid_txn_free(txn));
    }
    return NULL;
}

static void *
make_clients(void *argument)
{
    for (int i = 0; i < ROUNDS / 10; i++) {
        corvid_client *other;
        OK(corvid_client_new(config, argument, &other));
        OK(corvid_client_run(other, NULL));
        OK(corvid_client_free(other));
        CHECK(corvid_client_run(other, NULL) == CORVID_ERR_HANDLE);
    }
    return NULL;
}

int
main(int argc, char *argv[])
{
    pthread_t runner, readers[READERS], writers[2], maker;
    corvid_config *everything;
    size_t count;

    CHECK(argc == 3);
    char *schema = read_file(argv[1]);
    OK(corvid_config_new(schema, &everything));
    config = everything;
    OK(corvid_config_table(config, "Keeper", &keepers));
    OK(corvid_config_column(config, "Keeper", "name", CORVID_MODE_READ, &name));
    OK(corvid_config_column(config, "Keeper", "age", CORVID_MODE_READ, &age));
    OK(corvid_client_new(config, argv[2], &client));
    wait_for_contents(client);
    pthread_create(&runner, NULL, run, NULL);
    for (int i = 0; i < READERS; i++) {
        pthread_create(&readers[i], NULL, read_rows, NULL);
    }
    pthread_create(&writers[0], NULL, write_rows, "a");
    pthread_create(&writers[1], NULL, write_rows, "b");
    pthread_create(&maker, NULL, make_clients, argv[2]);
    pthread_join(writers[0], NULL);
    pthread_join(writers[1], NULL);
    pthread_join(maker, NULL);
    atomic_store(&is_over, true);
    pthread_join(runner, NULL);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
    }
    CHECK(atomic_load(&lists) > 0);
    turn(client);
    OK(corvid_row_count(client, keepers, &count));
    CHECK(count == 2 * (ROUNDS / 10));
    OK(corvid_client_free(client));
    OK(corvid_config_free(config));
    free(schema);
    puts("ok");
    return 0;
}
