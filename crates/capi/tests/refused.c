/* A change that cannot be made fails its transaction; it is never left out. By the code that
 * ovsdb-idlc makes of guild.ovsschema. Arguments: the schema, the remote. */
#include "guild.h"
#include <math.h>

static struct corvid_idl *idl;

static size_t
count(void)
{
    const struct guild_member *member;
    size_t n = 0;
    GUILD_MEMBER_FOR_EACH (member, idl) {
        n++;
    }
    return n;
}

/* The changes: each is one that a transaction cannot have. */

static void
exceed_the_range(struct guild_member *member)
{
    guild_member_set_level(member, 99);
    CHECK(member->level == 99);
}

static void
leave_the_enumeration(struct guild_member *member)
{
    guild_member_set_colour(member, "blue");
}

static void
empty_a_set_that_needs_an_element(struct guild_member *member)
{
    guild_member_set_few(member, NULL, 0);
}

static void
exceed_the_size(struct guild_member *member)
{
    const int64_t four[] = {1, 2, 3, 4};
    guild_member_set_few(member, four, 4);
    CHECK(member->n_few == 3);
}

static void
exceed_the_size_by_elements(struct guild_member *member)
{
    for (int64_t i = 1; i < 5; i++) {
        guild_member_update_few_addvalue(member, i);
    }
}

static void
write_bytes_that_are_no_text(struct guild_member *member)
{
    guild_member_set_name(member, "\xff\xfe");
}

static void
write_bytes_that_are_no_text_into_a_map(struct guild_member *member)
{
    guild_member_update_values_setkey(member, 1, "\xff\xfe");
}

static void
write_no_number(struct guild_member *member)
{
    guild_member_set_weight(member, NAN);
}

static void
write_no_text(struct guild_member *member)
{
    guild_member_set_name(member, NULL);
}

static void
insert_a_row_twice(struct guild_member *member)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_get(&member->header_);
    struct guild_seat *seat = guild_seat_insert_persist_uuid(txn, &member->seat->header_.uuid);
    CHECK(seat == NULL);
    /* As a program would go on that does not look. */
    guild_seat_set_place(seat, 1);
    guild_member_set_guests(member, &seat, 1);
    guild_member_update_guests_addvalue(member, seat);
}

static void
refer_to_no_row(struct guild_member *member)
{
    struct guild_seat *seats[] = {member->seat, NULL};
    guild_member_set_guests(member, seats, 2);
}

static void
add_no_row(struct guild_member *member)
{
    guild_member_update_guests_addvalue(member, NULL);
}

static void
increment_two_columns(struct guild_member *member)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_get(&member->header_);
    corvid_idl_txn_increment(txn, &member->header_, &guild_member_col_level, false);
    corvid_idl_txn_increment(txn, &member->seat->header_, &guild_seat_col_place, false);
}

static void
write_a_column_that_is_not_there(struct guild_member *member)
{
    guild_member_set_tags(member, NULL, 0);
    guild_member_set_founded(member, 1);
}

/* Tries the change in a new member, and in one that is there; neither is committed, nor anything
 * else. */
static void
refuse(void (*change)(struct guild_member *), const char *expected)
{
    for (int is_new = 1; is_new >= 0; is_new--) {
        struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
        const struct guild_member *ann = member_named(idl, "ann");
        struct guild_member *member = new_member(txn, "new", 1);
        guild_member_set_level(ann, 8);
        change(is_new ? member : (struct guild_member *) ann);
        int status = corvid_idl_txn_commit_block(txn);
        const char *error = corvid_idl_txn_get_error(txn);
        if (status != CORVID_TXN_ERROR || !strstr(error, expected)) {
            fprintf(stderr, "%s: %s: %s\n", expected, corvid_txn_status_name(status), error);
            exit(1);
        }
        corvid_idl_txn_destroy(txn);
        CHECK(count() == 1 && member_named(idl, "ann") == ann && ann->level == 0 && ann->n_few == 1);
    }
}

/* Elements that are given twice count once, and then the size is judged. */
static void
duplicates_count_once(void)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    const struct guild_member *ann = member_named(idl, "ann");
    const int64_t few[] = {2, 1, 2, 2, 1};
    guild_member_set_few(ann, few, 5);
    CHECK(ann->n_few == 2 && ann->few[0] == 1 && ann->few[1] == 2);
    struct guild_seat *guest = new_seat(txn, 5), *guests[] = {guest, guest, guest};
    guild_member_set_guests(ann, guests, 3);
    CHECK(ann->n_guests == 1 && ann->guests[0] == guest);
    const int64_t numbers[] = {7, 3, 7};
    const char *texts[] = {"z", "c", "y"};
    guild_member_set_values(ann, numbers, texts, 3);
    CHECK(ann->n_values == 2 && ann->key_values[1] == 7 && !strcmp(ann->value_values[1], "y"));
    const char *keys[] = {"b", "a", "b"};
    guild_member_set_keys(ann, keys, 3);
    struct corvid_smap_node nodes[] = {{"k", "2"}, {"k", "1"}};
    const struct corvid_smap map = {nodes, 2};
    guild_member_set_n(ann, &map);
    guild_member_set_row(ann, ann->seat);
    commit_guild(txn);
    CHECK(ann->n_few == 2 && ann->n_guests == 1 && ann->n_values == 2 && ann->n_keys == 2);
    CHECK(ann->n.n == 1 && !strcmp(ann->n.nodes[0].value, "1") && ann->row == ann->seat);
}

