#include "ocfl/scan.h"

#include "shared/clock.h"
#include "shared/directories.h"
#include "shared/text.h"

#define PM_OCFL_HEAD 4096 /* bytes that nearly always contain the identifier */
/* So many bytes are hashed together. More would leave the caches. */
#define PM_OCFL_TOGETHER (INT64_C(1) << 20)
/* Larger inventories and files are deferred, and so are objects with more content. */
#define PM_OCFL_FILE (INT64_C(1) << 20)
#define PM_OCFL_BYTES (INT64_C(4) << 20)
#define PM_OCFL_FILES 4096
#define PM_OCFL_DEPTH 64 /* open directories */

enum { PM_OCFL_DEFER = 1 };
enum { PM_OCFL_IS_OTHER = 0, PM_OCFL_IS_FILE, PM_OCFL_IS_DIRECTORY };

#define PM_OCFL_INVENTORY "inventory.json"
#define PM_OCFL_SIDECAR "inventory.json.sha512"

/* --- results ------------------------------------------------------------------------------------------------- */

static int pm_ocfl_put_entry(pm_ocfl_scan *scan, const char *name, int kind)
{
    if (pm_reserve_items(&scan->entries, &scan->entries_capacity, scan->entries_count + 1, sizeof *scan->entries) < 0)
        return PM_NO_MEMORY;
    pm_ocfl_entry *entry = &scan->entries[scan->entries_count];
    entry->at = scan->names.size;
    entry->kind = kind;
    if (pm_append(&scan->names, name, (int64_t)strlen(name) + 1) < 0)
        return PM_NO_MEMORY;
    scan->entries_count++;
    return 0;
}

static int pm_ocfl_put_text(pm_bytes *to, const void *bytes, int64_t size, pm_ocfl_text *text)
{
    text->at = to->size;
    text->size = size;
    return pm_append(to, bytes, size);
}

/* Begins an item whose place is the current path. */
static pm_ocfl_item *pm_ocfl_put_item(pm_ocfl_scan *scan, int kind)
{
    if (pm_reserve_items(&scan->items, &scan->items_capacity, scan->items_count + 1, sizeof *scan->items) < 0)
        return NULL;
    pm_ocfl_item *item = &scan->items[scan->items_count];
    memset(item, 0, sizeof *item);
    item->kind = kind;
    if (pm_ocfl_put_text(&scan->text, scan->path.data, scan->path.size, &item->place) < 0)
        return NULL;
    scan->items_count++;
    return item;
}

#if !PM_CAN_SCAN

static int pm_ocfl_read_names(pm_ocfl_scan *scan, const char *top)
{
    (void)scan, (void)top;
    return PM_OCFL_DEFER;
}

#else

#ifdef __APPLE__
#define PM_OCFL_MTIME(status) ((status).st_mtimespec)
#else
#define PM_OCFL_MTIME(status) ((status).st_mtim)
#endif

/* Never waits for a named pipe in place of a file. */
#define PM_OCFL_OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* --- directories --------------------------------------------------------------------------------------------- */

static int pm_ocfl_kind(int directory, const char *name, int type)
{
    struct stat status;
#if defined(DT_DIR) && defined(DT_REG) && defined(DT_UNKNOWN)
    if (type == DT_DIR)
        return PM_OCFL_IS_DIRECTORY;
    if (type == DT_REG)
        return PM_OCFL_IS_FILE;
    if (type != DT_UNKNOWN)
        return PM_OCFL_IS_OTHER;
#else
    (void)type;
#endif
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return PM_OCFL_IS_OTHER;
    return S_ISDIR(status.st_mode) ? PM_OCFL_IS_DIRECTORY : S_ISREG(status.st_mode) ? PM_OCFL_IS_FILE : PM_OCFL_IS_OTHER;
}

/* Opens a directory and adds its entries, from `scan->entries_count` on; the caller removes them. Returns 0, PM_OCFL_DEFER or
 * PM_NO_MEMORY. */
