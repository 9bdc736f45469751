/* The log of programs that do not link Open vSwitch's library: levels, and the destinations console,
 * file and syslog, under the names of openvswitch/vlog.h.
 *
 * Users are corvid-compat-vlog.h and, through it, ported programs. State that all source files of a
 * program share is in weak symbols, so the header needs no source file of its own. */

#ifndef CORVID_COMPAT_VLOG_OWN_H
#define CORVID_COMPAT_VLOG_OWN_H 1

/* Open vSwitch's header, included later, adds nothing. */
#define OPENVSWITCH_VLOG_H 1

#include "corvid-compat-memory.h"

#include <corvid.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef OVS_PRINTF_FORMAT
#define OVS_PRINTF_FORMAT(FORMAT, FIRST) __attribute__((__format__(printf, FORMAT, FIRST)))
#endif

/* Levels, the most important first. A destination shows a message of its own level or above. */
enum vlog_level { VLL_OFF, VLL_EMER, VLL_ERR, VLL_WARN, VLL_INFO, VLL_DBG, VLL_N_LEVELS };

/* Destinations. */
enum vlog_destination {
    VLF_ANY_DESTINATION = -1,
    VLF_SYSLOG,
    VLF_CONSOLE,
    VLF_FILE,
    VLF_N_DESTINATIONS
};

/* A module: the messages of one source file. `min_level` is the least important level that any
 * destination shows. */
struct vlog_module {
    const char *name;
    struct vlog_module *next;
    int levels[VLF_N_DESTINATIONS];
    int min_level;
};

/* The log of the program. */
struct corvid_compat_vlog {
    struct vlog_module *modules;
    int levels[VLF_N_DESTINATIONS];
    const char *patterns[VLF_N_DESTINATIONS];
    int facility;
    char *file_name;
    FILE *file;
    unsigned int count;
    char lock;
};

__attribute__((weak)) struct corvid_compat_vlog corvid_compat_vlog = {
    NULL,
    {VLL_INFO, VLL_INFO, VLL_INFO},
    {"ovs|%05N|%c%T|%p|%m", "%D{%Y-%m-%dT%H:%M:%SZ}|%05N|%c%T|%p|%m",
     "%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m"},
    LOG_DAEMON,
    NULL,
    NULL,
    0,
    0,
};

/* The module of the library's own messages. */
__attribute__((weak)) struct vlog_module corvid_compat_vlog_library = {
    "corvid", NULL, {VLL_INFO, VLL_INFO, VLL_INFO}, VLL_INFO};

static inline void
corvid_compat_vlog_lock(char *lock)
{
    while (__atomic_test_and_set(lock, __ATOMIC_ACQUIRE)) {
        continue;
    }
}

static inline void
corvid_compat_vlog_unlock(char *lock)
{
    __atomic_clear(lock, __ATOMIC_RELEASE);
}

/* Adds a module with the levels that are in force. Constructors of source files call it. */
static inline void
corvid_compat_vlog_add(struct vlog_module *module)
{
    for (int i = 0; i < VLF_N_DESTINATIONS; i++) {
        module->levels[i] = corvid_compat_vlog.levels[i];
    }
    module->next = corvid_compat_vlog.modules;
    corvid_compat_vlog.modules = module;
}

/* The first module of the program. The library's is added last, once it is asked for. */
static inline struct vlog_module *
corvid_compat_vlog_modules(void)
{
    corvid_compat_vlog_lock(&corvid_compat_vlog.lock);
    struct vlog_module *module = corvid_compat_vlog.modules;
    while (module && module != &corvid_compat_vlog_library) {
        module = module->next;
    }
    if (!module) {
        corvid_compat_vlog_add(&corvid_compat_vlog_library);
    }
    struct vlog_module *first = corvid_compat_vlog.modules;
    corvid_compat_vlog_unlock(&corvid_compat_vlog.lock);
    return first;
}

/* Once in a source file, before its first message. Two modules of one name are an error of the
 * linker. */
