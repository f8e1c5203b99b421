# Small files and directories, read and written in one call. digests.pyx includes this file.

# --- small files --------------------------------------------------------------------------------------------


cdef extern from "digests/small_files.h":
    ctypedef struct pm_small_status:
        pass
    enum:
        PM_SMALL_HERE
        PM_SMALL_DONE
    int pm_small_read(const char *, int, pm_small_status *, uint8_t *, pm_small *) nogil
    int pm_small_write_like(const char *, const pm_small_status *, const uint8_t *, int64_t) nogil
    int pm_small_new(const char *, const uint8_t *, int64_t) nogil


def write_small(list paths not None, list contents not None):
    """Write new files and create directories, in order, until one fails.

    :param contents: the content of each file; :data:`None` for a directory
    :return: :data:`True`; :data:`False` if this system is not supported, and nothing was created; or the index of the
        path that failed, and its errno
    """
    cdef const char *path
    cdef const uint8_t *data
    cdef int64_t size
    cdef int error
    cdef bytes name, content
    if not PM_SMALL_HERE:
        return False
    for index in range(len(paths)):
        name, content = paths[index], contents[index]
        if b"\0" in name:
            return index, 22  # EINVAL on all systems
        path = name
        data, size = NULL, 0
        if content is not None:
            data, size = <const uint8_t *><const char *>content, len(content)
        with nogil:
            error = pm_small_new(path, data, size)
        if error:
            return index, error
    return True


# --- steps --------------------------------------------------------------------------------------------------


cdef extern from "digests/file_steps.h":
    enum:
        PM_STEP_MOVE
        PM_STEP_ALONE
        PM_STEPS
    ctypedef struct pm_step:
        int kind
        const char *path
        const char *other
        int64_t size
    int pm_step_run(const char *, const pm_step *, int *) nogil


def run_steps(list bases not None, list lists not None):
    """Change files in order, in many directories; stop in each directory at its first failure.

    :param bases: the directories
    :param lists: for each directory its steps, which several may share: see :data:`~pressmark._kernels.records.Step`
    :return: for each directory 0 or an errno, the number of steps that were made, and the descriptor of a locked file,
        or -1; the caller closes it
    :raises ValueError: there are not as many lists as directories
    """
    cdef Py_ssize_t total = 0, count = len(bases), i, end = 0
    cdef bytes base
    cdef list steps, shared = None
    cdef tuple step, one = (), held = tuple(bases)
    cdef list kept = []
    cdef pm_step *all_steps = NULL
    cdef _change *found = NULL
    if len(lists) != count:
        raise ValueError("one list of steps for each directory")
    for steps in lists:
        if steps is not shared:
            one, shared = tuple(steps), steps
            total += len(one)
        kept.append(one)
    try:
        all_steps = <pm_step *>malloc((total + 1) * sizeof(pm_step))
        found = <_change *>malloc((count + 1) * sizeof(_change))
        if all_steps == NULL or found == NULL:
            raise MemoryError
        for i in range(count):
            base = held[i]
            found[i].base, found[i].lock, found[i].made = base, -1, 0
            found[i].error = 22 if not base or b"\0" in base else 0  # EINVAL on all systems
            if i and kept[i] is kept[i - 1]:
                found[i].first, found[i].end = found[i - 1].first, found[i - 1].end
                continue
            found[i].first = end
            for step in <tuple>kept[i]:
                _set_step(&all_steps[end], step[0], step[1], step[2])
                end += 1
            found[i].end = end
        with nogil:
            for i in range(count):
                end = found[i].first
                while end < found[i].end and not found[i].error:
                    found[i].error = pm_step_run(found[i].base, &all_steps[end], &found[i].lock)
                    found[i].made += not found[i].error
                    end += 1
        return [(found[i].error, found[i].made, found[i].lock) for i in range(count)]
    finally:
        free(all_steps)
        free(found)


# The steps of a directory, by their numbers in a list of all steps.
ctypedef struct _change:
    const char *base
    Py_ssize_t first
    Py_ssize_t end
    Py_ssize_t made
    int error
    int lock


