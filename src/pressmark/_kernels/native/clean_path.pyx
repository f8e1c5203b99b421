"""OCFL 0011: paths cleaned segment by segment, with a digest where that grows too long."""

from libc.stdint cimport int64_t, uint8_t

from pressmark._kernels.native.digests cimport algorithm_number, digest_column, digest_octets
from pressmark._kernels.native.packed cimport (
    PM_MAX_IDENTIFIER_BYTES,
    PM_MAX_PATH_BYTES,
    Inverse,
    Kernel,
    pm_work,
)

__all__ = ["CleanPathMap", "CleanPathUnmap"]


cdef extern from "digest.h":
    ctypedef void (*pm_digests)(int, const uint8_t *, const int64_t *, int64_t, uint8_t *) noexcept nogil


cdef extern from "clean_path.h":
    ctypedef struct pm_clean_path:
        int encode_utf
        int64_t max_path_segment_len
        int64_t max_pathname_len
        const uint8_t *replacement
        int64_t replacement_length
        const uint8_t *white
        int64_t white_length
        pm_digests digests
        int algorithm
        int64_t digest_size
        const uint8_t *folder
        int64_t folder_length
        int64_t tuples
        int64_t tuple_size
        int gocfl

    const uint8_t pm_clean_dangerous[256]
    int pm_clean_path_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_clean_path_decode(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class _CleanPathKernel(Kernel):
    """The parameters of OCFL 0011, as its section "Parameters" names them; strings as UTF-8."""

    cdef pm_clean_path layout
    cdef bytes replacement, white, folder

    def __init__(
        self,
        bint encode_utf,
        int64_t max_path_segment_len,
        int64_t max_pathname_len,
        bytes replacement_string not None,
        bytes whitespace_replacement_string not None,
        fallback_digest_algorithm,
        bytes fallback_folder not None,
        int64_t number_of_fallback_tuples,
        int64_t fallback_tuple_size,
        bint gocfl,
    ):
        cdef uint8_t octet
        self.replacement = replacement_string
        # White space is replaced first, so a dangerous character in its replacement is replaced again: once, here.
        self.white = b"".join(
            [replacement_string if pm_clean_dangerous[octet] else bytes([octet]) for octet in whitespace_replacement_string]
        )
        self.folder = fallback_folder
        self.layout.encode_utf = encode_utf
        self.layout.max_path_segment_len = max_path_segment_len
        self.layout.max_pathname_len = max_pathname_len
        self.layout.replacement = self.replacement
        self.layout.replacement_length = len(self.replacement)
        self.layout.white = self.white
        self.layout.white_length = len(self.white)
        self.layout.digests = digest_column
        self.layout.algorithm = algorithm_number(fallback_digest_algorithm)
        self.layout.digest_size = digest_octets(self.layout.algorithm)
        self.layout.folder = self.folder
        self.layout.folder_length = len(self.folder)
        self.layout.tuples = number_of_fallback_tuples
        self.layout.tuple_size = fallback_tuple_size
        self.layout.gocfl = gocfl
        self.parameters = &self.layout


cdef class CleanPathMap(_CleanPathKernel):
    """Map an identifier or a logical path to its clean path."""

    def __init__(self, *values):
        super().__init__(*values)
        self.function = pm_clean_path_map
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class _CleanPathDecode(_CleanPathKernel):
    """The loose half of the inverse under encodeUTF: every ``=uXXXX``, left to right."""

    def __init__(self, *values):
        super().__init__(*values)
        self.function = pm_clean_path_decode
        self.limit = PM_MAX_PATH_BYTES


cdef class CleanPathUnmap(Inverse):
    """OCFL 0011 backwards under encodeUTF, strictly."""

    def __init__(self, *values):
        super().__init__(_CleanPathDecode(*values), CleanPathMap(*values))
