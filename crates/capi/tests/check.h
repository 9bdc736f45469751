/* Small aids of the tests in C: a check that ends the program, a file as a string, a wait. */
#ifndef CHECK_H
#define CHECK_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <corvid.h>

#define CHECK(CONDITION)                                                                   \
    do {                                                                                   \
        if (!(CONDITION)) {                                                                \
            fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #CONDITION,             \
                    corvid_error_text());                                                  \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)
#define OK(CALL) CHECK((CALL) == CORVID_OK)

static inline char *
read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = (char *) calloc(1, 1 << 20);
    CHECK(file != NULL && text != NULL);
    CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Waits for a client once, for 10 seconds at most, and runs it. The caller looks after that whether what it waits for is there. */
static inline void
turn(corvid_client *client)
{
    corvid_wait wait = CORVID_WAIT_INIT;
    OK(corvid_client_wait(client, &wait));
    struct pollfd pollfd = {wait.fd, wait.events, 0};
    int timeout = wait.timeout_ms < 0 || wait.timeout_ms > 10000 ? 10000 : wait.timeout_ms;
    poll(&pollfd, wait.fd >= 0 ? 1 : 0, timeout);
    OK(corvid_client_run(client, NULL));
}

static inline void
wait_for_contents(corvid_client *client)
{
    corvid_session session = CORVID_SESSION_INIT;
    int turns = 0;
    do {
        CHECK(turns++ < 1000);
        turn(client);
        OK(corvid_client_session(client, &session));
    } while (!session.synced);
}

/* Commits a transaction and waits for its end. */
static inline int
commit(corvid_client *client, corvid_txn *txn)
{
    int status, turns = 0;
    OK(corvid_txn_commit(txn, &status));
    while (status == CORVID_TXN_INCOMPLETE) {
        CHECK(turns++ < 1000);
        turn(client);
        status = corvid_txn_status_of(txn);
    }
    return status;
}

#endif
