/* Values of any column, as control utilities of the reference use them, and the session: every such
 * name, with a server. It is a program in C and in C++. */
#define CORVID_IDL_COMPAT 1
#include "check.h"

#include <corvid-idl-compat.h>
#include "zoo-idl.h"

VLOG_DEFINE_THIS_MODULE(values_test);

/* The part of Open vSwitch's simap.h that a program with memory reports has. */
struct simap {
    char name[4][40];
    unsigned int value[4];
    int n;
};

static void
simap_increase(struct simap *simap, const char *name, unsigned int amount)
{
    CHECK(simap->n < 4);
    snprintf(simap->name[simap->n], sizeof simap->name[0], "%s", name);
    simap->value[simap->n++] = amount;
}

static struct ovsdb_idl *idl;

static void
types(void)
{
    const struct ovsdb_type *ids = &zoo_keeper_col_external_ids.type;
    const struct ovsdb_type *species = &zoo_animal_col_species.type;
    const struct ovsdb_type *favourite = &zoo_keeper_col_favourite.type;
    CHECK(ovsdb_type_is_map(ids) && ids->value.type == OVSDB_TYPE_STRING && ids->n_max == UINT_MAX);
    CHECK(ovsdb_type_is_scalar(species) && species->key.enum_->n == 3);
    CHECK(!strcmp(json_string(species->key.enum_->keys[1].s), "newt"));
    CHECK(ovsdb_type_is_optional_scalar(favourite) && favourite->key.uuid.refType == 1);
    CHECK(!strcmp(favourite->key.uuid.refTableName, "Animal"));
    CHECK(ovsdb_type_is_set(&zoo_keeper_col_scores.type));
    CHECK(ovsdb_type_is_composite(&zoo_keeper_col_scores.type));
    CHECK(ovsdb_type_is_optional(favourite) && zoo_keeper_col_name.is_mutable);
    CHECK(ovsdb_type_is_scalar(&ovsdb_type_uuid) && ovsdb_type_uuid.key.type == OVSDB_TYPE_UUID);
    CHECK(zoo_keeper_col_age.type.value.type == OVSDB_TYPE_VOID);
    CHECK(!strcmp(ovsdb_atomic_type_to_string(OVSDB_TYPE_INTEGER), "integer"));
    CHECK(zoo_table_keeper.is_root && !zoo_table_animal.is_root && zoo_table_settings.is_singleton);
    CHECK(!zoo_keeper_col_name.is_synthetic && !strcmp(zoo_keeper_col_name.name, "name"));
}

static void
check_text(const struct ovsdb_type *type, const char *text, const char *expected)
{
    struct ovsdb_datum datum, other;
    struct ds ds = DS_EMPTY_INITIALIZER;
    char *error = ovsdb_datum_from_string(&datum, type, text, NULL);
    CHECK(error == NULL);
    ovsdb_datum_to_string(&datum, type, &ds);
    CHECK(!strcmp(ds_cstr(&ds), expected));
    ovsdb_datum_clone(&other, &datum);
    CHECK(ovsdb_datum_equals(&datum, &other, type));
    CHECK(!ovsdb_datum_compare_3way(&datum, &other, type));
    ovsdb_datum_destroy(&datum, type);
    ds_clear(&ds);
    ovsdb_datum_to_bare(&other, type, &ds);
    CHECK(!strchr(ds_cstr(&ds), '['));
    ovsdb_datum_destroy(&other, type);
    ds_destroy(&ds);
}

