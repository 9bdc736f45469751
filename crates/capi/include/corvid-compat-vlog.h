/* The names of Open vSwitch's vlog.h, and the way of libcorvid's messages to the log.
 *
 * With CORVID_WITH_OPENVSWITCH, or if Open vSwitch's vlog.h is included before, the names are Open
 * vSwitch's, and messages of libcorvid go to vlog as those of the module "ovsdb_idl". Otherwise all
 * messages go to standard error. */

#ifndef CORVID_COMPAT_VLOG_H
#define CORVID_COMPAT_VLOG_H 1

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "corvid.h"

#if defined(CORVID_WITH_OPENVSWITCH) && !defined(OPENVSWITCH_VLOG_H)
#include <openvswitch/vlog.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef OPENVSWITCH_VLOG_H

/* Logs a message of libcorvid; `level` is a corvid_level. */
static inline void
corvid_compat_log_message(int level, const char *text)
{
    /* A module that the program links: the client library if anything uses it, else the loop. */
    const struct vlog_module *module = vlog_module_from_name("ovsdb_idl");
    if (!module) {
        module = vlog_module_from_name("poll_loop");
    }
    if (!module) {
        fprintf(stderr, "corvid|%s\n", text);
    } else if (level <= CORVID_LEVEL_ERROR) {
        vlog(module, VLL_ERR, "%s", text);
    } else if (level == CORVID_LEVEL_WARN) {
        vlog(module, VLL_WARN, "%s", text);
    } else if (level == CORVID_LEVEL_INFO) {
        vlog(module, VLL_INFO, "%s", text);
    } else {
        vlog(module, VLL_DBG, "%s", text);
    }
}

#else
/* Open vSwitch's header, included later, adds nothing. */
#define OPENVSWITCH_VLOG_H 1

#define VLOG_DEFINE_THIS_MODULE(MODULE) static const char corvid_compat_module[] = #MODULE
#define VLOG_FATAL(...) \
    (corvid_compat_log(corvid_compat_module, "EMER", __VA_ARGS__), exit(EXIT_FAILURE))
#define VLOG_ERR(...) corvid_compat_log(corvid_compat_module, "ERR", __VA_ARGS__)
#define VLOG_WARN(...) corvid_compat_log(corvid_compat_module, "WARN", __VA_ARGS__)
#define VLOG_INFO(...) corvid_compat_log(corvid_compat_module, "INFO", __VA_ARGS__)
#define VLOG_DBG(...) ((void) 0)

static inline void
corvid_compat_log(const char *module, const char *level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s|%s|", module, level);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* Logs a message of libcorvid; `level` is a corvid_level. */
static inline void
corvid_compat_log_message(int level, const char *text)
{
    static const char *const levels[] = {"EMER", "ERR", "WARN", "INFO", "DBG"};
    corvid_compat_log("corvid", levels[level], "%s", text);
}

#endif

/* Takes the messages of libcorvid, which keeps them, and logs them. The functions of
 * corvid-compat-idl.h do this after each run. */
static inline void
corvid_compat_log_drain(void)
{
    char text[1024];
    int level;
    while (corvid_log_next(&level, text, sizeof text) == CORVID_OK) {
        corvid_compat_log_message(level, text);
    }
}

#ifdef __cplusplus
}
#endif

#endif
