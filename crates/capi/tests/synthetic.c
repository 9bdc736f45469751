/* Synthetic columns follow the columns that they are computed from, in transactions too, and what
 * their code allocates is freed. */
#include "check.h"
#include "label.h"
#include "zoo-idl.h"

static struct corvid_idl *idl;
static int made, freed;

char *
make_label(const char *name, int64_t age)
{
    char text[100];
    snprintf(text, sizeof text, "%s:%d", name, (int) age);
    made++;
    char *label = (char *) malloc(strlen(text) + 1);
    CHECK(label != NULL);
    /* The replica may be read here. */
    CHECK(corvid_idl_get_seqno(idl) < 1000000);
    return strcpy(label, text);
}

void
free_label(char *label)
{
    freed++;
    free(label);
}

int64_t
hash_label(const char *label)
{
    return (int64_t) strlen(label);
}

static const struct zoo_keeper *
only(void)
{
    const struct zoo_keeper *keeper = zoo_keeper_first(idl);
    CHECK(keeper != NULL && zoo_keeper_next(keeper) == NULL);
    return keeper;
}

static void
commit_txn(struct corvid_idl_txn *txn)
{
    CHECK(corvid_idl_txn_commit_block(txn) == CORVID_TXN_SUCCESS);
    corvid_idl_txn_destroy(txn);
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3);
    idl = corvid_idl_create(argv[2], &zoo_idl_class, true, true);
    CHECK(idl != NULL);
    corvid_idl_get_initial_snapshot(idl);
    CHECK(made == 0);
    CHECK(zoo_keeper_col_hash.is_synthetic && !zoo_keeper_col_age.is_synthetic);
    CHECK(ZOO_KEEPER_COL_HASH == ZOO_KEEPER_N_COLUMNS - 1);
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    struct zoo_keeper *keeper = zoo_keeper_insert(txn);
    CHECK(!strcmp(keeper->label, ":0") && keeper->hash == 2);
    zoo_keeper_set_name(keeper, "ann");
    zoo_keeper_set_age(keeper, 40);
    CHECK(!strcmp(keeper->label, "ann:40") && keeper->hash == 6);
    commit_txn(txn);
    CHECK(!strcmp(only()->label, "ann:40") && only()->hash == 6);

    /* Once for each change of a row, however many columns changed. */
    int before = made;
    txn = corvid_idl_txn_create(idl);
    zoo_keeper_set_age(only(), 7);
    CHECK(!strcmp(only()->label, "ann:7") && made == before + 1);
    corvid_idl_txn_abort(txn);
    corvid_idl_txn_destroy(txn);
    CHECK(!strcmp(only()->label, "ann:40") && made == before + 2);

    /* The library does not know such a column. */
    corvid_idl_add_column(idl, &zoo_keeper_col_hash);
    CHECK(strstr(corvid_error_text(), "the column is not one of the class") != NULL);

    txn = corvid_idl_txn_create(idl);
    zoo_keeper_delete(only());
    commit_txn(txn);
    corvid_idl_run(idl);
    corvid_idl_run(idl);
    CHECK(zoo_keeper_first(idl) == NULL && made == freed);
    txn = corvid_idl_txn_create(idl);
    zoo_keeper_set_name(zoo_keeper_insert(txn), "bob");
    commit_txn(txn);
    CHECK(made > freed);
    corvid_idl_destroy(idl);
    CHECK(made == freed);
    puts("ok");
    return 0;
}