static int pm_ocfl_open_directory(pm_ocfl_scan *scan, pm_directory *directory, int parent, const char *name)
{
    int status = 0, type = 0;
    const char *entry;
    if (pm_open_directory(directory, parent, name, O_NOFOLLOW, scan->buffer) < 0)
        return PM_OCFL_DEFER;
    while (status == 0 && (entry = pm_next_entry(directory, &type)) != NULL)
        status = pm_ocfl_put_entry(scan, entry, pm_ocfl_kind(directory->descriptor, entry, type));
    if (status == 0 && directory->failed)
        status = PM_OCFL_DEFER;
    if (status != 0)
        pm_close_directory(directory);
    return status;
}

static const char *pm_ocfl_name(const pm_ocfl_scan *scan, int64_t entry)
{
    return (const char *)scan->names.data + scan->entries[entry].at;
}

static void pm_ocfl_drop_entries(pm_ocfl_scan *scan, int64_t first)
{
    if (scan->entries_count > first) {
        scan->names.size = scan->entries[first].at;
        scan->entries_count = first;
    }
}

static int pm_ocfl_compare_names(const void *one, const void *other)
{
    return strcmp(((const pm_ocfl_entry *)one)->name, ((const pm_ocfl_entry *)other)->name);
}

static void pm_ocfl_sort(pm_ocfl_scan *scan, int64_t first)
{
    for (int64_t i = first; i < scan->entries_count; i++)
        scan->entries[i].name = pm_ocfl_name(scan, i);
    qsort(scan->entries + first, (size_t)(scan->entries_count - first), sizeof *scan->entries, pm_ocfl_compare_names);
}

/* Ends the message whose bytes were just appended to the data. */
static int pm_ocfl_end_message(pm_ocfl_scan *scan)
{
    if (pm_reserve_items(&scan->offsets, &scan->offsets_capacity, scan->messages + 2, sizeof *scan->offsets) < 0)
        return PM_NO_MEMORY;
    scan->offsets[0] = 0;
    scan->offsets[++scan->messages] = scan->data.size;
    return 0;
}

/* --- files --------------------------------------------------------------------------------------------------- */

/* Opens a regular file with one hard link. Returns its descriptor, or -1. */
static int pm_ocfl_open_file(int directory, const char *name, struct stat *status)
{
    const int file = openat(directory, name, PM_OCFL_OPEN_FILE);
    if (file < 0)
        return -1;
    if (fstat(file, status) == 0 && S_ISREG(status->st_mode) && status->st_nlink == 1)
        return file;
    close(file);
    return -1;
}

