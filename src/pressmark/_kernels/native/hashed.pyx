"""OCFL 0003, 0004 and 0012: tuples of the identifier's digest."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from pressmark._kernels.native.digests cimport algorithm_number, digest_column, digest_octets
from pressmark._kernels.native.packed cimport (
    PM_MAX_IDENTIFIER_BYTES,
    PM_MAX_PATH_BYTES,
    Inverse,
    Kernel,
    pm_column,
    pm_faults,
    pm_work,
)

__all__ = ["HashAndIdMap", "HashAndIdUnmap", "HashedMap"]


cdef extern from "digest.h":
    ctypedef void (*pm_digests)(int, const uint8_t *, const int64_t *, int64_t, uint8_t *) noexcept nogil


cdef extern from "hashed.h":
    ctypedef struct pm_delimiter:
        const uint8_t *text
        int64_t length

    ctypedef struct pm_hashed:
        pm_digests digests
        int algorithm
        int64_t digest_size
        int64_t tuple_size
        int64_t number_of_tuples
        int with_identifier
        int64_t name_start
        const pm_delimiter *delimiters
        int64_t delimiters_count

    int pm_map_hashed_column(const pm_hashed *, int64_t, const pm_column *, pm_column *, pm_faults *) noexcept nogil
    int pm_encapsulation_decode(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class _Tuples(Kernel):
    """What the three layouts share: ``number_of_tuples`` pieces of ``tuple_size`` from the digest's start."""

    cdef pm_hashed hashed

    def __init__(self, algorithm, int64_t tuple_size, int64_t number_of_tuples):
        self.hashed.digests = digest_column
        self.hashed.algorithm = algorithm_number(algorithm)
        self.hashed.digest_size = digest_octets(self.hashed.algorithm)
        self.hashed.tuple_size = tuple_size
        self.hashed.number_of_tuples = number_of_tuples
        self.limit = PM_MAX_IDENTIFIER_BYTES

    cdef int run(self, const pm_column *source, pm_column *out, pm_faults *faults) noexcept nogil:
        return pm_map_hashed_column(&self.hashed, self.limit, source, out, faults)


cdef class HashAndIdMap(_Tuples):
    """OCFL 0003, and with ``delimiters`` 0012: digest tuples, then the percent-encoded identifier."""

    cdef pm_delimiter *delimiters
    cdef list kept

    def __init__(self, algorithm, int64_t tuple_size, int64_t number_of_tuples, delimiters not None):
        cdef bytes delimiter
        cdef Py_ssize_t number
        super().__init__(algorithm, tuple_size, number_of_tuples)
        self.hashed.with_identifier = 1
        self.kept = list(delimiters)
        free(self.delimiters)
        # One more than needed: malloc(0) may be NULL.
        self.delimiters = <pm_delimiter *>malloc((len(self.kept) + 1) * sizeof(pm_delimiter))
        if self.delimiters == NULL:
            raise MemoryError
        for number, delimiter in enumerate(self.kept):
            self.delimiters[number].text = delimiter
            self.delimiters[number].length = len(delimiter)
        self.hashed.delimiters = self.delimiters
        self.hashed.delimiters_count = len(self.kept)

    def __dealloc__(self):
        free(self.delimiters)


cdef class HashedMap(_Tuples):
    """OCFL 0004: digest tuples, then the digest or what the tuples left of it."""

    def __init__(self, algorithm, int64_t tuple_size, int64_t number_of_tuples, bint short_root):
        super().__init__(algorithm, tuple_size, number_of_tuples)
        self.hashed.name_start = tuple_size * number_of_tuples if short_root else 0


cdef class _EncapsulationDecode(Kernel):
    """The loose half of the inverse: the last segment, percent-decoded."""

    def __init__(self):
        self.function = pm_encapsulation_decode
        self.limit = PM_MAX_PATH_BYTES


cdef class HashAndIdUnmap(Inverse):
    """OCFL 0003 backwards, strictly: the digest tuples are checked against the decoded identifier."""

    def __init__(self, algorithm, int64_t tuple_size, int64_t number_of_tuples):
        super().__init__(_EncapsulationDecode(), HashAndIdMap(algorithm, tuple_size, number_of_tuples, ()))
