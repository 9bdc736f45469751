/* What programs write to log: VLOG_INFO and its kin, with and without rate limits, and the options of
 * the command line. The log itself is in corvid-compat-vlog-own.h, which includes this file. */

#ifndef CORVID_COMPAT_VLOG_MACROS_H
#define CORVID_COMPAT_VLOG_MACROS_H 1

#include "corvid-compat-vlog-own.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rate limits: RATE messages a minute in the long run, BURST at once. */

struct vlog_rate_limit {
    unsigned int rate;
    unsigned int burst;
    /* In thousandths of a message, times 60. */
    unsigned long long int tokens;
    long long int last_fill;
    long long int first_dropped;
    long long int last_dropped;
    unsigned int n_dropped;
    char lock;
};

/* A message costs as much as a rate of one a minute brings in a minute of milliseconds. */
#define VLOG_MSG_TOKENS (60 * 1000)
#define VLOG_RATE_LIMIT_INIT(RATE, BURST) {(RATE), (BURST), 0, LLONG_MIN, 0, 0, 0, 0}

static inline long long int
corvid_compat_vlog_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long int) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether the limit drops a message now. The first message after dropped ones reports them. */
static inline bool
vlog_should_drop(const struct vlog_module *module, enum vlog_level level,
                 struct vlog_rate_limit *limit)
{
    if (!vlog_is_enabled(module, level)) {
        return true;
    }
    corvid_compat_vlog_lock(&limit->lock);
    long long int now = corvid_compat_vlog_ms();
    unsigned long long int full = (unsigned long long int) limit->burst * VLOG_MSG_TOKENS;
    if (limit->last_fill == LLONG_MIN) {
        limit->tokens = full;
    } else if (now > limit->last_fill) {
        unsigned long long int elapsed = (unsigned long long int) (now - limit->last_fill);
        unsigned long long int room = full > limit->tokens ? full - limit->tokens : 0;
        bool fills = limit->rate && elapsed > room / limit->rate;
        limit->tokens = fills ? full : limit->tokens + elapsed * limit->rate;
    }
    limit->last_fill = now;
    bool drops = limit->tokens < VLOG_MSG_TOKENS;
    unsigned int n_dropped = limit->n_dropped;
    long long int first = limit->first_dropped, last = limit->last_dropped;
    if (drops) {
        if (!n_dropped) {
            limit->first_dropped = now;
        }
        limit->last_dropped = now;
        limit->n_dropped++;
    } else {
        limit->tokens -= VLOG_MSG_TOKENS;
        limit->n_dropped = 0;
    }
    corvid_compat_vlog_unlock(&limit->lock);
    if (!drops && n_dropped) {
        vlog(module, level,
             "Dropped %u log messages in last %u seconds (most recently, %u seconds ago) due to"
             " excessive rate",
             n_dropped, (unsigned int) ((now - first) / 1000),
             (unsigned int) ((now - last) / 1000));
    }
    return drops;
}

static inline void
vlog_rate_limit(const struct vlog_module *module, enum vlog_level level,
                struct vlog_rate_limit *limit, const char *format, ...) OVS_PRINTF_FORMAT(4, 5);

static inline void
vlog_rate_limit(const struct vlog_module *module, enum vlog_level level,
                struct vlog_rate_limit *limit, const char *format, ...)
{
    if (!vlog_should_drop(module, level, limit)) {
        va_list args;
        va_start(args, format);
        vlog_valist(module, level, format, args);
        va_end(args);
    }
}

/* The macros of programs. */

#define VLOG(LEVEL, ...)                                                                    \
    do {                                                                                    \
        if (vlog_is_enabled(&this_module, LEVEL)) {                                          \
            vlog(&this_module, LEVEL, __VA_ARGS__);                                          \
        }                                                                                   \
    } while (0)
#define VLOG_RL(LIMIT, LEVEL, ...)                                                          \
    do {                                                                                    \
        if (vlog_is_enabled(&this_module, LEVEL)) {                                          \
            vlog_rate_limit(&this_module, LEVEL, LIMIT, __VA_ARGS__);                        \
        }                                                                                   \
    } while (0)
#define VLOG_ONCE(LEVEL, ...)                                                               \
    do {                                                                                    \
        static char was_logged__;                                                           \
        if (!__atomic_test_and_set(&was_logged__, __ATOMIC_RELAXED)) {                      \
            vlog(&this_module, LEVEL, __VA_ARGS__);                                          \
        }                                                                                   \
    } while (0)
/* Logs the message, and hands it over too if there is a place for it. */
#define VLOG_ERRP(ERRP, LEVEL, ...)                                                         \
    do {                                                                                    \
        char **errp__ = (ERRP);                                                             \
        VLOG(LEVEL, __VA_ARGS__);                                                           \
        if (errp__) {                                                                       \
            *errp__ = corvid_compat_vlog_message(__VA_ARGS__);                              \
        }                                                                                   \
    } while (0)

