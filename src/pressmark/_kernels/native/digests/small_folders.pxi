cdef extern from "digests/small_folder.h":
    enum:
        PM_CURRENT
        PM_FOLDER_BYTES
        PM_FOLDER_ENTRIES

    ctypedef struct pm_folder_entry:
        const char *path
        uint32_t length
        int file
        int64_t begin
        int64_t size
        pm_time mtime
        uint64_t inode

    ctypedef struct pm_folder:
        int count
        int files
        pm_folder_entry *entry

    int64_t pm_folder_read(pm_folder *, int, const char *, const char *, uint8_t *, int64_t, int64_t) nogil


def read_small_folders(list paths not None, bytes skip not None, tuple algorithms not None, bint reads=True):
    """Read all files of directories of a few small files, and compute their digests. No symbolic link is followed.

    :param paths: the directories; each may be named by a link
    :param skip: a name in each directory to ignore
    :param algorithms: name and constructor of each digest, and whether lanes compute it faster
    :param reads: read the files; otherwise they have no digests
    :return: for each path :data:`None` if the directory contains links, names that are not ASCII, or many, large or
        empty files, or directories on another device. Otherwise two lists: its directories and files in the order of
        the names, a directory before its content: the path, and :data:`None` for a directory, or for a file its size,
        time of modification in nanoseconds, and inode; and the digests of its files in hex. The list is shorter if the
        call took too long; call it again with the rest
    """
    cdef int64_t latest = pm_now() + PM_TURN
    cdef list found = [], digests
    cdef tuple held = tuple(paths)
    cdef bytes path
    cdef const char *name = skip
    cdef Py_ssize_t i, number, first = 0, stop, count = len(held)
    cdef pm_folder *folder
    cdef _Folders read = _Folders(reads)
    while first < count and (not first or pm_now() < latest):
        stop = min(count, first + FOLDERS_AT_ONCE)
        for i in range(first, stop):
            path = held[i]
            # A path with a NUL names no directory.
            read.paths[i - first] = b"" if b"\0" in path else path
        with nogil:
            stop = first + read.fill(name, stop - first, latest)
        digests = read.digests(algorithms)
        number = 0
        for i in range(first, stop):
            folder = &read.folders[i - first]
            if folder.count < 0:
                found.append(None)
                continue
            found.append(_entries(folder, digests, number))
            number += folder.files
        first = stop
    return found


cdef tuple _entries(pm_folder *folder, list digests, Py_ssize_t number):
    """Return the entries of a directory, and the digests of its files.

    :param digests: of the files that were read together
    :param number: the number of its first file among them
    """
    cdef int i
    cdef pm_folder_entry *entry
    cdef list found = [], entries = [], sorted_digests = []
    for i in range(folder.count):
        entry = &folder.entry[i]
        found.append((entry.path[:entry.length], i))
    found.sort(key=_by_name)
    for path, i in found:
        entry = &folder.entry[i]
        if entry.file < 0:
            entries.append((path, None))
            continue
        entries.append((path, (entry.size, nanoseconds(entry.mtime), entry.inode)))
        if digests:
            sorted_digests.append(digests[number + entry.file])
    return entries, sorted_digests


cdef enum:
    FOLDERS_AT_ONCE = 64
    FOLDERS_BYTES = 2 * PM_FOLDER_BYTES
    FOLDERS_FILES = FOLDERS_AT_ONCE * PM_FOLDER_ENTRIES


cdef class _Folders:
    """Directories that are read and hashed together."""

    cdef const char *paths[FOLDERS_AT_ONCE]
    cdef pm_folder *folders
    cdef uint8_t *data
    cdef int64_t *offsets
    cdef Py_ssize_t files
    cdef bint reads

    def __init__(self, bint reads):
        self.reads = reads
        self.folders = <pm_folder *>malloc(FOLDERS_AT_ONCE * sizeof(pm_folder))
        self.data = <uint8_t *>malloc(FOLDERS_BYTES if reads else 1)
        self.offsets = <int64_t *>malloc((FOLDERS_FILES + 1) * sizeof(int64_t))
        if self.folders == NULL or self.data == NULL or self.offsets == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.folders)
        free(self.data)
        free(self.offsets)

    cdef Py_ssize_t fill(self, const char *skip, Py_ssize_t count, int64_t latest) noexcept nogil:
        """Read directories while there is room and time; return their number."""
        cdef Py_ssize_t number = 0
        cdef int64_t end = 0, limit, stop
        cdef int i
        cdef uint8_t *data
        cdef pm_folder *folder
        self.files = 0
        while number < count and end <= FOLDERS_BYTES - PM_FOLDER_BYTES and (not number or pm_now() < latest):
            folder = &self.folders[number]
            data = self.data if self.reads else NULL
            limit = end + PM_FOLDER_BYTES
            stop = pm_folder_read(folder, PM_CURRENT, self.paths[number], skip, data, end, limit)
            number += 1
            if stop < 0:
                folder.count = -1
                continue
            for i in range(folder.count):
                if folder.entry[i].file >= 0:
                    self.offsets[self.files + folder.entry[i].file] = folder.entry[i].begin
            self.files += folder.files
            end = stop
        self.offsets[self.files] = end
        return number

    cdef list digests(self, tuple algorithms):
        """Return the digests of all files; without reading, nothing."""
        cdef list found
        cdef uint8_t *out
        cdef int number
        cdef Py_ssize_t i, size
        if not self.reads or not self.files:
            return []
        found = [{} for _ in range(self.files)]
        for algorithm, make, has_lanes in algorithms:
            if not has_lanes or self.files < pm_lanes(current_level(), <pm_algorithm>algorithm_number(algorithm)):
                for i in range(self.files):
                    content = PyMemoryView_FromMemory(
                        <char *>self.data + self.offsets[i], self.offsets[i + 1] - self.offsets[i], PyBUF_READ
                    )
                    hasher = make(1)
                    hasher.update(content)
                    found[i][algorithm] = hasher.hexdigest()
                continue
            number = algorithm_number(algorithm)
            size = digest_size(number)
            out = <uint8_t *>malloc(self.files * size)
            if out == NULL:
                raise MemoryError
            try:
                with nogil:
                    digest_column(number, self.data, self.offsets, self.files, out)
                for i in range(self.files):
                    found[i][algorithm] = _hex(out + i * size, size)
            finally:
                free(out)
        return found


def _by_name(tuple one):
    return (<bytes>one[0]).replace(b"/", b"\0")
