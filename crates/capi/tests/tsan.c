/* Names that code by LLVM calls under ThreadSanitizer and the runtime of GCC lacks: it watches the functions of the C library themselves. */
#include <string.h>

void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memset(void *to, int byte, size_t size);

void *
__tsan_memcpy(void *to, const void *from, size_t size)
{
    return memcpy(to, from, size);
}

void *
__tsan_memmove(void *to, const void *from, size_t size)
{
    return memmove(to, from, size);
}

void *
__tsan_memset(void *to, int byte, size_t size)
{
    return memset(to, byte, size);
}
