/* The names of Open vSwitch's poll-loop.h, and the one loop of the program.
 *
 * A program has one poll loop: Open vSwitch's if it is linked, else that of libcorvid.
 *
 * - With CORVID_WITH_OPENVSWITCH, or if Open vSwitch's poll-loop.h is included before, the functions
 *   are Open vSwitch's.
 * - Otherwise they are here. A program that links libopenvswitch all the same, for unixctl say,
 *   still waits in Open vSwitch's loop: weak references find its functions when the program is
 *   linked.
 *
 * Events that functions of libcorvid register go to that loop too (corvid_compat_poll_forward). */

#ifndef CORVID_COMPAT_POLL_LOOP_H
#define CORVID_COMPAT_POLL_LOOP_H 1

#include <poll.h>
#include <stdbool.h>
#include <time.h>

#include "corvid.h"
#include "corvid-compat-vlog.h"

#if defined(CORVID_WITH_OPENVSWITCH) && !defined(POLL_LOOP_H)
#include <openvswitch/poll-loop.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef POLL_LOOP_H

/* Whether the loop of the program is that of libopenvswitch. */
static inline bool
corvid_compat_is_loop_theirs(void)
{
    return true;
}

/* Hands the events that libcorvid has registered in this thread to Open vSwitch's loop. */
static inline void
corvid_compat_poll_forward(void)
{
    struct corvid_wait wait = CORVID_WAIT_INIT;
    while (corvid_poll_next(&wait) == CORVID_OK) {
        if (wait.fd >= 0) {
            poll_fd_wait_at(wait.fd, wait.events, "libcorvid");
        }
        if (wait.timeout_ms >= 0) {
            poll_timer_wait_at(wait.timeout_ms, "libcorvid");
        }
    }
}

#else
/* Open vSwitch's header, included later, adds nothing. */
#define POLL_LOOP_H 1

#if defined(__GNUC__) && defined(__ELF__)
#define CORVID_COMPAT_HAS_WEAK 1
void poll_fd_wait_at(int fd, short int events, const char *where) __attribute__((weak));
void poll_timer_wait_at(long long int ms, const char *where) __attribute__((weak));
void poll_block(void) __attribute__((weak));

/* Whether libopenvswitch is linked. Then its functions may register events with its loop. */
static inline bool
corvid_compat_is_loop_theirs(void)
{
    return poll_fd_wait_at && poll_timer_wait_at && poll_block;
}
#else
static inline bool
corvid_compat_is_loop_theirs(void)
{
    return false;
}
#endif

static inline void
corvid_compat_poll_forward(void)
{
#ifdef CORVID_COMPAT_HAS_WEAK
    struct corvid_wait wait = CORVID_WAIT_INIT;
    while (corvid_compat_is_loop_theirs() && corvid_poll_next(&wait) == CORVID_OK) {
        if (wait.fd >= 0) {
            poll_fd_wait_at(wait.fd, wait.events, "libcorvid");
        }
        if (wait.timeout_ms >= 0) {
            poll_timer_wait_at(wait.timeout_ms, "libcorvid");
        }
    }
#endif
}

static inline void
corvid_compat_poll_block(void)
{
    corvid_compat_log_forward();
#ifdef CORVID_COMPAT_HAS_WEAK
    if (corvid_compat_is_loop_theirs()) {
        corvid_compat_poll_forward();
        poll_block();
        return;
    }
#endif
    corvid_poll_block();
}

/* Milliseconds of a clock that is never set. */
static inline long long int
corvid_compat_time_msec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long int) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Milliseconds since 1970. */
static inline long long int
corvid_compat_time_wall_msec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (long long int) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void
poll_fd_wait(int fd, short int events)
{
    corvid_poll_fd(fd, events);
}

static inline void
poll_timer_wait(long long int ms)
{
    corvid_poll_timer(ms);
}

/* Wakes at a moment of time_msec. LLONG_MAX is never. */
static inline void
poll_timer_wait_until(long long int ms)
{
    long long int now = corvid_compat_time_msec();
    corvid_poll_timer(ms > now ? ms - now : 0);
}

static inline void
poll_immediate_wake(void)
{
    corvid_poll_timer(0);
}

/* Names that libopenvswitch has too. */
#define poll_block corvid_compat_poll_block
#ifndef TIMEVAL_H
#define time_msec corvid_compat_time_msec
#define time_wall_msec corvid_compat_time_wall_msec
#endif

#endif

#ifdef __cplusplus
}
#endif

#endif
