/* Typed rows, by the code that ovsdb-idlc makes of zoo.ovsschema. Arguments: the schema, the remote. */
#include "check.h"
#include "zoo-idl.h"

static struct corvid_idl *idl;
static struct corvid_idl_index *by_age;

static const struct zoo_keeper *
find(const char *name)
{
    const struct zoo_keeper *keeper;
    ZOO_KEEPER_FOR_EACH (keeper, idl) {
        if (!strcmp(keeper->name, name)) {
            return keeper;
        }
    }
    return NULL;
}

static size_t
count(void)
{
    const struct zoo_keeper *keeper;
    size_t n = 0;
    ZOO_KEEPER_FOR_EACH (keeper, idl) {
        n++;
    }
    return n;
}

static void
commit_typed(struct corvid_idl_txn *txn)
{
    int status = corvid_idl_txn_commit_block(txn);
    if (status != CORVID_TXN_SUCCESS) {
        fprintf(stderr, "%s\n", corvid_idl_txn_get_error(txn));
    }
    CHECK(status == CORVID_TXN_SUCCESS);
    corvid_idl_txn_destroy(txn);
}

static const char *
smap_value(const struct corvid_smap *smap, const char *key)
{
    for (size_t i = 0; i < smap->n; i++) {
        if (!strcmp(smap->nodes[i].key, key)) {
            return smap->nodes[i].value;
        }
    }
    return NULL;
}

static void
insert_all_kinds(void)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    CHECK(txn != NULL && corvid_idl_txn_create(idl) == NULL);
    struct zoo_animal *owl = zoo_animal_insert(txn), *newt = zoo_animal_insert(txn);
    zoo_animal_set_species(owl, "owl");
    zoo_animal_set_name(owl, "Ivy");
    zoo_animal_set_species(newt, "newt");
    struct zoo_keeper *ann = zoo_keeper_insert(txn);
    CHECK(!strcmp(ann->name, "") && ann->n_scores == 0 && ann->nickname == NULL);
    zoo_keeper_set_name(ann, "ann");
    zoo_keeper_set_age(ann, 40);
    zoo_keeper_set_wage(ann, 12.5);
    zoo_keeper_set_is_chief(ann, true);
    zoo_keeper_set_nickname(ann, "a");
    int64_t seven = 7;
    zoo_keeper_set_lucky_number(ann, &seven, 1);
    const char *languages[] = {"Welsh", "Breton"};
    zoo_keeper_set_languages(ann, languages, 2);
    const int64_t scores[] = {3, 1, 2, 3};
    zoo_keeper_set_scores(ann, scores, 3);
    struct corvid_smap_node nodes[] = {{"badge", "17"}, {"area", "north"}};
    const struct corvid_smap ids = {nodes, 2};
    zoo_keeper_set_external_ids(ann, &ids);
    const int64_t days[] = {1, 2};
    const char *shifts[] = {"day", "night"};
    zoo_keeper_set_shifts(ann, days, shifts, 2);
    struct zoo_animal *animals[] = {owl, newt};
    zoo_keeper_set_animals(ann, animals, 2);
    zoo_keeper_set_favourite(ann, owl);
    zoo_keeper_set_default_(ann, 9);
    /* The struct shows what was written. */
    CHECK(ann->age == 40 && ann->n_animals == 2 && ann->favourite == owl && find("ann") == ann);
    CHECK(corvid_idl_txn_get(&ann->header_) == txn && corvid_idl_txn_get_idl(txn) == idl);
    struct corvid_uuid provisional = ann->header_.uuid;
    CHECK(corvid_idl_txn_commit_block(txn) == CORVID_TXN_SUCCESS);
    const struct corvid_uuid *real = corvid_idl_txn_get_insert_uuid(txn, &provisional);
    CHECK(real != NULL);
    const struct zoo_keeper *row = zoo_keeper_get_for_uuid(idl, real);
    corvid_idl_txn_destroy(txn);

    CHECK(row != NULL && row == find("ann") && count() == 1);
    CHECK(row->age == 40 && row->wage == 12.5 && row->is_chief && !strcmp(row->nickname, "a"));
    CHECK(row->n_lucky_number == 1 && *row->lucky_number == 7 && row->default_ == 9);
    CHECK(row->n_languages == 2 && !strcmp(row->languages[0], "Breton") && !strcmp(row->languages[1], "Welsh"));
    CHECK(row->n_scores == 3 && row->scores[0] == 1 && row->scores[2] == 3);
    CHECK(row->external_ids.n == 2 && !strcmp(smap_value(&row->external_ids, "area"), "north"));
    CHECK(row->n_shifts == 2 && row->key_shifts[1] == 2 && !strcmp(row->value_shifts[1], "night"));
    CHECK(row->n_animals == 2 && row->favourite != NULL && !strcmp(row->favourite->species, "owl"));
    CHECK(row->animals[0] == row->favourite || row->animals[1] == row->favourite);
    CHECK(!strcmp(row->header_.table->class_->name, "Keeper"));
    CHECK(zoo_keeper_is_new(row) && zoo_keeper_is_updated(row, ZOO_KEEPER_COL_AGE));
    corvid_idl_track_clear(idl);
    CHECK(!zoo_keeper_is_new(row));
}

