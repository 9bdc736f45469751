/* Stand-in for libopenvswitch: the functions of the headers in `include`, as programs see them.
 * Written for tests of programs that use libcorvid and Open vSwitch's library together. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "smap.h"
#include "unixctl.h"
#include "uuid.h"

static void
require(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "libopenvswitch: %s\n", what);
        abort();
    }
}

/* UUIDs. */

bool
uuid_is_zero(const struct uuid *uuid)
{
    return !uuid->parts[0] && !uuid->parts[1] && !uuid->parts[2] && !uuid->parts[3];
}

bool
uuid_from_string(struct uuid *uuid, const char *text)
{
    unsigned int p[6];
    if (sscanf(text, "%8x-%4x-%4x-%4x-%4x%8x", &p[0], &p[1], &p[2], &p[3], &p[4], &p[5]) != 6) {
        return false;
    }
    uuid->parts[0] = p[0];
    uuid->parts[1] = p[1] << 16 | p[2];
    uuid->parts[2] = p[3] << 16 | p[4];
    uuid->parts[3] = p[5];
    return true;
}

/* Maps. */

static void
check_map(const struct smap *smap)
{
    require(smap->self == smap, "a map was not initialised, or was moved");
}

struct smap_node *
smap_first(const struct smap *smap)
{
    check_map(smap);
    return smap->first;
}

void
smap_init(struct smap *smap)
{
    smap->first = NULL;
    smap->self = smap;
    smap->n = 0;
}

void
smap_clear(struct smap *smap)
{
    check_map(smap);
    while (smap->first) {
        struct smap_node *node = smap->first;
        smap->first = node->next;
        free(node->key);
        free(node->value);
        free(node);
    }
    smap->n = 0;
}

void
smap_destroy(struct smap *smap)
{
    if (smap) {
        smap_clear(smap);
        smap->self = NULL;
    }
}

struct smap_node *
smap_add(struct smap *smap, const char *key, const char *value)
{
    check_map(smap);
    struct smap_node *node = malloc(sizeof *node);
    require(node != NULL, "out of memory");
    node->key = strdup(key);
    node->value = strdup(value);
    node->next = smap->first;
    smap->first = node;
    smap->n++;
    return node;
}

void
smap_remove(struct smap *smap, const char *key)
{
    check_map(smap);
    for (struct smap_node **place = &smap->first; *place; place = &(*place)->next) {
        struct smap_node *node = *place;
        if (!strcmp(node->key, key)) {
            *place = node->next;
            free(node->key);
            free(node->value);
            free(node);
            smap->n--;
            return;
        }
    }
}

void
smap_replace(struct smap *smap, const char *key, const char *value)
{
    smap_remove(smap, key);
    smap_add(smap, key, value);
}

const char *
smap_get(const struct smap *smap, const char *key)
{
    const struct smap_node *node;
    SMAP_FOR_EACH (node, smap) {
        if (!strcmp(node->key, key)) {
            return node->value;
        }
    }
    return NULL;
}

int
smap_get_int(const struct smap *smap, const char *key, int def)
{
    const char *value = smap_get(smap, key);
    return value ? atoi(value) : def;
}

size_t
smap_count(const struct smap *smap)
{
    check_map(smap);
    return smap->n;
}

void
smap_clone(struct smap *to, const struct smap *from)
{
    const struct smap_node *node;
    smap_init(to);
    SMAP_FOR_EACH (node, from) {
        smap_add(to, node->key, node->value);
    }
}

bool
smap_equal(const struct smap *a, const struct smap *b)
{
    const struct smap_node *node;
    bool is_equal = smap_count(a) == smap_count(b);
    SMAP_FOR_EACH (node, a) {
        const char *value = smap_get(b, node->key);
        is_equal = is_equal && value && !strcmp(value, node->value);
    }
    return is_equal;
}

/* The log. */

static struct vlog_module loop_module = {"poll_loop"};

struct vlog_module *
vlog_module_from_name(const char *name)
{
    return strcmp(name, loop_module.name) ? NULL : &loop_module;
}

