/* The names of Open vSwitch's uuid.h. With CORVID_WITH_OPENVSWITCH they are Open vSwitch's own. */

#ifndef CORVID_COMPAT_UUID_H
#define CORVID_COMPAT_UUID_H 1

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "corvid.h"
#include "corvid-compat-memory.h"

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

/* The length of a text that the text of a UUID may begin with; 0 for another one. */
static inline int
uuid_is_partial_string(const char *text)
{
    int length = 0;
    for (; text[length]; length++) {
        bool is_dash = length == 8 || length == 13 || length == 18 || length == 23;
        if (length >= UUID_LEN
            || (is_dash ? text[length] != '-' : !isxdigit((unsigned char) text[length]))) {
            return 0;
        }
    }
    return length;
}

static inline bool
uuid_from_string(struct uuid *uuid, const char *text)
{
    /* A question, whose answer may be no: it leaves nothing in the log. */
    bool is_good = uuid_is_partial_string(text) == UUID_LEN
                   && corvid_uuid_parse(text, uuid) == CORVID_OK;
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

/* A UUID of zeros, as an expression. */
#ifdef __cplusplus
#define UUID_ZERO (corvid_uuid())
#else
#define UUID_ZERO ((struct uuid) {{0, 0, 0, 0}})
#endif

/* A new random UUID. */
static inline void
uuid_generate(struct uuid *uuid)
{
    *uuid = corvid_uuid_random();
}

static inline struct uuid
uuid_random(void)
{
    return corvid_uuid_random();
}

/* The text of a UUID, which the caller frees. */
static inline char *
uuid_to_string(const struct uuid *uuid)
{
    char *text = (char *) corvid_compat_alloc(NULL, UUID_LEN + 1);
    corvid_uuid_format(*uuid, text);
    return text;
}

/* As uuid_from_string, of a text that goes on after the UUID. */
static inline bool
uuid_from_string_prefix(struct uuid *uuid, const char *text)
{
    char head[UUID_LEN + 1];
    strncpy(head, text, UUID_LEN);
    head[UUID_LEN] = '\0';
    return uuid_from_string(uuid, head);
}

/* The length of a text that the text of this UUID begins with; 0 for another one. */
static inline int
uuid_is_partial_match(const struct uuid *uuid, const char *match)
{
    char text[UUID_LEN + 1];
    size_t length = strlen(match);
    corvid_uuid_format(*uuid, text);
    return length <= UUID_LEN && !strncasecmp(text, match, length) ? (int) length : 0;
}

/* The first digits of a UUID, 8 at most. */
static inline unsigned int
uuid_prefix(const struct uuid *uuid, int digits)
{
    return uuid->parts[0] >> (32 - 4 * digits);
}

/* Random UUIDs need no preparation. */
static inline void
uuid_init(void)
{
}

#ifdef __cplusplus
}
#endif

#endif
#endif
