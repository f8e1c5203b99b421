cdef extern from "digests/small_folder.h":
    enum:
        PM_FOLDER_BYTES

    ctypedef struct pm_folder_entry:
        const char *path
        uint32_t length
        int file
        int64_t begin
        int64_t size
        int64_t mtime_ns
        int64_t inode

    ctypedef struct pm_folder:
        int count
        int files
        pm_folder_entry *entry

    int64_t pm_folder_read(pm_folder *, int, const char *, const char *, uint8_t *, int64_t, int64_t) nogil


cdef extern from "digests/small_bags.h":
    ctypedef struct pm_bag_counts:
        int64_t files
        int64_t bytes
        int64_t tag_files
        int64_t long_lines
        int64_t first_long

    bint pm_check_small_bags(pm_level, const char **, int, pm_bag_counts *) nogil


def check_small_bags(list paths not None):
    """Validate bags of a few small files, with all checksums. No symbolic link in a bag is followed.

    :return: for each valid bag the number and size of its payload files, the number of its other files, the number of
        long lines in bag-info.txt, and the first of them, from 1; :data:`None` for a bag with another problem, and for
        one that may have problems: with links, unusual tag files, names that are not ASCII, or many, large or empty files
    """
    cdef int count = len(paths), i
    cdef bint done
    cdef pm_bag_counts *one
    cdef list found = []
    cdef tuple held = tuple(paths)
    cdef bytes path
    cdef const char **names = <const char **>malloc((count + 1) * sizeof(char *))
    cdef pm_bag_counts *counts = <pm_bag_counts *>malloc((count + 1) * sizeof(pm_bag_counts))
    try:
        if names == NULL or counts == NULL:
            raise MemoryError
        for i in range(count):
            path = held[i]
            # A path with a NUL names no bag.
            names[i] = b"" if b"\0" in path else path
        with nogil:
            done = pm_check_small_bags(current_level(), names, count, counts)
        if not done:
            raise MemoryError
        for i in range(count):
            one = &counts[i]
            known = (one.files, one.bytes, one.tag_files, one.long_lines, one.first_long)
            found.append(known if one.tag_files >= 0 else None)
        return found
    finally:
        free(names)
        free(counts)


def read_small_folder(int directory, bytes skip not None, tuple algorithms not None, bint reads=True):
    """Read all files of a directory of a few small files, and compute their digests. No symbolic link is followed.

    :param directory: its descriptor
    :param skip: a name in the directory to ignore
    :param algorithms: name and constructor of each digest
    :param reads: read the files; otherwise they have no digests
    :return: each directory and file in the order of the names, a directory before its content: the path, and
        :data:`None` for a directory, or for a file its size, time of modification in nanoseconds, inode, and digests in
        hex. :data:`None` if the directory contains links, names that are not ASCII, or many, large or empty files
    """
    cdef int64_t end
    cdef int i
    cdef list found = []
    cdef pm_folder_entry *entry
    cdef pm_folder *folder = <pm_folder *>malloc(sizeof(pm_folder))
    cdef uint8_t *data = <uint8_t *>malloc(PM_FOLDER_BYTES if reads else 1)
    cdef const char *name = skip
    try:
        if folder == NULL or data == NULL:
            raise MemoryError
        with nogil:
            end = pm_folder_read(folder, directory, b".", name, data if reads else NULL, 0, PM_FOLDER_BYTES)
        if end < 0:
            return None
        for i in range(folder.count):
            entry = &folder.entry[i]
            path = entry.path[:entry.length]
            if entry.file < 0:
                found.append((path, None))
                continue
            digests = {}
            if reads:
                # There are seldom enough files to fill the lanes.
                content = PyMemoryView_FromMemory(<char *>data + entry.begin, entry.size, PyBUF_READ)
                for algorithm, make in algorithms:
                    hasher = make(1)
                    hasher.update(content)
                    digests[algorithm] = hasher.hexdigest()
            found.append((path, (entry.size, entry.mtime_ns, entry.inode, digests)))
        found.sort(key=_by_name)
        return found
    finally:
        free(folder)
        free(data)


def _by_name(tuple one):
    return (<bytes>one[0]).replace(b"/", b"\0")
