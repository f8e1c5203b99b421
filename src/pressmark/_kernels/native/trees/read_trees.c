#include "read_trees.h"

#include "../shared/clock.h"
#include "../shared/directories.h"
#include "../shared/times.h"

#include <errno.h>

static pm_tree *pm_begin_tree(pm_trees *trees, int state, int error)
{
    if (pm_reserve_items(&trees->trees, &trees->capacity, trees->count + 1, sizeof *trees->trees) < 0)
        return NULL;
    pm_tree *tree = &trees->trees[trees->count];
    memset(tree, 0, sizeof *tree);
    tree->state = state;
    tree->error = error;
    tree->path = trees->paths.size;
    tree->length = trees->top.size;
    tree->files = trees->files.count;
    tree->directories = trees->directories.count;
    tree->others = trees->others.count;
    if (pm_append(&trees->paths, trees->top.data, trees->top.size) < 0)
        return NULL;
    trees->count++;
    return tree;
}

/* Adds a tree without entries. Returns 0 or PM_NO_MEMORY. */
static int pm_add_tree(pm_trees *trees, int state, int error)
{
    return pm_begin_tree(trees, state, error) == NULL ? PM_NO_MEMORY : 0;
}

#if PM_CAN_SCAN

/* The end of a tree, beside 0 and PM_NO_MEMORY: a limit is exceeded; it takes too long; a directory cannot be read (errno). */
enum { PM_LIMIT = 1, PM_LATE, PM_CLOSED };
/* A directory, beside the kinds of other entries. */
enum { PM_IS_FILE = 16, PM_IS_DIRECTORY };

#define PM_OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#if defined(O_PATH)
#define PM_PATH_ONLY O_PATH
#else
#define PM_PATH_ONLY O_RDONLY
#endif

/* --- rows ---------------------------------------------------------------------------------------------------- */

/* Adds a row with the current path. The pointer is valid until the next row. */
static pm_tree_row *pm_add_row(pm_trees *trees, pm_tree_rows *rows)
{
    if (pm_reserve_items(&rows->list, &rows->capacity, rows->count + 1, sizeof *rows->list) < 0)
        return NULL;
    pm_tree_row *row = &rows->list[rows->count];
    memset(row, 0, sizeof *row);
    row->path = trees->paths.size;
    row->length = trees->inside.size;
    if (pm_append(&trees->paths, trees->inside.data, trees->inside.size) < 0)
        return NULL;
    rows->count++;
    return row;
}

static int pm_add_other(pm_trees *trees, int kind, int error)
{
    pm_tree_row *row = pm_add_row(trees, &trees->others);
    if (row == NULL)
        return PM_NO_MEMORY;
    row->state = kind;
    row->error = error;
    return 0;
}

/* Returns 0, or PM_LIMIT if the time is beyond 64 bits. */
static int pm_nanoseconds(struct timespec time, int64_t *found)
{
    int64_t seconds = (int64_t)time.tv_sec, rest = (int64_t)time.tv_nsec;
    if (seconds < 0) { /* the product alone may be too small */
        seconds += 1;
        rest -= 1000000000;
    }
    return __builtin_mul_overflow(seconds, INT64_C(1000000000), &seconds) || __builtin_add_overflow(seconds, rest, found)
             ? PM_LIMIT
             : 0;
}

static int pm_set_status(pm_tree_row *row, const struct stat *status)
{
    row->size = (int64_t)status->st_size;
    row->links = (int64_t)status->st_nlink;
    row->inode = (uint64_t)status->st_ino;
    row->mode = (uint32_t)status->st_mode;
    return pm_nanoseconds(PM_MTIME(*status), &row->mtime) || pm_nanoseconds(PM_CTIME(*status), &row->ctime) ? PM_LIMIT : 0;
}

/* --- files --------------------------------------------------------------------------------------------------- */

