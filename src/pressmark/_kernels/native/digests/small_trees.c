#include "small_trees.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pm_small_tree_is_plain(const pm_small_tree *tree)
{
    for (size_t i = 0; i < tree->named; i++) {
        const unsigned char byte = (unsigned char)tree->names[i];
        if (byte && (byte < 0x20 || byte > 0x7e || byte == '"' || byte == '\\')) return 0;
    }
    for (int64_t i = 0; i < tree->count; i++)
        for (int64_t j = 0; j < i; j++)
            if (!memcmp(tree->digests + 64 * i, tree->digests + 64 * j, 64)) return 0;
    return 1;
}

#ifndef _WIN32
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int pm_compare_names(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

#define PM_OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int pm_is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Lists the names of all files of an open directory, after the prefix in `path`. Returns 0 for a link, a device, an empty
 * directory, too many files, or an error. */
static int pm_small_tree_list(pm_small_tree *tree, DIR *directory, char *path, size_t length, int depth)
{
    struct dirent *entry;
    int found = 0;
    while ((errno = 0, entry = readdir(directory))) {
        const size_t size = length + strlen(entry->d_name) + 1;
        if (pm_is_dots(entry->d_name)) continue;
        found = 1;
        if (size + 1 > PM_TREE_PATH) return 0;
        memcpy(path + length, entry->d_name, size - length);
        if (entry->d_type == DT_DIR && depth < PM_TREE_DEPTH) {
            const int folder = openat(dirfd(directory), entry->d_name, PM_OPEN_FOLDER);
            DIR *below = folder < 0 ? NULL : fdopendir(folder);
            int fine = 0;
            if (below) {
                path[size - 1] = '/';
                fine = pm_small_tree_list(tree, below, path, size, depth + 1);
                closedir(below);
            } else if (folder >= 0) {
                close(folder);
            }
            if (!fine) return 0;
        } else if (entry->d_type == DT_REG) {
            if (tree->count == PM_TREE_FILES || tree->named + size > PM_TREE_NAMES) return 0;
            memcpy(tree->names + tree->named, path, size); /* with its zero */
            tree->files[tree->count++] = tree->names + tree->named;
            tree->named += size;
        } else {
            return 0;
        }
    }
    return !errno && found;
}

int64_t pm_device(const pm_small_status *status)
{
    return (int64_t)status->st_dev;
}

int pm_is_on(const pm_devices *devices, int64_t device)
{
    int found = devices->count == 0;
    for (int i = 0; i < devices->count; i++) found |= devices->device[i] == device;
    return found;
}

/* Reads the listed files. Returns 0 if one is not small and regular. */
static int pm_small_tree_read_files(pm_small_tree *tree, int directory, const pm_devices *devices, int flags)
{
    qsort(tree->files, (size_t)tree->count, sizeof *tree->files, pm_compare_names);
    for (int64_t i = 0; i < tree->count; i++) {
        struct stat *before = &tree->statuses[i];
        uint8_t *data = tree->data + tree->offsets[i];
        pm_small small;
        if (tree->offsets[i] - tree->offsets[0] > PM_TREE_BYTES) return 0;
        if (pm_small_read_at(directory, tree->files[i], flags, before, data, &small) != PM_SMALL_DONE) return 0;
        if (!pm_is_on(devices, pm_device(before))) return 0;
        tree->changed = pm_later_time(tree->changed, pm_later_time(small.mtime, small.ctime));
        tree->offsets[i + 1] = tree->offsets[i] + small.size;
    }
    return 1;
}

/* Opens a directory if it is alone in its parent. */
static int pm_open_alone(const char *above, const char *name)
{
    struct dirent *entry;
    DIR *outer = opendir(above);
    int folder = -1;
    if (!outer) return -1;
    while ((errno = 0, entry = readdir(outer)))
        if (!pm_is_dots(entry->d_name) && strcmp(entry->d_name, name)) break;
    if (!entry && !errno) folder = openat(dirfd(outer), name, PM_OPEN_FOLDER);
    closedir(outer);
    return folder;
}

/* Reads a file as the only one of a tree. */
static int pm_small_tree_of_file(pm_small_tree *tree, const char *path, const pm_devices *devices, int flags)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    pm_small small;
    const size_t size = strlen(name) + 1;
    if (size == 1 || size > PM_TREE_NAMES
        || pm_small_read(path, flags, &tree->statuses[0], tree->data + tree->offsets[0], &small) != PM_SMALL_DONE
        || !pm_is_on(devices, pm_device(&tree->statuses[0])))
        return 0;
    memcpy(tree->names, name, size);
    tree->files[0] = tree->names;
    tree->named = size;
    tree->count = 1;
    tree->changed = pm_later_time(small.mtime, small.ctime);
    tree->offsets[1] = tree->offsets[0] + small.size;
    return 1;
}

