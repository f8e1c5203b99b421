/* All functions that open a file by its name, for preloaded libraries. The including file defines
 *
 *     static int refuses_to_open(const char *path, int flags);
 *
 * which sets errno if it refuses.
 */
#ifndef OPENING_H
#define OPENING_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>

static int refuses_to_open(const char *path, int flags);

static mode_t mode_of(va_list more)
{
    return (mode_t)va_arg(more, int);
}

#define OPENING(name)                                                                                                  \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        const mode_t mode = mode_of(more);                                                                             \
        va_end(more);                                                                                                  \
        return refuses_to_open(path, flags) ? -1 : ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(path, flags, mode);    \
    }

#define OPENING_AT(name)                                                                                               \
    int name(int directory, const char *path, int flags, ...)                                                          \
    {                                                                                                                  \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        const mode_t mode = mode_of(more);                                                                             \
        va_end(more);                                                                                                  \
        return refuses_to_open(path, flags)                                                                            \
                   ? -1                                                                                                \
                   : ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(directory, path, flags, mode);                       \
    }

OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

#endif