/* Reads `most` bytes, the whole content or its beginning, at the end of the data. Returns a state, with errno. */
static int pm_read_bytes(pm_trees *trees, int file, const struct stat *before, int64_t most)
{
    uint8_t *data = trees->data.data + trees->data.size;
    const int is_whole = most == (int64_t)before->st_size;
    int64_t done = 0;
    do {
        /* One byte more than expected, to detect a file that has grown without a second read. */
        const ssize_t got = read(file, data + done, (size_t)(most + is_whole - done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return PM_FILE_UNREADABLE;
        if (got == 0)
            break;
        done += got;
    } while (done < most);
    if (done == most && trees->wanted->twice) {
        struct stat after;
        if (fstat(file, &after) != 0)
            return PM_FILE_UNREADABLE;
        if (after.st_size != before->st_size
            || !pm_is_same_time(pm_time_of(PM_MTIME(after)), pm_time_of(PM_MTIME(*before))))
            return PM_FILE_CHANGING;
    }
    return done == most ? PM_FILE_WHOLE : PM_FILE_CHANGING;
}

static int pm_read_content(pm_trees *trees, pm_tree_row *row, int file, const struct stat *before, int64_t most)
{
    if (most > trees->wanted->file) {
        row->state = PM_FILE_LARGE;
        return 0;
    }
    if (most > trees->total)
        return PM_LIMIT;
    trees->total -= most;
    if (pm_reserve(&trees->data, most + 1) < 0
        || pm_reserve_items(&trees->offsets, &trees->offsets_capacity, trees->contents + 2, sizeof *trees->offsets) < 0)
        return PM_NO_MEMORY;
    row->state = pm_read_bytes(trees, file, before, most);
    row->error = row->state == PM_FILE_UNREADABLE ? errno : 0;
    if (row->state == PM_FILE_WHOLE) {
        trees->offsets[0] = 0;
        row->content = trees->contents++;
        trees->data.size += most;
        trees->offsets[trees->contents] = trees->data.size;
    }
    return 0;
}

static int pm_is_first_wanted(const pm_wanted *wanted, const char *name)
{
    for (int64_t i = 0; i < wanted->prefixes_count; i++) {
        const char *prefix = wanted->prefixes[i];
        const size_t length = strcspn(prefix, "/");
        if (strncmp(name, prefix, length) == 0 && (prefix[length] == 0 || name[length] == 0))
            return 1;
    }
    return 0;
}

/* Sets the row of a file that is not opened. */
static int pm_look_at_file(pm_tree_row *row, int directory, const char *name)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        row->error = row->error ? row->error : errno;
        row->state = PM_FILE_UNREADABLE;
        return 0;
    }
    if (S_ISREG(status.st_mode))
        return pm_set_status(row, &status);
    if (row->state != PM_FILE_UNREADABLE)
        row->state = PM_FILE_CHANGING;
    return 0;
}

static int pm_read_file(pm_trees *trees, int directory, const char *name)
{
    const pm_wanted *wanted = trees->wanted;
    const int is_first = pm_is_first_wanted(wanted, name);
    struct stat status;
    int file, ended = 0;
    pm_tree_row *row = pm_add_row(trees, &trees->files);
    if (row == NULL)
        return PM_NO_MEMORY;
    row->content = -1;
    row->state = PM_FILE_UNWANTED;
    if (!is_first && wanted->content == PM_CONTENT_NAMES)
        return 0;
    if (!is_first && wanted->content == PM_CONTENT_NONE)
        return pm_look_at_file(row, directory, name);
    do
        file = openat(directory, name, PM_OPEN_FILE);
    while (file < 0 && errno == EINTR);
    if (file < 0) {
        row->state = PM_FILE_UNREADABLE;
        row->error = errno;
        return pm_look_at_file(row, directory, name);
    }
    if (fstat(file, &status) != 0) {
        row->state = PM_FILE_UNREADABLE;
        row->error = errno;
    } else if (!S_ISREG(status.st_mode)) {
        row->state = PM_FILE_CHANGING;
    } else if ((ended = pm_set_status(row, &status)) == 0 && (is_first || wanted->content == PM_CONTENT_ALL)) {
        const int64_t size = (int64_t)status.st_size;
        ended = pm_read_content(trees, row, file, &status,
                                is_first && wanted->first > 0 && wanted->first < size ? wanted->first : size);
    }
    close(file);
    return ended;
}

/* --- directories --------------------------------------------------------------------------------------------- */