#define VLOG_DEFINE_THIS_MODULE(MODULE) \
    static struct vlog_module this_module = { \
        #MODULE, NULL, {VLL_INFO, VLL_INFO, VLL_INFO}, VLL_INFO}; \
    __attribute__((constructor)) static void corvid_compat_vlog_add_##MODULE(void) \
    { \
        corvid_compat_vlog_add(&this_module); \
    } \
    extern struct vlog_module *VLM_##MODULE; \
    struct vlog_module *VLM_##MODULE = &this_module

/* Levels and modules by name. */

static inline const char *
vlog_get_level_name(enum vlog_level level)
{
    static const char *const names[] = {"OFF", "EMER", "ERR", "WARN", "INFO", "DBG"};
    return (unsigned int) level < VLL_N_LEVELS ? names[level] : "";
}

/* VLL_N_LEVELS if no level has the name. */
static inline enum vlog_level
vlog_get_level_val(const char *name)
{
    int level = 0;
    while (level < VLL_N_LEVELS
           && strcasecmp(name, vlog_get_level_name((enum vlog_level) level))) {
        level++;
    }
    return (enum vlog_level) level;
}

static inline const char *
vlog_get_destination_name(enum vlog_destination destination)
{
    static const char *const names[] = {"syslog", "console", "file"};
    return (unsigned int) destination < VLF_N_DESTINATIONS ? names[destination] : "";
}

/* VLF_N_DESTINATIONS if no destination has the name. */
static inline enum vlog_destination
vlog_get_destination_val(const char *name)
{
    int destination = 0;
    while (destination < VLF_N_DESTINATIONS
           && strcasecmp(name, vlog_get_destination_name((enum vlog_destination) destination))) {
        destination++;
    }
    return (enum vlog_destination) destination;
}

static inline const char *
vlog_get_module_name(const struct vlog_module *module)
{
    return module->name;
}

/* Names are compared without case, and `_` is `-`. Null if no module has the name. */
static inline struct vlog_module *
vlog_module_from_name(const char *name)
{
    for (struct vlog_module *module = corvid_compat_vlog_modules(); module;
         module = module->next) {
        const char *a = module->name, *b = name;
        while (*a && *b && (!strncasecmp(a, b, 1) || (*a == '_' && *b == '-'))) {
            a++;
            b++;
        }
        if (!*a && !*b) {
            return module;
        }
    }
    return NULL;
}

/* Settings. */

static inline enum vlog_level
vlog_get_level(const struct vlog_module *module, enum vlog_destination destination)
{
    return (enum vlog_level) module->levels[destination];
}

/* The file counts only while it is open. */
static inline void
corvid_compat_vlog_refresh(struct vlog_module *module)
{
    int level = VLL_OFF;
    for (int i = 0; i < VLF_N_DESTINATIONS; i++) {
        if (module->levels[i] > level && (i != VLF_FILE || corvid_compat_vlog.file)) {
            level = module->levels[i];
        }
    }
    module->min_level = level;
    if (module == &corvid_compat_vlog_library) {
        corvid_log_set_level(level > VLL_EMER ? level - 1 : 0);
    }
}

/* A null module stands for all, those that come later among them. */
static inline void
vlog_set_levels(struct vlog_module *module, enum vlog_destination destination,
                enum vlog_level level)
{
    struct vlog_module *each = module ? module : corvid_compat_vlog_modules();
    for (int i = 0; i < VLF_N_DESTINATIONS; i++) {
        if (!module && (destination == VLF_ANY_DESTINATION || (int) destination == i)) {
            corvid_compat_vlog.levels[i] = level;
        }
    }
    for (; each; each = module ? NULL : each->next) {
        for (int i = 0; i < VLF_N_DESTINATIONS; i++) {
            if (destination == VLF_ANY_DESTINATION || (int) destination == i) {
                each->levels[i] = level;
            }
        }
        corvid_compat_vlog_refresh(each);
    }
}

/* The pattern is kept as long as the program runs. */
static inline void
vlog_set_pattern(enum vlog_destination destination, const char *pattern)
{
    for (int i = 0; i < VLF_N_DESTINATIONS; i++) {
        if (destination == VLF_ANY_DESTINATION || (int) destination == i) {
            corvid_compat_vlog.patterns[i] = corvid_compat_strdup(pattern);
        }
    }
}

static inline char *
corvid_compat_vlog_message(const char *format, ...) OVS_PRINTF_FORMAT(1, 2);

static inline char *
corvid_compat_vlog_message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = corvid_compat_format(format, args);
    va_end(args);
    return text;
}