static void
change_and_roll_back(void)
{
    const struct zoo_keeper *ann = find("ann");
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    zoo_keeper_set_age(ann, 50);
    zoo_keeper_set_nickname(ann, NULL);
    zoo_keeper_insert(txn);
    CHECK(ann->age == 50 && ann->nickname == NULL && count() == 2);
    zoo_keeper_delete(ann);
    CHECK(find("ann") == NULL && count() == 1);
    corvid_idl_txn_abort(txn);
    corvid_idl_txn_destroy(txn);
    CHECK(find("ann") == ann && ann->age == 40 && !strcmp(ann->nickname, "a") && count() == 1);

    /* Elements: the struct shows them when the server has told of them. */
    txn = corvid_idl_txn_create(idl);
    zoo_keeper_verify_age(ann);
    zoo_keeper_update_languages_addvalue(ann, "Manx");
    zoo_keeper_update_languages_delvalue(ann, "Welsh");
    zoo_keeper_update_external_ids_setkey(ann, "badge", "18");
    zoo_keeper_update_external_ids_delkey(ann, "area");
    zoo_keeper_update_shifts_setkey(ann, 3, "late");
    CHECK(ann->n_languages == 2 && !strcmp(ann->languages[1], "Welsh"));
    struct corvid_datum *merged;
    OK(corvid_idl_read(&ann->header_, &zoo_keeper_col_languages, &merged));
    CHECK(corvid_datum_count(merged) == 2 && !strcmp(corvid_datum_keys(merged)[1].value.string, "Manx"));
    OK(corvid_datum_free(merged));
    commit_typed(txn);
    CHECK(ann == find("ann") && ann->n_languages == 2 && !strcmp(ann->languages[1], "Manx"));
    CHECK(ann->external_ids.n == 1 && !strcmp(smap_value(&ann->external_ids, "badge"), "18"));
    CHECK(ann->n_shifts == 3);
    /* A change of one column lists the row once, without the others. */
    CHECK(zoo_keeper_track_get_first(idl) == ann && zoo_keeper_track_get_next(ann) == NULL);
    CHECK(zoo_keeper_is_updated(ann, ZOO_KEEPER_COL_SHIFTS) && !zoo_keeper_is_updated(ann, ZOO_KEEPER_COL_AGE));
    corvid_idl_track_clear(idl);
    /* An enumeration's value that is none, and a missing reference, are refused by the server or here; nothing breaks. */
    txn = corvid_idl_txn_create(idl);
    struct zoo_animal *bad = zoo_animal_insert(txn);
    zoo_animal_set_species(bad, "unicorn");
    zoo_keeper_update_animals_addvalue(ann, bad);
    CHECK(corvid_idl_txn_commit_block(txn) == CORVID_TXN_ERROR);
    CHECK(strstr(corvid_idl_txn_get_error(txn), "constraint") != NULL);
    corvid_idl_txn_destroy(txn);
}

