/* Calls that block return when they are asked to, after their time limit and when no server is left
 * to try; and what keeps a client from its server reaches standard error or the program's handler.
 * Arguments: the schema, the remote. */
#include "guild.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static char said[100000];

static void
collect(int level, const char *text)
{
    CHECK(level >= CORVID_LEVEL_ERROR && level <= CORVID_LEVEL_DEBUG);
    CHECK(strlen(said) + strlen(text) + 2 < sizeof said);
    strcat(strcat(said, text), "\n");
    /* A handler may call the library. */
    corvid_error_name(CORVID_OK);
    OK(corvid_log_set_level(CORVID_LEVEL_INFO));
}

static void
on_alarm(int signal_number)
{
    (void) signal_number;
    corvid_interrupt();
}

static void *
interrupt_later(void *unused)
{
    (void) unused;
    usleep(50000);
    corvid_interrupt();
    return NULL;
}

static struct corvid_idl *
replica(const char *remote, bool retry)
{
    struct corvid_idl *idl = corvid_idl_create_unconnected(&guild_idl_class, true);
    CHECK(idl != NULL);
    corvid_idl_set_remote(idl, remote, retry);
    return idl;
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3);
    int status;
    /* Before the program asks for messages, warnings go to standard error. */
    int former = dup(2);
    FILE *file = tmpfile();
    CHECK(former >= 0 && file != NULL && dup2(fileno(file), 2) == 2);
    corvid_idl_run(NULL);
    CHECK(dup2(former, 2) == 2);
    rewind(file);
    char line[500];
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK(!strncmp(line, "corvid: corvid_idl_run: ", 24));

    OK(corvid_log_set_handler(collect));
    /* A server that is away is told while the program blocks. */
    struct corvid_idl *idl = replica("unix:/nowhere/at/all", true);
    CHECK(corvid_idl_get_initial_snapshot_timeout(idl, 50) == CORVID_ERR_NOT_CONNECTED);
    CHECK(strstr(corvid_error_text(), "timed out: unix:/nowhere/at/all") != NULL);
    CHECK(strstr(said, "unix:/nowhere/at/all: connection attempt failed") != NULL);
    CHECK(corvid_idl_get_initial_snapshot_timeout(idl, 10000) == CORVID_ERR_NOT_CONNECTED);
    CHECK(strstr(said, "no server with the contents so far: unix:/nowhere/at/all") != NULL);

    /* A signal handler or another thread ends it. */
    CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
    alarm(1);
    corvid_idl_get_initial_snapshot(idl);
    CHECK(!corvid_idl_has_ever_connected(idl));
    /* So do calls that begin later, until it is taken back. */
    CHECK(corvid_idl_get_initial_snapshot_timeout(idl, -1) == CORVID_ERR_NOT_CONNECTED);
    CHECK(strstr(corvid_error_text(), "interrupted") != NULL);
    corvid_interrupt_clear();
    CHECK(corvid_idl_get_initial_snapshot_timeout(idl, 20) == CORVID_ERR_NOT_CONNECTED);
    CHECK(strstr(corvid_error_text(), "timed out") != NULL);
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    new_member(txn, "ann", 1);
    status = corvid_idl_txn_commit_block_timeout(txn, 20);
    CHECK(status == CORVID_TXN_TRY_AGAIN || status == CORVID_TXN_INCOMPLETE);
    corvid_idl_txn_destroy(txn);
    corvid_idl_destroy(idl);

    /* No server is left to try, or none was named. */
    said[0] = '\0';
    idl = replica("unix:/nowhere/at/all", false);
    corvid_idl_get_initial_snapshot(idl);
    CHECK(strstr(said, "no contents: no server is left to try") != NULL);
    corvid_idl_destroy(idl);
    said[0] = '\0';
    idl = replica("nonsense:remote", false);
    corvid_idl_get_initial_snapshot(idl);
    CHECK(strstr(said, "nonsense:remote") != NULL);
    corvid_idl_destroy(idl);

    /* A server without the database says so at once. */
    said[0] = '\0';
    struct corvid_idl_class other = guild_idl_class;
    char *schema = read_file(argv[1]);
    char *name = strstr(schema, "Guild");
    CHECK(name != NULL);
    memcpy(name, "Gilde", 5);
    other.database = "Gilde";
    other.schema = schema;
    idl = corvid_idl_create_unconnected(&other, true);
    CHECK(idl != NULL);
    corvid_idl_set_remote(idl, argv[2], true);
    for (int turns = 0; !strstr(said, "does not have the database"); turns++) {
        CHECK(turns < 1000);
        corvid_idl_get_initial_snapshot_timeout(idl, 60);
    }
    CHECK(strstr(said, "no server with the contents so far: ") != NULL);
    corvid_idl_destroy(idl);
    free(schema);

    /* Another thread interrupts a commit; the transaction ends as always when it is asked again. */
    idl = replica(argv[2], true);
    corvid_idl_get_initial_snapshot(idl);
    CHECK(corvid_idl_has_ever_connected(idl));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, interrupt_later, NULL) == 0);
    struct corvid_idl *away = replica("unix:/nowhere/at/all", true);
    corvid_idl_get_initial_snapshot(away);
    CHECK(pthread_join(thread, NULL) == 0);
    corvid_idl_destroy(away);
    txn = corvid_idl_txn_create(idl);
    new_member(txn, "bob", 1);
    status = corvid_idl_txn_commit_block(txn);
    CHECK(status == CORVID_TXN_INCOMPLETE || status == CORVID_TXN_SUCCESS);
    corvid_interrupt_clear();
    CHECK(corvid_idl_txn_commit_block(txn) == CORVID_TXN_SUCCESS);
    corvid_idl_txn_destroy(txn);
    corvid_idl_destroy(idl);
    puts("ok");
    return 0;
}