/* The number of a facility of syslog by its name, or -1. */
static inline int
corvid_compat_vlog_facility(const char *name)
{
    static const struct {
        const char *name;
        int value;
    } facilities[] = {
        {"kern", LOG_KERN},     {"user", LOG_USER},     {"mail", LOG_MAIL},
        {"daemon", LOG_DAEMON}, {"auth", LOG_AUTH},     {"syslog", LOG_SYSLOG},
        {"lpr", LOG_LPR},       {"news", LOG_NEWS},     {"uucp", LOG_UUCP},
        {"clock", LOG_CRON},    {"ftp", LOG_FTP},       {"local0", LOG_LOCAL0},
        {"local1", LOG_LOCAL1}, {"local2", LOG_LOCAL2}, {"local3", LOG_LOCAL3},
        {"local4", LOG_LOCAL4}, {"local5", LOG_LOCAL5}, {"local6", LOG_LOCAL6},
        {"local7", LOG_LOCAL7}, {"authpriv", LOG_AUTHPRIV},
    };
    for (size_t i = 0; i < sizeof facilities / sizeof *facilities; i++) {
        if (!strcasecmp(name, facilities[i].name)) {
            return facilities[i].value;
        }
    }
    return -1;
}

/* Settings in words, as `--verbose` has them: a module, a destination and a level in any order,
 * or `PATTERN:DESTINATION:PATTERN`, or `FACILITY:NAME`. Returns null, or what is wrong, which the
 * caller frees. */
static inline char *
vlog_set_levels_from_string(const char *text)
{
    static const char separators[] = " ,:\t";
    enum vlog_destination destination = VLF_ANY_DESTINATION;
    struct vlog_module *module = NULL;
    enum vlog_level level = VLL_N_LEVELS;
    char *copy = corvid_compat_strdup(text), *rest = NULL, *wrong = NULL;
    char *word = strtok_r(copy, separators, &rest);
    bool is_first = true;

    for (; word && !wrong; word = strtok_r(NULL, separators, &rest), is_first = false) {
        if (is_first && !strcasecmp(word, "PATTERN")) {
            word = strtok_r(NULL, separators, &rest);
            if (word && strcasecmp(word, "ANY")) {
                destination = vlog_get_destination_val(word);
            }
            if (!word) {
                wrong = corvid_compat_strdup("missing destination");
            } else if (destination == VLF_N_DESTINATIONS) {
                wrong = corvid_compat_vlog_message("unknown destination \"%s\"", word);
            } else if (!rest || !*rest) {
                wrong = corvid_compat_strdup("missing pattern");
            } else {
                vlog_set_pattern(destination, rest);
            }
            free(copy);
            return wrong;
        }
        if (is_first && !strcasecmp(word, "FACILITY")) {
            word = strtok_r(NULL, separators, &rest);
            int facility = word ? corvid_compat_vlog_facility(word) : -1;
            if (!word) {
                wrong = corvid_compat_strdup("missing facility");
            } else if (facility < 0) {
                wrong = corvid_compat_vlog_message("invalid facility \"%s\"", word);
            } else {
                corvid_compat_vlog.facility = facility;
            }
            free(copy);
            return wrong;
        }
        if (!strcasecmp(word, "ANY")) {
            continue;
        }
        struct vlog_module *named = vlog_module_from_name(word);
        if (vlog_get_destination_val(word) != VLF_N_DESTINATIONS) {
            if (destination != VLF_ANY_DESTINATION) {
                wrong = corvid_compat_strdup("cannot specify multiple destinations");
            }
            destination = vlog_get_destination_val(word);
        } else if (vlog_get_level_val(word) != VLL_N_LEVELS) {
            if (level != VLL_N_LEVELS) {
                wrong = corvid_compat_strdup("cannot specify multiple levels");
            }
            level = vlog_get_level_val(word);
        } else if (named) {
            if (module) {
                wrong = corvid_compat_strdup("cannot specify multiple modules");
            }
            module = named;
        } else {
            wrong = corvid_compat_vlog_message("no destination, level, or module \"%s\"", word);
        }
    }
    if (!wrong) {
        vlog_set_levels(module, destination, level == VLL_N_LEVELS ? VLL_DBG : level);
    }
    free(copy);
    return wrong;
}

