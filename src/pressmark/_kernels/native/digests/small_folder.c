#include "small_folder.h"

#include "../shared/clock.h"
#include "../shared/directories.h"

#if PM_CAN_SCAN
#define TO_READ -2 /* the number of a file that has not been read */
#define PATIENCE 500000000 /* nanoseconds */
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

typedef struct {
    pm_folder *folder;
    const char *skip;
    uint8_t *data;
    int64_t end, room;
    dev_t device;
    int64_t latest; /* time in nanoseconds when the next file is not read any more */
    /* The open directories: a mount can lead back to one of them. */
    ino_t inodes[PM_FOLDER_DEPTH];
    char entries[PM_ENTRIES_SIZE];
} reading;

uint32_t pm_folder_key(const char *path, size_t length)
{
    uint32_t key = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) {
        const uint8_t byte = (uint8_t)path[i];
        key = (key ^ (byte >= 'A' && byte <= 'Z' ? byte | 0x20u : byte)) * 16777619u;
    }
    return key;
}

/* Adds the path of a directory entry. Returns NULL if the path is not plain or collides with another one. */
static pm_folder_entry *add_entry(pm_folder *folder, const char *above, size_t length, const char *name)
{
    const size_t more = strlen(name), whole = length + more;
    pm_folder_entry *entry;
    char *path = folder->names + folder->named;
    if (folder->count == PM_FOLDER_ENTRIES || folder->named + whole + 2 > PM_FOLDER_NAMES) return NULL;
    for (size_t i = 0; i < more; i++) {
        const uint8_t byte = (uint8_t)name[i];
        if (byte < 0x20 || byte > 0x7e || byte == '%' || byte == '\\') return NULL;
    }
    memcpy(path, above, length);
    memcpy(path + length, name, more + 1);
    entry = &folder->entry[folder->count];
    entry->path = path;
    entry->length = (uint32_t)whole;
    entry->key = pm_folder_key(path, whole);
    entry->file = -1;
    for (int i = 0; i < folder->count; i++)
        if (folder->entry[i].key == entry->key) return NULL;
    folder->named += whole + 1;
    folder->count++;
    return entry;
}

static int read_file(reading *run, int directory, const char *name, pm_folder_entry *entry)
{
    struct stat before;
    pm_small small;
    if (!run->data) {
        if (fstatat(directory, name, &before, AT_SYMLINK_NOFOLLOW) || !S_ISREG(before.st_mode)) return 0;
        small.size = before.st_size;
        small.mtime = pm_time_of(PM_MTIME(before));
        small.inode = (uint64_t)before.st_ino;
    } else if (run->end + PM_SMALL_MOST + 1 > run->room || pm_now() > run->latest
               || pm_small_read_at(directory, name, OPEN_FILE, &before, run->data + run->end, &small) != PM_SMALL_DONE) {
        return 0;
    }
    entry->file = run->folder->files++;
    entry->begin = run->end;
    entry->size = small.size;
    entry->mtime = small.mtime;
    entry->inode = small.inode;
    run->end += small.size;
    return 1;
}

static int read_folder(reading *run, int at, const char *name, int flags, const char *above, size_t length, int depth);

/* Reads a directory in the open directory `descriptor`. Later paths start with a copy of its path and a slash. */
static int read_below(reading *run, int descriptor, const pm_folder_entry *entry, size_t length, int depth)
{
    pm_folder *folder = run->folder;
    char *path = folder->names + folder->named;
    if (folder->named + entry->length + 2 > PM_FOLDER_NAMES) return 0;
    memcpy(path, entry->path, entry->length);
    path[entry->length] = '/';
    folder->named += entry->length + 1;
    return read_folder(run, descriptor, entry->path + length, O_NOFOLLOW, path, entry->length + 1, depth + 1);
}

/* Reads a directory: all its entries, then its files, then the directories in it. `above` is its path with a slash at the end. */
static int read_folder(reading *run, int at, const char *name, int flags, const char *above, size_t length, int depth)
{
    struct stat status;
    pm_directory directory;
    const int first = run->folder->count;
    int fine, last, type = 0;
    if (depth == PM_FOLDER_DEPTH || pm_open_directory(&directory, at, name, flags, run->entries)) return 0;
    fine = !fstat(directory.descriptor, &status);
    if (fine && !depth) run->device = status.st_dev;
    fine = fine && status.st_dev == run->device;
    for (int i = 0; fine && i < depth; i++) fine = run->inodes[i] != status.st_ino;
    if (fine) run->inodes[depth] = status.st_ino;
    while (fine && (name = pm_next_entry(&directory, &type))) {
        pm_folder_entry *added;
        if (!depth && run->skip && !strcmp(name, run->skip)) continue;
        added = add_entry(run->folder, above, length, name);
        fine = added && (type == DT_DIR || type == DT_REG);
        if (fine && type == DT_REG) added->file = TO_READ;
    }
    fine = fine && !directory.failed;
    last = run->folder->count;
    for (int i = first; fine && i < last; i++) {
        pm_folder_entry *entry = &run->folder->entry[i];
        if (entry->file == TO_READ) fine = read_file(run, directory.descriptor, entry->path + length, entry);
    }
    for (int i = first; fine && i < last; i++)
        if (run->folder->entry[i].file < 0) fine = read_below(run, directory.descriptor, &run->folder->entry[i], length, depth);
    pm_close_directory(&directory);
    return fine;
}

int64_t pm_folder_read(pm_folder *folder, int at, const char *path, const char *skip, uint8_t *data, int64_t begin, int64_t room)
{
    reading run;
    folder->count = folder->files = 0;
    folder->named = 0;
    run.folder = folder;
    run.skip = skip;
    run.data = data;
    run.end = begin;
    run.room = room;
    run.latest = data ? pm_now() + PATIENCE : 0;
    /* The directory itself may be named by a link. */
    return read_folder(&run, at, path, 0, "", 0, 0) ? run.end : -1;
}

#else

int64_t pm_folder_read(pm_folder *folder, int at, const char *path, const char *skip, uint8_t *data, int64_t begin, int64_t room)
{
    (void)folder, (void)at, (void)path, (void)skip, (void)data, (void)begin, (void)room;
    return -1;
}

uint32_t pm_folder_key(const char *path, size_t length)
{
    (void)path, (void)length;
    return 0;
}

#endif