static int pm_kind_of(int directory, const char *name, int type)
{
    struct stat status;
#if defined(DT_REG)
    switch (type) {
    case DT_REG: return PM_IS_FILE;
    case DT_DIR: return PM_IS_DIRECTORY;
    case DT_LNK: return PM_OTHER_LINK;
    case DT_UNKNOWN: break;
    default: return PM_OTHER_SPECIAL;
    }
#else
    (void)type;
#endif
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return PM_OTHER_SPECIAL;
    return S_ISREG(status.st_mode) ? PM_IS_FILE
         : S_ISDIR(status.st_mode) ? PM_IS_DIRECTORY
         : S_ISLNK(status.st_mode) ? PM_OTHER_LINK
                                   : PM_OTHER_SPECIAL;
}

static int pm_compare_names(const void *one, const void *other)
{
    return strcmp(((const pm_tree_name *)one)->name, ((const pm_tree_name *)other)->name);
}

static const char *pm_name(const pm_trees *trees, int64_t index)
{
    return (const char *)trees->names.data + trees->listed[index].at;
}

static int pm_add_name(pm_trees *trees, const char *name, int kind)
{
    if (pm_reserve_items(&trees->listed, &trees->listed_capacity, trees->listed_count + 1, sizeof *trees->listed) < 0)
        return PM_NO_MEMORY;
    const pm_tree_name entry = {trees->names.size, NULL, kind};
    trees->listed[trees->listed_count++] = entry;
    return pm_append(&trees->names, name, (int64_t)strlen(name) + 1);
}

/* Forgets the entries from `first` on, whose names begin at `start`. */
static void pm_drop_names(pm_trees *trees, int64_t first, int64_t start)
{
    trees->listed_count = first;
    trees->names.size = start;
}

/* Adds the entries of an open directory, sorted by name; PM_LIMIT if they are more than `most`. */
static int pm_list(pm_trees *trees, pm_directory *directory, const char *skip, int64_t most)
{
    const int64_t first = trees->listed_count;
    int type = 0, is_sorted = 1;
    const char *name;
    while ((name = pm_next_entry(directory, &type)) != NULL) {
        if (skip[0] && strcmp(name, skip) == 0)
            continue;
        if (trees->listed_count - first >= most)
            return PM_LIMIT;
        if (pm_add_name(trees, name, pm_kind_of(directory->descriptor, name, type)) < 0)
            return PM_NO_MEMORY;
    }
    if (directory->failed)
        return PM_CLOSED;
    for (int64_t i = first; i < trees->listed_count; i++) {
        trees->listed[i].name = pm_name(trees, i);
        is_sorted = is_sorted && (i == first || pm_compare_names(&trees->listed[i - 1], &trees->listed[i]) < 0);
    }
    if (!is_sorted)
        qsort(trees->listed + first, (size_t)(trees->listed_count - first), sizeof *trees->listed, pm_compare_names);
    return 0;
}

/* --- trees --------------------------------------------------------------------------------------------------- */

static int pm_read_entries(pm_trees *trees, int directory, int64_t first, int64_t level);

/* Adds the row of a directory, or another entry if it is on another file system. Returns whether its entries are to be read. */
static int pm_add_directory(pm_trees *trees, const struct stat *status, int *ended)
{
    pm_tree_row *row;
    if ((uint64_t)status->st_dev != trees->trees[trees->count - 1].device) {
        *ended = pm_add_other(trees, PM_OTHER_DEVICE, 0);
        return 0;
    }
    row = pm_add_row(trees, &trees->directories);
    *ended = row == NULL ? PM_NO_MEMORY : pm_set_status(row, status);
    return *ended == 0;
}