/* The same for settings that are part of the program. */
static inline void
vlog_set_levels_from_string_assert(const char *text)
{
    char *wrong = vlog_set_levels_from_string(text);
    if (wrong) {
        fprintf(stderr, "%s: %s\n", text, wrong);
        abort();
    }
}

/* The argument of `--verbose`; null shows everything. */
static inline void
vlog_set_verbosity(const char *argument)
{
    char *wrong = NULL;
    if (argument) {
        wrong = vlog_set_levels_from_string(argument);
    } else {
        vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_DBG);
    }
    if (wrong) {
        fprintf(stderr, "processing \"%s\": %s\n", argument, wrong);
        exit(EXIT_FAILURE);
    }
}

/* The levels of all modules as a table, which the caller frees. */
static inline char *
vlog_get_levels(void)
{
    char *table = corvid_compat_vlog_message("%-17s %-10s %-10s %-10s\n%-17s %-10s %-10s %-10s\n",
                                             "", "console", "syslog", "file", "", "-------",
                                             "------", "------");
    for (const struct vlog_module *module = corvid_compat_vlog_modules(); module;
         module = module->next) {
        char *longer = corvid_compat_vlog_message(
            "%s%-16s  %4s       %4s       %4s\n", table, module->name,
            vlog_get_level_name(vlog_get_level(module, VLF_CONSOLE)),
            vlog_get_level_name(vlog_get_level(module, VLF_SYSLOG)),
            vlog_get_level_name(vlog_get_level(module, VLF_FILE)));
        free(table);
        table = longer;
    }
    return table;
}

extern char *program_invocation_short_name;

/* Logs to another file, or to none. The former one is closed when no thread writes to it. */
static inline void
corvid_compat_vlog_change_file(FILE *file, char *name)
{
    corvid_compat_vlog_lock(&corvid_compat_vlog.lock);
    FILE *former = corvid_compat_vlog.file;
    char *former_name = corvid_compat_vlog.file_name;
    corvid_compat_vlog.file = file;
    corvid_compat_vlog.file_name = name;
    corvid_compat_vlog_unlock(&corvid_compat_vlog.lock);
    if (former) {
        fclose(former);
    }
    if (former_name != name) {
        free(former_name);
    }
    for (struct vlog_module *module = corvid_compat_vlog_modules(); module;
         module = module->next) {
        corvid_compat_vlog_refresh(module);
    }
}

/* Closes the log file. */
static inline void
vlog_close_log_file(void)
{
    corvid_compat_vlog_change_file(NULL, corvid_compat_vlog.file_name);
}

/* Appends to a file from now on; null is /var/log/openvswitch/PROGRAM.log, or the file of that
 * name in $OVS_LOGDIR. Returns 0 or the error of the system. */
static inline int
vlog_set_log_file(const char *name)
{
    const char *folder = getenv("OVS_LOGDIR");
    char *path = name ? corvid_compat_strdup(name)
                      : corvid_compat_vlog_message(
                            "%s/%s.log", folder && *folder ? folder : "/var/log/openvswitch",
                            program_invocation_short_name);
    FILE *file = fopen(path, "a");
    if (!file) {
        int error = errno;
        fprintf(stderr, "failed to open %s for logging: %s\n", path, strerror(error));
        free(path);
        return error;
    }
    corvid_compat_vlog_change_file(file, path);
    return 0;
}