static void
texts(void)
{
    struct ovsdb_datum datum;
    struct ds ds = DS_EMPTY_INITIALIZER;
    union ovsdb_atom atom, *end;
    enum ovsdb_atomic_type string = OVSDB_TYPE_STRING;
    const char *rest = "a\\ b=\"c d\",";
    char *word, *error;

    check_text(&zoo_keeper_col_scores.type, "7, 1-3", "[1, 2, 3, 7]");
    check_text(&zoo_keeper_col_external_ids.type, "b=\"x y\",a=1", "{a=\"1\", b=\"x y\"}");
    check_text(&zoo_keeper_col_is_chief.type, "yes", "true");
    check_text(&zoo_keeper_col_wage.type, "2.5", "2.5");
    check_text(&zoo_keeper_col_nickname.type, "[]", "[]");
    error = ovsdb_datum_from_string(&datum, &zoo_keeper_col_age.type, "old", NULL);
    CHECK(error && !strcmp(error, "\"old\" is not a valid integer or range"));
    free(error);
    error = ovsdb_datum_from_string(&datum, &zoo_animal_col_species.type, "bat", NULL);
    CHECK(error && strstr(error, "bat is not one of the allowed values"));
    free(error);
    CHECK(!ovsdb_token_parse(&rest, &word) && !strcmp(word, "a b") && !strcmp(rest, "=\"c d\","));
    free(word);
    CHECK(ovsdb_token_is_delim('=') && !ovsdb_token_is_delim('a'));
    rest++;
    CHECK(!ovsdb_token_parse(&rest, &word) && !strcmp(word, "\"c d\"") && !strcmp(rest, ","));
    free(word);
    rest = "\"x";
    error = ovsdb_token_parse(&rest, &word);
    CHECK(error && !strcmp(error, "\"x: quoted string extends past end of argument"));
    free(error);
    CHECK(!ovsdb_atom_from_string(&atom, &end, &zoo_keeper_col_age.type.key, "3-5", NULL));
    CHECK(atom.integer == 3 && end && end->integer == 5);
    ovsdb_datum_init_empty(&datum);
    ovsdb_datum_add_unsafe(&datum, &atom, NULL, &zoo_keeper_col_scores.type, end);
    CHECK(datum.n == 3 && datum.keys[2].integer == 5);
    free(end);
    struct json *json = ovsdb_datum_to_json(&datum, &zoo_keeper_col_scores.type);
    char *text = json_to_string(json, 0);
    CHECK(!strcmp(text, "[\"set\",[3,4,5]]"));
    free(text);
    json_destroy(json);
    ovsdb_datum_destroy(&datum, &zoo_keeper_col_scores.type);
    CHECK(!ovsdb_atom_from_string(&atom, NULL, &zoo_keeper_col_name.type.key, "ann", NULL));
    ovsdb_atom_to_string(&atom, string, &ds);
    CHECK(!strcmp(ds_cstr(&ds), "ann"));
    ovsdb_atom_destroy(&atom, OVSDB_TYPE_STRING);
    atom.s = ovsdb_atom_string_create("a b");
    ds_clear(&ds);
    ovsdb_atom_to_string(&atom, string, &ds);
    CHECK(!strcmp(ds_cstr(&ds), "\"a b\""));
    ovsdb_atom_destroy(&atom, string);
    ds_destroy(&ds);
}

static void
sets(void)
{
    const struct ovsdb_type *type = &zoo_keeper_col_scores.type;
    struct ovsdb_datum a, b, c;
    union ovsdb_atom key;
    unsigned int place;
    CHECK(!ovsdb_datum_from_string(&a, type, "1-5", NULL));
    CHECK(!ovsdb_datum_from_string(&b, type, "3,4", NULL));
    CHECK(!ovsdb_datum_from_string(&c, type, "8,9", NULL));
    CHECK(ovsdb_datum_includes_all(&b, &a, type) && !ovsdb_datum_includes_all(&a, &b, type));
    CHECK(ovsdb_datum_excludes_all(&c, &a, type) && !ovsdb_datum_excludes_all(&b, &a, type));
    ovsdb_datum_subtract(&a, type, &b, type);
    ovsdb_datum_union(&a, &c, type);
    CHECK(a.n == 5 && a.keys[2].integer == 5 && a.keys[4].integer == 9);
    key.integer = 8;
    CHECK(ovsdb_datum_find_key(&a, &key, OVSDB_TYPE_INTEGER, &place) && place == 3);
    key.integer = 3;
    CHECK(!ovsdb_datum_find_key(&a, &key, OVSDB_TYPE_INTEGER, NULL));
    CHECK(ovsdb_datum_compare_3way(&b, &c, type) < 0 && !ovsdb_datum_is_default(&a, type));
    ovsdb_datum_destroy(&a, type);
    ovsdb_datum_init_default(&a, &zoo_keeper_col_name.type);
    CHECK(a.n == 1 && ovsdb_datum_is_default(&a, &zoo_keeper_col_name.type));
    ovsdb_datum_destroy(&a, &zoo_keeper_col_name.type);
    ovsdb_datum_destroy(&b, type);
    ovsdb_datum_destroy(&c, type);
    struct smap smap = SMAP_CONST2(&smap, "z", "1", "y", "2");
    ovsdb_datum_from_smap(&a, &smap);
    CHECK(a.n == 2 && !strcmp(json_string(a.keys[0].s), "y"));
    /* A copy is not changed with its original. */
    ovsdb_datum_clone(&b, &a);
    ovsdb_datum_subtract(&b, &zoo_keeper_col_external_ids.type, &a,
                         &zoo_keeper_col_external_ids.type);
    CHECK(b.n == 0 && a.n == 2 && !strcmp(json_string(a.values[1].s), "1"));
    ovsdb_datum_destroy(&a, &zoo_keeper_col_external_ids.type);
    ovsdb_datum_destroy(&b, &zoo_keeper_col_external_ids.type);
}

