/* A program that uses every name of the reference's client headers that the sources of OVN and Open
 * vSwitch use, in C and in C++, and looks at what the functions do. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <corvid-idl-compat.h>

#define CHECK(CONDITION)                                                         \
    do {                                                                         \
        if (!(CONDITION)) {                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #CONDITION);      \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

VLOG_DEFINE_THIS_MODULE(names_test);

static char log_path[200];

/* What the log file has, since the last time. */
static char *
logged(void)
{
    static char text[20000];
    static long int seen;
    FILE *file = fopen(log_path, "r");
    CHECK(file != NULL && !fseek(file, seen, SEEK_SET));
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    seen = ftell(file);
    fclose(file);
    return text;
}

static int
count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

static void
log_valist(enum vlog_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vlog_valist(&this_module, level, format, args);
    va_end(args);
}

static void
levels(void)
{
    char *error;
    CHECK(!vlog_set_log_file(log_path));
    vlog_set_levels_from_string_assert("console:off");
    vlog_set_levels_from_string_assert("syslog:off");
    VLOG_ERR("an error of %d", 1);
    VLOG_WARN("a warning");
    VLOG_INFO("news");
    VLOG_DBG("details");
    char *text = logged();
    CHECK(count(text, "\n") == 3 && strstr(text, "|names_test|ERR|an error of 1\n"));
    CHECK(strstr(text, "|names_test|WARN|a warning\n") && strstr(text, "|INFO|news\n"));
    /* 2030-01-02T03:04:05.678Z|00001|... */
    CHECK(text[10] == 'T' && text[19] == '.' && isdigit((unsigned char) text[20]));
    CHECK(!strncmp(text + 23, "Z|00001|", 8));
    CHECK(!VLOG_IS_DBG_ENABLED() && VLOG_IS_INFO_ENABLED() && VLOG_IS_WARN_ENABLED());
    CHECK(VLOG_IS_ERR_ENABLED() && vlog_is_enabled(&this_module, VLL_EMER));
    vlog_set_levels(NULL, VLF_FILE, VLL_DBG);
    VLOG_DBG("details");
    VLOG(VLL_INFO, "by %s", "level");
    vlog(&this_module, VLL_WARN, "by %s", "function");
    log_valist(VLL_ERR, "by %s", "list");
    text = logged();
    CHECK(strstr(text, "|DBG|details\n") && strstr(text, "|INFO|by level\n"));
    CHECK(strstr(text, "|WARN|by function\n") && strstr(text, "|ERR|by list\n"));
    CHECK(!vlog_set_levels_from_string("names-test file err"));
    VLOG_WARN("hidden");
    VLOG_ERR("shown");
    text = logged();
    CHECK(!strstr(text, "hidden") && strstr(text, "shown"));
    error = vlog_set_levels_from_string("file:loud");
    CHECK(error && !strcmp(error, "no destination, level, or module \"loud\""));
    free(error);
    error = vlog_set_levels_from_string("PATTERN:file:%p>%m<%5c");
    CHECK(!error);
    VLOG_ERR("x");
    CHECK(!strcmp(logged(), "ERR>x<names_test\n"));
    vlog_set_pattern(VLF_FILE, "%p|%m");
    vlog_set_verbosity("names_test:file:dbg");
    vlog_enable_async();
    vlog_disable_async();
    enum vlog_level level = vlog_get_level(&this_module, VLF_FILE);
    CHECK(level == VLL_DBG && !strcmp(vlog_get_level_name(level), "DBG"));
    CHECK(vlog_get_level_val("warn") == VLL_WARN);
    char *table = vlog_get_levels();
    CHECK(strstr(table, "names_test") && strstr(table, "corvid"));
    free(table);
}

