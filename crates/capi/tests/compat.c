/* The headers for programs of the reference's library, without that library: UUIDs, the poll loop,
 * and the getters of maps. */
#include <corvid-idl-compat.h>
#include <unistd.h>

#define CHECK(CONDITION)                                                         \
    do {                                                                         \
        if (!(CONDITION)) {                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #CONDITION);      \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

/* UUIDs have the numbers of the reference's. */
static void
check_uuids(void)
{
    static const char text[] = "6731fef6-0102-4304-8506-0708090a0b0c";
    char written[UUID_LEN + 1];
    struct uuid uuid, zero;

    CHECK(uuid_from_string(&uuid, text));
    CHECK(uuid.parts[0] == 0x6731fef6 && uuid.parts[1] == 0x01024304);
    CHECK(uuid.parts[2] == 0x85060708 && uuid.parts[3] == 0x090a0b0c);
    CHECK(uuid_hash(&uuid) == 0x6731fef6);
    snprintf(written, sizeof written, UUID_FMT, UUID_ARGS(&uuid));
    CHECK(!strcmp(written, text));
    corvid_uuid_format(uuid, written);
    CHECK(!strcmp(written, text));
    uuid_zero(&zero);
    CHECK(uuid_is_zero(&zero) && !uuid_is_zero(&uuid) && !uuid_equals(&zero, &uuid));
    CHECK(uuid_compare_3way(&zero, &uuid) < 0 && uuid_compare_3way(&uuid, &uuid) == 0);
}

/* Each way to wake the loop wakes it, and nothing else does. */
static void
check_loop(void)
{
    int fds[2];
    struct corvid_wait wait = CORVID_WAIT_INIT;

    CHECK(!pipe(fds) && write(fds[1], "x", 1) == 1);
    poll_fd_wait(fds[0], POLLIN);
    poll_block();
    poll_immediate_wake();
    poll_block();
    long long int start = time_msec();
    poll_timer_wait_until(LLONG_MAX);
    poll_timer_wait_until(start + 20);
    poll_timer_wait(1000000);
    poll_block();
    CHECK(time_msec() >= start + 20 && time_wall_msec() > start);
    poll_timer_wait_until(LLONG_MIN);
    poll_block();

    /* A program with a loop of its own takes the events. */
    CHECK(corvid_poll_next(&wait) == CORVID_ERR_NONE);
    CHECK(corvid_poll_next(NULL) == CORVID_ERR_NULL);
    CHECK(strstr(corvid_error_text(), "corvid_poll_next"));
    poll_timer_wait(1000000);
    poll_fd_wait(fds[0], POLLIN);
    CHECK(corvid_poll_next(&wait) == CORVID_OK);
    CHECK(wait.fd == fds[0] && wait.events == POLLIN && wait.timeout_ms == -1);
    CHECK(corvid_poll_next(&wait) == CORVID_OK);
    CHECK(wait.fd == -1 && wait.timeout_ms > 1000 && wait.timeout_ms <= 1000000);
    CHECK(corvid_poll_next(&wait) == CORVID_ERR_NONE);
    CHECK(strstr(corvid_error_text(), "is null"));
}

int
main(void)
{
    check_uuids();
    check_loop();
    static const char *const pairs[][2] = {
        {"yes", "True"},        {"no", "FALSE"},         {"octal", "010"},      {"hex", "0x10"},
        {"big", "4294967297"},  {"junk", "12abc"},       {"words", "never"},    {"negative", "-1"},
        {"most", "4294967295"}, {"least", "-2147483648"}, {"empty", ""},         {"spaced", " 12"},
        {"huge", "18446744073709551615"},                {"beyond", "18446744073709551616"},
    };
    struct smap smap;

    smap_init(&smap);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        smap_add(&smap, pairs[i][0], pairs[i][1]);
    }
    CHECK(smap_get_bool(&smap, "yes", false) && smap_get_bool(&smap, "yes", true));
    CHECK(!smap_get_bool(&smap, "no", false) && !smap_get_bool(&smap, "no", true));
    CHECK(!smap_get_bool(&smap, "words", false) && smap_get_bool(&smap, "words", true));
    CHECK(!smap_get_bool(&smap, "missing", false) && smap_get_bool(&smap, "missing", true));
    CHECK(smap_get_int(&smap, "octal", 7) == 10 && smap_get_int(&smap, "spaced", 7) == 12);
    CHECK(smap_get_int(&smap, "negative", 7) == -1 && smap_get_int(&smap, "least", 7) == INT_MIN);
    static const char *const bad[] = {"hex", "big", "junk", "words", "empty", "missing", "beyond"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(smap_get_int(&smap, bad[i], -7) == -7 && smap_get_uint(&smap, bad[i], 7) == 7);
        CHECK(smap_get_ullong(&smap, bad[i], 7) == (strcmp(bad[i], "big") ? 7 : 4294967297ull));
    }
    CHECK(smap_get_uint(&smap, "most", 7) == UINT_MAX && smap_get_uint(&smap, "negative", 7) == 7);
    CHECK(smap_get_ullong(&smap, "huge", 7) == ULLONG_MAX && smap_get_ullong(&smap, "octal", 7) == 10);
    smap_destroy(&smap);
    puts("ok");
    return 0;
}
