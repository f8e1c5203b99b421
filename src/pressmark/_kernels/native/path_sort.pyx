"""Paths in the order of their folded keys: records for runs, and the merge that lets through what may clash.

What a record is says the readable twin.
"""

from array import array

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from pressmark._kernels.native.packed cimport Packed, pm_bytes, pm_column
from pressmark._kernels.native.path_tree cimport PathTree, pm_tree

__all__ = ["PathMerge", "PathSorter", "beyond_ascii", "questionable"]


cdef extern from "path_sort.h":
    enum:
        PM_MERGED
        PM_ENOUGH
        PM_MERGE_NO_MEMORY
        PM_MERGE_DAMAGED

    ctypedef struct pm_entry:
        uint64_t place

    ctypedef struct pm_sorter:
        pm_bytes records
        int64_t count

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

    bint pm_is_ascii(const uint8_t *, int64_t) noexcept nogil
    void pm_sorter_free(pm_sorter *) noexcept nogil
    int pm_sorter_add_column(pm_sorter *, const pm_column *, const pm_column *, uint64_t, const int64_t *) noexcept nogil
    void pm_sorter_sort(pm_sorter *) noexcept nogil
    int64_t pm_sorter_measure(const pm_sorter *, int64_t, int64_t *) noexcept nogil
    void pm_sorter_take(pm_sorter *, int64_t, uint8_t *) noexcept nogil
    int pm_merge_init(pm_merge *, int64_t, int64_t) noexcept nogil
    void pm_merge_free(pm_merge *) noexcept nogil
    int pm_merge_feed(pm_merge *, int64_t, const uint8_t *, int64_t) noexcept nogil
    int64_t pm_merge_step(pm_merge *, int64_t) noexcept nogil
    int64_t pm_questionable(const pm_column *, const uint8_t *, int64_t, int64_t, int, int64_t *, int64_t *) noexcept nogil


def beyond_ascii(Packed paths not None):
    """Return the ascending indices of the items that are not ASCII."""
    cdef const pm_column *column = &paths.column
    cdef Py_ssize_t index
    # One look at the whole buffer spares one for each item, nearly always.
    if pm_is_ascii(column.bytes.data, column.bytes.size):
        return []
    return [
        index
        for index in range(column.count)
        if not pm_is_ascii(column.bytes.data + column.offsets[index], column.offsets[index + 1] - column.offsets[index])
    ]


cdef class PathSorter:
    """The records of some paths, to be sorted in memory."""

    cdef pm_sorter sorter
    # Without the GIL several threads would be in one object at once.
    cdef cython.pymutex lock

    def __dealloc__(self):
        pm_sorter_free(&self.sorter)

    def __init__(self):
        pass

    def add(self, Packed paths not None, Packed folded not None, uint64_t number, skip):
        """Take in paths, numbered from ``number`` on.

        :param folded: for each path that is not ASCII, in order, what it folds to
        :param skip: the ascending indices of items that are no paths; they have numbers all the same
        """
        cdef const int64_t[::1] skipped = array("q", [*skip, -1])
        cdef int status
        with self.lock:
            with nogil:
                status = pm_sorter_add_column(&self.sorter, &paths.column, &folded.column, number, &skipped[0])
        if status < 0:
            raise MemoryError

    def octets(self):
        """Return how much memory the records take."""
        with self.lock:
            return self.sorter.records.size + self.sorter.count * <int64_t>sizeof(pm_entry)

    def sort(self):
        """Sort the records."""
        with self.lock:
            with nogil:
                pm_sorter_sort(&self.sorter)

    def take(self, int64_t size):
        """Return the next sorted records, each after its length: about ``size`` octets; none when all were taken.

        With the last of them the sorter is empty again.
        """
        cdef int64_t count, octets
        cdef bytes block
        cdef uint8_t *data
        with self.lock:
            with nogil:
                count = pm_sorter_measure(&self.sorter, size, &octets)
            block = PyBytes_FromStringAndSize(NULL, octets)
            data = <uint8_t *><char *>block
            if count > 0:
                with nogil:
                    pm_sorter_take(&self.sorter, count, data)
        return block


cdef class PathMerge:
    """The records of sorted runs in one order, of which it lets through only those that clash with others.

    :param runs: how many there are, numbered from 0
    :param first: how many numbers of one spelling to keep
    :param tree: what counts the directories of all paths, or None
    """

    cdef pm_merge merge
    cdef list blocks
    cdef PathTree tree
    cdef cython.pymutex lock

    def __dealloc__(self):
        pm_merge_free(&self.merge)

    def __init__(self, int64_t runs, int64_t first, PathTree tree=None):
        if self.blocks is not None or runs < 0 or first < 0:
            raise ValueError("made already, or of less than nothing")
        # The runs point into the blocks.
        self.blocks = [None] * runs
        if pm_merge_init(&self.merge, runs, first) < 0:
            raise MemoryError
        if tree is not None:
            self.tree = tree
            self.merge.tree = &tree.tree

    def feed(self, int64_t run, bytes block not None):
        """Give the run that :meth:`step` asked for its next records, whole ones; none where it has ended."""
        cdef int status
        with self.lock:
            status = pm_merge_feed(&self.merge, run, <const uint8_t *><char *>block, len(block))
            if status < 0:
                raise ValueError("no whole records, or a run that did not ask for them")
            self.blocks[run] = block

    def step(self, int64_t most):
        """Go on until a run needs records or there are ``most`` spellings, or a few more.

        Let through is every path whose key another one has, that is inside another, or that has another inside it.

        :returns: the run, -1 at the end, or -2 where there is more to come; and the spellings: the key as it is
            written in records, the path, how many paths are spelled so, and the numbers of the first of them
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
            raise ValueError("no whole records")
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


def questionable(Packed paths not None, bytes classes not None, int64_t longest_segment, int64_t longest_path, bint devices):
    """Return the indices of the paths that have to be looked at, and how many begin a segment with an advised octet.

    To be looked at are paths that are too long or have a segment that is empty, ``.``, ``..``, too long, holds a
    refused octet, ends in one that must not be the last, or, where it matters, begins as the name of a device does.

    :param classes: bits for each of the 256 octets: 1 refused, 2 not the last of a segment, 4 advised against as the
        first of a segment
    :param longest_segment: octets
    :param longest_path: octets
    :param devices: whether CON, PRN, AUX, NUL, COM and LPT matter, in either case
    """
    if len(classes) != 256:
        raise ValueError("not 256 classes")
    cdef const uint8_t *table = <const uint8_t *><char *>classes
    cdef const pm_column *column = &paths.column
    cdef int64_t count, index, advised = 0
    cdef int64_t *found = <int64_t *>malloc((column.count + 1) * sizeof(int64_t))
    if found == NULL:
        raise MemoryError
    try:
        with nogil:
            count = pm_questionable(column, table, longest_segment, longest_path, devices, found, &advised)
        return [found[index] for index in range(count)], advised
    finally:
        free(found)
