/* Each transaction is executed once, although replies get lost: the library finds out what became of
 * it. Argument: the remote, a proxy that loses the first replies. */
#include "guild.h"

int
main(int argc, char *argv[])
{
    CHECK(argc == 2);
    struct corvid_idl *idl = corvid_idl_create_unconnected(&guild_idl_class, true);
    CHECK(idl != NULL);
    corvid_idl_set_remote(idl, argv[1], true);
    corvid_idl_get_initial_snapshot(idl);
    for (int number = 0; number < 8; number++) {
        char name[16];
        snprintf(name, sizeof name, "member %d", number);
        struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
        new_member(txn, name, number);
        commit_guild(txn);
        wait_for_member(idl, name);
    }
    corvid_idl_destroy(idl);
    puts("ok");
    return 0;
}