/* Reads a directory in a tree; `level` directories are above its entries. */
static int pm_read_directory(pm_trees *trees, int parent, const char *name, int64_t level)
{
    const int64_t first = trees->listed_count, start = trees->names.size;
    struct stat status;
    pm_directory directory;
    int ended = 0;
    if (!trees->wanted->inside) {
        if (trees->wanted->content == PM_CONTENT_NAMES) {
            pm_tree_row *row = pm_add_row(trees, &trees->directories);
            if (row != NULL)
                row->content = 1;
            return row == NULL ? PM_NO_MEMORY : 0;
        }
        if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            return pm_add_other(trees, PM_OTHER_CLOSED, errno);
        if (!S_ISDIR(status.st_mode))
            return pm_add_other(trees, PM_OTHER_CLOSED, ENOTDIR);
        if (pm_add_directory(trees, &status, &ended))
            trees->directories.list[trees->directories.count - 1].content = 1; /* not known to be empty */
        return ended;
    }
    if (level > trees->wanted->depth)
        return PM_LIMIT;
    if (pm_open_directory(&directory, parent, name, O_NOFOLLOW, trees->buffer) < 0)
        return pm_add_other(trees, PM_OTHER_CLOSED, errno);
    if (fstat(directory.descriptor, &status) != 0) {
        ended = pm_add_other(trees, PM_OTHER_CLOSED, errno);
    } else if (pm_add_directory(trees, &status, &ended)) {
        ended = pm_list(trees, &directory, "", trees->entries);
        const int64_t count = trees->listed_count - first;
        if (ended == PM_CLOSED) {
            const int error = errno;
            trees->directories.count--;
            ended = pm_add_other(trees, PM_OTHER_CLOSED, error);
        } else if (ended == 0) {
            trees->directories.list[trees->directories.count - 1].content = count;
            trees->entries -= count;
            ended = pm_append(&trees->inside, "/", 1);
            if (ended == 0)
                ended = pm_read_entries(trees, directory.descriptor, first, level);
        }
        pm_drop_names(trees, first, start);
    }
    pm_close_directory(&directory);
    return ended;
}

/* Reads the entries from `first` on, of a directory with `level` directories above them. */
static int pm_read_entries(pm_trees *trees, int directory, int64_t first, int64_t level)
{
    const int64_t last = trees->listed_count, length = trees->inside.size;
    int ended = 0;
    for (int64_t i = first; i < last && ended == 0; i++) {
        const char *name = pm_name(trees, i);
        if (pm_append(&trees->inside, name, (int64_t)strlen(name)) < 0)
            return PM_NO_MEMORY;
        const int kind = trees->listed[i].kind;
        if (pm_now() > trees->patience)
            ended = PM_LATE;
        else if (kind == PM_IS_FILE)
            ended = pm_read_file(trees, directory, name);
        else if (kind == PM_IS_DIRECTORY)
            ended = pm_read_directory(trees, directory, name, level + 1);
        else
            ended = pm_add_other(trees, kind, 0);
        trees->inside.size = length;
    }
    return ended;
}

/* Reads the tree of an open directory with the status `top`, whose entries begin at `first`. Returns PM_LATE if there is no time
 * left for it: it is then read by the next call, and is large if all the time of a call is too short. */
static int pm_read_tree(pm_trees *trees, int directory, const struct stat *top, int64_t first)
{
    const int64_t contents = trees->contents, size = trees->data.size;
    const int is_first = trees->count == 0;
    pm_tree *tree = pm_begin_tree(trees, PM_TREE_WHOLE, 0);
    int ended = tree == NULL ? PM_NO_MEMORY : pm_set_status(&tree->top, top);
    if (ended == 0) {
        if (is_first)
            trees->patience = pm_now() + 2 * PM_TURN;
        tree->device = (uint64_t)top->st_dev;
        trees->total = trees->wanted->total;
        trees->entries = trees->wanted->entries - (trees->listed_count - first);
        trees->inside.size = 0;
        ended = trees->entries < 0 ? PM_LIMIT : pm_read_entries(trees, directory, first, 0);
    }
    if (ended > 0) {
        tree = &trees->trees[trees->count - 1];
        const int64_t path = tree->path, length = tree->length;
        trees->files.count = tree->files;
        trees->directories.count = tree->directories;
        trees->others.count = tree->others;
        trees->contents = contents;
        trees->data.size = size;
        memset(&tree->top, 0, sizeof tree->top);
        tree->device = 0;
        tree->state = PM_TREE_LARGE;
        trees->paths.size = path + length;
        if (ended == PM_LATE && !is_first) {
            trees->count--;
            trees->paths.size = path;
            return PM_LATE;
        }
        ended = 0;
    }
    return ended;
}

/* --- directories above trees --------------------------------------------------------------------------------- */

