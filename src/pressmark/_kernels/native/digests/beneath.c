#include "beneath.h"

#if PM_FILES_IN_LANES
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without O_PATH, the parent directories must be readable. */
#if defined(O_PATH)
#define PM_PATH_ONLY O_PATH
#else
#define PM_PATH_ONLY (O_RDONLY | O_NONBLOCK)
#endif

#if defined(SYS_openat2)
/* As in linux/openat2.h, which older systems lack even if their kernel supports the call. */
#define PM_NO_LINKS (0x02 | 0x04) /* neither magic nor symbolic */
#define PM_BENEATH 0x08
static int pm_resolve(int directory, const char *path, int flags, uint64_t resolve)
{
    const struct {
        uint64_t flags, mode, resolve;
    } how = {(uint64_t)(unsigned)flags, 0, resolve};
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}
#else
#define PM_NO_LINKS 0
#define PM_BENEATH 0
static int pm_resolve(int directory, const char *path, int flags, uint64_t resolve)
{
    (void)directory, (void)path, (void)flags, (void)resolve;
    errno = ENOSYS;
    return -1;
}
#endif

/* The same, one segment at a time. Paths are not absolute, contain no "..", and end with a name. */
static int pm_resolve_by_steps(int beneath, const char *path, int flags)
{
    int at = beneath, error = 0;
    for (;;) {
        char step[256];
        path += strspn(path, "/");
        const size_t length = strcspn(path, "/");
        const int last = path[length] == 0;
        int next = -1;
        if (length < sizeof step) {
            memcpy(step, path, length);
            step[length] = 0;
            next = openat(at, step, last ? flags | O_NOFOLLOW : PM_PATH_ONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            error = errno;
            struct stat there;
            /* A link, or a directory that has just replaced a link. */
            if (next < 0 && error == ENOTDIR && !fstatat(at, step, &there, AT_SYMLINK_NOFOLLOW)
                && (S_ISLNK(there.st_mode) || S_ISDIR(there.st_mode)))
                error = ELOOP;
        } else {
            error = ENAMETOOLONG;
        }
        if (at != beneath)
            close(at);
        if (next < 0)
            errno = error;
        if (next < 0 || last)
            return next;
        at = next;
        path += length;
    }
}

int pm_open_real(int directory, const char *path, int flags)
{
    int descriptor;
    do
        descriptor = pm_resolve(directory, path, flags | O_NOFOLLOW, PM_NO_LINKS);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM))
        return descriptor;
    const int base = path[0] == '/' ? open("/", PM_PATH_ONLY | O_DIRECTORY | O_CLOEXEC) : directory;
    descriptor = pm_resolve_by_steps(base, path, flags);
    const int error = errno;
    if (base >= 0 && base != directory)
        close(base);
    errno = error;
    return descriptor;
}

int pm_engine_open(const pm_engine *engine, const char *path, int flags)
{
    int descriptor;
    do
        descriptor = engine->beneath < 0 ? open(path, flags)
            : engine->resolves           ? pm_resolve(engine->beneath, path, flags, PM_NO_LINKS | PM_BENEATH)
                                         : pm_resolve_by_steps(engine->beneath, path, flags);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

int pm_engine_stat(const pm_engine *engine, const char *path, struct stat *status)
{
    if (engine->beneath < 0)
        return engine->flags & O_NOFOLLOW ? lstat(path, status) : stat(path, status);
    const int descriptor = pm_engine_open(engine, path, PM_PATH_ONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return -1;
    const int failed = fstat(descriptor, status);
    close(descriptor);
    return failed;
}

void pm_parent_close(const pm_engine *engine, pm_parent *parent)
{
    if (parent->descriptor >= 0 && parent->descriptor != engine->beneath)
        close(parent->descriptor);
    parent->descriptor = -1;
    parent->length = 0;
}

/* Whether the first `length` bytes of a path are the parent before; if not, they become the parent, which is not open. */
static int pm_parent_is(const pm_engine *engine, pm_parent *parent, const char *path, size_t length)
{
    if (parent->length == length && !memcmp(parent->path, path, length))
        return 1;
    pm_parent_close(engine, parent);
    memcpy(parent->path, path, length);
    parent->path[parent->length = length] = 0;
    return 0;
}

static const char *pm_parent_anywhere(const pm_engine *engine, pm_parent *parent, const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t length = slash && slash[1] ? (size_t)(slash + 1 - path) : 0;
    parent->at = AT_FDCWD;
    if (length == 0 || length + strlen(path + length) > PM_LONGEST_PATH || !pm_parent_is(engine, parent, path, length))
        return path;
    if (parent->descriptor < 0)
        parent->descriptor = open(parent->path, PM_PATH_ONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent->descriptor < 0)
        return path;
    parent->at = parent->descriptor;
    return path + length;
}

const char *pm_parent_enter(const pm_engine *engine, pm_parent *parent, const char *path)
{
    const char *name = path;
    if (engine->beneath < 0)
        return pm_parent_anywhere(engine, parent, path);
    for (const char *at = path;;) {
        const size_t length = strcspn(at, "/");
        if (length == 0 || (at[0] == '.' && (length == 1 || (length == 2 && at[1] == '.'))))
            return NULL;
        if (!at[length])
            break;
        name = at += length + 1;
    }
    const size_t length = (size_t)(name - path);
    if (length + strlen(name) > PM_LONGEST_PATH)
        return NULL;
    if (pm_parent_is(engine, parent, path, length) && parent->descriptor >= 0)
        return name;
    if (length == 0) {
        parent->descriptor = engine->beneath;
    } else {
        parent->path[length - 1] = 0; /* no slash at the end */
        parent->descriptor =
            pm_engine_open(engine, parent->path, PM_PATH_ONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        parent->path[length - 1] = '/';
    }
    parent->at = parent->descriptor;
    return parent->descriptor < 0 ? NULL : name;
}

#endif

void pm_engine_beneath(pm_engine *engine, int directory)
{
    engine->beneath = directory;
#if PM_FILES_IN_LANES
    /* Checked once, for a path that always exists, so that the error of a file cannot be mistaken for it. */
    const int there =
        pm_resolve(directory, ".", PM_PATH_ONLY | O_DIRECTORY | O_CLOEXEC, PM_NO_LINKS | PM_BENEATH);
    engine->resolves = there >= 0;
    if (there >= 0)
        close(there);
#endif
}
