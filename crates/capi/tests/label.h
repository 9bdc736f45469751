/* The functions that the code of synthetic.ann calls. */
#ifndef LABEL_H
#define LABEL_H 1

#include <stdint.h>

char *make_label(const char *name, int64_t age);
void free_label(char *label);
int64_t hash_label(const char *label);

#endif
