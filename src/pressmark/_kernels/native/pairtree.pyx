"""Pairtree V0.1: cleaning, splitting into pairs, and both inverses."""

from libc.stdint cimport int64_t, uint8_t

from pressmark._kernels.native.digests import level

from pressmark._kernels.native.packed cimport (
    PM_MAX_IDENTIFIER_BYTES,
    PM_MAX_PATH_BYTES,
    Kernel,
    pm_work,
)

__all__ = ["PairtreeClean", "PairtreeMap", "PairtreeUnclean", "PairtreeUnmap"]


cdef extern from "pairtree.h":
    ctypedef struct pm_pairtree_put:
        pass

    pm_pairtree_put pm_pairtree_put_for(const char *level)

    ctypedef struct pm_pairtree:
        const uint8_t *prefix
        int64_t prefix_length
        int prefix_required
        pm_pairtree_put put

    int pm_pairtree_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_pairtree_unmap(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_pairtree_clean(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_pairtree_unclean(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class PairtreeMap(Kernel):
    """Map an identifier to its ppath, without a trailing slash."""

    cdef pm_pairtree pairtree
    cdef bytes prefix

    def __init__(self, bytes prefix not None, bint prefix_required):
        self.prefix = prefix
        self.pairtree.prefix = self.prefix
        self.pairtree.prefix_length = len(prefix)
        self.pairtree.prefix_required = prefix_required
        self.pairtree.put = pm_pairtree_put_for(level().encode())
        self.parameters = &self.pairtree
        self.function = pm_pairtree_map
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class PairtreeUnmap(Kernel):
    """Map a ppath to its identifier: components of two, then what cleaning can have left in them."""

    cdef pm_pairtree pairtree
    cdef bytes prefix

    def __init__(self, bytes prefix not None):
        self.prefix = prefix
        self.pairtree.prefix = self.prefix
        self.pairtree.prefix_length = len(prefix)
        self.parameters = &self.pairtree
        self.function = pm_pairtree_unmap
        self.limit = PM_MAX_PATH_BYTES


cdef class PairtreeClean(Kernel):
    """Clean an identifier without splitting it; the empty one stays empty."""

    def __init__(self):
        self.function = pm_pairtree_clean
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class PairtreeUnclean(Kernel):
    """Undo cleaning, once; characters that cleaning would have changed pass as they are."""

    def __init__(self):
        self.function = pm_pairtree_unclean
        self.limit = PM_MAX_PATH_BYTES
