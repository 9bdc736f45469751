/* Stand-in for Open vSwitch's header of this name: the declarations that programs use. */
#ifndef UNIXCTL_H
#define UNIXCTL_H 1

struct unixctl_conn;
struct unixctl_server;

typedef void unixctl_cb_func(struct unixctl_conn *, int argc, const char *argv[], void *aux);

int unixctl_server_create(const char *path, struct unixctl_server **);
void unixctl_server_run(struct unixctl_server *);
void unixctl_server_wait(struct unixctl_server *);
void unixctl_server_destroy(struct unixctl_server *);
void unixctl_command_register(const char *name, const char *usage, int min_args, int max_args,
                              unixctl_cb_func *, void *aux);
void unixctl_command_reply(struct unixctl_conn *, const char *body);

#endif
