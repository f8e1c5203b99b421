#include "small_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../shared/text.h"

int pm_object_is_plain(const pm_object *object)
{
    for (size_t i = 0; i < object->named; i++) {
        const unsigned char octet = (unsigned char)object->names[i];
        if (octet && (octet < 0x20 || octet > 0x7e || octet == '"' || octet == '\\')) return 0;
    }
    for (int64_t i = 0; i < object->count; i++)
        for (int64_t j = 0; j < i; j++)
            if (!memcmp(object->digests + 64 * i, object->digests + 64 * j, 64)) return 0;
    return 1;
}

size_t pm_object_inventory_size(const pm_object *object, const pm_piece *pieces, size_t identifier)
{
    size_t size = identifier + 2 * object->named;
    for (int i = 0; i < PM_PIECES; i++) {
        const int once = i == PM_PIECE_START || i == PM_PIECE_MANIFEST || i == PM_PIECE_STATE || i == PM_PIECE_END;
        size += pieces[i].size * (once ? 1 : (size_t)object->count);
    }
    return size + 2 * 128 * (size_t)object->count;
}

static char *pm_object_append(char *end, const char *octets, size_t size)
{
    memcpy(end, octets, size);
    return end + size;
}

static char *pm_object_block(const pm_object *object, char *end, const pm_piece *pieces, int first)
{
    for (int64_t i = 0; i < object->count; i++) {
        const pm_piece *before = &pieces[i ? first + 2 : first];
        end = pm_object_append(end, before->octets, before->size);
        pm_put_hex((uint8_t *)end, object->digests + 64 * i, 0, 128);
        end = pm_object_append(end + 128, pieces[first + 1].octets, pieces[first + 1].size);
        end = pm_object_append(end, object->files[i], strlen(object->files[i]));
    }
    return end;
}

size_t pm_object_inventory(const pm_object *object, const pm_piece *pieces, const char *identifier, size_t octets,
                           char *inventory)
{
    char *end = pm_object_append(inventory, pieces[PM_PIECE_START].octets, pieces[PM_PIECE_START].size);
    end = pm_object_append(end, identifier, octets);
    end = pm_object_block(object, end, pieces, PM_PIECE_MANIFEST);
    end = pm_object_block(object, end, pieces, PM_PIECE_STATE);
    end = pm_object_append(end, pieces[PM_PIECE_END].octets, pieces[PM_PIECE_END].size);
    return (size_t)(end - inventory);
}

#ifndef _WIN32
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#ifdef __APPLE__
#define PM_OBJECT_CTIME(status) ((status).st_ctimespec)
#else
#define PM_OBJECT_CTIME(status) ((status).st_ctim)
#endif

#ifdef __linux__
#define PM_NOREPLACE 1 /* linux/fs.h */
extern int renameat2(int, const char *, int, const char *, unsigned) __attribute__((weak));
#endif

