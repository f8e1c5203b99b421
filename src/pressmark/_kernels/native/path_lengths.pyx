"""How long paths are, how deep, and how near to their neighbours: counts over columns of them.

What is counted says the readable twin.
"""

from array import array

cimport cython
from libc.stdint cimport int64_t, uint8_t

from pressmark._kernels.native.packed cimport Packed, pm_bytes, pm_column

__all__ = ["PathLengths", "beginning"]


cdef extern from *:
    int memcmp(const void *, const void *, size_t) noexcept nogil


cdef extern from "path_lengths.h":
    enum:
        PM_MEASURES
        PM_LENGTH_ROWS

    ctypedef struct pm_lengths:
        int64_t *counts
        pm_bytes longer
        int64_t paths
        int64_t shared
        int64_t parents

    int pm_lengths_init(pm_lengths *) noexcept nogil
    void pm_lengths_free(pm_lengths *) noexcept nogil
    int pm_lengths_add_column(pm_lengths *, const pm_column *, const int64_t *) noexcept nogil


cdef class PathLengths:
    """Counts over paths, in the order in which they are added."""

    cdef pm_lengths lengths
    # Without the GIL several threads would be in one object at once.
    cdef cython.pymutex lock

    def __dealloc__(self):
        pm_lengths_free(&self.lengths)

    def __init__(self):
        if self.lengths.counts != NULL:
            raise ValueError("made already")
        if pm_lengths_init(&self.lengths) < 0:
            raise MemoryError

    def add(self, Packed paths not None, skip):
        """Take in paths.

        :param skip: the ascending indices of items that are no paths
        """
        cdef const int64_t[::1] skipped = array("q", [*skip, -1])
        cdef int status
        with self.lock:
            with nogil:
                status = pm_lengths_add_column(&self.lengths, &paths.column, &skipped[0])
        if status < 0:
            raise MemoryError

    def histogram(self, int measure):
        """Return ascending pairs: a length, and how often it occurs."""
        if not 0 <= measure < PM_MEASURES:
            raise ValueError(f"no measure {measure}")
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

    def neighbours(self):
        """Return three sums.

        :returns: how many paths there are; the leading segments that each has in common with the one before it; the
            different parents of each thousand
        """
        with self.lock:
            return self.lengths.paths, self.lengths.shared, self.lengths.parents


def beginning(Packed items not None, bytes octets not None):
    """Return the ascending indices of the items that begin with ``octets``."""
    cdef const pm_column *column = &items.column
    cdef const char *data = octets
    cdef int64_t size = len(octets), index
    found = []
    for index in range(column.count):
        if (
            column.offsets[index + 1] - column.offsets[index] >= size
            and memcmp(column.bytes.data + column.offsets[index], data, size) == 0
        ):
            found.append(index)
    return found