/* Whether some of the names may differ in case only. */
static int pm_may_clash(const pm_trees *trees, int64_t first)
{
    if (trees->listed_count - first < 2)
        return 0;
    for (int64_t i = first; i < trees->listed_count; i++)
        for (const char *at = pm_name(trees, i); *at; at++)
            if ((unsigned char)*at >= 0x80 || (*at >= 'A' && *at <= 'Z'))
                return 1;
    return 0;
}

/* Whether a call returns before it reads the next tree or directory. */
static int pm_is_over(const pm_trees *trees)
{
    return trees->budget <= 0 || trees->data.size >= trees->wanted->together || pm_now() > trees->latest;
}

static int pm_descend(pm_trees *trees, int parent, const char *name, int flags, int64_t level);

/* Reads the directories from `first` on, in a directory above trees. */
static int pm_read_above(pm_trees *trees, int directory, int64_t first, int64_t level)
{
    const int64_t last = trees->listed_count, length = trees->top.size;
    int64_t i = first;
    int ended = 0;
    for (; i < last && !pm_is_over(trees); i++) {
        const char *name = pm_name(trees, i);
        if ((length && pm_append(&trees->top, "/", 1) < 0) || pm_append(&trees->top, name, (int64_t)strlen(name)) < 0)
            return PM_NO_MEMORY;
        ended = pm_descend(trees, directory, name, O_NOFOLLOW, level);
        trees->top.size = length;
        if (ended != 0)
            break;
    }
    if (ended < 0 || i == last)
        return ended;
    /* PM_LATE, or over: the other names are the rest. */
    if (pm_add_tree(trees, PM_TREE_REST, 0) < 0)
        return PM_NO_MEMORY;
    for (; i < last; i++) {
        const char *name = pm_name(trees, i);
        trees->inside.size = 0;
        if (pm_append(&trees->inside, name, (int64_t)strlen(name)) < 0 || pm_add_row(trees, &trees->directories) == NULL)
            return PM_NO_MEMORY;
    }
    return 0;
}

/* Reads the directory `name`, at `level` below a given one: the tree that begins there, or those below it. */
static int pm_descend(pm_trees *trees, int parent, const char *name, int flags, int64_t level)
{
    const pm_wanted *wanted = trees->wanted;
    const int64_t first = trees->listed_count, start = trees->names.size;
    const int has_marker = wanted->marker[0] != 0;
    struct stat status;
    pm_directory directory;
    trees->budget--;
    if (pm_open_directory(&directory, parent, name, flags, trees->buffer) < 0)
        return pm_add_tree(trees, PM_TREE_UNREADABLE, errno);
    /* The status of a tree is older than its entries; most directories above trees need none. */
    int ended = !has_marker && fstat(directory.descriptor, &status) != 0 ? PM_CLOSED : 0;
    if (ended == 0)
        ended = pm_list(trees, &directory, wanted->skip, has_marker ? INT64_MAX : wanted->entries);
    int is_tree = !has_marker, is_plain = trees->listed_count > first;
    for (int64_t i = first; ended == 0 && has_marker && i < trees->listed_count; i++) {
        const int kind = trees->listed[i].kind;
        is_tree |= kind == PM_IS_FILE && strncmp(pm_name(trees, i), wanted->marker, strlen(wanted->marker)) == 0;
        is_plain &= kind == PM_IS_DIRECTORY;
    }
    if (ended == 0 && has_marker && is_tree && fstat(directory.descriptor, &status) != 0)
        ended = PM_CLOSED;
    if (ended == PM_CLOSED)
        ended = pm_add_tree(trees, PM_TREE_UNREADABLE, errno);
    else if (ended == PM_LIMIT)
        ended = pm_add_tree(trees, PM_TREE_LARGE, 0);
    else if (ended == 0 && is_tree)
        ended = pm_read_tree(trees, directory.descriptor, &status, first);
    else if (ended == 0 && (!is_plain || level >= wanted->depth || (wanted->clashes && pm_may_clash(trees, first))))
        ended = pm_add_tree(trees, PM_TREE_ODD, 0);
    else if (ended == 0)
        ended = pm_read_above(trees, directory.descriptor, first, level + 1);
    pm_drop_names(trees, first, start);
    pm_close_directory(&directory);
    trees->budget += ended == PM_LATE;
    return ended;
}