static void
references_follow(void)
{
    const struct zoo_keeper *ann = find("ann");
    const struct zoo_animal *owl = ann->favourite;
    /* The owl goes with its last strong reference, and the weak one with it. */
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    zoo_keeper_update_animals_delvalue(ann, owl);
    commit_typed(txn);
    CHECK(ann->n_animals == 1 && ann->favourite == NULL);
    CHECK(zoo_animal_track_get_first(idl) == owl && zoo_animal_is_deleted(owl) && !strcmp(owl->name, "Ivy"));
    corvid_idl_track_clear(idl);
    /* Gone now: a pointer that is kept is refused, not followed. */
    CHECK(!zoo_animal_is_deleted(owl));
    CHECK(strstr(corvid_error_text(), "not in the replica") != NULL);
    CHECK(zoo_animal_next(owl) == NULL);
    zoo_animal_set_name(owl, "x");
}

static void
walk_in_order(void)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        struct zoo_keeper *keeper = zoo_keeper_insert(txn);
        zoo_keeper_set_name(keeper, name);
        zoo_keeper_set_age(keeper, i % 10);
    }
    commit_typed(txn);
    CHECK(count() == 201);
    struct zoo_keeper *key = zoo_keeper_index_init_row(by_age), *to = zoo_keeper_index_init_row(by_age);
    const struct zoo_keeper *keeper;
    int n = 0;
    zoo_keeper_index_set_age(key, 3);
    CHECK(corvid_idl_row_is_synthetic(&key->header_));
    CHECK(zoo_keeper_index_find(by_age, key)->age == 3);
    ZOO_KEEPER_FOR_EACH_EQUAL (keeper, key, by_age) {
        CHECK(keeper->age == 3);
        n++;
    }
    CHECK(n == 20);
    zoo_keeper_index_set_age(to, 4);
    n = 0;
    ZOO_KEEPER_FOR_EACH_RANGE (keeper, key, to, by_age) {
        n++;
    }
    CHECK(n == 40);
    int64_t last = -1;
    n = 0;
    ZOO_KEEPER_FOR_EACH_BYINDEX (keeper, by_age) {
        CHECK(keeper->age >= last);
        last = keeper->age;
        n++;
        /* More cursors than the index keeps positions of. */
        const struct zoo_keeper *other;
        int m = 0;
        ZOO_KEEPER_FOR_EACH_EQUAL (other, key, by_age) {
            m += other->age == 3;
        }
        CHECK(m == 20);
    }
    CHECK(n == 201);
    /* The body deletes the row that it is at. */
    txn = corvid_idl_txn_create(idl);
    n = 0;
    ZOO_KEEPER_FOR_EACH_EQUAL (keeper, key, by_age) {
        zoo_keeper_delete(keeper);
        n++;
    }
    CHECK(n == 20 && zoo_keeper_index_find(by_age, key) == NULL);
    ZOO_KEEPER_FOR_EACH_SAFE (keeper, idl) {
        if (keeper->age == 5) {
            zoo_keeper_delete(keeper);
        }
    }
    const struct zoo_keeper *next;
    ZOO_KEEPER_FOR_EACH_SAFE (keeper, next, idl) {
        if (keeper->age == 6) {
            zoo_keeper_delete(keeper);
        }
    }
    CHECK(count() == 141);
    commit_typed(txn);
    CHECK(count() == 141);
    n = 0;
    ZOO_KEEPER_FOR_EACH_TRACKED (keeper, idl) {
        n += zoo_keeper_is_deleted(keeper);
    }
    CHECK(n == 60);
    zoo_keeper_index_destroy_row(key);
    zoo_keeper_index_destroy_row(to);
    zoo_keeper_index_destroy_row(to);
    corvid_idl_track_clear(idl);
}

/* The only row of an age by the index, or null, by a key that is used again and again. */
static const struct zoo_keeper *
of_age(struct zoo_keeper *key, int64_t age)
{
    zoo_keeper_index_set_age(key, age);
    const struct zoo_keeper *found = zoo_keeper_index_find(by_age, key);
    struct corvid_idl_cursor cursor = zoo_keeper_cursor_first_eq(by_age, key);
    CHECK(zoo_keeper_cursor_data(&cursor) == found && (found == NULL || found->age == age));
    return found;
}

/* A transaction lets rows leave their places in the replica, and an abort brings them back. A look-up always finds the
 * struct of the row, whichever row had the place before. */
