"""The lines of one manifest, found again by their paths: fingerprints and offsets, no text."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

from pressmark._kernels.tables import LineStatus

__all__ = ["ManifestIndex"]


cdef extern from "manifest_index.h":
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


cdef dict _STATUS = {int(status): status for status in LineStatus}


cdef class ManifestIndex:
    """Where the lines of a manifest are, by the fingerprints of their paths.

    :param digits: of a checksum; 0 where no line is plain
    :param prefix: of every path
    :param limit: the length that a line may have
    :param salt: nobody can choose paths of one fingerprint who does not know it
    """

    cdef pm_index index
    # Without the GIL several threads would be in one object at once.
    cdef cython.pymutex lock

    def __cinit__(self):
        if pm_index_init(&self.index) < 0:
            raise MemoryError

    def __dealloc__(self):
        pm_index_free(&self.index)

    def __init__(self, int64_t digits, bytes prefix not None, int64_t limit, bytes salt not None):
        if self.index.prefix != NULL or len(salt) > PM_SALT_MAXIMUM:
            raise ValueError("made already, or the salt is too long")
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
        """Take in plain lines, from ``position`` on, until there is one that is not.

        :param base: where the block begins in the manifest
        :param final: whether the manifest ends with the block
        :returns: where it stopped, how many lines it took in, and a :class:`LineStatus`
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
        """Take in one line, whether its path is there or not."""
        if odd:
            offset |= PM_LINE_ODD
        cdef int status
        with self.lock:
            status = pm_index_add(&self.index, <const uint8_t *><char *>path, len(path), offset)
        if status < 0:
            raise _failure(status)

    def find(self, bytes path not None):
        """Return the places of the lines that have the fingerprint of ``path``, in their order."""
        cdef int64_t fingerprint
        cdef list found = []
        if pm_index_fingerprint(&self.index, <const uint8_t *><char *>path, len(path), &fingerprint) < 0:
            raise MemoryError
        cdef uint64_t slot
        cdef int64_t place
        with self.lock:
            slot = <uint64_t>fingerprint & self.index.mask
            while self.index.slots[slot]:
                place = <int64_t>self.index.slots[slot] - 1
                if self.index.fingerprints[place] == fingerprint:
                    found.append(place)
                slot = (slot + 1) & self.index.mask
        return found

    def line(self, int64_t place):
        """Return where the line begins in the manifest, all bits turned over (so below 0) where it is not plain."""
        cdef uint64_t offset
        with self.lock:
            offset = self.index.offsets[self.checked(place)]
        cdef int64_t begin = <int64_t>(offset & PM_LINE_OFFSET)
        return ~begin if offset & PM_LINE_ODD else begin

    def mark(self, int64_t place):
        """Mark the line."""
        with self.lock:
            self.index.offsets[self.checked(place)] |= PM_LINE_MARKED

    def is_marked(self, int64_t place):
        """Return whether the line is marked."""
        with self.lock:
            return self.index.offsets[self.checked(place)] & PM_LINE_MARKED != 0

    def next_unmarked(self, int64_t place):
        """Return the first line from ``place`` on that is not marked; -1 where there is none."""
        with self.lock:
            return pm_index_next(&self.index, max(place, 0), PM_LINE_MARKED, 0)

    def next_folding(self, int64_t place):
        """Return the first line from ``place`` on that does not fold to itself; -1 where there is none."""
        with self.lock:
            return pm_index_next(&self.index, max(place, 0), PM_LINE_FOLDING, PM_LINE_FOLDING)

    cdef int64_t checked(self, int64_t place) except -1:
        if not 0 <= place < self.index.count:
            raise IndexError(place)
        return place


cdef object _failure(int status):
    return MemoryError() if status == PM_INDEX_NO_MEMORY else OverflowError("more lines than can be numbered")
