# cython: language_level=3
"""C columns, and the classes of columns and kernels, for the other extensions."""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "mapping/kernel.h":
    ctypedef struct pm_bytes:
        uint8_t *data
        int64_t size
        int64_t capacity

    ctypedef struct pm_column:
        pm_bytes bytes
        int64_t *offsets
        int64_t count

    ctypedef struct pm_error:
        int64_t index
        int64_t position
        int32_t code

    ctypedef struct pm_errors:
        pm_error *list
        int64_t count
        int64_t capacity

    ctypedef struct pm_work:
        pass

    ctypedef int (*pm_map_item)(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil

    int pm_reserve(pm_bytes *, int64_t) noexcept nogil
    int pm_append(pm_bytes *, const void *, int64_t) noexcept nogil
    void pm_free_bytes(pm_bytes *) noexcept nogil
    int pm_new_column(pm_column *, int64_t, int64_t) noexcept nogil
    int pm_copy_items(const pm_column *, int64_t, int64_t, pm_column *) noexcept nogil
    void pm_free_column(pm_column *) noexcept nogil
    void pm_end_item(pm_column *) noexcept nogil
    bint pm_is_ascii(const uint8_t *, int64_t) noexcept nogil


cdef class ByteColumn:
    cdef pm_column column


cdef class Kernel:
    cdef pm_map_item function
    cdef const void *parameters
    cdef readonly int64_t limit
    cdef int run(self, const pm_column *source, pm_column *out, pm_errors *errors) noexcept nogil


cdef class Inverse(Kernel):
    cdef Kernel decode
    cdef Kernel map_again
