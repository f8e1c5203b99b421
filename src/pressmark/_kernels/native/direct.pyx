"""OCFL 0002: the identifier is the path, if it is a safe one."""

from libc.stdint cimport int64_t, uint8_t

from pressmark._kernels.native.packed cimport PM_MAX_IDENTIFIER_BYTES, Kernel, pm_work

__all__ = ["DirectMap"]


cdef extern from "direct.h":
    int pm_direct_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class DirectMap(Kernel):
    """Map an identifier to itself; its own inverse."""

    def __init__(self):
        self.function = pm_direct_map
        self.limit = PM_MAX_IDENTIFIER_BYTES
