"""Columns of paths: sorted and merged, counted, and searched in manifests."""

from array import array

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from pressmark._kernels.native._mapping cimport ByteColumn, pm_bytes, pm_column, pm_free_bytes, pm_is_ascii

__all__ = [
    "ManifestIndex",
    "PathLengths",
    "PathMerge",
    "PathSorter",
    "PathTree",
    "starts_with",
    "beyond_ascii",
    "suspicious",
]


# --- directories --------------------------------------------------------------------------------------------


cdef extern from "paths/records.h":
    int pm_read_path(const unsigned char *, int64_t, pm_bytes *) noexcept nogil


cdef extern from "paths/tree.h":
    enum:
        PM_TREE_ENTRIES

    ctypedef struct pm_large:
        int64_t entries
        pm_bytes path

    ctypedef struct pm_holding:
        int64_t *table
        int64_t *crowds
        int64_t crowd_count

    ctypedef struct pm_tree:
        int64_t *levels
        int64_t level_count
        int64_t leaves
        pm_holding fan_out
        pm_holding top_level
        pm_large *largest
        int64_t largest_count

    int pm_tree_init(pm_tree *) noexcept nogil
    void pm_tree_free(pm_tree *) noexcept nogil
    int pm_tree_end(pm_tree *) noexcept nogil


cdef list _held(const pm_holding *holding):
    cdef int64_t much
    cdef dict crowds = {}
    found = [(much, holding.table[much]) for much in range(1, PM_TREE_ENTRIES + 1) if holding.table[much]]
    for index in range(holding.crowd_count):
        much = holding.crowds[index]
        crowds[much] = crowds.get(much, 0) + 1
    return found + sorted(crowds.items())


cdef class PathTree:
    """Counts of the directories of merged paths, without the root."""

    cdef pm_tree tree
    # A merge holds this while it adds to the tree without the GIL.
    cdef cython.pymutex lock

    def __dealloc__(self):
        pm_tree_free(&self.tree)

    def __init__(self):
        if self.tree.fan_out.table != NULL:
            raise ValueError("already initialized")
        if pm_tree_init(&self.tree) < 0:
            raise MemoryError

    def end(self):
        """End the counts; the other methods return complete results only afterwards."""
        cdef int status
        with self.lock:
            with nogil:
                status = pm_tree_end(&self.tree)
        if status < 0:
            raise MemoryError

    def levels(self):
        """Return the number of directories at each depth, from 1."""
        with self.lock:
            return [self.tree.levels[depth] for depth in range(self.tree.level_count)]

    def leaves(self):
        """Return the number of distinct paths."""
        with self.lock:
            return self.tree.leaves

    def fan_out(self):
        """Return ascending pairs: a number of child directories, and how many directories have that many."""
        with self.lock:
            return _held(&self.tree.fan_out)

    def top_level(self):
        """Return ascending pairs: a number of distinct paths, and how many directories below the root have that many.

        The path of the directory itself counts as one.
        """
        with self.lock:
            return _held(&self.tree.top_level)

    def largest(self):
        """Return path and number of entries of the largest directories, the largest first, then by path."""
        cdef pm_bytes path
        found = []
        with self.lock:
            for index in range(self.tree.largest_count):
                path.data = NULL
                path.size = path.capacity = 0
                try:
                    if pm_read_path(self.tree.largest[index].path.data, self.tree.largest[index].path.size, &path) < 0:
                        raise MemoryError
                    found.append((
                        PyBytes_FromStringAndSize(<const char *>self.tree.largest[index].path.data,
                                                  self.tree.largest[index].path.size),
                        PyBytes_FromStringAndSize(<const char *>path.data, path.size),
                        self.tree.largest[index].entries,
                    ))
                finally:
                    pm_free_bytes(&path)
        found.sort(key=lambda one: (-one[2], one[0]))
        return [(path_read, entries) for _, path_read, entries in found]


# --- sorting and merging ------------------------------------------------------------------------------------