static void
rate_limits(void)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(60, 3);
    static struct vlog_rate_limit other = VLOG_RATE_LIMIT_INIT(1, 1);
    static struct vlog_rate_limit none = VLOG_RATE_LIMIT_INIT(0, 2);
    for (int i = 0; i < 100; i++) {
        VLOG_WARN_RL(&rl, "again %d", i);
    }
    char *text = logged();
    /* One a second, three at once. */
    CHECK(count(text, "again") >= 3 && count(text, "again") < 50 && strstr(text, "again 2\n"));
    VLOG_INFO_RL(&other, "first");
    VLOG_ERR_RL(&other, "second");
    VLOG_DBG_RL(&other, "third");
    text = logged();
    CHECK(strstr(text, "first") && !strstr(text, "second") && !strstr(text, "third"));
    while (VLOG_DROP_WARN(&rl)) {
        poll_timer_wait(100);
        poll_block();
    }
    text = logged();
    CHECK(strstr(text, "WARN|Dropped ") && strstr(text, " log messages in last "));
    CHECK(strstr(text, " seconds ago) due to excessive rate\n"));
    CHECK(!VLOG_DROP_DBG(&none) && !vlog_should_drop(&this_module, VLL_ERR, &none));
    CHECK(VLOG_DROP_ERR(&none) && VLOG_DROP_INFO(&none));
    vlog_rate_limit(&this_module, VLL_ERR, &none, "never %s", "shown");
    CHECK(!strstr(logged(), "never"));
    for (int i = 0; i < 3; i++) {
        VLOG_ERR_ONCE("once %d", i);
        VLOG_WARN_ONCE("too %d", i);
        VLOG_INFO_ONCE("as well %d", i);
    }
    text = logged();
    CHECK(count(text, "once") == 1 && count(text, "too 0") == 1 && count(text, "as well") == 1);
    char *error = NULL;
    VLOG_WARN_BUF(&error, "kept %d", 1);
    CHECK(error && !strcmp(error, "kept 1") && strstr(logged(), "WARN|kept 1\n"));
    free(error);
    VLOG_WARN_BUF(NULL, "logged %d", 2);
    CHECK(strstr(logged(), "WARN|logged 2\n"));
}

static void
options(void)
{
    enum {
        OPT_BOOTSTRAP_CA_CERT = CHAR_MAX + 1,
        OPT_PEER_CA_CERT,
        VLOG_OPTION_ENUMS,
        SSL_OPTION_ENUMS
    };
    static const struct option long_options[] = {
        VLOG_LONG_OPTIONS,
        STREAM_SSL_LONG_OPTIONS,
        {"bootstrap-ca-cert", required_argument, NULL, OPT_BOOTSTRAP_CA_CERT},
        {"peer-ca-cert", required_argument, NULL, OPT_PEER_CA_CERT},
        {NULL, 0, NULL, 0},
    };
    char words[14][60] = {"names", "--verbose=names_test:file:info", "--log-file=%", "-pkey.pem",
                          "-ccert.pem", "--ca-cert=ca.pem", "--ssl-protocols=TLSv1.3",
                          "--ssl-ciphers=HIGH", "--ssl-ciphersuites=TLS_AES_128_GCM_SHA256",
                          "--ssl-server-name=zoo", "--bootstrap-ca-cert=ca.pem",
                          "--peer-ca-cert=peer.pem", "--syslog-method=libc", "-vfile:off"};
    char *argv[15];
    int n = 0, cases = 0;
    for (; n < 14; n++) {
        argv[n] = words[n];
    }
    char log_file[220];
    snprintf(log_file, sizeof log_file, "--log-file=%s", log_path);
    argv[2] = log_file;
    argv[n] = NULL;
    CHECK(!stream_ssl_is_configured());
    for (;;) {
        int option = getopt_long(n, argv, "v::p:c:C:", long_options, NULL);
        if (option < 0) {
            break;
        }
        switch (option) {
        STREAM_SSL_CASES
            cases++;
            break;
        default:
            break;
        }
        switch (option) {
        VLOG_OPTION_HANDLERS
        STREAM_SSL_OPTION_HANDLERS
        case OPT_BOOTSTRAP_CA_CERT:
            stream_ssl_set_ca_cert_file(optarg, true);
            break;
        case OPT_PEER_CA_CERT:
            stream_ssl_set_peer_ca_cert_file(optarg);
            break;
        default:
            CHECK(!"an unknown option");
        }
    }
    CHECK(optind == n && cases == 7 && stream_ssl_is_configured());
    CHECK(vlog_get_level(&this_module, VLF_FILE) == VLL_OFF);
    stream_ssl_set_private_key_file("key.pem");
    stream_ssl_set_certificate_file("cert.pem");
    stream_ssl_set_key_and_cert("key.pem", "cert.pem");
    stream_ssl_set_protocols("TLSv1.2,TLSv1.3");
    stream_ssl_set_ciphers("HIGH");
    stream_ssl_set_ciphersuites("TLS_AES_128_GCM_SHA256");
    stream_ssl_set_server_name("zoo");
    vlog_usage();
}