int pm_small_tree_read(pm_small_tree *tree, const char *above, const char *name, const pm_devices *devices, int flags)
{
    char path[PM_TREE_PATH];
    const int folder = above && *above ? pm_open_alone(above, name) : open(name, PM_OPEN_FOLDER);
    DIR *inner = folder < 0 ? NULL : fdopendir(folder);
    int fine;
    if (!inner) {
        if (folder >= 0) close(folder);
        return folder < 0 && !above && errno == ENOTDIR && pm_small_tree_of_file(tree, name, devices, flags);
    }
    tree->count = 0;
    memset(&tree->changed, 0, sizeof tree->changed);
    tree->named = 0;
    fine = pm_small_tree_list(tree, inner, path, 0, 1) && pm_small_tree_read_files(tree, folder, devices, flags);
    closedir(inner);
    return fine;
}

size_t pm_small_tree_longest(const pm_small_tree *tree)
{
    size_t longest = 0;
    for (int64_t i = 0; i < tree->count; i++)
        if (strlen(tree->files[i]) > longest) longest = strlen(tree->files[i]);
    return longest;
}

int pm_small_tree_write(const pm_small_tree *tree, const char *directory)
{
    char path[PM_TREE_PATH];
    const size_t length = strlen(directory);
    if (length + 1 >= sizeof path) return 0;
    memcpy(path, directory, length);
    path[length] = '/';
    for (int64_t i = 0; i < tree->count; i++) {
        const size_t bytes = strlen(tree->files[i]);
        if (length + 1 + bytes >= sizeof path) return 0;
        memcpy(path + length + 1, tree->files[i], bytes + 1);
        for (char *slash = strchr(path + length + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
            int there;
            *slash = 0;
            there = !mkdir(path, 0777) || errno == EEXIST; /* created for another file */
            *slash = '/';
            if (!there) return 0;
        }
        if (pm_small_write_like(path, &tree->statuses[i], tree->data + tree->offsets[i],
                                tree->offsets[i + 1] - tree->offsets[i]))
            return 0;
    }
    return 1;
}

static int pm_is_there(const char *path)
{
    struct stat status;
    return !lstat(path, &status) || (errno != ENOENT && errno != ENOTDIR);
}

int pm_is_free(const char *path)
{
    return !pm_is_there(path);
}

#ifdef __linux__
/* The length of the directories that two paths have in common. */
static size_t pm_common(const char *path, const char *before)
{
    size_t common = 0;
    for (size_t i = 0; before && path[i] && path[i] == before[i]; i++)
        if (path[i] == '/') common = i;
    return common;
}
#endif

int pm_move_new(const pm_moves *moves, const char *old, const char *place, const char *before)
{
#ifdef __linux__
    char path[PM_TREE_PATH];
    const size_t length = strlen(moves->base), more = strlen(place);
    struct stat status;
    char *slash;
    int made = 0;
    if (!more || length + 1 + more >= sizeof path) return 0;
    memcpy(path, moves->base, length);
    path[length] = '/';
    memcpy(path + length + 1, place, more + 1);
    const size_t known = pm_common(place, before);
    for (slash = strchr(path + length + 1 + known + (known > 0), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        made = !mkdir(path, 0777);
        if (!made) {
            if (errno != EEXIST || lstat(path, &status) || !S_ISDIR(status.st_mode)) return 0;
            for (int i = 0; i < moves->count; i++) {
                /* The rest of the path is restored afterwards. */
                const size_t at = (size_t)(slash - path), bytes = strlen(moves->signs[i]);
                if (at + bytes >= sizeof path) return 0;
                memcpy(slash, moves->signs[i], bytes + 1);
                if (pm_is_there(path)) return 0;
                memcpy(path + length + 1, place, more + 1);
                *slash = 0;
            }
        }
        *slash = '/';
    }
    if (moves->fresh && !made) return 0;
    return pm_rename_new(old, path) == 0;
#else
    (void)moves, (void)old, (void)place, (void)before;
    return 0;
#endif
}
#else
int pm_small_tree_read(pm_small_tree *tree, const char *above, const char *name, const pm_devices *devices, int flags)
{
    (void)tree, (void)above, (void)name, (void)devices, (void)flags;
    return 0;
}
size_t pm_small_tree_longest(const pm_small_tree *tree)
{
    (void)tree;
    return 0;
}
int pm_small_tree_write(const pm_small_tree *tree, const char *directory)
{
    (void)tree, (void)directory;
    return 0;
}
int pm_is_free(const char *path)
{
    (void)path;
    return 0;
}
int64_t pm_device(const pm_small_status *status)
{
    (void)status;
    return -1;
}
int pm_is_on(const pm_devices *devices, int64_t device)
{
    (void)devices, (void)device;
    return 0;
}
int pm_move_new(const pm_moves *moves, const char *old, const char *place, const char *before)
{
    (void)moves, (void)old, (void)place, (void)before;
    return 0;
}
#endif
