#include "tree_sizes.h"

#include "../shared/clock.h"
#include "../shared/directories.h"
#include "../shared/times.h"

#define PM_BLOCK 4096

enum { PM_TREE_DEFER = 1 };

/* The state of a call. */
typedef struct {
    pm_waiting waiting;
    pm_bytes path; /* of the tree, then of the directory that is read, relative to the tree; each with its NUL */
    pm_bytes *names, *stamps;
    char *buffer;
} pm_measuring;

#if PM_CAN_SCAN

/* Returns 0 or PM_NO_MEMORY. */
static int pm_add_file(pm_measuring *state, pm_tree_size *size, const struct stat *status)
{
    const pm_time modified = pm_time_of(PM_MTIME(*status)), changed = pm_time_of(PM_CTIME(*status));
    const int64_t stamp[PM_STAMP] = {status->st_size, modified.seconds, modified.nanoseconds, changed.seconds,
                                     changed.nanoseconds};
    size->files += 1;
    size->bytes += status->st_size;
    size->blocks += (status->st_size + PM_BLOCK - 1) / PM_BLOCK * PM_BLOCK;
    return pm_append(state->stamps, (const uint8_t *)stamp, sizeof stamp) < 0 ? PM_NO_MEMORY : 0;
}

/* Adds a file, or a directory to read. Returns 0, PM_TREE_DEFER or PM_NO_MEMORY. */
static int pm_measure_entry(pm_measuring *state, pm_tree_size *size, int directory, const char *name, int type)
{
    const int64_t prefix = state->path.size - 1, length = (int64_t)strlen(name);
    int is_directory = 0;
#if defined(DT_DIR)
    is_directory = type == DT_DIR;
#else
    (void)type;
#endif
    if (!is_directory) {
        struct stat status;
        if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            return PM_TREE_DEFER;
        if (S_ISDIR(status.st_mode))
            is_directory = 1;
        else if (!S_ISREG(status.st_mode))
            return PM_TREE_DEFER;
        else if (pm_add_file(state, size, &status) < 0)
            return PM_NO_MEMORY;
    }
    if (is_directory)
        return pm_wait(&state->waiting, state->path.data, prefix, (const uint8_t *)name, length);
    if (prefix && (pm_append(state->names, state->path.data, prefix) < 0 || pm_append(state->names, "/", 1) < 0))
        return PM_NO_MEMORY;
    return pm_append(state->names, name, length + 1);
}

/* Reads an open directory. Returns 0, PM_TREE_DEFER or PM_NO_MEMORY. */
static int pm_measure_directory(pm_measuring *state, pm_tree_size *size, pm_directory *directory)
{
    const int64_t files = size->files;
    int status = 0, type = 0, is_empty = 1;
    const char *name;
    while (status == 0 && (name = pm_next_entry(directory, &type)) != NULL) {
        is_empty = 0;
        status = pm_measure_entry(state, size, directory->descriptor, name, type);
    }
    if (status == 0 && (directory->failed || is_empty))
        status = PM_TREE_DEFER;
    size->directories += size->files > files;
    return status;
}

/* Measures the tree at `path`. Returns 0, PM_TREE_DEFER or PM_NO_MEMORY. */
static int pm_measure_tree(pm_measuring *state, const char *path, pm_tree_size *size)
{
    pm_directory top, directory;
    if (pm_open_directory(&top, AT_FDCWD, path, 0, state->buffer) < 0)
        return PM_TREE_DEFER;
    memset(size, 0, sizeof *size);
    state->waiting.count = state->waiting.bytes.size = 0;
    state->path.size = 1; /* empty, with its NUL */
    int status = pm_measure_directory(state, size, &top);
    while (status == 0 && state->waiting.count) {
        if ((status = pm_next(&state->waiting, &state->path)) != 0)
            break;
        status = pm_open_directory(&directory, top.descriptor, (const char *)state->path.data, 0, state->buffer);
        if (status == 0) {
            status = pm_measure_directory(state, size, &directory);
            pm_close_directory(&directory);
        } else {
            status = PM_TREE_DEFER;
        }
    }
    pm_close_directory(&top);
    return status;
}

#else

static int pm_measure_tree(pm_measuring *state, const char *path, pm_tree_size *size)
{
    (void)state;
    (void)path;
    (void)size;
    return PM_TREE_DEFER;
}

#endif

static int pm_measure_item(pm_measuring *state, const pm_column *tops, int64_t index, pm_tree_size *size)
{
    const int64_t start = state->names->size, first = state->stamps->size;
    const int64_t length = tops->offsets[index + 1] - tops->offsets[index];
    state->path.size = 0;
    if (pm_append(&state->path, tops->bytes.data + tops->offsets[index], length) < 0 ||
        pm_append(&state->path, "", 1) < 0)
        return PM_NO_MEMORY;
    int status = PM_TREE_DEFER;
    /* A path with a NUL would refer to another directory. */
    if (strlen((const char *)state->path.data) == (size_t)length)
        status = pm_measure_tree(state, (const char *)state->path.data, size);
    if (status == PM_TREE_DEFER) {
        size->files = -1;
        state->names->size = start;
        state->stamps->size = first;
    }
    return status < 0 ? status : 0;
}

int64_t pm_tree_sizes(const pm_column *tops, pm_tree_size *sizes, pm_column *names, pm_column *stamps)
{
    const int64_t latest = pm_now() + PM_TURN;
    int64_t index = 0;
    pm_measuring state;
    memset(&state, 0, sizeof state);
    if (pm_new_column(names, tops->count, 64 * tops->count) < 0 ||
        pm_new_column(stamps, tops->count, 64 * tops->count) < 0)
        return PM_NO_MEMORY;
    state.names = &names->bytes;
    state.stamps = &stamps->bytes;
    state.buffer = (char *)malloc(PM_ENTRIES_SIZE);
    int status = state.buffer == NULL ? PM_NO_MEMORY : 0;
    while (index < tops->count && status == 0 && (!index || pm_now() < latest)) {
        status = pm_measure_item(&state, tops, index, &sizes[index]);
        pm_end_item(names);
        pm_end_item(stamps);
        index++;
    }
    pm_free_waiting(&state.waiting);
    pm_free_bytes(&state.path);
    free(state.buffer);
    return status < 0 ? status : index;
}
