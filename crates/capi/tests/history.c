/* The past of the database: readings of its history and queries of a moment. Arguments: the schema,
 * the remote, and for a server that does not read history a third one. */
#include "check.h"

static corvid_table keepers;
static corvid_column name, ids;

static corvid_client *
make_client(const char *path, const char *remote)
{
    corvid_config *config;
    corvid_client *client;
    char *schema = read_file(path);
    OK(corvid_config_new(schema, &config));
    free(schema);
    OK(corvid_config_table(config, "Keeper", &keepers));
    OK(corvid_config_column(config, "Keeper", "name", CORVID_MODE_READ, &name));
    OK(corvid_config_column(config, "Keeper", "external_ids", CORVID_MODE_READ, &ids));
    OK(corvid_client_new(config, remote, &client));
    OK(corvid_config_free(config));
    return client;
}

/* Each commit fills most of a page of history. */
static void
insert(corvid_client *client, const char *text)
{
    static char blob[200 * 1024];
    corvid_txn *txn;
    corvid_row row;
    corvid_atom its_name = corvid_atom_string(text);
    memset(blob, 'x', sizeof blob - 1);
    OK(corvid_txn_new(client, &txn));
    OK(corvid_txn_add_comment(txn, text));
    OK(corvid_txn_insert(txn, keepers, &row));
    OK(corvid_txn_write(txn, row, name, &its_name, NULL, 1));
    OK(corvid_txn_set_key(txn, row, ids, corvid_atom_string("blob"), corvid_atom_string(blob)));
    CHECK(commit(client, txn) == CORVID_TXN_SUCCESS);
    OK(corvid_txn_free(txn));
    /* Dates of commits differ. */
    poll(NULL, 0, 5);
}

static int
next_page(corvid_client *client, corvid_history *history)
{
    int status, turns = 0;
    for (;;) {
        OK(corvid_history_next(history, &status));
        if (status != CORVID_HISTORY_PENDING) {
            return status;
        }
        CHECK(corvid_history_count(history) == 0);
        CHECK(turns++ < 1000);
        turn(client);
    }
}

/* Reads to the end. Returns the number of lines, and the last one, cut, in `last`. */
static size_t
read_all(corvid_client *client, const corvid_history_question *question, char *last, size_t size)
{
    corvid_history *history;
    corvid_history_progress progress = CORVID_HISTORY_PROGRESS_INIT;
    size_t lines = 0;
    int status;
    OK(corvid_history_new(client, question, &history));
    while ((status = next_page(client, history)) == CORVID_HISTORY_PAGE) {
        for (size_t i = 0; i < corvid_history_count(history); i++) {
            snprintf(last, size, "%s", corvid_history_lines(history)[i]);
            lines++;
        }
        OK(corvid_history_progress_of(history, &progress));
        CHECK(progress.done >= 0 && progress.done <= 1);
    }
    CHECK(status == CORVID_HISTORY_DONE);
    CHECK(next_page(client, history) == CORVID_HISTORY_DONE);
    CHECK(corvid_history_error_text(history, NULL, 0, NULL) == CORVID_ERR_NONE);
    OK(corvid_history_free(history));
    return lines;
}

static void
readings_are_restricted(corvid_client *client)
{
    char line[400];
    corvid_history_question log = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_LOG);
    CHECK(read_all(client, &log, line, sizeof line) == 3);
    CHECK(strstr(line, "\"event\":\"commit\"") != NULL);
    log.newest = 1;
    CHECK(read_all(client, &log, line, sizeof line) == 1);
    log.newest = 0;
    log.since = "HEAD~1";
    CHECK(read_all(client, &log, line, sizeof line) == 1);
    log.since = NULL;
    log.until = "HEAD~1";
    CHECK(read_all(client, &log, line, sizeof line) == 2);
    log.until = NULL;
    log.table = "Animal";
    CHECK(read_all(client, &log, line, sizeof line) == 0);
    log.table = "Keeper";
    log.column = "name";
    log.client = "bob";
    CHECK(read_all(client, &log, line, sizeof line) == 1);
    CHECK(strstr(line, "\"comment\":\"bob\"") != NULL);
    /* Of the row that this commit inserted. */
    const char *row = strstr(line, "\"row\":\"");
    CHECK(row != NULL);
    char uuid[37];
    snprintf(uuid, sizeof uuid, "%s", row + strlen("\"row\":\""));
    log.client = NULL;
    log.row = uuid;
    CHECK(read_all(client, &log, line, sizeof line) == 1);

    corvid_history_question files = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_FILES);
    CHECK(read_all(client, &files, line, sizeof line) == 1);
    CHECK(strstr(line, "\"transactions\":3") != NULL);
    corvid_history_question diff = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_DIFF);
    diff.from = "HEAD~2";
    diff.to = "HEAD";
    CHECK(read_all(client, &diff, line, sizeof line) == 2);
    corvid_history_question schema = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_SCHEMA);
    schema.at = "HEAD~2";
    CHECK(read_all(client, &schema, line, sizeof line) == 1);
    CHECK(strstr(line, "Keeper") != NULL || strstr(line, "Animal") != NULL);
}

