# Many small objects of stores, copied and moved in one call. digests.pyx includes this file.


cdef extern from "digests/small_objects.h":
    enum:
        PM_OBJECTS
    ctypedef struct pm_object_texts:
        const char *before
        const char *manifest
        const char *state
        const char *after
        const char *name
        const char *declaration
    ctypedef struct pm_small_object:
        const char *above
        const char *name
        const char *top
        const char *place
        const char *identifier
        int64_t tree
    ctypedef struct pm_object_options:
        const pm_object_texts *texts
        const pm_devices *devices
        pm_level level
        int flags
        size_t limit
    ctypedef struct pm_object_batch:
        pm_small_tree *tree
    int pm_write_small_objects(const pm_object_options *, pm_small_object *, int, pm_object_batch *) nogil


cdef int set_devices(pm_devices *found, tuple devices) except -1:
    found.count = min(len(devices), PM_DEVICES)
    for i in range(found.count):
        found.device[i] = devices[i]
    return 0


def copy_small_sources(list objects not None, tuple devices not None, int flags, size_t limit, bint whole):
    """Copy files, or directories of a few small files, with their permission bits and times.

    :param objects: of each the source, the new path, and the path that it gets later, in a directory that does not
        exist
    :param devices: the devices of the sources; any if empty
    :param flags: flags for opening files
    :param limit: length of a future path, with its zero
    :param whole: copy a directory, or a file into a new directory; otherwise copy a file
    :return: for each object its size and the longest path in it after a slash, which is empty for a file; :data:`None`
        if it was not copied: its directory exists, it contains other than small regular files and directories of them,
        or a path is too long. The caller removes what exists of the new path. The list is shorter if the call took too
        long; call it again with the rest
    """
    cdef int64_t latest = pm_now() + PM_TURN
    cdef const char *here
    cdef const char *there
    cdef const char *place
    cdef bytes source, new, later, above, name
    cdef pm_devices on
    cdef pm_small small
    cdef pm_small_status before
    cdef bint done
    cdef one_tree *one
    cdef pm_small_tree *tree
    cdef list found = []
    cdef int64_t size
    set_devices(&on, devices)
    one = new_tree()
    tree = &one.tree
    try:
        for source, new, later in objects:
            above = later.rpartition(b"/")[0]
            here, there, place = text_of(source), text_of(new), text_of(above)
            size = len(later)
            with nogil:
                if not pm_is_free(place):
                    done = False
                elif whole:
                    done = (
                        pm_small_tree_read(tree, NULL, here, &on, flags)
                        and size + 1 + pm_small_tree_longest(tree) < limit
                        and pm_small_new(there, NULL, 0) == 0
                        and pm_small_tree_write(tree, there)
                    )
                    size = tree.offsets[tree.count] if done else 0
                else:
                    done = (
                        pm_small_read(here, flags, &before, one.data, &small) == PM_SMALL_DONE
                        and pm_is_on(&on, pm_device(&before))
                        and pm_small_write_like(there, &before, one.data, small.size) == 0
                    )
                    size = small.size
            name = b""
            if done and whole:
                name = b"/" + max([<bytes>tree.files[i] for i in range(tree.count)], key=len)
            found.append((size, name) if done else None)
            if pm_now() > latest:
                break
        return found
    finally:
        free(one)


def write_small_objects(list objects not None, tuple texts not None, tuple devices not None, int flags, size_t limit):
    """Write version 1 of OCFL objects of a few small files into new directories.

    :param objects: of each the directory that contains its source and nothing else, or :data:`None`; the name of the
        source there, or its path; the new directory; the path that it gets later; and its identifier in JSON
    :param texts: the text of an inventory before the identifier, before the manifest, before the state, and after it;
        name and content of the declaration
    :param devices: the devices of the sources; any if empty
    :param flags: flags for opening files
    :param limit: length of a future path, with its zero
    :return: for each object the latest change of content or status of a file in nanoseconds, its size, and its SHA-512
        by the name of each file, sorted; :data:`None` if it was not written: its path is taken or too long, it contains
        other than small regular files and directories of them, a file name is not printable ASCII, or two files have
        the same content. The caller removes what exists of the new directory. The list is shorter if the call took too
        long; call it again with the rest
    """
    cdef int64_t latest = pm_now() + PM_TURN
    cdef int count = len(objects), begin = 0, done, i
    cdef pm_devices on
    cdef pm_object_texts parts
    cdef pm_object_options options
    cdef pm_small_tree *tree
    cdef bytes name, top, place, identifier
    cdef list found = []
    cdef pm_small_object *given = <pm_small_object *>malloc((count + 1) * sizeof(pm_small_object))
    cdef pm_object_batch *batch = <pm_object_batch *>malloc(sizeof(pm_object_batch))
    set_devices(&on, devices)
    parts.before, parts.manifest, parts.state = text_of(texts[0]), text_of(texts[1]), text_of(texts[2])
    parts.after, parts.name, parts.declaration = text_of(texts[3]), text_of(texts[4]), text_of(texts[5])
    options.texts, options.devices, options.level = &parts, &on, _level
    options.flags, options.limit = flags, limit
    try:
        if given is NULL or batch is NULL:
            raise MemoryError
        for i in range(count):
            above, name, top, place, identifier = objects[i]
            given[i].above = NULL
            if above is not None:
                given[i].above = text_of(above)
            given[i].name, given[i].top, given[i].place = text_of(name), text_of(top), text_of(place)
            given[i].identifier = text_of(identifier)
        while begin < count and (not begin or pm_now() < latest):
            with nogil:
                done = pm_write_small_objects(&options, given + begin, min(count - begin, PM_OBJECTS), batch)
            if done < 0:
                raise MemoryError
            for i in range(begin, begin + done):
                if given[i].tree < 0:
                    found.append(None)
                    continue
                tree = &batch.tree[given[i].tree]
                digests = {file.decode(): digest for file, digest, _size in _files_of(tree)}
                found.append((nanoseconds(tree.changed), tree.offsets[tree.count] - tree.offsets[0], digests))
            begin += done
        return found
    finally:
        free(given)
        free(batch)


def move_objects(list objects not None, bytes base not None, tuple signs not None, bint fresh):
    """Create the missing parent directories of objects' paths, and move each object to its path.

    :param objects: of each the present path, and the new one relative to ``base``
    :param signs: file names, each after a slash, that mark a directory as an object; no object is moved into one
    :param fresh: move objects only into new directories
    :return: whether each object was moved. If not, the reason is unknown, and directories may have been created
    """
    cdef const char *names[8]
    cdef const char *here
    cdef const char *there
    cdef const char *before = NULL
    cdef pm_moves moves
    cdef int i
    cdef bint done
    cdef bytes old, place
    cdef list found = []
    moves.count = len(signs)
    if moves.count > 8 or b"\0" in base:
        return [False] * len(objects)
    for i in range(moves.count):
        names[i] = text_of(signs[i])
    moves.base, moves.signs, moves.fresh = base, names, fresh
    for old, place in objects:
        here, there = text_of(old), text_of(place)
        with nogil:
            done = pm_move_new(&moves, here, there, before)
        before = there if done else NULL
        found.append(done)
    return found