/* Columns of new rows are written, replicated or not, as a whole or by elements. */
static void
columns_that_are_not_replicated_are_written_in_new_rows(const char *remote)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    struct guild_member *bob = new_member(txn, "bob", 2);
    guild_member_set_founded(bob, 1999);
    guild_member_update_tags_addvalue(bob, "old");
    guild_member_update_tags_addvalue(bob, "wise");
    guild_member_update_tags_delvalue(bob, "old");
    commit_guild(txn);
    struct corvid_idl *all = corvid_idl_create(remote, &guild_idl_class, true, true);
    const struct guild_member *same = wait_for_member(all, "bob");
    CHECK(same->founded == 1999 && same->n_tags == 1 && !strcmp(same->tags[0], "wise"));
    /* The server says that a column is immutable. */
    txn = corvid_idl_txn_create(all);
    guild_member_set_founded(same, 2000);
    CHECK(corvid_idl_txn_commit_block(txn) == CORVID_TXN_ERROR);
    CHECK(strstr(corvid_idl_txn_get_error(txn), "immutable") != NULL);
    corvid_idl_txn_destroy(txn);
    corvid_idl_destroy(all);
}

/* A key with a value that was refused finds nothing, rather than the rows with the default. */
static void
a_refused_key_finds_nothing(struct corvid_idl_index *by_name)
{
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    struct guild_member *nameless = new_member(txn, "", 3);
    struct guild_member *key = guild_member_index_init_row(by_name);
    CHECK(guild_member_index_find(by_name, key) == nameless);
    guild_member_index_set_name(key, "\xff");
    CHECK(guild_member_index_find(by_name, key) == NULL);
    CHECK(guild_member_cursor_first_ge(by_name, key).row == NULL);
    guild_member_index_set_name(key, "ann");
    CHECK(guild_member_index_find(by_name, key) == member_named(idl, "ann"));
    guild_member_index_destroy_row(key);
    corvid_idl_txn_abort(txn);
    corvid_idl_txn_destroy(txn);
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3);
    idl = corvid_idl_create(argv[2], &guild_idl_class, true, true);
    CHECK(idl != NULL);
    corvid_idl_omit(idl, &guild_member_col_founded);
    corvid_idl_omit(idl, &guild_member_col_tags);
    const struct corvid_idl_index_column columns[] = {{&guild_member_col_name, NULL, 0}};
    struct corvid_idl_index *by_name = corvid_idl_index_create(idl, columns, 1);
    corvid_idl_get_initial_snapshot(idl);
    struct corvid_idl_txn *txn = corvid_idl_txn_create(idl);
    new_member(txn, "ann", 1);
    commit_guild(txn);

    const char *const constraint = "\"error\":\"constraint violation\"";
    refuse(exceed_the_range, "{\"details\":\"99 is not in the valid range 0 to 9 (inclusive)\",\"error\":\"constraint violation\"}");
    refuse(leave_the_enumeration, "blue is not one of the allowed values");
    refuse(empty_a_set_that_needs_an_element, "must have 1 to 3 members but 0 are present");
    refuse(exceed_the_size, "must have 1 to 3 members but 4 are present");
    refuse(exceed_the_size_by_elements, "\"error\":");
    refuse(write_bytes_that_are_no_text, constraint);
    refuse(write_bytes_that_are_no_text_into_a_map, constraint);
    refuse(write_no_number, "{\"details\":\"column weight of table Member: a real must be finite\"");
    refuse(write_no_text, "column name of table Member");
    refuse(insert_a_row_twice, "\"error\":\"duplicate uuid\"");
    refuse(refer_to_no_row, "column guests of table Member");
    refuse(add_no_row, "column guests of table Member");
    refuse(increment_two_columns, "increments a column already");
    duplicates_count_once();
    columns_that_are_not_replicated_are_written_in_new_rows(argv[2]);
    txn = corvid_idl_txn_create(idl);
    write_a_column_that_is_not_there((struct guild_member *) member_named(idl, "ann"));
    CHECK(corvid_idl_txn_commit_block(txn) == CORVID_TXN_ERROR);
    CHECK(strstr(corvid_idl_txn_get_error(txn), "column tags of table Member: the column is not replicated") != NULL);
    corvid_idl_txn_destroy(txn);
    a_refused_key_finds_nothing(by_name);
    corvid_idl_destroy(idl);
    puts("ok");
    return 0;
}