/* Appends at most `most` bytes of an open file. Returns their number, PM_NO_MEMORY, or -2 on failure. */
static int64_t pm_ocfl_append_file(int file, int64_t most, pm_bytes *bytes)
{
    int64_t done = 0;
    if (pm_reserve(bytes, most) < 0)
        return PM_NO_MEMORY;
    while (done < most) {
        const ssize_t got = read(file, bytes->data + bytes->size, (size_t)(most - done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -2;
        if (got == 0)
            break;
        bytes->size += got;
        done += got;
        /* A regular file returns fewer bytes only at its end. */
        if (done < most)
            break;
    }
    return done;
}

static int pm_ocfl_is_unchanged(int file, const struct stat *before)
{
    struct stat after;
    return fstat(file, &after) == 0 && after.st_size == before->st_size
        && PM_OCFL_MTIME(after).tv_sec == PM_OCFL_MTIME(*before).tv_sec
        && PM_OCFL_MTIME(after).tv_nsec == PM_OCFL_MTIME(*before).tv_nsec;
}

/* Appends a whole small file. `is_content`: it must not change while it is read. Returns 0, PM_OCFL_DEFER or PM_NO_MEMORY. */
static int pm_ocfl_read_file(int directory, const char *name, int is_content, pm_bytes *bytes)
{
    struct stat before;
    const int file = pm_ocfl_open_file(directory, name, &before);
    int status = PM_OCFL_DEFER;
    if (file < 0)
        return PM_OCFL_DEFER;
    if (before.st_size <= PM_OCFL_FILE) {
        /* One byte more than expected, to detect a file that has grown. */
        const int64_t done = pm_ocfl_append_file(file, (int64_t)before.st_size + 1, bytes);
        if (done == PM_NO_MEMORY)
            status = PM_NO_MEMORY;
        else if (done == (int64_t)before.st_size && (!is_content || pm_ocfl_is_unchanged(file, &before)))
            status = 0;
    }
    close(file);
    return status;
}

/* Compares a whole file with given bytes. */
static int pm_ocfl_expect(pm_ocfl_scan *scan, int directory, const char *name, const void *expected, int64_t size)
{
    scan->scratch.size = 0;
    const int status = pm_ocfl_read_file(directory, name, 0, &scan->scratch);
    if (status != 0)
        return status;
    return scan->scratch.size == size && memcmp(scan->scratch.data, expected, (size_t)size) == 0 ? 0 : PM_OCFL_DEFER;
}

/* --- objects ------------------------------------------------------------------------------------------------- */

/* Adds the content file `scan->inside`. */
static int pm_ocfl_put_file(pm_ocfl_scan *scan, int64_t message)
{
    if (pm_reserve_items(&scan->files, &scan->files_capacity, scan->files_count + 1, sizeof *scan->files) < 0)
        return PM_NO_MEMORY;
    scan->files[scan->files_count].message = message;
    return pm_ocfl_put_text(&scan->paths, scan->inside.data, scan->inside.size, &scan->files[scan->files_count++].path);
}

static int pm_ocfl_read_content_file(pm_ocfl_scan *scan, pm_ocfl_item *item, int directory, const char *name)
{
    if (++item->files > PM_OCFL_FILES)
        return PM_OCFL_DEFER;
    if (scan->reads == PM_OCFL_CONTENT) {
        const int64_t before = scan->data.size;
        const int failed = pm_ocfl_read_file(directory, name, 1, &scan->data);
        if (failed != 0)
            return failed;
        item->bytes += scan->data.size - before;
        if (item->bytes > PM_OCFL_BYTES)
            return PM_OCFL_DEFER;
        return pm_ocfl_end_message(scan) < 0 ? PM_NO_MEMORY : pm_ocfl_put_file(scan, scan->messages - 1);
    }
    struct stat status;
    const int file = pm_ocfl_open_file(directory, name, &status);
    if (file < 0)
        return PM_OCFL_DEFER;
    close(file);
    return pm_ocfl_put_file(scan, -1);
}

/* Reads a content directory; scan.inside is its path in the object. */
static int pm_ocfl_read_content(pm_ocfl_scan *scan, pm_ocfl_item *item, int parent, const char *name, int depth)
{
    const int64_t first = scan->entries_count, length = scan->inside.size;
    pm_directory directory;
    int status = depth > PM_OCFL_DEPTH ? PM_OCFL_DEFER : pm_ocfl_open_directory(scan, &directory, parent, name);
    if (status != 0) {
        pm_ocfl_drop_entries(scan, first);
        return status;
    }
    const int64_t last = scan->entries_count;
    if (first == last)
        status = PM_OCFL_DEFER;
    for (int64_t i = first; i < last && status == 0; i++) {
        /* The names may move while deeper directories are read. */
        if (pm_append(&scan->inside, "/", 1) < 0
            || pm_append(&scan->inside, pm_ocfl_name(scan, i), (int64_t)strlen(pm_ocfl_name(scan, i))) < 0)
            status = PM_NO_MEMORY;
        else if (scan->entries[i].kind == PM_OCFL_IS_FILE)
            status = pm_ocfl_read_content_file(scan, item, directory.descriptor, pm_ocfl_name(scan, i));
        else if (scan->entries[i].kind == PM_OCFL_IS_DIRECTORY)
            status = pm_ocfl_read_content(scan, item, directory.descriptor, pm_ocfl_name(scan, i), depth + 1);
        else
            status = PM_OCFL_DEFER;
        scan->inside.size = length;
    }
    pm_close_directory(&directory);
    pm_ocfl_drop_entries(scan, first);
    return status;
}

/* Which of the expected entries a directory has. */
enum { PM_HAS_INVENTORY = 1, PM_HAS_SIDECAR = 2, PM_HAS_CONTENT = 4, PM_HAS_V1 = 4, PM_HAS_1_0 = 8, PM_HAS_1_1 = 16 };

/* Returns the entries that a directory has, or -1 if it has others. `folder`: the name of the expected directory. */
static int pm_ocfl_members(const pm_ocfl_scan *scan, int64_t first, int64_t last, const char *folder)
{
    int found = 0;
    for (int64_t i = first; i < last; i++) {
        const char *name = pm_ocfl_name(scan, i);
        const int is_file = scan->entries[i].kind == PM_OCFL_IS_FILE;
        if (is_file && strcmp(name, PM_OCFL_INVENTORY) == 0)
            found |= PM_HAS_INVENTORY;
        else if (is_file && strcmp(name, PM_OCFL_SIDECAR) == 0)
            found |= PM_HAS_SIDECAR;
        else if (is_file && strcmp(name, "0=ocfl_object_1.0") == 0)
            found |= PM_HAS_1_0;
        else if (is_file && strcmp(name, "0=ocfl_object_1.1") == 0)
            found |= PM_HAS_1_1;
        else if (scan->entries[i].kind == PM_OCFL_IS_DIRECTORY && strcmp(name, folder) == 0)
            found |= PM_HAS_V1;
        else
            return -1;
    }
    return found;
}

/* Reads v1: copies of inventory and sidecar, and the content. */
static int pm_ocfl_read_version(pm_ocfl_scan *scan, pm_ocfl_item *item, const pm_ocfl_object *read, int object)
{
    const int64_t first = scan->entries_count;
    pm_directory version;
    int status = pm_ocfl_open_directory(scan, &version, object, "v1");
    if (status == 0) {
        const int directory = version.descriptor;
        const int members = pm_ocfl_members(scan, first, scan->entries_count, "content");
        const int64_t start = scan->offsets[read->inventory], size = scan->offsets[read->inventory + 1] - start;
        if ((members & ~PM_HAS_CONTENT) != (PM_HAS_INVENTORY | PM_HAS_SIDECAR))
            status = PM_OCFL_DEFER;
        if (status == 0)
            status = pm_ocfl_expect(scan, directory, PM_OCFL_INVENTORY, scan->data.data + start, size);
        if (status == 0)
            status = pm_ocfl_expect(scan, directory, PM_OCFL_SIDECAR, scan->paths.data + read->sidecar.at, read->sidecar.size);
        if (status == 0 && members & PM_HAS_CONTENT) {
            scan->inside.size = 0;
            status = pm_append(&scan->inside, "v1/content", 10);
            if (status == 0)
                status = pm_ocfl_read_content(scan, item, directory, "content", 1);
        }
        pm_close_directory(&version);
    }
    pm_ocfl_drop_entries(scan, first);
    return status;
}

static int pm_ocfl_read_whole(pm_ocfl_scan *scan, pm_ocfl_item *item, pm_ocfl_object *read, int object, int64_t first)
{
    const int members = pm_ocfl_members(scan, first, scan->entries_count, "v1");
    const int usual = PM_HAS_INVENTORY | PM_HAS_SIDECAR | PM_HAS_V1;
    if (members < 0 || (members != (usual | PM_HAS_1_0) && members != (usual | PM_HAS_1_1)))
        return PM_OCFL_DEFER;
    read->minor = members & PM_HAS_1_1 ? 1 : 0;
    if (read->minor > scan->minor)
        return PM_OCFL_DEFER;
    int status = read->minor ? pm_ocfl_expect(scan, object, "0=ocfl_object_1.1", "ocfl_object_1.1\n", 16)
                             : pm_ocfl_expect(scan, object, "0=ocfl_object_1.0", "ocfl_object_1.0\n", 16);
    if (status == 0)
        status = pm_ocfl_read_file(object, PM_OCFL_INVENTORY, 0, &scan->data);
    read->inventory = scan->messages;
    if (status == 0)
        status = pm_ocfl_end_message(scan);
    read->sidecar.at = scan->paths.size;
    if (status == 0)
        status = pm_ocfl_read_file(object, PM_OCFL_SIDECAR, 0, &scan->paths);
    read->sidecar.size = scan->paths.size - read->sidecar.at;
    read->first = scan->files_count;
    return status == 0 ? pm_ocfl_read_version(scan, item, read, object) : status;
}

/* Reads the identifier in the beginning of the inventory. */
static int pm_ocfl_read_identifier(pm_ocfl_scan *scan, pm_ocfl_item *item, int object, int64_t first)
{
    struct stat status;
    pm_ocfl_string identifier;
    int is_there = 0;
    for (int64_t i = first; i < scan->entries_count; i++)
        is_there |= scan->entries[i].kind == PM_OCFL_IS_FILE && strcmp(pm_ocfl_name(scan, i), PM_OCFL_INVENTORY) == 0;
    const int file = is_there ? openat(object, PM_OCFL_INVENTORY, PM_OCFL_OPEN_FILE) : -1;
    int64_t done = -2;
    if (file >= 0) {
        scan->scratch.size = 0;
        if (fstat(file, &status) == 0 && S_ISREG(status.st_mode))
            done = pm_ocfl_append_file(file, PM_OCFL_HEAD, &scan->scratch);
        close(file);
    }
    if (done < 0)
        return done == PM_NO_MEMORY ? PM_NO_MEMORY : PM_OCFL_DEFER;
    if (!pm_ocfl_find_identifier(scan->scratch.data, done, &identifier))
        return PM_OCFL_DEFER;
    item->kind = PM_OCFL_OBJECT;
    return pm_ocfl_put_text(&scan->text, identifier.text, identifier.size, &item->text);
}

/* Compares a sidecar with the digest of its inventory. */
static int pm_ocfl_is_sidecar(const uint8_t *sidecar, int64_t size, const uint8_t *digest)
{
    static const char name[] = PM_OCFL_INVENTORY "\n";
    uint8_t hex[128];
    int64_t at = 128;
    pm_put_hex(hex, digest, 0, 128);
    if (size <= at || memcmp(sidecar, hex, 128) != 0)
        return 0;
    while (at < size && (sidecar[at] == ' ' || sidecar[at] == '\t'))
        at++;
    return at > 128 && size - at == sizeof name - 1 && memcmp(sidecar + at, name, sizeof name - 1) == 0;
}

/* Examines an object whose messages are hashed. */
static int pm_ocfl_examine_object(pm_ocfl_scan *scan, const pm_ocfl_object *object)
{
    pm_ocfl_item *item = &scan->items[object->item];
    const int64_t start = scan->offsets[object->inventory], size = scan->offsets[object->inventory + 1] - start;
    pm_ocfl_string identifier;
    if (pm_reserve_items(&scan->content, &scan->content_capacity, item->files, sizeof *scan->content) < 0)
        return PM_NO_MEMORY;
    for (int64_t i = 0; i < item->files; i++) {
        const pm_ocfl_file *file = &scan->files[object->first + i];
        const pm_ocfl_string content = {scan->paths.data + file->path.at, file->path.size,
                                        file->message < 0 ? NULL : scan->digests.data + 64 * file->message};
        scan->content[i] = content;
    }
    if (!pm_ocfl_is_sidecar(scan->paths.data + object->sidecar.at, object->sidecar.size,
                            scan->digests.data + 64 * object->inventory))
        return 0;
    const int status = pm_ocfl_examine(&scan->examination, scan->data.data + start, size, object->minor, scan->content, item->files,
                                       &identifier, &item->advice);
    if (status != 1)
        return status;
    item->kind = PM_OCFL_OBJECT;
    return pm_ocfl_put_text(&scan->text, identifier.text, identifier.size, &item->text);
}

/* Hashes the messages, and examines all objects that are read. */
static int pm_ocfl_examine_objects(pm_ocfl_scan *scan)
{
    int status = 0;
    if (scan->objects_count == 0)
        return 0;
    scan->digests.size = 0;
    if (pm_reserve(&scan->digests, 64 * scan->messages) < 0)
        return PM_NO_MEMORY;
    scan->hash(scan->data.data, scan->offsets, scan->messages, scan->digests.data);
    for (int64_t i = 0; i < scan->objects_count && status == 0; i++)
        status = pm_ocfl_examine_object(scan, &scan->objects[i]);
    scan->objects_count = scan->files_count = scan->messages = 0;
    scan->paths.size = scan->data.size = 0;
    return status;
}

static int pm_ocfl_put_object(pm_ocfl_scan *scan, const pm_ocfl_object *object)
{
    if (pm_reserve_items(&scan->objects, &scan->objects_capacity, scan->objects_count + 1, sizeof *scan->objects) < 0)
        return PM_NO_MEMORY;
    scan->objects[scan->objects_count++] = *object;
    return scan->data.size < PM_OCFL_TOGETHER ? 0 : pm_ocfl_examine_objects(scan);
}

/* Whether a directory of an object is one that OCFL defines: others may contain objects. */
static int pm_ocfl_is_known_directory(const char *name)
{
    if (strcmp(name, "extensions") == 0 || strcmp(name, "logs") == 0)
        return 1;
    return name[0] == 'v' && name[1] != 0 && strspn(name + 1, "0123456789") == strlen(name + 1);
}

/* Reads an object whose entries begin at `first`. */
static int pm_ocfl_read_object(pm_ocfl_scan *scan, int object, int64_t first)
{
    for (int64_t i = first; i < scan->entries_count; i++)
        if (scan->entries[i].kind == PM_OCFL_IS_DIRECTORY && !pm_ocfl_is_known_directory(pm_ocfl_name(scan, i)))
            return PM_OCFL_DEFER;
    pm_ocfl_item *item = pm_ocfl_put_item(scan, PM_OCFL_DEFERRED);
    if (item == NULL)
        return PM_NO_MEMORY;
    int status = 0;
    if (scan->reads == PM_OCFL_PLACES) {
        item->kind = PM_OCFL_OBJECT;
    } else if (scan->reads == PM_OCFL_IDENTITIES) {
        status = pm_ocfl_read_identifier(scan, item, object, first);
    } else {
        const int64_t paths = scan->paths.size, data = scan->data.size, messages = scan->messages, files = scan->files_count;
        pm_ocfl_object read = {.item = scan->items_count - 1};
        status = pm_ocfl_read_whole(scan, item, &read, object, first);
        if (status == 0)
            status = pm_ocfl_put_object(scan, &read);
        if (status == PM_OCFL_DEFER) {
            scan->paths.size = paths;
            scan->data.size = data;
            scan->messages = messages;
            scan->files_count = files;
        }
    }
    return status == PM_OCFL_DEFER ? 0 : status;
}

/* --- the hierarchy ------------------------------------------------------------------------------------------- */

/* Whether two of these names may differ only in case. */
static int pm_ocfl_may_clash(const pm_ocfl_scan *scan, int64_t first)
{
    if (scan->entries_count - first < 2)
        return 0;
    for (int64_t i = first; i < scan->entries_count; i++)
        for (const char *at = pm_ocfl_name(scan, i); *at; at++)
            if ((unsigned char)*at >= 0x80 || (*at >= 'A' && *at <= 'Z'))
                return 1;
    return 0;
}

static int pm_ocfl_read_directory(pm_ocfl_scan *scan, int parent, const char *name, int depth);

/* Reads the entries from `first` on, all directories, and removes them. The names that exceed the budget are the rest. */
static int pm_ocfl_read_entries(pm_ocfl_scan *scan, int directory, int64_t first, int depth)
{
    const int64_t last = scan->entries_count, length = scan->path.size;
    int status = 0;
    int64_t i = first;
    for (; i < last && status == 0 && scan->budget > 0 && depth <= PM_OCFL_DEPTH; i++) {
        if ((length && pm_append(&scan->path, "/", 1) < 0)
            || pm_append(&scan->path, pm_ocfl_name(scan, i), (int64_t)strlen(pm_ocfl_name(scan, i))) < 0)
            status = PM_NO_MEMORY;
        else
            status = pm_ocfl_read_directory(scan, directory, pm_ocfl_name(scan, i), depth);
        scan->path.size = length;
    }
    if (status == 0 && i < last) {
        pm_ocfl_item *rest = pm_ocfl_put_item(scan, PM_OCFL_REST);
        status = rest == NULL ? PM_NO_MEMORY : 0;
        if (rest != NULL)
            rest->text.at = scan->text.size;
        for (; i < last && status == 0; i++)
            status = pm_append(&scan->text, pm_ocfl_name(scan, i), (int64_t)strlen(pm_ocfl_name(scan, i)) + 1);
        if (rest != NULL)
            rest->text.size = scan->text.size - rest->text.at;
    }
    pm_ocfl_drop_entries(scan, first);
    return status;
}

/* Reads one directory of the hierarchy with everything below it; the current path is its path. */
static int pm_ocfl_read_directory(pm_ocfl_scan *scan, int parent, const char *name, int depth)
{
    const int64_t first = scan->entries_count;
    int is_object = 0, is_plain = 1;
    pm_directory directory;
    int status = pm_ocfl_open_directory(scan, &directory, parent, name);
    scan->budget = pm_now() < scan->latest ? scan->budget - 1 : 0;
    for (int64_t i = first; i < scan->entries_count && status == 0; i++) {
        const int kind = scan->entries[i].kind;
        is_object |= kind == PM_OCFL_IS_FILE && strncmp(pm_ocfl_name(scan, i), "0=ocfl_object_", 14) == 0;
        is_plain &= kind == PM_OCFL_IS_DIRECTORY;
    }
    if (status == 0) {
        if (is_object) {
            status = pm_ocfl_read_object(scan, directory.descriptor, first);
        } else if (!is_plain || scan->entries_count == first || (scan->clashes && pm_ocfl_may_clash(scan, first))) {
            status = PM_OCFL_DEFER;
        } else {
            pm_ocfl_sort(scan, first);
            status = pm_ocfl_read_entries(scan, directory.descriptor, first, depth + 1);
        }
        pm_close_directory(&directory);
    }
    pm_ocfl_drop_entries(scan, first);
    if (status == PM_OCFL_DEFER)
        status = pm_ocfl_put_item(scan, PM_OCFL_DEFERRED) == NULL ? PM_NO_MEMORY : 0;
    return status;
}

static int pm_ocfl_read_names(pm_ocfl_scan *scan, const char *top)
{
    const int directory = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return PM_OCFL_DEFER;
    const int status = pm_ocfl_read_entries(scan, directory, 0, 1);
    close(directory);
    return status == 0 ? pm_ocfl_examine_objects(scan) : status;
}

#endif

/* Defers all names. */
static int pm_ocfl_defer(pm_ocfl_scan *scan, const char *names, int64_t count)
{
    const int64_t length = scan->path.size;
    int status = 0;
    for (int64_t i = 0; i < count && status == 0; i++, names += strlen(names) + 1) {
        if ((length && pm_append(&scan->path, "/", 1) < 0) || pm_append(&scan->path, names, (int64_t)strlen(names)) < 0
            || pm_ocfl_put_item(scan, PM_OCFL_DEFERRED) == NULL)
            status = PM_NO_MEMORY;
        scan->path.size = length;
    }
    return status;
}

int pm_ocfl_read(pm_ocfl_scan *scan, const char *top, const char *place, const char *names, int64_t count)
{
    const char *name = names;
    int status = 0;
    scan->latest = pm_now() + PM_TURN;
    scan->buffer = (char *)malloc(PM_ENTRIES_SIZE);
    if (scan->buffer == NULL || pm_append(&scan->path, place, (int64_t)strlen(place)) < 0)
        return PM_NO_MEMORY;
    for (int64_t i = 0; i < count && status == 0; i++, name += strlen(name) + 1)
        status = pm_ocfl_put_entry(scan, name, PM_OCFL_IS_DIRECTORY);
    if (status == 0)
        status = pm_ocfl_read_names(scan, top);
    return status == PM_OCFL_DEFER ? pm_ocfl_defer(scan, names, count) : status;
}

void pm_ocfl_free(pm_ocfl_scan *scan)
{
    free(scan->items);
    free(scan->objects);
    free(scan->files);
    free(scan->offsets);
    free(scan->content);
    free(scan->entries);
    free(scan->buffer);
    pm_ocfl_free_examination(&scan->examination);
    pm_free_bytes(&scan->text);
    pm_free_bytes(&scan->paths);
    pm_free_bytes(&scan->data);
    pm_free_bytes(&scan->digests);
    pm_free_bytes(&scan->names);
    pm_free_bytes(&scan->path);
    pm_free_bytes(&scan->inside);
    pm_free_bytes(&scan->scratch);
}
