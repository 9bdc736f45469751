/* The server refuses a condition that the client thinks it takes (the test is in between). */
#include "check.h"

int
main(int argc, char *argv[])
{
    CHECK(argc == 3);
    char *schema = read_file(argv[1]);
    corvid_config *config;
    corvid_client *client;
    corvid_table keepers;
    corvid_column name;
    OK(corvid_config_new(schema, &config));
    OK(corvid_config_table(config, "Keeper", &keepers));
    OK(corvid_config_column(config, "Keeper", "name", CORVID_MODE_READ, &name));
    OK(corvid_client_new(config, argv[2], &client));
    wait_for_contents(client);

    const corvid_atom ann = corvid_atom_string("ann");
    const corvid_clause clause = CORVID_CLAUSE(name, CORVID_FUNCTION_EQUAL, &ann, NULL, 1);
    static const char expected[] = "{\"error\":\"resources exhausted\"}";
    uint64_t seqno;
    char text[100] = "";
    size_t length = 0;
    OK(corvid_condition_set(client, keepers, &clause, 1, &seqno));
    CHECK(corvid_condition_refusal(client, seqno, text, sizeof text, NULL) == CORVID_ERR_NONE);
    while (corvid_condition_seqno(client) < seqno) {
        turn(client);
    }
    OK(corvid_condition_refusal(client, seqno, text, sizeof text, &length));
    CHECK(!strcmp(text, expected) && length == strlen(expected));
    OK(corvid_condition_refusal(client, seqno, NULL, 0, &length));
    OK(corvid_condition_refusal(client, seqno, text, 10, &length));
    CHECK(length == strlen(expected) && strlen(text) == 9);
    CHECK(corvid_condition_refusal(client, seqno - 1, text, sizeof text, NULL) == CORVID_ERR_NONE);

    /* The next one is in force, and there is no refusal of it. */
    OK(corvid_condition_set(client, keepers, &clause, 1, &seqno));
    while (corvid_condition_seqno(client) < seqno) {
        turn(client);
    }
    CHECK(corvid_condition_refusal(client, seqno, text, sizeof text, NULL) == CORVID_ERR_NONE);
    OK(corvid_client_free(client));
    OK(corvid_config_free(config));
    free(schema);
    puts("ok");
    return 0;
}