static int pm_object_names(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

#define PM_OBJECT_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int pm_object_is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Note the names of all files of an open directory, with what is before them in path. Return 0 where that is not for
 * this: a link, a device, an empty directory, too much of it, or what cannot be listed. */
static int pm_object_list(pm_object *object, DIR *directory, char *path, size_t length, int depth)
{
    struct dirent *entry;
    int found = 0;
    while ((errno = 0, entry = readdir(directory))) {
        const size_t size = length + strlen(entry->d_name) + 1;
        if (pm_object_is_dots(entry->d_name)) continue;
        found = 1;
        if (size + 1 > PM_OBJECT_PATH) return 0;
        memcpy(path + length, entry->d_name, size - length);
        if (entry->d_type == DT_DIR && depth < PM_OBJECT_DEPTH) {
            const int folder = openat(dirfd(directory), entry->d_name, PM_OBJECT_FOLDER);
            DIR *below = folder < 0 ? NULL : fdopendir(folder);
            int fine = 0;
            if (below) {
                path[size - 1] = '/';
                fine = pm_object_list(object, below, path, size, depth + 1);
                closedir(below);
            } else if (folder >= 0) {
                close(folder);
            }
            if (!fine) return 0;
        } else if (entry->d_type == DT_REG) {
            if (object->count == PM_OBJECT_FILES || object->named + size > PM_OBJECT_NAMES) return 0;
            memcpy(object->names + object->named, path, size); /* with its zero */
            object->files[object->count++] = object->names + object->named;
            object->named += size;
        } else {
            return 0;
        }
    }
    return !errno && found;
}

/* Read the files whose names were noted; return 0 where that is not for this. */
static int pm_object_read_files(pm_object *object, int directory, int64_t device, int flags)
{
    qsort(object->files, (size_t)object->count, sizeof *object->files, pm_object_names);
    for (int64_t i = 0; i < object->count; i++) {
        struct stat *before = &object->statuses[i];
        uint8_t *data = object->data + object->offsets[i];
        int64_t ctime;
        pm_small small;
        if (object->offsets[i] > PM_OBJECT_OCTETS) return 0;
        if (pm_small_read_at(directory, object->files[i], flags, before, data, &small) != PM_SMALL_DONE) return 0;
        if (device >= 0 && (int64_t)before->st_dev != device) return 0;
        ctime = PM_SMALL_NS(PM_OBJECT_CTIME(*before));
        if (small.mtime_ns > object->changed) object->changed = small.mtime_ns;
        if (ctime > object->changed) object->changed = ctime;
        object->offsets[i + 1] = object->offsets[i] + small.size;
    }
    return 1;
}

int pm_object_read(pm_object *object, const char *above, const char *name, int64_t device, int flags)
{
    char path[PM_OBJECT_PATH];
    struct dirent *entry;
    DIR *outer = opendir(above), *inner = NULL;
    int folder = -1, fine;
    if (!outer) return 0;
    while ((errno = 0, entry = readdir(outer)))
        if (!pm_object_is_dots(entry->d_name) && strcmp(entry->d_name, name)) break;
    fine = !entry && !errno;
    if (fine) folder = openat(dirfd(outer), name, PM_OBJECT_FOLDER);
    if (folder >= 0 && !(inner = fdopendir(folder))) close(folder);
    if (inner) {
        object->count = object->changed = object->offsets[0] = 0;
        object->named = 0;
        fine = pm_object_list(object, inner, path, 0, 1) && pm_object_read_files(object, folder, device, flags);
        closedir(inner);
    }
    closedir(outer);
    return inner && fine;
}

int pm_object_write(const pm_object *object, const char *directory)
{
    char path[PM_OBJECT_PATH];
    const size_t length = strlen(directory);
    if (length + 1 >= sizeof path) return 0;
    memcpy(path, directory, length);
    path[length] = '/';
    for (int64_t i = 0; i < object->count; i++) {
        const size_t octets = strlen(object->files[i]);
        if (length + 1 + octets >= sizeof path) return 0;
        memcpy(path + length + 1, object->files[i], octets + 1);
        for (char *slash = strchr(path + length + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
            int there;
            *slash = 0;
            there = !mkdir(path, 0777) || errno == EEXIST; /* made for a file before */
            *slash = '/';
            if (!there) return 0;
        }
        if (pm_small_write_like(path, &object->statuses[i], object->data + object->offsets[i],
                                object->offsets[i + 1] - object->offsets[i]))
            return 0;
    }
    return 1;
}

int pm_object_put(const char *directory, const char *ending, const char *data, size_t size)
{
    char path[PM_OBJECT_PATH];
    const size_t length = strlen(directory), more = strlen(ending);
    if (length + more >= sizeof path) return 0;
    memcpy(path, directory, length);
    memcpy(path + length, ending, more + 1);
    return !pm_small_new(path, (const uint8_t *)data, (int64_t)size);
}

int pm_object_is_there(const char *path)
{
    struct stat status;
    return !lstat(path, &status) || (errno != ENOENT && errno != ENOTDIR);
}

int pm_object_move(const char *old, const char *base, const char *place, const char *const *signs, int count)
{
#ifdef __linux__
    char path[PM_OBJECT_PATH];
    const size_t length = strlen(base), more = strlen(place);
    struct stat status;
    char *slash;
    if (!renameat2 || length + 1 + more >= sizeof path) return 0;
    memcpy(path, base, length);
    path[length] = '/';
    memcpy(path + length + 1, place, more + 1);
    for (slash = strchr(path + length + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0777)) {
            if (errno != EEXIST || lstat(path, &status) || !S_ISDIR(status.st_mode)) return 0;
            for (int i = 0; i < count; i++) {
                /* The rest of the path is put back afterwards. */
                const size_t at = (size_t)(slash - path), octets = strlen(signs[i]);
                if (at + octets >= sizeof path) return 0;
                memcpy(slash, signs[i], octets + 1);
                if (pm_object_is_there(path)) return 0;
                memcpy(path + length + 1, place, more + 1);
                *slash = 0;
            }
        }
        *slash = '/';
    }
    return renameat2(AT_FDCWD, old, AT_FDCWD, path, PM_NOREPLACE) == 0;
#else
    (void)old, (void)base, (void)place, (void)signs, (void)count;
    return 0;
#endif
}
#else
int pm_object_read(pm_object *object, const char *above, const char *name, int64_t device, int flags)
{
    (void)object, (void)above, (void)name, (void)device, (void)flags;
    return 0;
}
int pm_object_write(const pm_object *object, const char *directory)
{
    (void)object, (void)directory;
    return 0;
}
int pm_object_put(const char *directory, const char *ending, const char *data, size_t size)
{
    (void)directory, (void)ending, (void)data, (void)size;
    return 0;
}
int pm_object_is_there(const char *path)
{
    (void)path;
    return 1;
}
int pm_object_move(const char *old, const char *base, const char *place, const char *const *signs, int count)
{
    (void)old, (void)base, (void)place, (void)signs, (void)count;
    return 0;
}
#endif