cdef extern from "paths/sort.h":
    ctypedef struct pm_entry:
        uint64_t place

    ctypedef struct pm_sorter:
        pm_bytes records
        int64_t count

    void pm_sorter_free(pm_sorter *) noexcept nogil
    int pm_sorter_add_column(pm_sorter *, const pm_column *, const pm_column *, uint64_t,
                             const int64_t *) noexcept nogil
    void pm_sorter_sort(pm_sorter *) noexcept nogil
    int64_t pm_sorter_measure(const pm_sorter *, int64_t, int64_t *) noexcept nogil
    void pm_sorter_take(pm_sorter *, int64_t, uint8_t *) noexcept nogil


cdef extern from "paths/merge.h":
    enum:
        PM_MERGED
        PM_ENOUGH
        PM_MERGE_NO_MEMORY
        PM_MERGE_DAMAGED

    ctypedef struct pm_spelling:
        int64_t key
        int64_t key_length
        int64_t path
        int64_t path_length
        int64_t count
        int64_t numbers
        int64_t number_count

    ctypedef struct pm_merge:
        pm_bytes texts
        pm_bytes numbers_found
        pm_spelling *found
        int64_t found_count
        pm_tree *tree

    int pm_merge_init(pm_merge *, int64_t, int64_t) noexcept nogil
    void pm_merge_free(pm_merge *) noexcept nogil
    int pm_merge_feed(pm_merge *, int64_t, const uint8_t *, int64_t) noexcept nogil
    int64_t pm_merge_step(pm_merge *, int64_t) noexcept nogil


cdef class PathSorter:
    """The records of paths, sorted in memory."""

    cdef pm_sorter sorter
    # Several threads may use the object at the same time without the GIL.
    cdef cython.pymutex lock

    def __dealloc__(self):
        pm_sorter_free(&self.sorter)

    def __init__(self):
        pass

    def add(self, ByteColumn paths not None, ByteColumn folded not None, uint64_t number, skip):
        """Add paths, numbered from ``number``.

        :param folded: the folded form of each path that is not ASCII, in order
        :param skip: the ascending indices of items that are not paths; they have numbers as well
        """
        cdef const int64_t[::1] skipped = array("q", [*skip, -1])
        cdef int status
        with self.lock:
            with nogil:
                status = pm_sorter_add_column(&self.sorter, &paths.column, &folded.column, number, &skipped[0])
        if status < 0:
            raise MemoryError

    def size(self):
        """Return the memory of the records in bytes."""
        with self.lock:
            return self.sorter.records.size + self.sorter.count * <int64_t>sizeof(pm_entry)

    def sort(self):
        """Sort the records."""
        with self.lock:
            with nogil:
                pm_sorter_sort(&self.sorter)

    def take(self, int64_t size):
        """Return the next sorted records, each after its length: about ``size`` bytes; empty after the last record.

        The sorter is empty again after the last record.
        """
        cdef int64_t count, length
        cdef bytes block
        cdef uint8_t *data
        with self.lock:
            with nogil:
                count = pm_sorter_measure(&self.sorter, size, &length)
            block = PyBytes_FromStringAndSize(NULL, length)
            data = <uint8_t *><char *>block
            if count > 0:
                with nogil:
                    pm_sorter_take(&self.sorter, count, data)
        return block


