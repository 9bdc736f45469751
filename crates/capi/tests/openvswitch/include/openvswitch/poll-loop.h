/* Stand-in for Open vSwitch's header of this name: the declarations that programs use. */
#ifndef POLL_LOOP_H
#define POLL_LOOP_H 1

#include <poll.h>

void poll_fd_wait_at(int fd, short int events, const char *where);
#define poll_fd_wait(FD, EVENTS) poll_fd_wait_at(FD, EVENTS, __FILE__)
void poll_timer_wait_at(long long int ms, const char *where);
#define poll_timer_wait(MS) poll_timer_wait_at(MS, __FILE__)
void poll_timer_wait_until_at(long long int ms, const char *where);
#define poll_timer_wait_until(MS) poll_timer_wait_until_at(MS, __FILE__)
void poll_immediate_wake_at(const char *where);
#define poll_immediate_wake() poll_immediate_wake_at(__FILE__)
void poll_block(void);

#endif
