# The files of a block, and their results. digests.pyx includes this file.


cdef class FileBlock:
    """Files that one thread reads one after the other and hashes together.

    :ivar done: number of files that have digests
    """

    cdef pm_block block
    cdef bytes paths
    cdef list targets, spans
    cdef size_t hex_size

    def __cinit__(self, Engine engine not None, bytes paths not None, int64_t count, list targets):
        cdef int64_t index
        cdef const char *empty = b""
        cdef const char *name = paths
        cdef bytes path
        if paths.count(0) != max(count, 1) - 1:
            raise ValueError("a path for each file")
        self.paths, self.targets = paths, targets
        self.spans = engine.spans
        self.hex_size = engine.engine.hex_size
        self.block.count = count
        self.block.paths = <const char **>malloc((count + 1) * sizeof(char *))
        self.block.files = <pm_block_file *>malloc((count + 1) * sizeof(pm_block_file))
        self.block.hex = <uint8_t *>malloc(count * self.hex_size + 1)
        if self.block.paths == NULL or self.block.files == NULL or self.block.hex == NULL:
            raise MemoryError
        for index in range(count):
            self.block.paths[index] = name
            name += strlen(name) + 1
            self.block.files[index].ending = PM_BLOCK_LEFT
            self.block.files[index].small.size = -1
        if targets is None:
            return
        if len(targets) != count:
            raise ValueError("a path for each copy")
        self.block.targets = <const char **>malloc((count + 1) * sizeof(char *))
        if self.block.targets == NULL:
            raise MemoryError
        for index in range(count):
            path = targets[index]
            name = path
            self.block.targets[index] = name
            if strlen(name) != <size_t>len(path):
                self.block.paths[index] = empty

    def __dealloc__(self):
        free(<void *>self.block.paths)
        free(<void *>self.block.targets)
        free(self.block.files)
        free(self.block.hex)

    @property
    def done(self):
        cdef int64_t index, done = 0
        for index in range(self.block.count):
            done += self.block.files[index].ending == PM_BLOCK_DIGESTS
        return done

    def left(self):
        """Return index and size of each file that was not read; the size is -1 for any path but a regular file's."""
        cdef int64_t index
        return [
            (index, self.block.files[index].small.size)
            for index in range(self.block.count)
            if self.block.files[index].ending == PM_BLOCK_LEFT
        ]

    def failed(self):
        """Return for each file that failed its index, and what :meth:`Engine.collect` returns of such a file in a lane.
        """
        cdef int64_t index
        cdef pm_block_file *file
        cdef list found = []
        for index in range(self.block.count):
            file = &self.block.files[index]
            if file.ending == PM_BLOCK_TARGET:
                found.append((index, file.small.error, None))
            elif file.ending != PM_BLOCK_DIGESTS and file.ending != PM_BLOCK_LEFT:
                found.append((
                    index, file.small.size, nanoseconds(file.small.mtime), file.small.inode, file.small.error, _REGULAR,
                    file.small.size_after, nanoseconds(file.small.mtime_after), file.small.done, 0,
                ))
        return found

    def results(self, list paths not None, type kind not None):
        """Return ``(path, digests, size, mtime_ns, inode, None, "", ctime_ns, 0)`` for each file, or :data:`None`.

        :param paths: the path of each file to return
        :param kind: a named tuple with these fields
        """
        cdef int64_t index
        cdef size_t start, size
        cdef const uint8_t *hex
        cdef pm_block_file *file
        cdef list found = [None] * self.block.count
        if len(paths) != self.block.count:
            raise ValueError("a path for each file")
        for index in range(self.block.count):
            path = paths[index]
            file = &self.block.files[index]
            if file.ending != PM_BLOCK_DIGESTS:
                continue
            hex = self.block.hex + index * self.hex_size
            digests = {}
            for name, start, size in self.spans:
                digests[name] = _ascii(hex + start, size)
            # Half the time of kind(...).
            found[index] = _new(kind, (
                path, digests, file.small.size, nanoseconds(file.small.mtime), file.small.inode, None, "",
                nanoseconds(file.small.ctime), 0,
            ))
        return found

    def lines(self, list tags):
        """Return the lines of the files in a manifest; :data:`None` if a file has no digests or a name needs escapes.

        :param tags: of each algorithm, for the BSD format; :data:`None` for the coreutils format
        """
        cdef int64_t index
        cdef size_t start, size, length, total = 0, longest = 0
        cdef const uint8_t *hex
        cdef const char *path
        cdef bytes tag
        cdef bytearray lines
        cdef char *out
        for tag in tags or ():
            longest += len(tag) + 4
        for index in range(self.block.count):
            path = self.block.paths[index]
            length = strlen(path)
            if self.block.files[index].ending != PM_BLOCK_DIGESTS or strpbrk(path, b"\\\n\r") != NULL:
                return None
            total += self.hex_size + longest + (length + 3) * len(self.spans)
        lines = bytearray(total)
        out = PyByteArray_AS_STRING(lines)
        for index in range(self.block.count):
            path = self.block.paths[index]
            length = strlen(path)
            hex = self.block.hex + index * self.hex_size
            for number, (_name, start, size) in enumerate(self.spans):
                if tags is None:
                    out = _put(out, <const char *>hex + start, size)
                    out = _put(out, b"  ", 2)
                    out = _put(out, path, length)
                else:
                    tag = tags[number]
                    out = _put(out, tag, len(tag))
                    out = _put(out, b" (", 2)
                    out = _put(out, path, length)
                    out = _put(out, b") = ", 4)
                    out = _put(out, <const char *>hex + start, size)
                out = _put(out, b"\n", 1)
        return PyByteArray_AS_STRING(lines)[:out - PyByteArray_AS_STRING(lines)]


cdef int _REGULAR = 0o100644
cdef object _new = tuple.__new__


cdef char *_put(char *out, const char *text, size_t size) noexcept:
    memcpy(out, text, size)
    return out + size


cdef str _ascii(const uint8_t *text, Py_ssize_t size):
    cdef object made = PyUnicode_New(size, 127)
    memcpy(PyUnicode_DATA(made), text, size)
    return made