static void
find_in_reused_places(void)
{
    struct zoo_keeper *key = zoo_keeper_index_init_row(by_age);
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    const char *const names[] = {"p", "q", "r"};
    for (int i = 0; i < 3; i++) {
        const struct zoo_keeper *keeper = zoo_keeper_insert(txn);
        zoo_keeper_set_name(keeper, names[i]);
        zoo_keeper_set_age(keeper, 1001 + i);
    }
    commit_typed(txn);
    const struct zoo_keeper *rows[3];
    for (int i = 0; i < 3; i++) {
        rows[i] = of_age(key, 1001 + i);
        CHECK(rows[i] != NULL);
    }
    /* Two are deleted, and three others get their places and a new one; then it is all undone. */
    txn = corvid_idl_txn_create(idl);
    zoo_keeper_delete(rows[0]);
    zoo_keeper_delete(rows[1]);
    CHECK(of_age(key, 1001) == NULL && of_age(key, 1002) == NULL && of_age(key, 1003) == rows[2]);
    const struct zoo_keeper *inserted[3];
    for (int i = 0; i < 3; i++) {
        inserted[i] = zoo_keeper_insert(txn);
        zoo_keeper_set_age(inserted[i], 1011 + i);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(of_age(key, 1011 + i) == inserted[i]);
    }
    zoo_keeper_delete(inserted[1]);
    CHECK(of_age(key, 1012) == NULL && of_age(key, 1013) == inserted[2]);
    corvid_idl_txn_abort(txn);
    corvid_idl_txn_destroy(txn);
    for (int i = 0; i < 3; i++) {
        CHECK(of_age(key, 1001 + i) == rows[i] && of_age(key, 1011 + i) == NULL);
    }
    /* The server's changes: the new row gets the place of the deleted one, whose struct is tracked. */
    corvid_idl_track_clear(idl);
    txn = corvid_idl_txn_create(idl);
    zoo_keeper_delete(rows[0]);
    const struct zoo_keeper *keeper = zoo_keeper_insert(txn);
    zoo_keeper_set_name(keeper, "s");
    zoo_keeper_set_age(keeper, 1021);
    commit_typed(txn);
    const struct zoo_keeper *later = of_age(key, 1021);
    CHECK(later != NULL && later != rows[0] && of_age(key, 1001) == NULL);
    CHECK(zoo_keeper_is_deleted(rows[0]) && rows[0]->age == 1001);
    corvid_idl_track_clear(idl);
    CHECK(of_age(key, 1021) == later && of_age(key, 1002) == rows[1]);
    /* A key with a refused value finds nothing until it is set to another one. */
    corvid_atom text = corvid_atom_string("x");
    corvid_idl_index_write(&key->header_, &zoo_keeper_col_age, &text, NULL, 1);
    CHECK(zoo_keeper_index_find(by_age, key) == NULL);
    CHECK(of_age(key, 1003) == rows[2]);
    txn = corvid_idl_txn_create(idl);
    zoo_keeper_delete(later);
    zoo_keeper_delete(rows[1]);
    zoo_keeper_delete(rows[2]);
    commit_typed(txn);
    CHECK(of_age(key, 1021) == NULL);
    corvid_idl_track_clear(idl);
    zoo_keeper_index_destroy_row(key);
}

/* One key is used with the indexes of two replicas in turn, which have the same number but other columns. */
static void
one_key_for_two_replicas(const char *remote)
{
    struct corvid_idl *other = corvid_idl_create(remote, &zoo_idl_class, true, true);
    const struct corvid_idl_index_column columns[] = {{&zoo_keeper_col_name, NULL, 0}};
    struct corvid_idl_index *by_name = corvid_idl_index_create(other, columns, 1);
    CHECK(by_name != NULL);
    corvid_idl_get_initial_snapshot(other);
    const struct zoo_keeper *ann = find("ann");
    CHECK(ann != NULL);
    struct zoo_keeper *key = zoo_keeper_index_init_row(by_age);
    zoo_keeper_index_set_age(key, ann->age);
    zoo_keeper_index_set_name(key, "ann");
    for (int turn = 0; turn < 2; turn++) {
        const struct zoo_keeper *found = zoo_keeper_index_find(by_age, key);
        CHECK(found != NULL && found->age == ann->age);
        CHECK(zoo_keeper_cursor_first_eq(by_age, key).row != NULL);
        found = zoo_keeper_index_find(by_name, key);
        CHECK(found != NULL && found != ann && !strcmp(found->name, "ann"));
        CHECK(zoo_keeper_cursor_first_eq(by_name, key).row == &found->header_);
    }
    zoo_keeper_index_destroy_row(key);
    CHECK(zoo_keeper_index_find(by_age, key) == NULL);
    corvid_idl_destroy(other);
}

