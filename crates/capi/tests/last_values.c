/* What the program has read stays as long as it may look at it: rows that are gone, strings and
 * arrays. By the code that ovsdb-idlc makes of guild.ovsschema. Arguments: the schema, the remote.
 * */
#include "guild.h"

/* One replica follows, another one writes. */
static struct corvid_idl *idl, *writer;

static const struct guild_member *
tracked_member(const char *name)
{
    const struct guild_member *member;
    GUILD_MEMBER_FOR_EACH_TRACKED (member, idl) {
        if (!strcmp(member->name, name)) {
            return member;
        }
    }
    return NULL;
}

/* Commits a member with a name of its own, and runs the other replica until it is there, so it has
 * all before that too. */
static void
catch_up(const char *name)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(writer);
    new_member(txn, name, 0);
    commit_guild(txn);
    wait_for_member(idl, name);
}

static void
rows_that_are_gone_show_their_last_values(void)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(writer);
    struct guild_member *ann = new_member(txn, "ann", 1);
    struct guild_seat *two[] = {new_seat(txn, 2), new_seat(txn, 3)};
    guild_member_set_guests(ann, two, 2);
    commit_guild(txn);
    catch_up("first");
    corvid_idl_track_clear(idl);

    /* Changed and deleted in one run. */
    txn = corvid_idl_txn_create(writer);
    guild_member_update_guests_addvalue(member_named(writer, "ann"), new_seat(txn, 4));
    guild_member_set_seat(member_named(writer, "ann"), new_seat(txn, 5));
    commit_guild(txn);
    txn = corvid_idl_txn_create(writer);
    guild_member_delete(member_named(writer, "ann"));
    commit_guild(txn);
    catch_up("second");
    CHECK(member_named(idl, "ann") == NULL);
    const struct guild_member *gone = tracked_member("ann");
    CHECK(gone != NULL && guild_member_is_deleted(gone) && !guild_member_is_new(gone));
    CHECK(gone->seat != NULL && gone->seat->place == 5 && gone->n_guests == 3);
    int64_t places = 0;
    for (size_t i = 0; i < gone->n_guests; i++) {
        CHECK(gone->guests[i] != NULL);
        places += gone->guests[i]->place;
    }
    CHECK(places == 2 + 3 + 4);
    corvid_idl_track_clear(idl);

    /* Inserted and deleted in one run. */
    txn = corvid_idl_txn_create(writer);
    struct guild_member *bob = new_member(txn, "bob", 6);
    struct guild_seat *one[] = {new_seat(txn, 7)};
    guild_member_set_guests(bob, one, 1);
    commit_guild(txn);
    txn = corvid_idl_txn_create(writer);
    guild_member_delete(member_named(writer, "bob"));
    commit_guild(txn);
    catch_up("third");
    gone = tracked_member("bob");
    CHECK(gone != NULL && guild_member_is_deleted(gone) && guild_member_is_new(gone));
    CHECK(gone->seat != NULL && gone->seat->place == 6 && gone->n_guests == 1 && gone->guests[0]->place == 7);
    corvid_idl_track_clear(idl);
}

static void
strings_and_arrays_stay_until_the_next_run(void)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(writer);
    struct guild_member *cid = new_member(txn, "cid", 1);
    const char *tags[] = {"tall", "kind"};
    guild_member_set_tags(cid, tags, 2);
    commit_guild(txn);
    const struct guild_member *row = member_named(writer, "cid");
    for (int is_committed = 0; is_committed < 2; is_committed++) {
        txn = corvid_idl_txn_create(writer);
        const char *name = row->name;
        char **former = row->tags;
        guild_member_set_name(row, "a-name-that-is-longer-than-the-former-one");
        const char *longer = row->name;
        guild_member_set_name(row, "dan");
        guild_member_set_tags(row, NULL, 0);
        CHECK(!strcmp(name, "cid") && !strncmp(longer, "a-name", 6) && !strcmp(row->name, "dan"));
        CHECK(!strcmp(former[0], "kind") && !strcmp(former[1], "tall") && row->n_tags == 0);
        if (is_committed) {
            corvid_idl_txn_commit(txn);
        } else {
            corvid_idl_txn_abort(txn);
        }
        CHECK(!strcmp(row->name, "cid") && row->n_tags == 2);
        CHECK(!strcmp(name, "cid") && !strcmp(longer, "a-name-that-is-longer-than-the-former-one") && !strcmp(former[1], "tall"));
        if (is_committed) {
            CHECK(corvid_idl_txn_commit_block(txn) == CORVID_TXN_SUCCESS);
        }
        corvid_idl_txn_destroy(txn);
    }
    CHECK(!strcmp(row->name, "dan") && row->n_tags == 0);
}

/* Indexes show what the open transaction did, and what is committed after its end. */
static void
indexes_follow_the_open_transaction(struct corvid_idl_index *by_name)
{
    struct guild_member *key = guild_member_index_init_row(by_name);
    const struct guild_member *dan = member_named(writer, "dan");
    struct corvid_idl_txn *txn = corvid_idl_txn_create(writer);
    struct guild_member *own = new_member(txn, "own", 1);
    guild_member_index_set_name(key, "own");
    CHECK(guild_member_index_find(by_name, key) == own);
    CHECK(guild_member_get_for_uuid(writer, &own->header_.uuid) == own);
    guild_member_set_name(own, "renamed");
    CHECK(guild_member_index_find(by_name, key) == NULL);
    guild_member_index_set_name(key, "renamed");
    CHECK(guild_member_index_find(by_name, key) == own);
    guild_member_delete(own);
    CHECK(guild_member_index_find(by_name, key) == NULL);
    guild_member_set_name(dan, "eve");
    guild_member_index_set_name(key, "dan");
    CHECK(guild_member_index_find(by_name, key) == NULL);
    guild_member_index_set_name(key, "eve");
    CHECK(guild_member_index_find(by_name, key) == dan);
    guild_member_delete(dan);
    CHECK(guild_member_index_find(by_name, key) == NULL);
    corvid_idl_txn_abort(txn);
    corvid_idl_txn_destroy(txn);
    CHECK(guild_member_index_find(by_name, key) == NULL);
    guild_member_index_set_name(key, "dan");
    CHECK(guild_member_index_find(by_name, key) == dan);
    guild_member_index_destroy_row(key);
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3);
    idl = corvid_idl_create(argv[2], &guild_idl_class, true, true);
    writer = corvid_idl_create(argv[2], &guild_idl_class, true, true);
    CHECK(idl != NULL && writer != NULL);
    corvid_idl_track_add_all(idl);
    const struct corvid_idl_index_column columns[] = {{&guild_member_col_name, NULL, 0}};
    struct corvid_idl_index *by_name = corvid_idl_index_create(writer, columns, 1);
    corvid_idl_get_initial_snapshot(idl);
    corvid_idl_get_initial_snapshot(writer);
    rows_that_are_gone_show_their_last_values();
    strings_and_arrays_stay_until_the_next_run();
    indexes_follow_the_open_transaction(by_name);
    corvid_idl_destroy(idl);
    corvid_idl_destroy(writer);
    puts("ok");
    return 0;
}
