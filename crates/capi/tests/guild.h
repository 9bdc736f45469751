/* What the programs over guild.ovsschema share: members with the seat that each must have, and
 * waits. */
#ifndef GUILD_H
#define GUILD_H

#include "check.h"
#include "guild-idl.h"

static inline const struct guild_member *
member_named(struct corvid_idl *idl, const char *name)
{
    const struct guild_member *member;
    GUILD_MEMBER_FOR_EACH (member, idl) {
        if (!strcmp(member->name, name)) {
            return member;
        }
    }
    return NULL;
}

static inline struct guild_seat *
new_seat(struct corvid_idl_txn *txn, int64_t place)
{
    struct guild_seat *seat = guild_seat_insert(txn);
    guild_seat_set_place(seat, place);
    return seat;
}

static inline struct guild_member *
new_member(struct corvid_idl_txn *txn, const char *name, int64_t place)
{
    struct guild_member *member = guild_member_insert(txn);
    guild_member_set_name(member, name);
    guild_member_set_seat(member, new_seat(txn, place));
    return member;
}

static inline void
commit_guild(struct corvid_idl_txn *txn)
{
    int status = corvid_idl_txn_commit_block(txn);
    if (status != CORVID_TXN_SUCCESS) {
        fprintf(stderr, "%s\n", corvid_idl_txn_get_error(txn));
    }
    CHECK(status == CORVID_TXN_SUCCESS);
    corvid_idl_txn_destroy(txn);
}

/* Runs a replica until a member is there. */
static inline const struct guild_member *
wait_for_member(struct corvid_idl *idl, const char *name)
{
    for (;;) {
        corvid_idl_run(idl);
        const struct guild_member *member = member_named(idl, name);
        if (member != NULL) {
            return member;
        }
        corvid_idl_wait(idl);
        OK(corvid_poll_block());
    }
}

#endif
