/* What a program and the library agree on: versions, and the sizes of structs. Structs of a program
 * that is newer or older than the library are made by hand. */
#include <stddef.h>

#include "check.h"
#include "zoo-idl.h"

/* A struct of a program that is newer than the library. */
struct newer_wait {
    corvid_wait known;
    uint64_t added;
};

struct newer_clause {
    corvid_clause known;
    uint64_t added;
};

static corvid_config *config;
static corvid_table keepers;
static corvid_column name, age;

static corvid_client *
make_client(const char *schema, const char *remote)
{
    corvid_client *client;
    OK(corvid_config_new(schema, &config));
    OK(corvid_config_table(config, "Keeper", &keepers));
    OK(corvid_config_column(config, "Keeper", "name", CORVID_MODE_READ, &name));
    OK(corvid_config_column(config, "Keeper", "age", CORVID_MODE_READ, &age));
    OK(corvid_client_new(config, remote, &client));
    return client;
}

static void
versions_are_told(void)
{
    char text[32];
    CHECK(!strcmp(corvid_version(), CORVID_VERSION));
    snprintf(text, sizeof text, "%d.%d.%d", CORVID_VERSION_MAJOR, CORVID_VERSION_MINOR,
             CORVID_VERSION_PATCH);
    CHECK(!strcmp(text, CORVID_VERSION));
    CHECK(corvid_idl_version() == CORVID_IDL_VERSION);
}

static void
generated_code_of_another_version_is_refused(void)
{
    struct corvid_idl_class other = zoo_idl_class;
    CHECK(other.version == CORVID_IDL_VERSION);
    other.version++;
    /* Nothing but the version of such a class may be read. */
    other.tables = NULL;
    other.schema = NULL;
    CHECK(corvid_idl_create_unconnected(&other, true) == NULL);
    CHECK(strstr(corvid_error_text(), "the generated code has version 2, and the library reads"
                                      " version 1: make the code again") != NULL);
    CHECK(strstr(corvid_error_text(), CORVID_VERSION) != NULL);
}

static void
results_fit_the_struct_of_the_program(corvid_client *client)
{
    corvid_wait unset;
    memset(&unset, 0, sizeof unset);
    CHECK(corvid_client_wait(client, &unset) == CORVID_ERR_ARGUMENT);
    CHECK(strstr(corvid_error_text(), "set its member `size`") != NULL);
    CHECK(unset.fd == 0 && unset.timeout_ms == 0);
    corvid_session session = CORVID_SESSION_INIT;
    session.size--;
    CHECK(corvid_client_session(client, &session) == CORVID_ERR_ARGUMENT);

    struct newer_wait newer = {CORVID_WAIT_INIT, 7};
    newer.known.size = sizeof newer;
    OK(corvid_client_wait(client, &newer.known));
    CHECK(newer.known.size == sizeof newer && newer.added == 0);
}

static void
members_that_the_library_does_not_know_must_be_zero(corvid_client *client)
{
    const corvid_atom ann = corvid_atom_string("ann"), forty = corvid_atom_integer(40);
    struct newer_clause clauses[] = {
        {CORVID_CLAUSE(name, CORVID_FUNCTION_EQUAL, &ann, NULL, 1), 0},
        {CORVID_CLAUSE(age, CORVID_FUNCTION_GREATER, &forty, NULL, 1), 0},
    };
    uint64_t seqno;
    clauses[0].known.size = clauses[1].known.size = sizeof *clauses;
    OK(corvid_condition_set(client, keepers, &clauses[0].known, 2, &seqno));
    clauses[1].added = 1;
    CHECK(corvid_condition_set(client, keepers, &clauses[0].known, 2, &seqno)
          == CORVID_ERR_ARGUMENT);
    CHECK(strstr(corvid_error_text(), "has members that libcorvid " CORVID_VERSION) != NULL);
    clauses[1].added = 0;
    clauses[1].known.size = sizeof(corvid_clause);
    CHECK(corvid_condition_set(client, keepers, &clauses[0].known, 2, &seqno)
          == CORVID_ERR_ARGUMENT);
    CHECK(strstr(corvid_error_text(), "different sizes") != NULL);
}

static void
typed_structs_state_their_size(void)
{
    struct corvid_idl *idl = corvid_idl_create_unconnected(&zoo_idl_class, true);
    struct corvid_idl_condition condition;
    struct corvid_idl_loop loop;
    CHECK(idl != NULL);
    memset(&condition, 0, sizeof condition);
    memset(&loop, 0, sizeof loop);
    loop.idl = idl;
    zoo_keeper_add_clause_name(&condition, 2, "ann");
    CHECK(strstr(corvid_error_text(), "corvid_idl_condition is 0") != NULL);
    CHECK(condition.clauses == NULL);
    CHECK(corvid_idl_loop_run(&loop) == NULL);
    CHECK(strstr(corvid_error_text(), "corvid_idl_loop is 0") != NULL);
    corvid_idl_destroy(idl);
}

static void
refusals_of_conditions_are_told(corvid_client *client)
{
    const corvid_atom ann = corvid_atom_string("ann");
    const corvid_clause clause = CORVID_CLAUSE(name, CORVID_FUNCTION_EQUAL, &ann, NULL, 1);
    uint64_t seqno;
    char text[200] = "";
    size_t length = 1;
    OK(corvid_condition_set(client, keepers, &clause, 1, &seqno));
    while (corvid_condition_seqno(client) < seqno) {
        turn(client);
    }
    CHECK(corvid_condition_refusal(client, seqno, text, sizeof text, &length) == CORVID_ERR_NONE);
    CHECK(corvid_condition_refusal(client, seqno, NULL, 0, NULL) == CORVID_ERR_NONE);
    CHECK(corvid_condition_refusal(NULL, seqno, text, sizeof text, &length) == CORVID_ERR_HANDLE);
    CHECK(length == 1 && !text[0]);
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3);
    char *schema = read_file(argv[1]);
    corvid_client *client = make_client(schema, argv[2]);
    versions_are_told();
    generated_code_of_another_version_is_refused();
    wait_for_contents(client);
    results_fit_the_struct_of_the_program(client);
    members_that_the_library_does_not_know_must_be_zero(client);
    typed_structs_state_their_size();
    refusals_of_conditions_are_told(client);
    OK(corvid_client_free(client));
    OK(corvid_config_free(config));
    free(schema);
    puts("ok");
    return 0;
}