#define VLOG_FATAL(...) vlog_fatal(&this_module, __VA_ARGS__)
#define VLOG_ABORT(...) vlog_abort(&this_module, __VA_ARGS__)
#define VLOG_EMER(...) VLOG(VLL_EMER, __VA_ARGS__)
#define VLOG_ERR(...) VLOG(VLL_ERR, __VA_ARGS__)
#define VLOG_WARN(...) VLOG(VLL_WARN, __VA_ARGS__)
#define VLOG_INFO(...) VLOG(VLL_INFO, __VA_ARGS__)
#define VLOG_DBG(...) VLOG(VLL_DBG, __VA_ARGS__)

#define VLOG_IS_EMER_ENABLED() true
#define VLOG_IS_ERR_ENABLED() vlog_is_enabled(&this_module, VLL_ERR)
#define VLOG_IS_WARN_ENABLED() vlog_is_enabled(&this_module, VLL_WARN)
#define VLOG_IS_INFO_ENABLED() vlog_is_enabled(&this_module, VLL_INFO)
#define VLOG_IS_DBG_ENABLED() vlog_is_enabled(&this_module, VLL_DBG)

#define VLOG_ERR_RL(LIMIT, ...) VLOG_RL(LIMIT, VLL_ERR, __VA_ARGS__)
#define VLOG_WARN_RL(LIMIT, ...) VLOG_RL(LIMIT, VLL_WARN, __VA_ARGS__)
#define VLOG_INFO_RL(LIMIT, ...) VLOG_RL(LIMIT, VLL_INFO, __VA_ARGS__)
#define VLOG_DBG_RL(LIMIT, ...) VLOG_RL(LIMIT, VLL_DBG, __VA_ARGS__)

#define VLOG_ERR_ONCE(...) VLOG_ONCE(VLL_ERR, __VA_ARGS__)
#define VLOG_WARN_ONCE(...) VLOG_ONCE(VLL_WARN, __VA_ARGS__)
#define VLOG_INFO_ONCE(...) VLOG_ONCE(VLL_INFO, __VA_ARGS__)
#define VLOG_DBG_ONCE(...) VLOG_ONCE(VLL_DBG, __VA_ARGS__)

#define VLOG_DROP_ERR(LIMIT) vlog_should_drop(&this_module, VLL_ERR, LIMIT)
#define VLOG_DROP_WARN(LIMIT) vlog_should_drop(&this_module, VLL_WARN, LIMIT)
#define VLOG_DROP_INFO(LIMIT) vlog_should_drop(&this_module, VLL_INFO, LIMIT)
#define VLOG_DROP_DBG(LIMIT) vlog_should_drop(&this_module, VLL_DBG, LIMIT)

#define VLOG_ERR_BUF(ERRP, ...) VLOG_ERRP(ERRP, VLL_ERR, __VA_ARGS__)
#define VLOG_WARN_BUF(ERRP, ...) VLOG_ERRP(ERRP, VLL_WARN, __VA_ARGS__)

/* Options of the command line, for programs that use getopt_long. */

#define VLOG_OPTION_ENUMS OPT_LOG_FILE, OPT_SYSLOG_IMPL, OPT_SYSLOG_TARGET
#define VLOG_LONG_OPTIONS                                                                   \
    {"verbose", optional_argument, NULL, 'v'},                                              \
        {"log-file", optional_argument, NULL, OPT_LOG_FILE},                                \
        {"syslog-method", required_argument, NULL, OPT_SYSLOG_IMPL},                        \
        {"syslog-target", required_argument, NULL, OPT_SYSLOG_TARGET}
#define VLOG_OPTION_HANDLERS                                                                \
    case 'v':                                                                               \
        vlog_set_verbosity(optarg);                                                         \
        break;                                                                              \
    case OPT_LOG_FILE:                                                                      \
        /* A file that the user has named must be there. */                                 \
        if (vlog_set_log_file(optarg) && optarg) {                                          \
            exit(EXIT_FAILURE);                                                             \
        }                                                                                   \
        break;                                                                              \
    case OPT_SYSLOG_IMPL:                                                                   \
        vlog_set_syslog_method(optarg);                                                     \
        break;                                                                              \
    case OPT_SYSLOG_TARGET:                                                                 \
        vlog_set_syslog_target(optarg);                                                     \
        break;

/* Messages go to syslog(3), or nowhere by the method "null". */
static inline void
vlog_set_syslog_method(const char *method)
{
    if (!strcmp(method, "null")) {
        vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    } else if (strcmp(method, "libc")) {
        fprintf(stderr, "the log has no syslog method %s: libc is used\n", method);
    }
}

/* Messages stay on this machine, and the program says so. */
static inline void
vlog_set_syslog_target(const char *target)
{
    fprintf(stderr, "the log is not sent to %s: syslog(3) of this machine gets it\n", target);
}

static inline void
vlog_usage(void)
{
    printf("\n\
Logging options:\n\
  -v, --verbose=[SPEC]    set logging levels\n\
  -v, --verbose           set maximum verbosity level\n\
  --log-file[=FILE]       enable logging to specified FILE\n\
                          (default: $OVS_LOGDIR or /var/log/openvswitch/%s.log)\n\
  --syslog-method=(libc|null)\n\
                          where to send syslog messages (default: libc)\n",
           program_invocation_short_name);
}

#ifdef __cplusplus
}
#endif

#endif