static void
uuids(void)
{
    struct uuid uuid, other = uuid_random(), zero = UUID_ZERO;
    uuid_generate(&uuid);
    CHECK(!uuid_equals(&uuid, &other) && !uuid_is_zero(&uuid) && uuid_is_zero(&zero));
    CHECK(uuid_compare_3way(&zero, &uuid) < 0 && !uuid_compare_3way(&uuid, &uuid));
    char *text = uuid_to_string(&uuid), longer[50];
    CHECK(strlen(text) == UUID_LEN && text[14] == '4');
    snprintf(longer, sizeof longer, UUID_FMT, UUID_ARGS(&uuid));
    CHECK(!strcmp(text, longer));
    snprintf(longer, sizeof longer, "%s more", text);
    CHECK(uuid_from_string(&other, text) && uuid_equals(&uuid, &other));
    CHECK(uuid_hash(&uuid) == uuid_hash(&other));
    CHECK(!uuid_from_string(&other, longer) && uuid_is_zero(&other));
    CHECK(uuid_from_string_prefix(&other, longer) && uuid_equals(&uuid, &other));
    CHECK(!uuid_from_string_prefix(&other, "0000"));
    CHECK(uuid_is_partial_string("abcd") == 4 && uuid_is_partial_string("0123ABCD-") == 9);
    CHECK(uuid_is_partial_string(text) == UUID_LEN);
    CHECK(!uuid_is_partial_string("") && !uuid_is_partial_string("abcg"));
    CHECK(!uuid_is_partial_string("0123-") && !uuid_is_partial_string(longer));
    text[9] = '\0';
    CHECK(uuid_is_partial_match(&uuid, text) == 9);
    text[0] = text[0] == '0' ? '1' : '0';
    CHECK(!uuid_is_partial_match(&uuid, text) && !uuid_is_partial_match(&uuid, longer));
    free(text);
}

static void
maps(void)
{
    const struct smap one = SMAP_CONST1(&one, "key", "value");
    const struct smap two = SMAP_CONST2(&two, "a", "1", "b", "2");
    struct smap smap = SMAP_INITIALIZER(&smap), other = SMAP_INITIALIZER(&other);
    struct smap_node *node;
    const struct smap_node **sorted, *seen_node;
    struct uuid uuid;
    CHECK(smap_count(&one) == 1 && !strcmp(smap_get(&one, "key"), "value"));
    CHECK(smap_count(&two) == 2 && smap_get_int(&two, "b", 0) == 2);
    CHECK(smap_sort(&smap) == NULL);
    smap_add(&smap, "c", "12345678-1234-5678-1234-567812345678");
    smap_add(&smap, "a", "no");
    smap_add_format(&smap, "b", "%d", 7);
    CHECK(smap_get_uuid(&smap, "c", &uuid) && uuid.parts[0] == 0x12345678);
    CHECK(!smap_get_uuid(&smap, "a", &uuid) && !smap_get_uuid(&smap, "d", &uuid));
    sorted = smap_sort(&smap);
    CHECK(!strcmp(sorted[0]->key, "a") && !strcmp(sorted[1]->key, "b"));
    CHECK(!strcmp(sorted[2]->key, "c"));
    free(sorted);
    char *changed = smap_add(&other, "x", "y")->value;
    CHECK(!strcmp(changed, "y"));
    smap_destroy(&other);
    SMAP_FOR_EACH (seen_node, &one) {
        CHECK(!strcmp(seen_node->value, "value"));
    }
    smap_clone(&other, &smap);
    CHECK(smap_equal(&other, &smap));
    int seen = 0;
    SMAP_FOR_EACH_SAFE (node, &smap) {
        seen++;
        if (strcmp(node->key, "b")) {
            smap_remove_node(&smap, node);
        }
    }
    CHECK(seen == 3 && smap_count(&smap) == 1 && smap_get(&smap, "b"));
    smap_swap(&smap, &other);
    CHECK(smap_count(&smap) == 3 && smap_count(&other) == 1);
    char *key, *value;
    smap_steal(&smap, smap_get_node(&smap, "a"), &key, &value);
    CHECK(!strcmp(key, "a") && !strcmp(value, "no") && smap_count(&smap) == 2);
    free(key);
    free(value);
    SMAP_FOR_EACH_SAFE (node, &smap) {
        smap_remove_node(&smap, node);
    }
    CHECK(smap_is_empty(&smap));
    smap_destroy(&smap);
    smap_destroy(&other);
}

static void
timers(void)
{
    long long int begun = time_msec();
    poll_timer_wait_until(begun + 30);
    poll_timer_wait_until(LLONG_MAX);
    poll_block();
    CHECK(time_msec() - begun >= 30);
    poll_timer_wait_until(begun);
    poll_block();
    poll_immediate_wake();
    poll_block();
}

int
main(int argc, char *argv[])
{
    CHECK(argc == 2);
    snprintf(log_path, sizeof log_path, "%s", argv[1]);
    levels();
    rate_limits();
    options();
    uuids();
    maps();
    timers();
    puts("ok");
    return 0;
}
