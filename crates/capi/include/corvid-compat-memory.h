/* Memory of the compatibility headers: functions that return memory or end the program. */

#ifndef CORVID_COMPAT_MEMORY_H
#define CORVID_COMPAT_MEMORY_H 1

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As realloc, but a program that the system refuses memory ends. */
static inline void *
corvid_compat_alloc(void *memory, size_t size)
{
    void *made = realloc(memory, size ? size : 1);
    if (!made) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return made;
}

static inline char *
corvid_compat_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return (char *) memcpy(corvid_compat_alloc(NULL, size), text, size);
}

/* The formatted text, which the caller frees. */
static inline char *
corvid_compat_format(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length < 0 ? 1 : (size_t) length + 1;
    char *text = (char *) corvid_compat_alloc(NULL, size);
    text[0] = '\0';
    vsnprintf(text, size, format, args);
    return text;
}

#ifdef __cplusplus
}
#endif

#endif
