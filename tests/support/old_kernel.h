/* For preloaded libraries: with $OLD_KERNEL, openat2 is missing. It is no function that a library can replace. */
#ifndef OLD_KERNEL_H
#define OLD_KERNEL_H

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    long given[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(more, long);
    va_end(more);
#if defined(SYS_openat2)
    if (number == SYS_openat2 && getenv("OLD_KERNEL")) {
        errno = ENOSYS;
        return -1;
    }
#endif
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

#endif