static void
choose_rows(void)
{
    struct corvid_idl_condition condition = CORVID_IDL_CONDITION_INIT;
    zoo_keeper_add_clause_name(&condition, 2, "ann");
    unsigned int promised = zoo_keeper_set_condition(idl, &condition);
    while (corvid_idl_get_condition_seqno(idl) < promised) {
        corvid_idl_run(idl);
        if (corvid_idl_get_condition_seqno(idl) < promised) {
            corvid_idl_wait(idl);
            OK(corvid_poll_block());
        }
    }
    CHECK(count() == 1 && find("ann") != NULL);
    corvid_idl_condition_clear(&condition);
    zoo_keeper_add_clause_name(&condition, 5, "bob");
    CHECK(zoo_keeper_set_condition(idl, &condition) == 0);
    CHECK(strstr(corvid_error_text(), "\"<\" operator may not be applied to column name") != NULL);
    CHECK(count() == 1 && find("ann") != NULL);
    corvid_idl_condition_destroy(&condition);
}

static void
loop(void)
{
    struct corvid_idl_loop loop = CORVID_IDL_LOOP_INIT(idl);
    int64_t wanted = 3;
    for (int turn = 0; turn < 1000; turn++) {
        struct corvid_idl_txn *txn = corvid_idl_loop_run(&loop);
        const struct zoo_settings *settings = zoo_settings_first(idl);
        if (settings != NULL && settings->cfg == wanted) {
            corvid_idl_loop_commit_and_wait(&loop);
            break;
        }
        if (txn != NULL) {
            settings = settings != NULL ? settings : zoo_settings_insert(txn);
            zoo_settings_set_cfg(settings, settings->cfg + 1);
        }
        corvid_idl_loop_commit_and_wait(&loop);
        OK(corvid_poll_block());
        CHECK(turn < 999);
    }
    corvid_idl_loop_destroy(&loop);
}

