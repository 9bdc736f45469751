/* Stand-in for Open vSwitch's header of this name: the declarations that programs use. */
#ifndef OPENVSWITCH_UUID_H
#define OPENVSWITCH_UUID_H 1

#include <stdint.h>

struct uuid {
    uint32_t parts[4];
};

#endif
