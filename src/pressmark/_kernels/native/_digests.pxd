# cython: language_level=3
"""The digest lanes and the vector level, for the other extensions."""

from libc.stdint cimport int64_t, uint8_t


cdef extern from "digests/lanes/lanes.h":
    ctypedef enum pm_level:
        PM_PORTABLE
        PM_LEVELS


cdef int algorithm_number(object algorithm) except -1
cdef int64_t digest_size(int algorithm) noexcept nogil
cdef void digest_column(int algorithm, const uint8_t *data, const int64_t *offsets, int64_t count,
                        uint8_t *out) noexcept nogil

# The only place that knows the vector level in use.
cdef pm_level current_level() noexcept nogil
cdef bint permutes_bytes() noexcept nogil
