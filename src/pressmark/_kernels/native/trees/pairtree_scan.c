#include "pairtree_scan.h"

#include "../shared/clock.h"
#include "../shared/directories.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A name of this many bytes has at least three characters, since a character has at most four bytes. */
#define PM_SURELY_LONG 9
#define PM_LONGEST_NAME 255

/* The content of one directory. */
typedef struct {
    uint8_t end[PM_LONGEST_NAME]; /* the only name of three characters or more */
    int64_t end_length;           /* 0 without such a name */
    uint16_t *below;              /* names of one or two bytes: the first is the high byte, the second may be 0 */
    int64_t count, capacity;
} pm_look;

enum { PM_LOOK_DEFER = 1 };

#if PM_CAN_SCAN

/* The type of a name: from the directory entry if known, otherwise from fstatat. */
enum { PM_IS_OTHER = 0, PM_IS_DIRECTORY, PM_IS_LINK };

static int pm_entry_kind(int directory, const char *name, int type)
{
#if defined(DT_DIR) && defined(DT_UNKNOWN) && defined(DT_LNK)
    if (type == DT_DIR)
        return PM_IS_DIRECTORY;
    if (type == DT_LNK)
        return PM_IS_LINK;
    if (type != DT_UNKNOWN)
        return PM_IS_OTHER;
#else
    (void)type;
#endif
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return PM_IS_OTHER;
    return S_ISDIR(status.st_mode) ? PM_IS_DIRECTORY : S_ISLNK(status.st_mode) ? PM_IS_LINK : PM_IS_OTHER;
}

/* Adds one name to `look`. Returns 0, PM_LOOK_DEFER or PM_NO_MEMORY. */
static int pm_take_entry(pm_look *look, int directory, const char *name, int type, int is_morty, int follow)
{
    const uint8_t *bytes = (const uint8_t *)name;
    const int64_t length = (int64_t)strlen(name);
    if (length < PM_SURELY_LONG)
        for (int64_t i = 0; i < length; i++)
            if (bytes[i] >= 0x80)
                return PM_LOOK_DEFER;
    if (length > 2) {
        if (look->end_length || length > PM_LONGEST_NAME || (length >= 8 && memcmp(name, "pairtree", 8) == 0))
            return PM_LOOK_DEFER;
        const int kind = pm_entry_kind(directory, name, type);
        if (kind == PM_IS_LINK && follow) {
            struct stat status;
            if (fstatat(directory, name, &status, 0) != 0 || !S_ISDIR(status.st_mode))
                return PM_LOOK_DEFER;
        } else if (kind != PM_IS_DIRECTORY) {
            return PM_LOOK_DEFER;
        }
        memcpy(look->end, name, (size_t)length);
        look->end_length = length;
        return 0;
    }
    if (is_morty || pm_entry_kind(directory, name, type) != PM_IS_DIRECTORY)
        return PM_LOOK_DEFER;
    if (pm_reserve_items(&look->below, &look->capacity, look->count + 1, sizeof *look->below) < 0)
        return PM_NO_MEMORY;
    look->below[look->count++] = (uint16_t)(bytes[0] << 8 | bytes[1]);
    return 0;
}

/* Reads the directory `path` below `root`. Returns 0, PM_LOOK_DEFER or PM_NO_MEMORY. */
static int pm_look_into(pm_look *look, int root, const char *path, int is_morty, int follow, char *buffer)
{
    look->count = look->end_length = 0;
    pm_directory directory;
    if (pm_open_directory(&directory, root, path, 0, buffer) < 0)
        return PM_LOOK_DEFER;
    int status = 0, type = 0;
    const char *name;
    while (status == 0 && (name = pm_next_entry(&directory, &type)) != NULL)
        status = pm_take_entry(look, directory.descriptor, name, type, is_morty, follow);
    if (status == 0 && directory.failed)
        status = PM_LOOK_DEFER;
    pm_close_directory(&directory);
    if (status != 0)
        return status;
    return look->end_length || look->count ? 0 : PM_LOOK_DEFER;
}

#endif

static int pm_descending(const void *one, const void *other)
{
    return (int)*(const uint16_t *)other - (int)*(const uint16_t *)one;
}

