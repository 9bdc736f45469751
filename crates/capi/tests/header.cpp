// The header in C++, with all warnings as errors; and a call of a function through it.
#include <corvid.h>

#include <cstring>

int
main()
{
    corvid_config *config = nullptr;
    if (corvid_config_new("{}", &config) != CORVID_ERR_SCHEMA) {
        return 1;
    }
    return std::strcmp(corvid_error_name(CORVID_ERR_SCHEMA), "CORVID_ERR_SCHEMA") == 0 ? 0 : 1;
}