void
vlog(const struct vlog_module *module, enum vlog_level level, const char *format, ...)
{
    static const char *const names[] = {"OFF", "EMER", "ERR", "WARN", "INFO", "DBG"};
    va_list args;
    va_start(args, format);
    fprintf(stderr, "vlog|%s|%s|", module->name, names[level]);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* The loop. */

static struct pollfd fds[100];
static nfds_t n_fds;
static long long int until = -1;

static long long int
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

void
poll_fd_wait_at(int fd, short int events, const char *where)
{
    require(n_fds < 100, where);
    fds[n_fds].fd = fd;
    fds[n_fds].events = events;
    n_fds++;
}

void
poll_timer_wait_until_at(long long int ms, const char *where)
{
    (void) where;
    if (until < 0 || ms < until) {
        until = ms < 0 ? 0 : ms;
    }
}

void
poll_timer_wait_at(long long int ms, const char *where)
{
    poll_timer_wait_until_at(now() + (ms < 0 ? 0 : ms), where);
}

void
poll_immediate_wake_at(const char *where)
{
    poll_timer_wait_until_at(0, where);
}

/* For tests that look where a call has blocked. */
unsigned int stand_in_poll_blocks;

void
poll_block(void)
{
    stand_in_poll_blocks++;
    long long int left = until < 0 ? -1 : until - now();
    poll(fds, n_fds, until < 0 ? -1 : left < 0 ? 0 : (int) left);
    n_fds = 0;
    until = -1;
}

/* Commands of ovs-appctl: one connection and one request at a time. */

struct command {
    const char *name;
    unixctl_cb_func *cb;
    void *aux;
};

struct unixctl_conn {
    int fd;
    int id;
};

struct unixctl_server {
    int listener;
    int fd;
};

static struct command commands[10];
static size_t n_commands;

int
unixctl_server_create(const char *path, struct unixctl_server **serverp)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct unixctl_server *server = malloc(sizeof *server);
    require(server && strlen(path) < sizeof address.sun_path, "no control socket");
    strcpy(address.sun_path, path);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    server->fd = -1;
    require(!bind(server->listener, (struct sockaddr *) &address, sizeof address), "bind");
    require(!listen(server->listener, 10), "listen");
    *serverp = server;
    return 0;
}

void
unixctl_command_register(const char *name, const char *usage, int min_args, int max_args,
                         unixctl_cb_func *cb, void *aux)
{
    (void) usage, (void) min_args, (void) max_args;
    require(n_commands < 10, "too many commands");
    commands[n_commands].name = name;
    commands[n_commands].cb = cb;
    commands[n_commands].aux = aux;
    n_commands++;
}

/* `body` needs no escapes. */
void
unixctl_command_reply(struct unixctl_conn *conn, const char *body)
{
    char reply[1000];
    int n = snprintf(reply, sizeof reply, "{\"id\":%d,\"result\":\"%s\",\"error\":null}", conn->id,
                     body ? body : "");
    require(send(conn->fd, reply, (size_t) n, MSG_NOSIGNAL) == n, "send");
}

static void
serve(int fd, const char *request)
{
    const char *id = strstr(request, "\"id\":"), *method = strstr(request, "\"method\":\"");
    require(id && method, "the request is not whole");
    struct unixctl_conn conn = {fd, atoi(id + 5)};
    method += strlen("\"method\":\"");
    for (size_t i = 0; i < n_commands; i++) {
        size_t length = strlen(commands[i].name);
        if (!strncmp(method, commands[i].name, length) && method[length] == '"') {
            const char *argv[] = {commands[i].name, NULL};
            commands[i].cb(&conn, 1, argv, commands[i].aux);
            return;
        }
    }
    unixctl_command_reply(&conn, "there is no such command");
}

void
unixctl_server_run(struct unixctl_server *server)
{
    char request[1000];
    if (server->fd < 0) {
        server->fd = accept(server->listener, NULL, NULL);
    }
    if (server->fd >= 0) {
        ssize_t n = recv(server->fd, request, sizeof request - 1, MSG_DONTWAIT);
        if (n > 0) {
            request[n] = '\0';
            serve(server->fd, request);
        } else if (n == 0 || errno != EAGAIN) {
            close(server->fd);
            server->fd = -1;
        }
    }
}

void
unixctl_server_wait(struct unixctl_server *server)
{
    poll_fd_wait(server->fd >= 0 ? server->fd : server->listener, POLLIN);
}

void
unixctl_server_destroy(struct unixctl_server *server)
{
    if (server->fd >= 0) {
        close(server->fd);
    }
    close(server->listener);
    free(server);
}