static void
symbols(void)
{
    struct ovsdb_symbol_table *table = ovsdb_symbol_table_create();
    struct ovsdb_symbol *ann = ovsdb_symbol_table_insert(table, "ann");
    struct ovsdb_datum datum;
    CHECK(!ann->created && !uuid_is_zero(&ann->uuid) && !ann->strong_ref);
    CHECK(ovsdb_symbol_table_insert(table, "ann") == ann && !ovsdb_symbol_table_get(table, "bob"));
    CHECK(!ovsdb_datum_from_string(&datum, &zoo_keeper_col_animals.type, "@ann,@bob", table));
    struct ovsdb_symbol *bob = ovsdb_symbol_table_get(table, "bob");
    CHECK(bob && datum.n == 2 && bob->strong_ref && ann->strong_ref && !bob->weak_ref);
    union ovsdb_atom key;
    key.uuid = bob->uuid;
    CHECK(ovsdb_datum_find_key(&datum, &key, OVSDB_TYPE_UUID, NULL));
    ovsdb_datum_destroy(&datum, &zoo_keeper_col_animals.type);
    CHECK(!ovsdb_datum_from_string(&datum, &zoo_keeper_col_favourite.type, "@cid", table));
    CHECK(ovsdb_symbol_table_get(table, "cid")->weak_ref);
    ovsdb_datum_destroy(&datum, &zoo_keeper_col_favourite.type);
    char *error = ovsdb_datum_from_string(&datum, &zoo_keeper_col_favourite.type, "@cid", NULL);
    CHECK(error && !strcmp(error, "\"@cid\" is not a valid UUID"));
    free(error);
    ovsdb_symbol_table_destroy(table);
}

static void
write_text(const struct ovsdb_idl_row *row, const struct ovsdb_idl_column *column, const char *text)
{
    struct ovsdb_datum datum;
    CHECK(!ovsdb_datum_from_string(&datum, &column->type, text, NULL));
    ovsdb_idl_txn_write(row, column, &datum);
}

/* A datum that functions of the library free. */
static struct ovsdb_datum *
element(const struct ovsdb_type *type, const char *text)
{
    struct ovsdb_datum *made = (struct ovsdb_datum *) malloc(sizeof *made);
    CHECK(made && !ovsdb_datum_from_string(made, type, text, NULL));
    return made;
}

/* What is read may be kept, by a clone. Removed elements leave memory that clones share. */
static void
share(struct ovsdb_idl *idl, const struct corvid_idl_row *row)
{
    struct ovsdb_datum kept, one, other, copy;
    const struct ovsdb_type *type = &zoo_keeper_col_scores.type;
    ovsdb_datum_clone(&kept, ovsdb_idl_read(row, &zoo_keeper_col_scores));
    ovsdb_idl_run(idl);
    CHECK(kept.n == 2 && kept.keys[1].integer == 9);
    ovsdb_datum_destroy(&kept, type);
    CHECK(!ovsdb_datum_from_string(&one, type, "1", NULL));
    CHECK(!ovsdb_datum_from_string(&other, type, "1", NULL));
    ovsdb_datum_subtract(&one, type, &other, type);
    CHECK(one.n == 0);
    ovsdb_datum_clone(&copy, &one);
    ovsdb_datum_destroy(&one, type);
    ovsdb_datum_destroy(&copy, type);
    ovsdb_datum_destroy(&other, type);
}