static void pm_sort_descending(uint16_t *names, int64_t count)
{
    if (count > 32) {
        qsort(names, (size_t)count, sizeof *names, pm_descending);
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        const uint16_t name = names[i];
        int64_t at = i;
        for (; at > 0 && names[at - 1] < name; at--)
            names[at] = names[at - 1];
        names[at] = name;
    }
}

/* Adds the directories below `path`: the first name is next, so it is added last. */
static int pm_wait_below(pm_waiting *waiting, const pm_bytes *path, pm_look *look)
{
    pm_sort_descending(look->below, look->count);
    for (int64_t i = 0; i < look->count; i++) {
        const uint8_t name[2] = {(uint8_t)(look->below[i] >> 8), (uint8_t)(look->below[i] & 0xff)};
        if (pm_wait(waiting, path->data, path->size - 1, name, name[1] ? 2 : 1) < 0)
            return PM_NO_MEMORY;
    }
    return 0;
}

/* The state of a call. */
typedef struct {
    pm_look look;
    pm_waiting waiting;
    pm_bytes path;
    char *buffer;
} pm_scan;

static void pm_free_scan(pm_scan *scan)
{
    free(scan->look.below);
    pm_free_waiting(&scan->waiting);
    pm_free_bytes(&scan->path);
    free(scan->buffer);
}

static int pm_scan_next(pm_scan *scan, int root, int follow, pm_column *places, pm_column *names)
{
    if (pm_next(&scan->waiting, &scan->path) < 0)
        return PM_NO_MEMORY;
    const pm_bytes *path = &scan->path;
    const int64_t length = path->size - 1;
    int status = PM_LOOK_DEFER;
#if PM_CAN_SCAN
    const int is_morty = length == 1 || (length > 1 && path->data[length - 2] == '/');
    /* A path with a NUL would refer to another directory. */
    if (root >= 0 && memchr(path->data, 0, (size_t)length) == NULL)
        status = pm_look_into(&scan->look, root, (const char *)path->data, is_morty, follow, scan->buffer);
#else
    (void)root;
    (void)follow;
#endif
    if (status < 0)
        return status;
    if (status == PM_LOOK_DEFER || scan->look.end_length) {
        if (pm_append(&places->bytes, path->data, length) < 0)
            return PM_NO_MEMORY;
        pm_end_item(places);
        if (status == 0 && pm_append(&names->bytes, scan->look.end, scan->look.end_length) < 0)
            return PM_NO_MEMORY;
        pm_end_item(names);
    }
    return status == 0 ? pm_wait_below(&scan->waiting, path, &scan->look) : 0;
}

int pm_scan_pairtree(const char *top, const pm_column *paths, int follow, int64_t budget, pm_column *places,
                     pm_column *names, pm_column *rest)
{
    const int64_t latest = pm_now() + PM_TURN;
    pm_scan scan;
    memset(&scan, 0, sizeof scan);
    int status = pm_new_column(places, budget, 32 * budget);
    if (status == 0)
        status = pm_new_column(names, budget, 16 * budget);
    if (status == 0 && (scan.buffer = (char *)malloc(PM_ENTRIES_SIZE)) == NULL)
        status = PM_NO_MEMORY;
    for (int64_t index = paths->count - 1; index >= 0 && status == 0; index--)
        status = pm_wait(&scan.waiting, paths->bytes.data + paths->offsets[index],
                         paths->offsets[index + 1] - paths->offsets[index], NULL, 0);
#if PM_CAN_SCAN
    const int root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
#else
    const int root = -1;
    (void)top;
#endif
    while (status == 0 && scan.waiting.count && budget-- > 0) {
        status = pm_scan_next(&scan, root, follow, places, names);
        if (pm_now() > latest)
            break;
    }
#if PM_CAN_SCAN
    if (root >= 0)
        close(root);
#endif
    if (status == 0)
        status = pm_new_column(rest, scan.waiting.count, scan.waiting.bytes.size);
    while (status == 0 && scan.waiting.count) {
        status = pm_next(&scan.waiting, &scan.path);
        if (status == 0)
            status = pm_append(&rest->bytes, scan.path.data, scan.path.size - 1);
        if (status == 0)
            pm_end_item(rest);
    }
    pm_free_scan(&scan);
    return status;
}