static void
questions_are_checked(corvid_client *client)
{
    corvid_history *history = NULL;
    corvid_history_question question = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_DIFF);
    question.from = "HEAD~1";
    CHECK(corvid_history_new(client, &question, &history) == CORVID_ERR_ARGUMENT);
    CHECK(strstr(corvid_error_text(), "a reading of \"diff\" needs \"to\"") != NULL);
    question.to = "HEAD";
    question.since = "-2h";
    CHECK(corvid_history_new(client, &question, &history) == CORVID_ERR_ARGUMENT);
    CHECK(strstr(corvid_error_text(), "a reading of \"diff\" takes no \"since\"") != NULL);
    question.since = NULL;
    question.read = 4;
    CHECK(corvid_history_new(client, &question, &history) == CORVID_ERR_ARGUMENT);
    question.read = CORVID_READ_DIFF;
    question.size = 8;
    CHECK(corvid_history_new(client, &question, &history) == CORVID_ERR_ARGUMENT);
    question.size = sizeof question;
    question.row = "\xff";
    CHECK(corvid_history_new(client, &question, &history) == CORVID_ERR_ARGUMENT);
    question.row = NULL;
    CHECK(corvid_history_new(client, NULL, &history) == CORVID_ERR_NULL);
    CHECK(corvid_history_new(NULL, &question, &history) == CORVID_ERR_HANDLE);
    CHECK(corvid_history_new(client, &question, NULL) == CORVID_ERR_NULL);
    CHECK(corvid_history_select_new(client, "HEAD", "{}", &history) == CORVID_ERR_ARGUMENT);
    CHECK(corvid_history_select_new(client, NULL, "[]", &history) == CORVID_ERR_NULL);
    CHECK(corvid_history_select_new(client, "HEAD", NULL, &history) == CORVID_ERR_NULL);
    CHECK(history == NULL);
    CHECK(corvid_history_count(NULL) == 0 && corvid_history_lines(NULL) == NULL);
    CHECK(corvid_history_free((corvid_history *) client) == CORVID_ERR_HANDLE);
    OK(corvid_history_free(NULL));

    /* The server refuses a moment that it does not have. */
    char text[500];
    size_t length;
    corvid_history_question log = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_LOG);
    log.since = "HEAD~9";
    OK(corvid_history_new(client, &log, &history));
    CHECK(next_page(client, history) == CORVID_HISTORY_REFUSED);
    CHECK(next_page(client, history) == CORVID_HISTORY_REFUSED);
    OK(corvid_history_error_text(history, text, sizeof text, &length));
    CHECK(length == strlen(text) && strstr(text, "is before the history") != NULL);
    OK(corvid_history_free(history));
}

static void
select_at(corvid_client *client, const char *moment, const char *expected)
{
    const char *operations =
        "[{\"op\":\"select\",\"table\":\"Keeper\",\"where\":[],\"columns\":[\"name\"]}]";
    corvid_history *history;
    char error[500] = "";
    OK(corvid_history_select_new(client, moment, operations, &history));
    if (next_page(client, history) != CORVID_HISTORY_PAGE) {
        corvid_history_error_text(history, error, sizeof error, NULL);
        fprintf(stderr, "%s: %s\n", moment, error);
        exit(1);
    }
    CHECK(corvid_history_count(history) == 1);
    CHECK(!strcmp(corvid_history_lines(history)[0], expected));
    CHECK(next_page(client, history) == CORVID_HISTORY_DONE);
    OK(corvid_history_free(history));
}