cdef class PathMerge:
    """A merge of sorted runs of records, which returns only the paths that may collide.

    :param runs: the number of runs
    :param first: how many numbers to keep for each spelling
    :param tree: counts the directories of all paths; optional
    """

    cdef pm_merge merge
    cdef list blocks
    cdef PathTree tree
    cdef cython.pymutex lock

    def __dealloc__(self):
        pm_merge_free(&self.merge)

    def __init__(self, int64_t runs, int64_t first, PathTree tree=None):
        if self.blocks is not None or runs < 0 or first < 0:
            raise ValueError("already initialized, or a negative number")
        # The runs point into these blocks.
        self.blocks = [None] * runs
        if pm_merge_init(&self.merge, runs, first) < 0:
            raise MemoryError
        if tree is not None:
            self.tree = tree
            self.merge.tree = &tree.tree

    def feed(self, int64_t run, bytes block not None):
        """Add the next whole records of a run that :meth:`step` returned; empty at the end of the run."""
        cdef int status
        with self.lock:
            status = pm_merge_feed(&self.merge, run, <const uint8_t *><char *>block, len(block))
            if status < 0:
                raise ValueError("incomplete records, or the run does not need records")
            self.blocks[run] = block

    def step(self, int64_t most):
        """Merge until a run needs records or about ``most`` spellings are found.

        A path may collide if another path has the same key, if it is inside another path, or if another path is inside
        it.

        :returns: the number of the run, -1 at the end, or -2 if there are more spellings; and the spellings: the key as
            written in records, the path, the number of paths with this spelling, and their first numbers
        """
        with self.lock:
            if self.tree is None:
                return self.found(most)
            with self.tree.lock:
                return self.found(most)

    cdef tuple found(self, int64_t most):
        cdef pm_merge *merge = &self.merge
        cdef int64_t run, index, number
        cdef pm_spelling *spelling
        cdef const uint64_t *numbers
        cdef const char *texts
        cdef list found = []
        with nogil:
            run = pm_merge_step(merge, most)
        if run == PM_MERGE_NO_MEMORY:
            raise MemoryError
        if run == PM_MERGE_DAMAGED:
            raise ValueError("incomplete records")
        texts = <const char *>merge.texts.data
        for index in range(merge.found_count):
            spelling = &merge.found[index]
            numbers = <const uint64_t *>merge.numbers_found.data + spelling.numbers
            found.append((
                PyBytes_FromStringAndSize(texts + spelling.key, spelling.key_length),
                PyBytes_FromStringAndSize(texts + spelling.path, spelling.path_length),
                spelling.count,
                tuple([numbers[number] for number in range(spelling.number_count)]),
            ))
        return run, found


# --- columns of paths ---------------------------------------------------------------------------------------


cdef extern from "paths/systems.h":
    int64_t pm_suspicious(const pm_column *, const uint8_t *, int64_t, int64_t, int, int64_t *,
                          int64_t *) noexcept nogil


def beyond_ascii(ByteColumn paths not None):
    """Return the ascending indices of the items that are not ASCII."""
    cdef const pm_column *column = &paths.column
    cdef Py_ssize_t index
    # Nearly always a single check of the whole buffer replaces one for each item.
    if pm_is_ascii(column.bytes.data, column.bytes.size):
        return []
    return [
        index
        for index in range(column.count)
        if not pm_is_ascii(column.bytes.data + column.offsets[index], column.offsets[index + 1] - column.offsets[index])
    ]


def starts_with(ByteColumn items not None, bytes prefix not None):
    """Return the ascending indices of the items that start with ``prefix``."""
    cdef const pm_column *column = &items.column
    cdef const char *data = prefix
    cdef int64_t size = len(prefix), index
    found = []
    for index in range(column.count):
        if (
            column.offsets[index + 1] - column.offsets[index] >= size
            and memcmp(column.bytes.data + column.offsets[index], data, size) == 0
        ):
            found.append(index)
    return found


def suspicious(
    ByteColumn paths not None, bytes classes not None, int64_t longest_segment, int64_t longest_path, bint devices
):
    """Return the indices of suspicious paths, and how many paths have a segment with a discouraged first byte.

    A path is suspicious if it is too long or has a segment that is empty, ``.``, ``..`` or too long, contains a
    rejected byte, ends with a byte that must not be the last one, or, if ``devices``, starts like the name of a device.

    :param classes: bits for each of the 256 bytes: 1 rejected, 2 not at the end of a segment, 4 discouraged at the
        start of a segment
    :param longest_segment: length in bytes above which a segment is too long
    :param longest_path: length in bytes above which a path is too long
    :param devices: check for CON, PRN, AUX, NUL, COM and LPT, in either case
    """
    if len(classes) != 256:
        raise ValueError("expected 256 classes")
    cdef const uint8_t *table = <const uint8_t *><char *>classes
    cdef const pm_column *column = &paths.column
    cdef int64_t count, index, advised = 0
    cdef int64_t *found = <int64_t *>malloc((column.count + 1) * sizeof(int64_t))
    if found == NULL:
        raise MemoryError
    try:
        with nogil:
            count = pm_suspicious(column, table, longest_segment, longest_path, devices, found, &advised)
        return [found[index] for index in range(count)], advised
    finally:
        free(found)


