/* Stand-in for Open vSwitch's header of this name: the declarations that programs use.
 *
 * As there, a map of zero bytes is not a map, and one that was moved is broken. */
#ifndef SMAP_H
#define SMAP_H 1

#include <stdbool.h>
#include <stddef.h>

struct smap_node {
    struct smap_node *next;
    char *key;
    char *value;
};

struct smap {
    struct smap_node *first;
    /* The address of this struct. */
    const struct smap *self;
    size_t n;
    size_t unused;
};

#define SMAP_INITIALIZER(SMAP) {NULL, (SMAP), 0, 0}
#define SMAP_FOR_EACH(NODE, SMAP) \
    for ((NODE) = smap_first(SMAP); (NODE); (NODE) = (NODE)->next)

struct smap_node *smap_first(const struct smap *);
void smap_init(struct smap *);
void smap_destroy(struct smap *);
void smap_clear(struct smap *);
struct smap_node *smap_add(struct smap *, const char *key, const char *value);
void smap_replace(struct smap *, const char *key, const char *value);
void smap_remove(struct smap *, const char *key);
const char *smap_get(const struct smap *, const char *key);
int smap_get_int(const struct smap *, const char *key, int def);
size_t smap_count(const struct smap *);
void smap_clone(struct smap *to, const struct smap *from);
bool smap_equal(const struct smap *, const struct smap *);

#endif