/* Pairs of a map are replaced and taken by their own strings. */
static void
change_pairs(void)
{
    struct smap map = SMAP_INITIALIZER(&map);
    struct smap_node *node;
    char *value = NULL;
    smap_add(&map, "a", "1");
    SMAP_FOR_EACH (node, &map) {
        smap_replace(&map, node->key, "2");
    }
    CHECK(!strcmp(smap_get(&map, "a"), "2"));
    SMAP_FOR_EACH_SAFE (node, &map) {
        smap_steal(&map, node, NULL, &value);
    }
    CHECK(smap_is_empty(&map) && !strcmp(value, "2"));
    free(value);
    smap_destroy(&map);
}

static void
rows(void)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_create(idl);
    struct uuid uuid = uuid_random();
    const struct ovsdb_idl_row *row = ovsdb_idl_txn_insert(txn, &zoo_table_keeper, NULL);
    const struct ovsdb_idl_row *kept = ovsdb_idl_txn_insert_persist_uuid(txn, &zoo_table_keeper,
                                                                         &uuid);
    struct ovsdb_datum datum;
    CHECK(row && kept && uuid_equals(&kept->uuid, &uuid));
    write_text(row, &zoo_keeper_col_name, "ann");
    write_text(row, &zoo_keeper_col_external_ids, "a=1,b=2");
    write_text(row, &zoo_keeper_col_scores, "5,3");
    write_text(kept, &zoo_keeper_col_name, "bob");
    const struct ovsdb_datum *read = ovsdb_idl_read(row, &zoo_keeper_col_scores);
    CHECK(read->n == 2 && read->keys[0].integer == 3);
    const struct ovsdb_datum *ids = ovsdb_idl_get(row, &zoo_keeper_col_external_ids,
                                                  OVSDB_TYPE_STRING, OVSDB_TYPE_STRING);
    CHECK(ids->n == 2 && !strcmp(json_string(ids->values[1].s), "2"));
    CHECK(ovsdb_idl_txn_commit_block(txn) == TXN_SUCCESS);
    ovsdb_idl_txn_destroy(txn);

    const struct zoo_keeper *ann;
    ZOO_KEEPER_FOR_EACH (ann, idl) {
        if (!strcmp(ann->name, "ann")) {
            break;
        }
    }
    CHECK(ann && zoo_keeper_get_for_uuid(idl, &uuid));
    CHECK(zoo_keeper_get_scores(ann, OVSDB_TYPE_INTEGER)->n == 2);
    ids = zoo_keeper_get_external_ids(ann, OVSDB_TYPE_STRING, OVSDB_TYPE_STRING);
    CHECK(ids->n == 2 && !strcmp(json_string(ids->keys[0].s), "a"));
    const struct ovsdb_type *type = zoo_animal_species_server_type(idl);
    CHECK(type && type->key.type == OVSDB_TYPE_STRING && type->key.enum_->n == 3);
    CHECK(type == ovsdb_idl_server_column_type(idl, &zoo_animal_col_species));
    struct zoo_keeper blank;
    zoo_keeper_init(&blank);
    CHECK(!strcmp(blank.name, "") && !blank.age && smap_is_empty(&blank.external_ids));

    /* Single elements. The functions free the datum. */
    txn = ovsdb_idl_txn_create(idl);
    struct ovsdb_datum *pair = element(&zoo_keeper_col_external_ids.type, "c=3");
    ovsdb_idl_txn_write_partial_map(&ann->header_, &zoo_keeper_col_external_ids, pair);
    pair = element(&zoo_keeper_col_external_ids.type, "a=1");
    ovsdb_idl_txn_delete_partial_map(&ann->header_, &zoo_keeper_col_external_ids, pair);
    ovsdb_idl_txn_write_partial_set(&ann->header_, &zoo_keeper_col_scores,
                                    element(&zoo_keeper_col_scores.type, "9"));
    ovsdb_idl_txn_delete_partial_set(&ann->header_, &zoo_keeper_col_scores,
                                     element(&zoo_keeper_col_scores.type, "3"));
    CHECK(ovsdb_idl_txn_commit_block(txn) == TXN_SUCCESS);
    ovsdb_idl_txn_destroy(txn);
    ids = ovsdb_idl_read(&ann->header_, &zoo_keeper_col_external_ids);
    CHECK(ids->n == 2 && !strcmp(json_string(ids->keys[1].s), "c"));
    CHECK(ann->n_scores == 2 && ann->scores[1] == 9);
    share(idl, &ann->header_);
    change_pairs();

    /* A clause with a datum. */
    struct ovsdb_idl_condition condition = OVSDB_IDL_CONDITION_INIT(&condition);
    CHECK(!ovsdb_datum_from_string(&datum, &zoo_keeper_col_name.type, "bob", NULL));
    ovsdb_idl_condition_add_clause(&condition, OVSDB_F_EQ, &zoo_keeper_col_name, &datum);
    ovsdb_datum_destroy(&datum, &zoo_keeper_col_name.type);
    unsigned int seqno = ovsdb_idl_set_condition(idl, &zoo_table_keeper, &condition);
    ovsdb_idl_condition_destroy(&condition);
    while (ovsdb_idl_get_condition_seqno(idl) < seqno) {
        ovsdb_idl_run(idl);
        ovsdb_idl_wait(idl);
        if (ovsdb_idl_get_condition_seqno(idl) < seqno) {
            poll_block();
        }
    }
    const struct zoo_keeper *only = zoo_keeper_first(idl);
    CHECK(only && !strcmp(only->name, "bob") && !zoo_keeper_next(only));
}