cdef extern from "paths/lengths.h":
    enum:
        PM_MEASURES
        PM_LENGTH_ROWS

    ctypedef struct pm_lengths:
        int64_t *counts
        pm_bytes longer

    int pm_lengths_init(pm_lengths *) noexcept nogil
    void pm_lengths_free(pm_lengths *) noexcept nogil
    int pm_lengths_add_column(pm_lengths *, const pm_column *, const int64_t *) noexcept nogil


cdef class PathLengths:
    """Histograms of the lengths and depths of paths."""

    cdef pm_lengths lengths
    # Several threads may use the object at the same time without the GIL.
    cdef cython.pymutex lock

    def __dealloc__(self):
        pm_lengths_free(&self.lengths)

    def __init__(self):
        if self.lengths.counts != NULL:
            raise ValueError("already initialized")
        if pm_lengths_init(&self.lengths) < 0:
            raise MemoryError

    def add(self, ByteColumn paths not None, skip):
        """Add paths.

        :param skip: the ascending indices of items that are not paths
        """
        cdef const int64_t[::1] skipped = array("q", [*skip, -1])
        cdef int status
        with self.lock:
            with nogil:
                status = pm_lengths_add_column(&self.lengths, &paths.column, &skipped[0])
        if status < 0:
            raise MemoryError

    def histogram(self, int measure):
        """Return ascending pairs: a length and its frequency."""
        if not 0 <= measure < PM_MEASURES:
            raise ValueError(f"unknown measure {measure}")
        cdef const int64_t *counts = self.lengths.counts + measure * PM_LENGTH_ROWS
        cdef const int64_t *longer
        cdef int64_t length, index
        cdef dict rest = {}
        with self.lock:
            longer = <const int64_t *>self.lengths.longer.data
            found = [(length, counts[length]) for length in range(PM_LENGTH_ROWS) if counts[length]]
            for index in range(self.lengths.longer.size // (2 * <int64_t>sizeof(int64_t))):
                if longer[2 * index] == measure:
                    length = longer[2 * index + 1]
                    rest[length] = rest.get(length, 0) + 1
        return found + sorted(rest.items())


# --- manifests ----------------------------------------------------------------------------------------------


cdef extern from "paths/manifest_index.h":
    enum:
        PM_INDEX_NO_MEMORY
        PM_SALT_MAXIMUM

    uint64_t PM_LINE_ODD
    uint64_t PM_LINE_FOLDING
    uint64_t PM_LINE_MARKED
    uint64_t PM_LINE_OFFSET

    ctypedef struct pm_index:
        int64_t digits
        int64_t limit
        uint8_t *prefix
        int64_t prefix_length
        uint8_t *salt
        int64_t salt_length
        int64_t *fingerprints
        uint64_t *offsets
        int64_t count
        uint32_t *slots
        uint64_t mask

    int pm_index_init(pm_index *) noexcept nogil
    void pm_index_free(pm_index *) noexcept nogil
    int pm_index_fingerprint(const pm_index *, const uint8_t *, int64_t, int64_t *) noexcept nogil
    int pm_index_add(pm_index *, const uint8_t *, int64_t, uint64_t) noexcept nogil
    int pm_index_scan(pm_index *, const uint8_t *, int64_t, int64_t *, int64_t, int, int64_t *) noexcept nogil
    int64_t pm_index_next(const pm_index *, int64_t, uint64_t, uint64_t) noexcept nogil


# Filled by the first index: most commands need no table.
cdef dict _STATUS = {}


cdef class ManifestIndex:
    """The offsets of the lines of a manifest, by the fingerprints of their paths.

    :param digits: the hex digits of a checksum; 0 if no line is plain
    :param prefix: the prefix of all paths
    :param limit: the maximum length of a line
    :param salt: a secret that prevents chosen collisions of fingerprints
    """

    cdef pm_index index
    # Several threads may use the object at the same time without the GIL.
    cdef cython.pymutex lock

    def __cinit__(self):
        if pm_index_init(&self.index) < 0:
            raise MemoryError

    def __dealloc__(self):
        pm_index_free(&self.index)

    def __init__(self, int64_t digits, bytes prefix not None, int64_t limit, bytes salt not None):
        if self.index.prefix != NULL or len(salt) > PM_SALT_MAXIMUM:
            raise ValueError("already initialized, or the salt is too long")
        if not _STATUS:
            from pressmark._kernels.tables import LineStatus

            _STATUS.update({int(status): status for status in LineStatus})
        self.index.digits = digits
        self.index.limit = limit
        self.index.prefix_length = len(prefix)
        self.index.prefix = <uint8_t *>malloc(len(prefix) + 1)
        if self.index.prefix == NULL:
            raise MemoryError
        memcpy(self.index.prefix, <char *>prefix, len(prefix))
        self.index.salt_length = len(salt)
        memcpy(self.index.salt, <char *>salt, len(salt))

    def __len__(self):
        with self.lock:
            return self.index.count

    def scan(self, bytes block not None, int64_t position, int64_t base, bint final):
        """Add plain lines from ``position`` until a line is not plain.

        :param base: the offset of the block in the manifest
        :param final: whether the manifest ends with the block
        :returns: the position after the last added line, the number of added lines, and a :class:`LineStatus`
        """
        cdef const uint8_t *data = <const uint8_t *><char *>block
        cdef int64_t size = len(block), lines = 0
        cdef int status
        if not 0 <= position <= size:
            raise IndexError(position)
        with self.lock:
            with nogil:
                status = pm_index_scan(&self.index, data, size, &position, base, final, &lines)
        if status < 0:
            raise _failure(status)
        return position, lines, _STATUS[status]

    def add(self, bytes path not None, uint64_t offset, bint odd):
        """Add one line, even if its path is already known."""
        if odd:
            offset |= PM_LINE_ODD
        cdef int status
        with self.lock:
            status = pm_index_add(&self.index, <const uint8_t *><char *>path, len(path), offset)
        if status < 0:
            raise _failure(status)

    def find(self, bytes path not None):
        """Return the numbers of the lines with the fingerprint of ``path``, in order."""
        cdef int64_t fingerprint
        cdef list found = []
        if pm_index_fingerprint(&self.index, <const uint8_t *><char *>path, len(path), &fingerprint) < 0:
            raise MemoryError
        cdef uint64_t slot
        cdef int64_t entry
        with self.lock:
            slot = <uint64_t>fingerprint & self.index.mask
            while self.index.slots[slot]:
                entry = <int64_t>self.index.slots[slot] - 1
                if self.index.fingerprints[entry] == fingerprint:
                    found.append(entry)
                slot = (slot + 1) & self.index.mask
        return found

    def line(self, int64_t entry):
        """Return the offset of the line in the manifest; its complement (negative) if the line is not plain."""
        cdef uint64_t offset
        with self.lock:
            offset = self.index.offsets[self.checked(entry)]
        cdef int64_t begin = <int64_t>(offset & PM_LINE_OFFSET)
        return ~begin if offset & PM_LINE_ODD else begin

    def mark(self, int64_t entry):
        """Mark the line."""
        with self.lock:
            self.index.offsets[self.checked(entry)] |= PM_LINE_MARKED

    def is_marked(self, int64_t entry):
        """Return whether the line is marked."""
        with self.lock:
            return self.index.offsets[self.checked(entry)] & PM_LINE_MARKED != 0

    def next_unmarked(self, int64_t entry):
        """Return the first line from ``entry`` that is not marked, or -1."""
        with self.lock:
            return pm_index_next(&self.index, max(entry, 0), PM_LINE_MARKED, 0)

    def next_folding(self, int64_t entry):
        """Return the first line from ``entry`` whose path does not fold to itself, or -1."""
        with self.lock:
            return pm_index_next(&self.index, max(entry, 0), PM_LINE_FOLDING, PM_LINE_FOLDING)

    cdef int64_t checked(self, int64_t entry) except -1:
        if not 0 <= entry < self.index.count:
            raise IndexError(entry)
        return entry


cdef object _failure(int status):
    return MemoryError() if status == PM_INDEX_NO_MEMORY else OverflowError("too many lines")
