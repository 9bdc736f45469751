// The headers in C++, generated code among them, with all warnings as errors; and a call of a function through them.
#include <corvid-idl-compat.h>
#include "zoo-idl.h"

#include <cstring>

int
main()
{
    corvid_config *config = nullptr;
    if (corvid_config_new("{}", &config) != CORVID_ERR_SCHEMA) {
        return 1;
    }
    const struct zoo_keeper *keeper;
    struct ovsdb_idl *idl = ovsdb_idl_create_unconnected(nullptr, true);
    ZOO_KEEPER_FOR_EACH_SAFE (keeper, idl) {
        return 1;
    }
    return std::strcmp(corvid_error_name(CORVID_ERR_SCHEMA), "CORVID_ERR_SCHEMA") == 0 ? 0 : 1;
}
