# cython: language_level=3
"""What the kernel modules share: the C column, and the classes that hold one and run over one."""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "column.h":
    ctypedef struct pm_bytes:
        uint8_t *data
        int64_t size
        int64_t capacity

    ctypedef struct pm_column:
        pm_bytes bytes
        int64_t *offsets
        int64_t count

    ctypedef struct pm_fault:
        int64_t index
        int64_t position
        int32_t code

    ctypedef struct pm_faults:
        pm_fault *list
        int64_t count
        int64_t capacity

    ctypedef struct pm_work:
        pass

    ctypedef int (*pm_map_item)(const void *parameters, const uint8_t *item, int64_t length, pm_work *work) noexcept nogil

    int64_t PM_MAX_IDENTIFIER_BYTES
    int64_t PM_MAX_PATH_BYTES


cdef class Packed:
    cdef pm_column column


cdef class Kernel:
    cdef pm_map_item function
    cdef const void *parameters
    cdef readonly int64_t limit
    cdef int run(self, const pm_column *source, pm_column *out, pm_faults *faults) noexcept nogil


cdef class Inverse(Kernel):
    cdef Kernel decode
    cdef Kernel map_again