/* Opens the log file again, after it was rotated. */
static inline int
vlog_reopen_log_file(void)
{
    if (!corvid_compat_vlog.file_name) {
        return 0;
    }
    char *name = corvid_compat_strdup(corvid_compat_vlog.file_name);
    int error = vlog_set_log_file(name);
    free(name);
    return error;
}

/* The log is written by the thread that logs, so these change nothing. */
static inline void
vlog_enable_async(void)
{
}

static inline void
vlog_disable_async(void)
{
}

static inline void
vlog_init(void)
{
}

/* Messages. */

static inline bool
vlog_is_enabled(const struct vlog_module *module, enum vlog_level level)
{
    return module->min_level >= (int) level;
}

/* Appends to a line, cut at its end. */
static inline size_t
corvid_compat_vlog_put(char *line, size_t size, size_t length, const char *text)
{
    while (*text && length + 1 < size) {
        line[length++] = *text++;
    }
    line[length] = '\0';
    return length;
}

/* Writes the time by a format of strftime, in which `###` stands for milliseconds. */
static inline void
corvid_compat_vlog_time(char *text, size_t size, const char *format, bool is_utc)
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    if (is_utc) {
        gmtime_r(&now.tv_sec, &parts);
    } else {
        localtime_r(&now.tv_sec, &parts);
    }
    if (!strftime(text, size, format, &parts)) {
        text[0] = '\0';
    }
    char *ms = strstr(text, "###");
    if (ms) {
        char digits[8];
        snprintf(digits, sizeof digits, "%03d", (int) (now.tv_nsec / 1000000) % 1000);
        memcpy(ms, digits, 3);
    }
}

/* Writes a line by the pattern of a destination (ovs-appctl(8), "vlog/set"). */
static inline void
corvid_compat_vlog_line(char *line, size_t size, const char *pattern,
                        const struct vlog_module *module, enum vlog_level level,
                        const char *message)
{
    size_t length = 0;
    line[0] = '\0';
    for (const char *p = pattern; *p; p++) {
        char piece[256] = {*p, '\0'};
        const char *text = piece;
        if (*p == '%' && p[1]) {
            bool is_left = false, has_zeros = false;
            size_t width = 0;
            p++;
            for (; *p == '-' || *p == '0'; p++) {
                is_left = is_left || *p == '-';
                has_zeros = has_zeros || *p == '0';
            }
            for (; *p >= '0' && *p <= '9' && width < sizeof piece; p++) {
                width = width * 10 + (size_t) (*p - '0');
            }
            char format[64] = "%Y-%m-%d %H:%M:%S";
            char directive = *p;
            if (!directive) {
                break;
            }
            if (p[1] == '{') {
                size_t n = strcspn(p + 2, "}");
                snprintf(format, sizeof format, "%.*s", (int) n, p + 2);
                p += 1 + n + (p[2 + n] == '}');
            }
            switch (directive) {
            case 'A':
                text = program_invocation_short_name;
                break;
            case 'B':
                snprintf(piece, sizeof piece, "%d", corvid_compat_vlog.facility >> 3);
                break;
            case 'c':
                text = module->name;
                break;
            case 'd':
            case 'D':
                corvid_compat_vlog_time(piece, sizeof piece, format, directive == 'D');
                break;
            case 'm':
                text = message;
                break;
            case 'N':
                snprintf(piece, sizeof piece, "%u", corvid_compat_vlog.count);
                break;
            case 'n':
                text = "\n";
                break;
            case 'p':
                text = vlog_get_level_name(level);
                break;
            case 'P':
                snprintf(piece, sizeof piece, "%ld", (long int) getpid());
                break;
            case 't':
            case 'T':
                text = "";
                break;
            default:
                piece[0] = directive;
                piece[1] = '\0';
            }
            size_t filled = strlen(text);
            for (; !is_left && filled < width; width--) {
                length = corvid_compat_vlog_put(line, size, length, has_zeros ? "0" : " ");
            }
            length = corvid_compat_vlog_put(line, size, length, text);
            for (; is_left && filled < width; width--) {
                length = corvid_compat_vlog_put(line, size, length, " ");
            }
        } else {
            length = corvid_compat_vlog_put(line, size, length, text);
        }
    }
}