cdef int _set_step(pm_step *step, int kind, bytes path, object other) except -1:
    step.kind = kind
    step.path = path
    step.other = b""
    step.size = 0
    if isinstance(other, bytes):
        step.other = <bytes>other
        step.size = len(<bytes>other)
    elif other is not None:
        step.size = other
    # A path with a NUL would be another path.
    if b"\0" in path or (kind in (PM_STEP_MOVE, PM_STEP_ALONE) and b"\0" in other):
        step.kind = PM_STEPS
    return 0


# --- small trees --------------------------------------------------------------------------------------------


cdef extern from "digests/small_trees.h":
    enum:
        PM_TREE_FILES
        PM_TREE_ROOM
        PM_TREE_PATH
        PM_DEVICES
    ctypedef struct pm_devices:
        int count
        int64_t *device
    ctypedef struct pm_small_tree:
        int64_t count
        pm_time changed
        int64_t *offsets
        const char **files
        uint8_t *data
        uint8_t *digests
    ctypedef struct pm_moves:
        const char *base
        const char *const *signs
        int count
        bint fresh
    int pm_small_tree_read(pm_small_tree *, const char *, const char *, const pm_devices *, int) nogil
    int pm_small_tree_is_plain(const pm_small_tree *) nogil
    int pm_small_tree_write(const pm_small_tree *, const char *) nogil
    size_t pm_small_tree_longest(const pm_small_tree *) nogil
    bint pm_is_free(const char *) nogil
    bint pm_is_on(const pm_devices *, int64_t) nogil
    int64_t pm_device(const pm_small_status *) nogil
    bint pm_move_new(const pm_moves *, const char *, const char *, const char *) nogil


# A tree with its data.
ctypedef struct one_tree:
    pm_small_tree tree
    int64_t[PM_TREE_FILES + 1] offsets
    uint8_t[PM_TREE_FILES * 64] digests
    uint8_t[PM_TREE_ROOM] data


cdef one_tree *new_tree() except NULL:
    cdef one_tree *one = <one_tree *>malloc(sizeof(one_tree))
    if one is NULL:
        raise MemoryError
    one.offsets[0] = 0
    one.tree.offsets = one.offsets
    one.tree.digests = one.digests
    one.tree.data = one.data
    return one


cdef const char *text_of(bytes text) except NULL:
    # No file has the empty path.
    return b"" if b"\0" in text else text


def copy_small_tree(bytes source not None, tuple folders not None, int flags):
    """Copy a directory of a few small files, with their permission bits and times, and compute their SHA-512.

    Nothing is copied if the directory contains anything but small regular files and directories of them, if a file name
    is not printable ASCII, or if two files have the same content.

    :param folders: the directories to create, parents first; the files are copied into the last one
    :param flags: flags for opening files
    :return: :data:`None` if the directory was not copied; the caller removes what exists of the folders. Otherwise for
        each file, sorted by name: its name, its SHA-512 in hex, and its size
    """
    cdef const char *created[8]
    cdef const char *directory = text_of(source)
    cdef int sha512 = algorithm_number("sha512"), count = len(folders), i
    cdef pm_devices devices
    cdef bint done
    cdef one_tree *one
    cdef pm_small_tree *tree
    if not 1 <= count <= 8:
        raise ValueError("one to eight folders")
    for i in range(count):
        created[i] = text_of(folders[i])
    devices.count = 0
    one = new_tree()
    tree = &one.tree
    try:
        with nogil:
            done = pm_small_tree_read(tree, b"", directory, &devices, flags)
            if done:
                digest_column(sha512, tree.data, tree.offsets, tree.count, tree.digests)
                done = pm_small_tree_is_plain(tree)
            for i in range(count):
                done = done and pm_small_new(created[i], NULL, 0) == 0
            done = done and pm_small_tree_write(tree, created[count - 1])
        return _files_of(tree) if done else None
    finally:
        free(one)


cdef list _files_of(const pm_small_tree *tree):
    return [
        (<bytes>tree.files[i], _hex(&tree.digests[64 * i], 64), tree.offsets[i + 1] - tree.offsets[i])
        for i in range(tree.count)
    ]
