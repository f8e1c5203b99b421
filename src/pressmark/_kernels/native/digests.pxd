# cython: language_level=3
"""The lanes, for the other kernel modules."""

from libc.stdint cimport int64_t, uint8_t

cdef int algorithm_number(object algorithm) except -1
cdef int64_t digest_octets(int algorithm) noexcept nogil
cdef void digest_column(int algorithm, const uint8_t *data, const int64_t *offsets, int64_t count,
                        uint8_t *out) noexcept nogil

# The streaming lanes, which only that module is linked with: a pm_lane_calls, as files.pyx declares it.
cdef const void *lane_calls() noexcept nogil
cdef int lane_level_number() noexcept nogil
