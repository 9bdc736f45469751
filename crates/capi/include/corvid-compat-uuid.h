/* The names of Open vSwitch's uuid.h. With CORVID_WITH_OPENVSWITCH they are Open vSwitch's own. */

#ifndef CORVID_COMPAT_UUID_H
#define CORVID_COMPAT_UUID_H 1

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "corvid.h"

#if !defined(CORVID_WITH_OPENVSWITCH) && !defined(UUID_H)
/* Open vSwitch's header, included later, adds nothing. */
#define UUID_H 1

#ifdef __cplusplus
extern "C" {
#endif

#define UUID_LEN 36
#define UUID_FMT "%08" PRIx32 "-%04" PRIx32 "-%04" PRIx32 "-%04" PRIx32 "-%04" PRIx32 "%08" PRIx32
#define UUID_ARGS(UUID) \
    (UUID)->parts[0], (UUID)->parts[1] >> 16, (UUID)->parts[1] & 0xffff, (UUID)->parts[2] >> 16, \
    (UUID)->parts[2] & 0xffff, (UUID)->parts[3]

static inline bool
uuid_equals(const struct uuid *a, const struct uuid *b)
{
    return a->parts[0] == b->parts[0] && a->parts[1] == b->parts[1] && a->parts[2] == b->parts[2]
           && a->parts[3] == b->parts[3];
}

static inline int
uuid_compare_3way(const struct uuid *a, const struct uuid *b)
{
    for (int i = 0; i < 4; i++) {
        if (a->parts[i] != b->parts[i]) {
            return a->parts[i] < b->parts[i] ? -1 : 1;
        }
    }
    return 0;
}

static inline bool
uuid_is_zero(const struct uuid *uuid)
{
    return !(uuid->parts[0] | uuid->parts[1] | uuid->parts[2] | uuid->parts[3]);
}

static inline void
uuid_zero(struct uuid *uuid)
{
    memset(uuid, 0, sizeof *uuid);
}

static inline bool
uuid_from_string(struct uuid *uuid, const char *text)
{
    bool is_good = corvid_uuid_parse(text, uuid) == CORVID_OK;
    if (!is_good) {
        uuid_zero(uuid);
    }
    return is_good;
}

/* The first part is random in random UUIDs. */
static inline size_t
uuid_hash(const struct uuid *uuid)
{
    return uuid->parts[0];
}

#ifdef __cplusplus
}
#endif

#endif
#endif
