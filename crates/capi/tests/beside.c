/* Rows whose maps and UUIDs are of Open vSwitch's library. Arguments: a schema, a remote. */
#include <corvid-idl-compat.h>
#include "zoo-idl.h"
#include "check.h"

VLOG_DEFINE_THIS_MODULE(beside);

/* Of the library that stands in for Open vSwitch's; that itself has no such number. */
extern unsigned int stand_in_poll_blocks __attribute__((weak));

static void
commit_block(struct ovsdb_idl_txn *txn)
{
    CHECK(ovsdb_idl_txn_commit_block(txn) == TXN_SUCCESS);
    ovsdb_idl_txn_destroy(txn);
}

static const struct zoo_keeper *
find(struct ovsdb_idl *idl, const char *name)
{
    const struct zoo_keeper *keeper;
    ZOO_KEEPER_FOR_EACH (keeper, idl) {
        if (!strcmp(keeper->name, name)) {
            return keeper;
        }
    }
    return NULL;
}

/* A clause with a map. */
static void
choose(struct ovsdb_idl *idl)
{
    struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);
    struct smap ids = SMAP_INITIALIZER(&ids);
    smap_add(&ids, "badge", "17");
    zoo_keeper_add_clause_external_ids(&condition, OVSDB_F_INCLUDES, &ids);
    zoo_keeper_set_condition(idl, &condition);
    ovsdb_idl_condition_destroy(&condition);
    smap_destroy(&ids);
}

int
main(int argc, char *argv[])
{
    struct ovsdb_idl *idl = ovsdb_idl_create(argv[argc - 1], &zoo_idl_class, false, true);
    const struct zoo_keeper *keeper;
    const struct smap_node *node;
    struct uuid uuid;

    ovsdb_idl_add_column(idl, &zoo_keeper_col_name);
    ovsdb_idl_add_column(idl, &zoo_keeper_col_age);
    ovsdb_idl_track_add_column(idl, &zoo_keeper_col_external_ids);
    struct ovsdb_idl_index *index = ovsdb_idl_index_create1(idl, &zoo_keeper_col_name);
    choose(idl);
    ovsdb_idl_get_initial_snapshot(idl);
    CHECK(ovsdb_idl_has_ever_connected(idl));
    ovsdb_idl_track_clear(idl);

    /* A map of the program becomes the column. */
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_create(idl);
    struct zoo_keeper *made = zoo_keeper_insert(txn);
    CHECK(smap_count(&made->external_ids) == 0);
    struct smap ids;
    smap_init(&ids);
    smap_add(&ids, "badge", "17");
    smap_add(&ids, "area", "north");
    zoo_keeper_set_name(made, "ann");
    zoo_keeper_set_external_ids(made, &ids);
    CHECK(smap_equal(&made->external_ids, &ids));
    /* The map of a row is an argument too. */
    zoo_keeper_set_external_ids(made, &made->external_ids);
    zoo_keeper_update_external_ids_setkey(made, "shoe", "41");
    struct uuid provisional = made->header_.uuid;
    CHECK(ovsdb_idl_txn_commit_block(txn) == TXN_SUCCESS);
    const struct uuid *real = ovsdb_idl_txn_get_insert_uuid(txn, &provisional);
    CHECK(real && !uuid_is_zero(real));
    uuid = *real;
    ovsdb_idl_txn_destroy(txn);
    smap_add(&ids, "shoe", "41");
    keeper = find(idl, "ann");
    CHECK(keeper && smap_equal(&keeper->external_ids, &ids));
    CHECK(smap_get_int(&keeper->external_ids, "badge", 0) == 17);

    /* A commit waits in the program's loop. One whose reply comes at once waits nowhere. */
    unsigned int former_blocks = &stand_in_poll_blocks ? stand_in_poll_blocks : 0;
    for (int age = 1; &stand_in_poll_blocks && stand_in_poll_blocks == former_blocks; age++) {
        CHECK(age < 10000);
        txn = ovsdb_idl_txn_create(idl);
        zoo_keeper_set_age(find(idl, "ann"), age);
        commit_block(txn);
    }
    keeper = find(idl, "ann");

    /* UUIDs are the reference's numbers. */
    char text[37];
    struct uuid parsed;
    snprintf(text, sizeof text, UUID_FMT, UUID_ARGS(&keeper->header_.uuid));
    CHECK(uuid_from_string(&parsed, text));
    CHECK(parsed.parts[0] == uuid.parts[0] && parsed.parts[3] == uuid.parts[3]);
    CHECK(zoo_keeper_get_for_uuid(idl, &parsed) == keeper);
    corvid_uuid_format(uuid, text);
    CHECK(uuid_from_string(&parsed, text) && !memcmp(&parsed, &uuid, sizeof uuid));

    /* A map that is written shows at once, and again as it was after an abort. */
    txn = ovsdb_idl_txn_create(idl);
    zoo_keeper_set_external_ids(keeper, NULL);
    CHECK(smap_count(&keeper->external_ids) == 0);
    ovsdb_idl_txn_abort(txn);
    ovsdb_idl_txn_destroy(txn);
    CHECK(smap_equal(&keeper->external_ids, &ids));

    /* Keys of indexes have maps too. */
    struct zoo_keeper *key = zoo_keeper_index_init_row(index);
    CHECK(key && smap_count(&key->external_ids) == 0);
    zoo_keeper_index_set_external_ids(key, &ids);
    zoo_keeper_index_destroy_row(key);

    /* A deleted row shows its map until the changes are cleared. */
    ovsdb_idl_track_clear(idl);
    txn = ovsdb_idl_txn_create(idl);
    zoo_keeper_delete(keeper);
    commit_block(txn);
    size_t n = 0;
    ZOO_KEEPER_FOR_EACH_TRACKED (keeper, idl) {
        CHECK(zoo_keeper_is_deleted(keeper));
        SMAP_FOR_EACH (node, &keeper->external_ids) {
            const char *value = smap_get(&ids, node->key);
            CHECK(value && !strcmp(value, node->value));
            n++;
        }
    }
    CHECK(n == 3);
    ovsdb_idl_track_clear(idl);
    smap_destroy(&ids);

    /* A mistake is told by the program's log. */
    VLOG_INFO("what follows is a mistake");
    ovsdb_idl_txn_commit(NULL);
    ovsdb_idl_destroy(idl);
    puts("ok");
    return 0;
}
