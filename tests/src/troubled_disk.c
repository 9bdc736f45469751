/* A disk that is slow or fails: loaded before the C library (LD_PRELOAD), it takes the place of the calls that read files at offsets, write
 * to files and force them to disk. Variables of the environment say what it does:
 *
 *   CORVID_DISK_FILE             only to files whose path contains this; without it, to all regular files
 *   CORVID_DISK_WHILE            only while a file of that name exists; without it, always
 *   CORVID_DISK_READ_US          a read takes so long, microseconds, and yields at most CORVID_DISK_READ_BYTES
 *   CORVID_DISK_READ_HOLDS       a read waits, if this is 1, until CORVID_DISK_WHILE is over
 *   CORVID_DISK_WRITE_US         a write takes so long, microseconds
 *   CORVID_DISK_WRITE_ERRNO      a write fails with this error number
 *   CORVID_DISK_SYNC_US          a sync takes so long, microseconds
 *   CORVID_DISK_SYNC_ERRNO       a sync fails with this error number
 *   CORVID_DISK_DIRECTORY_ERRNO  a sync of a directory fails with this error number, whatever the directory
 *   CORVID_DISK_TRACE            a file: a line for each call that is not quick by nature (sync, cut, a read that is held), with the name of its thread
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static long number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

/* Whether the disk is to be troubled by a call on this file. */
static int is_troubled(int file)
{
    const char *trigger = getenv("CORVID_DISK_WHILE");
    const char *wanted = getenv("CORVID_DISK_FILE");
    struct stat status;
    char link[64], path[4096];
    ssize_t length;

    if (trigger && access(trigger, F_OK))
        return 0;
    if (fstat(file, &status) || !S_ISREG(status.st_mode))
        return 0;
    if (!wanted)
        return 1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return strstr(path, wanted) != NULL;
}

static void wait_us(long us)
{
    struct timespec left = { us / 1000000, us % 1000000 * 1000 };
    while (us > 0 && nanosleep(&left, &left) && errno == EINTR)
        ;
}

static void trace(const char *what)
{
    const char *name = getenv("CORVID_DISK_TRACE");
    char thread[17] = "", line[64];
    int file, length;

    if (!name)
        return;
    prctl(PR_GET_NAME, thread);
    length = snprintf(line, sizeof line, "%s %s\n", thread, what);
    file = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (syscall(SYS_write, file, line, length) < 0)
            errno = 0;
        close(file);
    }
}

static int sync_by(long call, int file)
{
    struct stat status;
    long error = number_of("CORVID_DISK_DIRECTORY_ERRNO");

    trace("sync");
    if (error && !fstat(file, &status) && S_ISDIR(status.st_mode)) {
        errno = (int) error;
        return -1;
    }
    if (is_troubled(file)) {
        wait_us(number_of("CORVID_DISK_SYNC_US"));
        error = number_of("CORVID_DISK_SYNC_ERRNO");
        if (error) {
            errno = (int) error;
            return -1;
        }
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

/* Whether a write may go on. */
static int begin_write(int file)
{
    long us = number_of("CORVID_DISK_WRITE_US");
    long error = number_of("CORVID_DISK_WRITE_ERRNO");

    if (!us && !error)
        return 1;
    if (!is_troubled(file))
        return 1;
    wait_us(us);
    if (error)
        errno = (int) error;
    return !error;
}

ssize_t write(int file, const void *bytes, size_t count)
{
    if (!begin_write(file))
        return -1;
    return syscall(SYS_write, file, bytes, count);
}

ssize_t writev(int file, const struct iovec *slices, int count)
{
    if (!begin_write(file))
        return -1;
    return syscall(SYS_writev, file, slices, count);
}

int ftruncate(int file, off_t length)
{
    trace("cut");
    return (int) syscall(SYS_ftruncate, file, length);
}

int ftruncate64(int file, off64_t length)
{
    trace("cut");
    return (int) syscall(SYS_ftruncate, file, length);
}

/* How much a read may yield, after its delay. */
static size_t begin_read(int file, size_t count)
{
    long us = number_of("CORVID_DISK_READ_US");
    long bytes = number_of("CORVID_DISK_READ_BYTES");
    int holds = number_of("CORVID_DISK_READ_HOLDS") == 1;

    if ((!us && !holds) || !is_troubled(file))
        return count;
    if (holds) {
        trace("read");
        while (is_troubled(file))
            wait_us(1000);
        return count;
    }
    wait_us(us);
    return bytes > 0 && (size_t) bytes < count ? (size_t) bytes : count;
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset)
{
    return syscall(SYS_pread64, file, bytes, begin_read(file, count), offset);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t offset)
{
    return syscall(SYS_pread64, file, bytes, begin_read(file, count), offset);
}
