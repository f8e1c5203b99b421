/* The function that reads from a file, for preloaded libraries. The including file defines
 *
 *     static int refuses_to_read(int descriptor, const char *path);
 *
 * which is asked before each read of a file with a path, and sets errno if it refuses.
 */
#ifndef READING_H
#define READING_H

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static int refuses_to_read(int descriptor, const char *path);

ssize_t read(int descriptor, void *buffer, size_t size)
{
    static ssize_t (*real)(int, void *, size_t);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "read");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0 && path[0] == '/') {
        path[length] = 0;
        if (refuses_to_read(descriptor, path))
            return -1;
    }
    return real(descriptor, buffer, size);
}

#endif
