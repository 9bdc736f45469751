/* The names of Open vSwitch's vlog.h, and the way of libcorvid's messages to the log.
 *
 * With CORVID_WITH_OPENVSWITCH, or if Open vSwitch's vlog.h is included before, the names are Open
 * vSwitch's, and messages of libcorvid go to vlog as those of the module "ovsdb_idl", or "reconnect"
 * if the program does not link that. Otherwise the log is that of corvid-compat-vlog-own.h. */

#ifndef CORVID_COMPAT_VLOG_H
#define CORVID_COMPAT_VLOG_H 1

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "corvid.h"

#if defined(CORVID_WITH_OPENVSWITCH) && !defined(OPENVSWITCH_VLOG_H)
#include <openvswitch/vlog.h>
#endif

#ifndef OPENVSWITCH_VLOG_H
#include "corvid-compat-vlog-own.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CORVID_COMPAT_VLOG_OWN_H

/* Logs a message of libcorvid; `level` is a corvid_level. */
static inline void
corvid_compat_log_message(int level, const char *text)
{
    /* The first of these modules that the program links; the loop is always linked. */
    static const char *const names[] = {"ovsdb_idl", "reconnect", "poll_loop"};
    const struct vlog_module *module = NULL;
    for (size_t i = 0; !module && i < sizeof names / sizeof *names; i++) {
        module = vlog_module_from_name(names[i]);
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

#endif

/* Has libcorvid log its messages, those that it has kept so far too. From then on it does so at the
 * end of each call, and while a call blocks. */
static inline void
corvid_compat_log_forward(void)
{
    corvid_log_set_handler(corvid_compat_log_message);
}

#ifdef __cplusplus
}
#endif

#endif
