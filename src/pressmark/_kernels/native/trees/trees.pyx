"""Directory trees in memory, many in one call, and JSON in them; and the scan of a Pairtree."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pressmark._kernels.native._digests cimport algorithm_number, digest_column, digest_size
from pressmark._kernels.native._mapping cimport ByteColumn, pm_append, pm_bytes, pm_column

from pressmark._kernels.records import DEEPEST, TOGETHER, Other, Tree

__all__ = ["TreeBatch", "read_json", "read_trees", "scan_pairtree"]


cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t, uint32_t)
    void *PyUnicode_DATA(object)


cdef extern from "shared/text.h":
    uint8_t *pm_put_hex(uint8_t *, const uint8_t *, int64_t, int64_t) noexcept nogil


cdef extern from "trees/read_trees.h":
    enum:
        PM_NO_MEMORY
        PM_TREE_REST
        PM_FILE_WHOLE
        PM_FILE_UNWANTED

    ctypedef struct pm_wanted:
        const char *marker
        const char *skip
        const char *const *prefixes
        int64_t prefixes_count
        int64_t first
        int content
        int clashes
        int twice
        int inside
        int64_t entries
        int64_t depth
        int64_t total
        int64_t file
        int64_t budget
        int64_t together

    ctypedef struct pm_tree_row:
        int64_t path
        int64_t length
        int64_t size
        int64_t mtime
        int64_t ctime
        int64_t links
        uint64_t inode
        uint32_t mode
        int state
        int error
        int64_t content

    ctypedef struct pm_tree_rows:
        pm_tree_row *list
        int64_t count
        int64_t capacity

    ctypedef struct pm_tree:
        int state
        int error
        int64_t path
        int64_t length
        uint64_t device
        pm_tree_row top
        int64_t files
        int64_t directories
        int64_t others

    ctypedef struct pm_trees:
        pm_tree *trees
        int64_t count
        pm_tree_rows files
        pm_tree_rows directories
        pm_tree_rows others
        pm_bytes paths
        pm_bytes data
        int64_t *offsets
        int64_t contents
        int64_t offsets_capacity

    ctypedef struct pm_tree_path:
        const char *text
        int64_t length

    int pm_reserve_items(void *, int64_t *, int64_t, size_t) noexcept nogil
    int64_t pm_read_trees(pm_trees *, const pm_wanted *, const char *, const pm_tree_path *, int64_t) noexcept nogil
    void pm_free_trees(pm_trees *) noexcept nogil


# In the order of the numbers in read_trees.h.
cdef tuple _STATES = ("whole", "large", "unreadable", "odd", "rest")
cdef tuple _FILE_STATES = ("whole", "unwanted", "large", "changing", "unreadable")
cdef tuple _KINDS = ("link", "special", "device", "closed")
cdef tuple _CONTENTS = ("names", "none", "open", "all")
cdef int64_t _DEEPEST = DEEPEST, _TOGETHER = TOGETHER


cdef class TreeBatch:
    """Directory trees in memory.

    Each column has a value for each file, or for each directory in a tree, by number.

    :ivar begun: how many of the names were read
    :ivar trees: in order, one for each name; with a marker, those below each name
    :ivar states: why the content of a file is not in memory: ``unwanted``, ``large``, ``changing`` or ``unreadable``;
        otherwise ``whole``
    :ivar errors: why a file is unreadable: its ``errno``
    :ivar sizes: in bytes
    :ivar mtimes: times of modification, in nanoseconds; all columns of what was never seen are 0
    :ivar ctimes: times of status change, in nanoseconds
    :ivar inodes: inode numbers
    :ivar modes: types and permissions
    :ivar links: numbers of hard links
    :ivar folder_mtimes: of the directories; ``folder_ctimes``, ``folder_inodes``, ``folder_modes`` likewise
    """

    cdef pm_trees trees_in_c
    cdef int64_t folders  # in trees that were read; the rows of those left to the next call are the last
    cdef readonly int64_t begun
    cdef readonly list trees
    cdef dict columns, known_digests

    def __cinit__(self):
        memset(&self.trees_in_c, 0, sizeof(pm_trees))
        self.folders = 0
        self.columns = {}
        self.known_digests = {}

    def __dealloc__(self):
        pm_free_trees(&self.trees_in_c)

    @staticmethod
    def of(trees, contents, sizes=None):
        """Return a batch of trees that were not read from a disk.

        :param contents: of each file, by number; None for a content that is not in memory
        :param sizes: of each file, if some contents are None
        """
        cdef TreeBatch batch = TreeBatch.__new__(TreeBatch)
        cdef pm_trees *found = &batch.trees_in_c
        cdef int64_t number, count = len(contents)
        cdef pm_tree_row *row
        cdef bytes content
        batch.trees = list(trees)
        batch.begun = len(batch.trees)
        if pm_reserve_items(&found.files.list, &found.files.capacity, count, sizeof(pm_tree_row)) < 0 or \
                pm_reserve_items(&found.offsets, &found.offsets_capacity, count + 1, sizeof(int64_t)) < 0:
            raise MemoryError
        found.offsets[0] = 0
        for number in range(count):
            content = contents[number]
            row = &found.files.list[number]
            memset(row, 0, sizeof(pm_tree_row))
            if content is None:
                row.content, row.state = -1, PM_FILE_UNWANTED
                row.size = sizes[number]
            else:
                row.content, row.state = found.contents, PM_FILE_WHOLE
                row.size = len(content)
                if pm_append(&found.data, <const char *>content, row.size) < 0:
                    raise MemoryError
                found.contents += 1
                found.offsets[found.contents] = found.data.size
            found.files.count = number + 1
        return batch

    def content(self, int64_t number):
        """Return the content of a file, or the wanted first bytes of it; None if it is not in memory."""
        cdef int64_t at
        if not 0 <= number < self.trees_in_c.files.count:
            raise IndexError(number)
        at = self.trees_in_c.files.list[number].content
        if at < 0:
            return None
        return PyBytes_FromStringAndSize(
            <char *>self.trees_in_c.data.data + self.trees_in_c.offsets[at],
            self.trees_in_c.offsets[at + 1] - self.trees_in_c.offsets[at],
        )

    def digests(self, str algorithm not None, function=None):
        """Return the hex digest of each file, or None if its content is not in memory. Digests are computed once.

        :param function: returns the digest of a content; by default several contents are hashed at a time
        """
        found = self.known_digests.get(algorithm)
        if found is None:
            found = self.hash_all(algorithm) if function is None else self.hash_by(function)
            self.known_digests[algorithm] = found
        return found

    cdef bint is_whole(self, int64_t number) noexcept:
        cdef pm_tree_row *row = &self.trees_in_c.files.list[number]
        cdef int64_t *offsets = self.trees_in_c.offsets
        return row.content >= 0 and offsets[row.content + 1] - offsets[row.content] == row.size

    cdef list hash_by(self, function):
        return [
            function(self.content(number)) if self.is_whole(number) else None
            for number in range(self.trees_in_c.files.count)
        ]

    cdef list hash_all(self, str algorithm):
        cdef int number = algorithm_number(algorithm)
        cdef int64_t size = digest_size(number), i
        cdef pm_trees *trees = &self.trees_in_c
        cdef list found = []
        cdef uint8_t *digests = <uint8_t *>malloc(trees.contents * size + 1)
        if digests == NULL:
            raise MemoryError
        try:
            if trees.contents:
                with nogil:
                    digest_column(number, trees.data.data, trees.offsets, trees.contents, digests)
            for i in range(trees.files.count):
                if self.is_whole(i):
                    text = PyUnicode_New(2 * size, 127)
                    pm_put_hex(
                        <uint8_t *>PyUnicode_DATA(text), digests + trees.files.list[i].content * size, 0, 2 * size
                    )
                    found.append(text)
                else:
                    found.append(None)
        finally:
            free(digests)
        return found

    @property
    def states(self):
        return self.column("states")

    @property
    def errors(self):
        return self.column("errors")

    @property
    def sizes(self):
        return self.column("sizes")

    @property
    def mtimes(self):
        return self.column("mtimes")

    @property
    def ctimes(self):
        return self.column("ctimes")

    @property
    def inodes(self):
        return self.column("inodes")

    @property
    def modes(self):
        return self.column("modes")

    @property
    def links(self):
        return self.column("links")

    @property
    def folder_mtimes(self):
        return self.column("folder_mtimes")

    @property
    def folder_ctimes(self):
        return self.column("folder_ctimes")

    @property
    def folder_inodes(self):
        return self.column("folder_inodes")

    @property
    def folder_modes(self):
        return self.column("folder_modes")

    cdef list column(self, str name):
        """Return a column. It is created on first use, because most callers need one or two."""
        cdef const pm_tree_row *rows = self.trees_in_c.files.list
        cdef int which
        cdef int64_t count = self.trees_in_c.files.count, i
        found = self.columns.get(name)
        if found is None:
            if name.startswith("folder_"):
                rows, count = self.trees_in_c.directories.list, self.folders
            which = _COLUMNS.index(name.removeprefix("folder_"))
            found = [_value(&rows[i], which) for i in range(count)]
            self.columns[name] = found
        return found

    cdef object list_trees(self, bint as_text):
        """Create the Python objects."""
        cdef pm_trees *found = &self.trees_in_c
        cdef int64_t i
        cdef pm_tree *tree
        cdef pm_tree beyond
        self.trees = []
        beyond.files, beyond.directories, beyond.others = found.files.count, found.directories.count, found.others.count
        self.folders = beyond.directories
        for i in range(found.count):
            tree = &found.trees[i]
            if tree.state == PM_TREE_REST:
                self.folders = min(self.folders, tree.directories)
            self.trees.append(self.one_tree(tree, tree + 1 if i + 1 < found.count else &beyond, as_text))

    cdef object one_tree(self, const pm_tree *tree, const pm_tree *end, bint as_text):
        cdef pm_trees *found = &self.trees_in_c
        cdef const pm_tree_row *row
        cdef int64_t i
        cdef bint is_read = tree.state != PM_TREE_REST
        cdef dict files = {}, directories = {}
        cdef list empty = [], linked = [], others = []
        for i in range(tree.files, end.files):
            row = &found.files.list[i]
            path = self.path_of(row, as_text)
            files[path] = i
            if row.links > 1:
                linked.append(path)
        for i in range(tree.directories, end.directories):
            row = &found.directories.list[i]
            path = self.path_of(row, as_text and is_read)
            directories[path] = i if is_read else -1
            if is_read and not row.content:
                empty.append(path)
        for i in range(tree.others, end.others):
            row = &found.others.list[i]
            others.append(Other(self.path_of(row, as_text), _KINDS[row.state], row.error))
        return _new_tuple(
            Tree,
            (
                PyBytes_FromStringAndSize(<char *>found.paths.data + tree.path, tree.length),
                _STATES[tree.state], tree.error, tree.device, tree.top.inode, tree.top.mode, tree.top.mtime,
                files, directories, empty, linked, others,
            ),
        )

    cdef object path_of(self, const pm_tree_row *row, bint as_text):
        cdef char *path = <char *>self.trees_in_c.paths.data + row.path
        if as_text:
            return PyUnicode_DecodeUTF8(path, row.length, "surrogateescape")
        return PyBytes_FromStringAndSize(path, row.length)


cdef object _new_tuple = tuple.__new__  # a third of the time of the record's own function
cdef tuple _COLUMNS = ("states", "errors", "sizes", "mtimes", "ctimes", "inodes", "modes", "links")


cdef object _value(const pm_tree_row *row, int which):
    if which == 0:
        return _FILE_STATES[row.state]
    if which == 1:
        return row.error
    if which == 2:
        return row.size
    if which == 3:
        return row.mtime
    if which == 4:
        return row.ctime
    if which == 5:
        return row.inode
    if which == 6:
        return row.mode
    return row.links


def read_trees(bytes top not None, names not None, wanted not None):
    """Read directory trees into memory.

    Below ``top``, no symbolic link is followed; without it, each name may be one. A file or directory that is replaced
    meanwhile is never left: each is opened relative to the one above. A call returns after 0.1 s or 1 MiB of contents,
    when it has read at least one name; a tree alone may take twice as long, and is then ``large``.

    :param top: the directory that the names are relative to, which may be a link; or empty
    :param names: the paths of trees, or with a marker of directories above them
    :param wanted: a ``Wanted``
    """
    cdef TreeBatch batch = TreeBatch.__new__(TreeBatch)
    cdef tuple paths = tuple(names)
    cdef tuple prefixes = tuple(wanted.prefixes)
    cdef bytes marker = wanted.marker, skip = wanted.skip, path
    cdef const char *here = top
    cdef pm_wanted given
    cdef int64_t count = len(paths), i
    cdef pm_tree_path *places = NULL
    cdef const char **starts = NULL
    memset(&given, 0, sizeof(given))
    try:
        places = <pm_tree_path *>malloc((count + 1) * sizeof(pm_tree_path))
        starts = <const char **>malloc((len(prefixes) + 1) * sizeof(char *))
        if places == NULL or starts == NULL:
            raise MemoryError
        for i in range(count):
            path = paths[i]
            places[i].text = path
            places[i].length = len(path)
        for i in range(len(prefixes)):
            path = prefixes[i]
            starts[i] = path
        given.prefixes, given.prefixes_count = starts, len(prefixes)
        given.marker, given.skip, given.first = marker, skip, wanted.first
        given.content = _CONTENTS.index(wanted.content)
        given.clashes, given.twice, given.inside = bool(wanted.clashes), bool(wanted.twice), bool(wanted.inside)
        given.entries, given.depth = wanted.entries, min(wanted.depth, _DEEPEST)
        given.total, given.file, given.budget = wanted.total, wanted.file, wanted.budget
        given.together = _TOGETHER
        with nogil:
            batch.begun = pm_read_trees(&batch.trees_in_c, &given, here, places, count)
        if batch.begun < 0:
            raise MemoryError
        batch.list_trees(wanted.text)
        return batch
    finally:
        free(places)
        free(starts)


include "json.pxi"


# --- Pairtrees ------------------------------------------------------------------------------------------------


cdef extern from "trees/pairtree_scan.h":
    int pm_scan_pairtree(const char *, const pm_column *, int, int64_t, pm_column *, pm_column *, pm_column *) nogil


def scan_pairtree(bytes root not None, ByteColumn paths not None, bint follow, int64_t budget):
    """Read directories of a Pairtree and the directories below them, in the order of their bytes.

    :param root: the directory that the paths are relative to
    :param paths: the directories, in order; the name after the last slash must be ASCII
    :param follow: accept symbolic links to directories as objects
    :param budget: the maximum number of directories to read; fewer are read if that takes too long
    :return: in order, the paths of objects and of deferred directories; for each path the name of the object's
        directory, empty for deferred ones; and the paths that were not read
    """
    cdef ByteColumn places = ByteColumn.__new__(ByteColumn)
    cdef ByteColumn names = ByteColumn.__new__(ByteColumn)
    cdef ByteColumn rest = ByteColumn.__new__(ByteColumn)
    cdef const char *top = root
    cdef int64_t most = max(budget, 0)
    cdef int status
    with nogil:
        status = pm_scan_pairtree(
            top, &paths.column, follow, most, &places.column, &names.column, &rest.column
        )
    if status < 0:
        raise MemoryError
    return places, names, rest
