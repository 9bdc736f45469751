/* The names of Open vSwitch's client library for C over those of libcorvid: a program that was
 * written for one compiles with the other. The program includes this header in place of
 * ovsdb-idl.h, stream-ssl.h, poll-loop.h, smap.h, uuid.h and openvswitch/vlog.h, and the header that
 * `ovsdb-idlc c-idl-header` makes in place of the generated one.
 *
 * A program that also uses libopenvswitch is compiled with -DCORVID_WITH_OPENVSWITCH. Then `struct
 * smap`, `struct uuid`, the poll loop and the log are Open vSwitch's.
 *
 * docs/clients/c-migration.md has the tables of names and of differences. */

#ifndef CORVID_IDL_COMPAT_H
#define CORVID_IDL_COMPAT_H 1

/* corvid.h names its types as Open vSwitch does. */
#ifndef CORVID_IDL_COMPAT
#define CORVID_IDL_COMPAT 1
#endif
#include "corvid.h"
#ifndef CORVID_COMPAT_TYPES_H
#error "corvid.h is included before corvid-idl-compat.h: include it after, or compile with -DCORVID_IDL_COMPAT"
#endif

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "corvid-compat-idl.h"
#include "corvid-compat-memory.h"
#include "corvid-compat-poll-loop.h"
#include "corvid-compat-smap.h"
#include "corvid-compat-stream-ssl.h"
#include "corvid-compat-uuid.h"
#include "corvid-compat-vlog.h"

#endif
