/* A client in a forked child is an error there and does no harm to the parent, in both layers.
 * Arguments: the schema, the remote, and for TLS the folder with the files. */
#include "guild.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void
set_tls(struct corvid_idl *idl, const char *folder)
{
    static const char *const names[] = {"relay-key.pem", "relay-cert.pem", "source-ca.pem"};
    char files[3][512];
    for (size_t i = 0; i < 3; i++) {
        snprintf(files[i], sizeof files[i], "%s/%s", folder, names[i]);
    }
    OK(corvid_idl_set_tls(idl, files[0], files[1], files[2]));
}

static void
commit_member(struct corvid_idl *idl, const char *name)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    CHECK(txn != NULL);
    new_member(txn, name, 1);
    int status = corvid_idl_txn_commit_block(txn);
    CHECK(status == CORVID_TXN_SUCCESS);
    corvid_idl_txn_destroy(txn);
}

/* Waits for a child, which has to end well. */
static void
wait_for(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A child that hangs is ended. */
static pid_t
fork_for_a_while(void)
{
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
    }
    return child;
}

static void
misuse_typed(struct corvid_idl *idl)
{
    unsigned int seqno = corvid_idl_get_seqno(idl);
    corvid_idl_run(idl);
    CHECK(strstr(corvid_error_text(), "belongs to the parent") != NULL);
    CHECK(corvid_idl_get_initial_snapshot_timeout(idl, -1) == CORVID_ERR_FORKED);
    CHECK(corvid_idl_txn_create(idl) == NULL);
    CHECK(corvid_idl_get_seqno(idl) == seqno);
    const struct guild_member *member = guild_member_first(idl);
    CHECK(member != NULL && !strcmp(member->name, "ann"));
    corvid_idl_destroy(idl);
    _exit(0);
}

static void
misuse_plain(corvid_client *client)
{
    corvid_wait wait;
    corvid_txn *txn;
    CHECK(corvid_client_run(client, NULL) == CORVID_ERR_FORKED);
    CHECK(corvid_client_wait(client, &wait) == CORVID_ERR_FORKED);
    CHECK(corvid_txn_new(client, &txn) == CORVID_ERR_FORKED);
    CHECK(!strcmp(corvid_error_name(CORVID_ERR_FORKED), "CORVID_ERR_FORKED"));
    OK(corvid_client_free(client));
    _exit(0);
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3 || argc == 4);
    /* Made before a fork and run after it, as daemons do. */
    struct corvid_idl *idl = corvid_idl_create_unconnected(&guild_idl_class, true);
    CHECK(idl != NULL);
    if (argc == 4) {
        set_tls(idl, argv[3]);
    }
    corvid_idl_set_remote(idl, argv[2], true);
    pid_t child = fork_for_a_while();
    if (child == 0) {
        corvid_idl_get_initial_snapshot(idl);
        commit_member(idl, "ann");
        corvid_idl_destroy(idl);
        _exit(0);
    }
    wait_for(child);

    corvid_idl_get_initial_snapshot(idl);
    CHECK(guild_member_first(idl) != NULL);
    child = fork_for_a_while();
    if (child == 0) {
        misuse_typed(idl);
    }
    wait_for(child);
    commit_member(idl, "bob");

    /* A child inherits what its parent gives up. */
    child = fork_for_a_while();
    if (child == 0) {
        corvid_inherit_connections();
        commit_member(idl, "cleo");
        _exit(0);
    }
    wait_for(child);

    if (argc == 3) {
        corvid_config *config;
        corvid_client *client;
        corvid_table members;
        char *schema = read_file(argv[1]);
        OK(corvid_config_new(schema, &config));
        OK(corvid_config_table(config, "Member", &members));
        OK(corvid_client_new(config, argv[2], &client));
        OK(corvid_config_free(config));
        wait_for_contents(client);
        corvid_session before, after;
        OK(corvid_client_session(client, &before));
        child = fork_for_a_while();
        if (child == 0) {
            misuse_plain(client);
        }
        wait_for(child);
        corvid_txn *txn;
        OK(corvid_txn_new(client, &txn));
        OK(corvid_txn_add_comment(txn, "by the parent"));
        OK(corvid_txn_free(txn));
        OK(corvid_client_run(client, NULL));
        OK(corvid_client_session(client, &after));
        CHECK(after.connected && after.seqno == before.seqno);
        OK(corvid_client_free(client));
        free(schema);
    }
    puts("ok");
    return 0;
}
