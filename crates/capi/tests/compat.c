/* The getters of maps read as those of the reference's library. */
#include <corvid-idl-compat.h>

#define CHECK(CONDITION)                                                         \
    do {                                                                         \
        if (!(CONDITION)) {                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #CONDITION);      \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

int
main(void)
{
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
