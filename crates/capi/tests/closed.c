/* The library stays in the process when a program closes it: a thread of the library may still run.
 * Argument: the library. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char *argv[])
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (library == NULL || dlsym(library, "corvid_client_run") == NULL || dlclose(library) != 0) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL) {
        fprintf(stderr, "the library was unloaded\n");
        return 1;
    }
    puts("ok");
    return 0;
}
