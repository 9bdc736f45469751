/* A commit to a server that is gone waits for a server that can tell its outcome, for as long as
 * the program wants; no signal ends the program. Arguments: the schema, the remote, the server's
 * process, which the program ends, and for TLS the folder with the files. */
#include "guild.h"
#include <signal.h>

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

int
main(int argc, char *argv[])
{
    CHECK(argc == 4 || argc == 5);
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    struct corvid_idl *idl = corvid_idl_create_unconnected(&guild_idl_class, true);
    CHECK(idl != NULL);
    if (argc == 5) {
        set_tls(idl, argv[4]);
    }
    corvid_idl_set_remote(idl, argv[2], true);
    corvid_idl_get_initial_snapshot(idl);
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    new_member(txn, "ann", 1);

    CHECK(kill((pid_t) atoi(argv[3]), SIGKILL) == 0);
    corvid_wait wait = CORVID_WAIT_INIT;
    OK(corvid_idl_wait_for(idl, &wait));
    struct pollfd closed = {wait.fd, POLLIN | POLLRDHUP, 0};
    while (!(closed.revents & (POLLHUP | POLLRDHUP))) {
        CHECK(poll(&closed, 1, 60000) == 1);
    }
    CHECK(corvid_idl_txn_commit_block_timeout(txn, 2000) == CORVID_TXN_INCOMPLETE);
    corvid_idl_txn_destroy(txn);
    corvid_idl_destroy(idl);
    puts("ok");
    return 0;
}