static void
session(const char *remote)
{
    struct simap usage = {{"", "", "", ""}, {0, 0, 0, 0}, 0};
    const struct ovsdb_idl_class *class_ = ovsdb_idl_get_class(idl);
    CHECK(class_ == &zoo_idl_class);
    CHECK(ovsdb_idl_table_class_from_column(class_, &zoo_keeper_col_age) == &zoo_table_keeper);
    ovsdb_idl_get_memory_usage(idl, &usage);
    CHECK(usage.n == 2 && !strcmp(usage.name[0], "idl-cells-Zoo") && usage.value[0] > 0);
    CHECK(!strcmp(usage.name[1], "idl-outstanding-txns-Zoo") && usage.value[1] == 0);
    CHECK(ovsdb_idl_get_last_error(idl) == 0);
    ovsdb_idl_reset_min_index(idl);
    ovsdb_idl_set_db_change_aware(idl, false);
    ovsdb_idl_check_consistency(idl);

    /* A write of a column that alerts, against a promise, fails the transaction. */
    ovsdb_idl_verify_write_only(idl);
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_create(idl);
    zoo_keeper_set_age(zoo_keeper_first(idl), 9);
    CHECK(ovsdb_idl_txn_commit_block(txn) == TXN_ERROR);
    CHECK(strstr(ovsdb_idl_txn_get_error(txn), "promised to write only columns without alerts"));
    ovsdb_idl_txn_destroy(txn);
    CHECK(zoo_keeper_first(idl)->age == 0);

    /* No server, and no other attempt. */
    struct ovsdb_idl *lost = ovsdb_idl_create("unix:/nowhere/at.all", &zoo_idl_class, true, false);
    CHECK(ovsdb_idl_get_last_error(lost) == 0);
    for (int turn = 0; turn < 100 && ovsdb_idl_is_alive(lost); turn++) {
        ovsdb_idl_run(lost);
        ovsdb_idl_wait(lost);
        poll_timer_wait(100);
        if (ovsdb_idl_is_alive(lost)) {
            poll_block();
        }
    }
    CHECK(!ovsdb_idl_is_alive(lost) && ovsdb_idl_get_last_error(lost) == ENOENT);
    ovsdb_idl_set_remote(lost, remote, false);
    ovsdb_idl_enable_reconnect(lost);
    ovsdb_idl_get_initial_snapshot(lost);
    CHECK(ovsdb_idl_is_alive(lost) && ovsdb_idl_get_last_error(lost) == 0);
    ovsdb_idl_destroy(lost);
    VLOG_INFO("the end");
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3);
    vlog_set_levels_from_string_assert("syslog:off");
    idl = ovsdb_idl_create(argv[2], &zoo_idl_class, true, true);
    types();
    texts();
    sets();
    symbols();
    ovsdb_idl_get_initial_snapshot(idl);
    rows();
    session(argv[2]);
    ovsdb_idl_destroy(idl);
    corvid_compat_forget_reads();
    puts("ok");
    return 0;
}