static void
moments_are_queried(corvid_client *client)
{
    const char *first = "[{\"rows\":[{\"name\":\"ann\"}]}]";
    select_at(client, "HEAD~2", first);
    /* By the id and by the date of the first commit. */
    char line[400], moment[64];
    corvid_history_question log = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_LOG);
    log.client = "ann";
    CHECK(read_all(client, &log, line, sizeof line) == 1);
    const char *id = strstr(line, "\"id\":\""), *date = strstr(line, "\"date\":");
    CHECK(id != NULL && date != NULL);
    CHECK(sscanf(id, "\"id\":\"%63[^\"]", moment) == 1);
    select_at(client, moment, first);
    snprintf(moment, sizeof moment, "@%lld", atoll(date + strlen("\"date\":")));
    select_at(client, moment, first);

    corvid_history *history;
    char text[500];
    OK(corvid_history_select_new(client, "HEAD", "[{\"op\":\"delete\",\"table\":\"Keeper\",\"where\":[]}]",
                                 &history));
    CHECK(next_page(client, history) == CORVID_HISTORY_REFUSED);
    OK(corvid_history_error_text(history, text, sizeof text, NULL));
    CHECK(strstr(text, "not allowed") != NULL);
    OK(corvid_history_free(history));
}

/* The server reads for few at a time, so readings that stayed there would make the last one wait. */
static void
readings_are_given_up(corvid_client *client)
{
    corvid_history_question log = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_LOG);
    corvid_history *history;
    int status;
    for (int number = 0; number < 12; number++) {
        OK(corvid_history_new(client, &log, &history));
        if (number % 3 == 0) {
            CHECK(next_page(client, history) == CORVID_HISTORY_PAGE);
        } else if (number % 3 == 1) {
            /* While the first page is under way. */
            OK(corvid_history_next(history, &status));
            OK(corvid_client_run(client, NULL));
        }
        OK(corvid_history_free(history));
        CHECK(corvid_history_next(history, &status) == CORVID_ERR_HANDLE);
    }
    char line[10];
    CHECK(read_all(client, &log, line, sizeof line) == 3);
}

static void
readings_end_with_the_connection(corvid_client *client)
{
    corvid_history_question log = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_LOG);
    corvid_history *history;
    OK(corvid_history_new(client, &log, &history));
    CHECK(next_page(client, history) == CORVID_HISTORY_PAGE);
    OK(corvid_client_reconnect(client));
    wait_for_contents(client);
    CHECK(next_page(client, history) == CORVID_HISTORY_LOST);
    OK(corvid_history_free(history));

    OK(corvid_history_new(client, &log, &history));
    OK(corvid_client_free(client));
    int status;
    CHECK(corvid_history_next(history, &status) == CORVID_ERR_HANDLE);
    CHECK(corvid_history_new(client, &log, &history) == CORVID_ERR_HANDLE);
    OK(corvid_history_free(history));
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 3 || argc == 4);
    corvid_client *client = make_client(argv[1], argv[2]);
    wait_for_contents(client);
    if (argc == 4) {
        corvid_history_question log = CORVID_HISTORY_QUESTION_INIT(CORVID_READ_LOG);
        corvid_history *history;
        OK(corvid_history_new(client, &log, &history));
        CHECK(next_page(client, history) == CORVID_HISTORY_UNSUPPORTED);
        CHECK(next_page(client, history) == CORVID_HISTORY_UNSUPPORTED);
        OK(corvid_history_free(history));
        OK(corvid_history_select_new(client, "HEAD", "[]", &history));
        CHECK(next_page(client, history) == CORVID_HISTORY_UNSUPPORTED);
        OK(corvid_history_free(history));
        OK(corvid_client_free(client));
        puts("ok");
        return 0;
    }
    insert(client, "ann");
    insert(client, "bob");
    insert(client, "cid");
    readings_are_restricted(client);
    questions_are_checked(client);
    moments_are_queried(client);
    readings_are_given_up(client);
    readings_end_with_the_connection(client);
    puts("ok");
    return 0;
}
