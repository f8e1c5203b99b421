"""OCFL 0006, 0007 and 0010: what follows the right-most delimiter is the object's name."""

from array import array

from libc.stdint cimport int64_t, uint8_t

from pressmark._kernels.native.packed cimport PM_MAX_IDENTIFIER_BYTES, Kernel, pm_work

__all__ = ["DifferentialMap", "FlatOmitPrefixMap", "NTupleOmitPrefixMap"]


cdef extern from "omit_prefix.h":
    ctypedef struct pm_omit_prefix:
        const uint8_t *delimiter
        int64_t delimiter_length
        int64_t tuple_size
        int64_t number_of_tuples
        int pad_left
        int reverse
        const int64_t *sizes
        int64_t sizes_count
        int full_identifier

    const uint8_t pm_lower[256]
    int pm_flat_omit_prefix_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_n_tuple_omit_prefix_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_differential_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class _OmitPrefix(Kernel):
    """What the three layouts share: the prefix goes, up to and including the right-most delimiter."""

    cdef pm_omit_prefix layout
    cdef bytes delimiter

    def __init__(self, bytes delimiter not None):
        self.delimiter = bytes([pm_lower[octet] for octet in delimiter])
        self.layout.delimiter = self.delimiter
        self.layout.delimiter_length = len(delimiter)
        self.parameters = &self.layout
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class FlatOmitPrefixMap(_OmitPrefix):
    """OCFL 0006: the rest is the path."""

    def __init__(self, bytes delimiter not None):
        super().__init__(delimiter)
        self.function = pm_flat_omit_prefix_map


cdef class NTupleOmitPrefixMap(_OmitPrefix):
    """OCFL 0007: tuples of the padded, perhaps reversed rest, then the rest."""

    def __init__(self, bytes delimiter not None, int64_t tuple_size, int64_t number_of_tuples, bint pad_left, bint reverse):
        super().__init__(delimiter)
        self.layout.tuple_size = tuple_size
        self.layout.number_of_tuples = number_of_tuples
        self.layout.pad_left = pad_left
        self.layout.reverse = reverse
        self.function = pm_n_tuple_omit_prefix_map


cdef class DifferentialMap(_OmitPrefix):
    """OCFL 0010: segments of the given sizes, which must use the rest up, then perhaps the rest."""

    cdef const int64_t[::1] sizes

    def __init__(self, bytes delimiter not None, sizes not None, bint full_identifier):
        super().__init__(delimiter)
        self.sizes = array("q", sizes)
        self.layout.sizes = &self.sizes[0]
        self.layout.sizes_count = len(sizes)
        self.layout.full_identifier = full_identifier
        self.function = pm_differential_map