/* Arguments that are wrong: each call returns, and does nothing. */
static void
misuse(void)
{
    int local = 0;
    void *const wrong[] = {NULL, &local, (void *) (uintptr_t) 0x123456789abcu, (void *) idl, (void *) by_age};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct corvid_idl *other = (struct corvid_idl *) wrong[i];
        const struct zoo_keeper *row = (const struct zoo_keeper *) wrong[i];
        struct corvid_idl_txn *txn = (struct corvid_idl_txn *) wrong[i];
        struct corvid_idl_index *index = (struct corvid_idl_index *) wrong[i];
        CHECK(zoo_keeper_next(row) == NULL && zoo_keeper_track_get_next(row) == NULL);
        CHECK(!zoo_keeper_is_new(row) && !zoo_keeper_is_updated(row, ZOO_KEEPER_COL_AGE));
        zoo_keeper_set_age(row, 1);
        zoo_keeper_set_name(row, NULL);
        zoo_keeper_update_languages_addvalue(row, "x");
        zoo_keeper_verify_age(row);
        zoo_keeper_delete(row);
        zoo_keeper_index_set_age(row, 1);
        CHECK(zoo_keeper_insert(txn) == NULL);
        CHECK(corvid_idl_txn_commit(txn) == CORVID_TXN_ERROR);
        corvid_idl_txn_abort(txn);
        corvid_idl_txn_wait(txn);
        corvid_idl_txn_add_comment(txn, "x");
        CHECK(corvid_idl_txn_get_error(txn) != NULL);
        CHECK(zoo_keeper_index_find(index, row) == NULL);
        CHECK(zoo_keeper_cursor_first_eq(index, row).row == NULL);
        if (other != idl) {
            corvid_idl_run(other);
            corvid_idl_wait(other);
            corvid_idl_set_remote(other, "tcp:127.0.0.1:1", true);
            CHECK(zoo_keeper_first(other) == NULL && corvid_idl_txn_create(other) == NULL);
            CHECK(corvid_idl_get_seqno(other) == 0);
        }
        if (wrong[i] != NULL) {
            corvid_idl_txn_destroy(txn);
        }
    }
    corvid_idl_add_column(idl, (const struct corvid_idl_column *) (const void *) &local);
    CHECK(corvid_idl_first_row(idl, NULL) == NULL);
    struct corvid_idl_cursor cursor = {NULL, NULL, 0};
    corvid_idl_cursor_next(&cursor);
    corvid_idl_cursor_next(NULL);
    corvid_idl_loop_run(NULL);
    corvid_idl_loop_commit_and_wait(NULL);
    corvid_idl_loop_destroy(NULL);
    corvid_idl_destroy(NULL);
    corvid_idl_condition_destroy(NULL);
    CHECK(corvid_idl_create("unix:/nowhere", NULL, true, true) == NULL);
    struct corvid_idl_class broken = zoo_idl_class;
    broken.schema = "{}";
    CHECK(corvid_idl_create_unconnected(&broken, true) == NULL);
    const struct corvid_idl_map_functions no_functions = {sizeof(corvid_idl_smap), NULL, NULL, NULL};
    broken = zoo_idl_class;
    broken.maps = &no_functions;
    CHECK(corvid_idl_create_unconnected(&broken, true) == NULL);
    CHECK(strstr(corvid_error_text(), "function for maps") != NULL);
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3);
    idl = corvid_idl_create(argv[2], &zoo_idl_class, true, true);
    CHECK(idl != NULL && !corvid_idl_has_ever_connected(idl));
    corvid_idl_omit(idl, &zoo_keeper_col_photo);
    corvid_idl_omit_alert(idl, &zoo_keeper_col_wage);
    corvid_idl_track_add_all(idl);
    const struct corvid_idl_index_column columns[] = {{&zoo_keeper_col_age, NULL, 0}};
    by_age = corvid_idl_index_create(idl, columns, 1);
    CHECK(by_age != NULL);
    corvid_idl_get_initial_snapshot(idl);
    CHECK(corvid_idl_has_ever_connected(idl) && corvid_idl_is_connected(idl) && corvid_idl_is_alive(idl));
    CHECK(zoo_server_has_keeper_table(idl) && zoo_server_has_keeper_table_col_age(idl));
    CHECK(!strcmp(zoo_get_db_version(), "1.0.0"));
    corvid_idl_add_column(idl, &zoo_keeper_col_photo);
    CHECK(strstr(corvid_error_text(), "before the first run") != NULL);
    insert_all_kinds();
    change_and_roll_back();
    references_follow();
    walk_in_order();
    find_in_reused_places();
    one_key_for_two_replicas(argv[2]);
    choose_rows();
    misuse();

    /* The contents come again over another connection; what is the same keeps its struct. */
    const struct zoo_keeper *same = find("ann");
    unsigned int before = corvid_idl_get_seqno(idl);
    corvid_idl_track_clear(idl);
    corvid_idl_force_reconnect(idl);
    while (corvid_idl_run(idl), !corvid_idl_is_connected(idl) || corvid_idl_get_seqno(idl) == before) {
        corvid_idl_wait(idl);
        OK(corvid_poll_block());
    }
    CHECK(find("ann") == same && same->age == 40 && count() == 1);
    CHECK(zoo_keeper_track_get_first(idl) == NULL);

    /* A change of a column without alerts shows in the struct and wakes nobody. */
    const struct zoo_keeper *ann = find("ann");
    unsigned int seqno = corvid_idl_get_seqno(idl);
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    zoo_keeper_set_wage(ann, 13);
    commit_typed(txn);
    CHECK(ann->wage == 13 && corvid_idl_get_seqno(idl) == seqno);

    /* Rows of a replica that is destroyed are refused. */
    loop();
    CHECK(zoo_keeper_next(ann) == NULL);
    zoo_keeper_set_age(NULL, 1);
    puts("ok");
    return 0;
}
