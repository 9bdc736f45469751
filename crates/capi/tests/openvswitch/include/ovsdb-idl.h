/* Stand-in for Open vSwitch's header of this name, which corvid-idl-compat.h replaces. */
#ifndef OVSDB_IDL_H
#define OVSDB_IDL_H 1
#error "corvid-idl-compat.h did not come first"
#endif