static inline void
vlog_valist(const struct vlog_module *module, enum vlog_level level, const char *format,
            va_list args) OVS_PRINTF_FORMAT(3, 0);

static inline void
vlog_valist(const struct vlog_module *module, enum vlog_level level, const char *format,
            va_list args)
{
    static const int priorities[] = {LOG_DEBUG, LOG_ALERT, LOG_ERR, LOG_WARNING, LOG_NOTICE,
                                     LOG_DEBUG};
    int saved_errno = errno;
    if (!vlog_is_enabled(module, level)) {
        return;
    }
    char *message = corvid_compat_format(format, args);
    size_t size = strlen(message) + 1024;
    char *line = (char *) corvid_compat_alloc(NULL, size);
    corvid_compat_vlog_lock(&corvid_compat_vlog.lock);
    corvid_compat_vlog.count++;
    for (int i = 0; i < VLF_N_DESTINATIONS; i++) {
        FILE *file = i == VLF_FILE ? corvid_compat_vlog.file : stderr;
        if (module->levels[i] < (int) level || !file) {
            continue;
        }
        corvid_compat_vlog_line(line, size, corvid_compat_vlog.patterns[i], module, level,
                                message);
        if (i == VLF_SYSLOG) {
            syslog(priorities[level] | corvid_compat_vlog.facility, "%s", line);
        } else {
            fprintf(file, "%s\n", line);
            fflush(file);
        }
    }
    corvid_compat_vlog_unlock(&corvid_compat_vlog.lock);
    free(line);
    free(message);
    errno = saved_errno;
}

static inline void
vlog(const struct vlog_module *module, enum vlog_level level, const char *format, ...)
    OVS_PRINTF_FORMAT(3, 4);

static inline void
vlog(const struct vlog_module *module, enum vlog_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vlog_valist(module, level, format, args);
    va_end(args);
}

/* What ends the program is said on standard error, even if its log is not shown there. */
static inline void
corvid_compat_vlog_last_words(const struct vlog_module *module, const char *format, va_list args)
{
    if (vlog_get_level(module, VLF_CONSOLE) < VLL_EMER) {
        fprintf(stderr, "%s: ", program_invocation_short_name);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
    }
}

/* Logs and exits. */
__attribute__((noreturn)) static inline void
vlog_fatal(const struct vlog_module *module, const char *format, ...) OVS_PRINTF_FORMAT(2, 3);

static inline void
vlog_fatal(const struct vlog_module *module, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vlog_valist(module, VLL_EMER, format, args);
    va_end(args);
    va_start(args, format);
    corvid_compat_vlog_last_words(module, format, args);
    va_end(args);
    exit(EXIT_FAILURE);
}

/* Logs and aborts. */
__attribute__((noreturn)) static inline void
vlog_abort(const struct vlog_module *module, const char *format, ...) OVS_PRINTF_FORMAT(2, 3);

static inline void
vlog_abort(const struct vlog_module *module, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vlog_valist(module, VLL_EMER, format, args);
    va_end(args);
    va_start(args, format);
    corvid_compat_vlog_last_words(module, format, args);
    va_end(args);
    abort();
}

/* Logs a message of libcorvid; `level` is a corvid_level. */
static inline void
corvid_compat_log_message(int level, const char *text)
{
    corvid_compat_vlog_modules();
    /* Levels of the library begin with ERR, after OFF and EMER. */
    vlog(&corvid_compat_vlog_library, (enum vlog_level) (level + 1), "%s", text);
}

#ifdef __cplusplus
}
#endif

#include "corvid-compat-vlog-macros.h"

#endif
