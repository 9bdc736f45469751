/* Stand-in for Open vSwitch's header of this name: the declarations that programs use. */
#ifndef UUID_H
#define UUID_H 1

#include <stdbool.h>
#include "openvswitch/uuid.h"

#define UUID_FMT "%08x-%04x-%04x-%04x-%04x%08x"
#define UUID_ARGS(U) \
    (unsigned int) (U)->parts[0], (unsigned int) (U)->parts[1] >> 16, \
    (unsigned int) (U)->parts[1] & 0xffff, (unsigned int) (U)->parts[2] >> 16, \
    (unsigned int) (U)->parts[2] & 0xffff, (unsigned int) (U)->parts[3]

bool uuid_is_zero(const struct uuid *);
bool uuid_from_string(struct uuid *, const char *);

#endif
