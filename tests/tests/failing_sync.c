/* A disk that fails to sync while a file exists: loaded before the C library (LD_PRELOAD), it takes the place of two of its calls. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sync_by(long call, int file)
{
    const char *trigger = getenv("CORVID_SYNC_FAILS_WHILE");
    if (trigger && !access(trigger, F_OK)) {
        errno = EIO;
        return -1;
    }
    return (int) syscall(call, file);
}

int fdatasync(int file)
{
    return sync_by(SYS_fdatasync, file);
}

int fsync(int file)
{
    return sync_by(SYS_fsync, file);
}