/* Opens the directory above the last name of a path below `top`, and sets the name. Returns a descriptor, or -1 with errno. */
static int pm_open_above(int top, const char *path, char name[256])
{
    int at = top;
    strcpy(name, ".");
    for (;;) {
        path += strspn(path, "/");
        const size_t length = strcspn(path, "/");
        int error = 0, next = -1;
        if (length == 0)
            return at;
        if (length > 255 || (length == 2 && path[0] == '.' && path[1] == '.')) {
            error = length > 255 ? ENAMETOOLONG : EINVAL;
        } else if (length > 1 || path[0] != '.') {
            if (strcmp(name, ".") != 0) {
                next = openat(at, name, PM_PATH_ONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                error = next < 0 ? errno : 0;
                if (at != top)
                    close(at);
                at = next;
            }
            memcpy(name, path, length);
            name[length] = 0;
        }
        if (error) {
            if (at != top && at >= 0)
                close(at);
            errno = error;
            return -1;
        }
        path += length;
    }
}

/* Reads a given name below `top`, or the path itself if `top` is AT_FDCWD. */
static int pm_read_name(pm_trees *trees, int top, const pm_tree_path *path)
{
    char name[256];
    if (memchr(path->text, 0, (size_t)path->length) != NULL)
        return pm_add_tree(trees, PM_TREE_UNREADABLE, EINVAL);
    if (top == AT_FDCWD)
        return pm_descend(trees, top, path->text, 0, 0);
    const int above = pm_open_above(top, path->text, name);
    if (above < 0)
        return pm_add_tree(trees, PM_TREE_UNREADABLE, errno);
    const int ended = pm_descend(trees, above, name, O_NOFOLLOW, 0);
    if (above != top)
        close(above);
    return ended;
}

static int64_t pm_read_names(pm_trees *trees, const char *path, const pm_tree_path *names, int64_t count)
{
    int64_t i = 0;
    int ended = 0;
    const int top = path[0] ? open(path, PM_PATH_ONLY | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD, error = errno;
    trees->latest = pm_now() + PM_TURN;
    trees->patience = trees->latest + PM_TURN;
    trees->buffer = (char *)malloc(PM_ENTRIES_SIZE);
    if (trees->buffer == NULL)
        ended = PM_NO_MEMORY;
    for (; i < count && ended == 0 && (i == 0 || !pm_is_over(trees)); i++) {
        trees->top.size = 0;
        if (pm_append(&trees->top, names[i].text, names[i].length) < 0)
            ended = PM_NO_MEMORY;
        else
            ended = top < 0 && top != AT_FDCWD ? pm_add_tree(trees, PM_TREE_UNREADABLE, error)
                                               : pm_read_name(trees, top, &names[i]);
    }
    if (top >= 0)
        close(top);
    return ended < 0 ? PM_NO_MEMORY : ended == PM_LATE ? i - 1 : i;
}

#else

/* Every tree is left to other means. */
static int64_t pm_read_names(pm_trees *trees, const char *path, const pm_tree_path *names, int64_t count)
{
    (void)path;
    for (int64_t i = 0; i < count; i++) {
        trees->top.size = 0;
        if (pm_append(&trees->top, names[i].text, names[i].length) < 0
            || pm_add_tree(trees, trees->wanted->marker[0] ? PM_TREE_ODD : PM_TREE_LARGE, 0) < 0)
            return PM_NO_MEMORY;
    }
    return count;
}

#endif

int64_t pm_read_trees(pm_trees *trees, const pm_wanted *wanted, const char *top, const pm_tree_path *names, int64_t count)
{
    trees->wanted = wanted;
    trees->budget = wanted->budget;
    const int64_t begun = pm_read_names(trees, top, names, count);
    trees->wanted = NULL;
    free(trees->listed);
    free(trees->buffer);
    trees->listed = NULL;
    trees->buffer = NULL;
    pm_free_bytes(&trees->top);
    pm_free_bytes(&trees->inside);
    pm_free_bytes(&trees->names);
    return begun;
}

void pm_free_trees(pm_trees *trees)
{
    free(trees->trees);
    free(trees->files.list);
    free(trees->directories.list);
    free(trees->others.list);
    free(trees->offsets);
    pm_free_bytes(&trees->paths);
    pm_free_bytes(&trees->data);
    memset(trees, 0, sizeof *trees);
}
