# The kernels of the layouts. mapping.pyx includes this file.

# --- Pairtree -----------------------------------------------------------------------------------------------


cdef extern from "mapping/pairtree.h":
    ctypedef struct pm_pairtree_put:
        pass

    pm_pairtree_put pm_pairtree_put_for(pm_level, bint)

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
        self.pairtree.put = pm_pairtree_put_for(current_level(), permutes_bytes())
        self.parameters = &self.pairtree
        self.function = pm_pairtree_map
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class PairtreeUnmap(Kernel):
    """Map a ppath to its identifier: components of two characters that cleaning can produce."""

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
    """Clean an identifier without splitting it; the empty identifier stays empty."""

    def __init__(self):
        self.function = pm_pairtree_clean
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class PairtreeUnclean(Kernel):
    """Undo cleaning once; characters that cleaning would change are kept."""

    def __init__(self):
        self.function = pm_pairtree_unclean
        self.limit = PM_MAX_PATH_BYTES


# --- Vitro --------------------------------------------------------------------------------------------------


cdef extern from "mapping/vitro.h":
    ctypedef struct pm_vitro_namespace:
        uint8_t prefix
        const uint8_t *namespace_
        int64_t length

    ctypedef struct pm_vitro:
        pm_vitro_namespace *namespaces
        int count

    int PM_VITRO_NAMESPACES
    int pm_vitro_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_vitro_decode(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_vitro_encode_filename(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_vitro_decode_filename(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class _VitroKernel(Kernel):
    cdef pm_vitro vitro
    cdef list kept

    def __init__(self, namespaces not None):
        cdef bytes prefix, namespace
        cdef int number
        # If several namespaces match, the lowest prefix character wins.
        self.kept = sorted(namespaces.items())
        if len(self.kept) > PM_VITRO_NAMESPACES:
            raise ValueError("more namespaces than prefixes")
        for number, (prefix, namespace) in enumerate(self.kept):
            self.vitro.namespaces[number].prefix = prefix[0]
            self.vitro.namespaces[number].namespace_ = namespace
            self.vitro.namespaces[number].length = len(namespace)
        self.vitro.count = len(self.kept)
        self.parameters = &self.vitro


cdef class VitroMap(_VitroKernel):
    """Map an identifier to its path under ``file_storage_root``."""

    def __init__(self, namespaces not None):
        super().__init__(namespaces)
        self.function = pm_vitro_map
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class _VitroDecode(_VitroKernel):
    """The lenient half of the inverse; :class:`VitroUnmap` checks its result."""

    def __init__(self, namespaces not None):
        super().__init__(namespaces)
        self.function = pm_vitro_decode
        self.limit = PM_MAX_PATH_BYTES


cdef class VitroUnmap(Inverse):
    """Map a path under ``file_storage_root`` to its identifier, strictly."""

    def __init__(self, namespaces not None):
        super().__init__(_VitroDecode(namespaces), VitroMap(namespaces))


cdef class VitroEncodeFilename(Kernel):
    """Encode a file name: the same steps as for identifiers, but periods stay and nothing is split."""

    def __init__(self):
        self.function = pm_vitro_encode_filename
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class VitroDecodeFilename(Kernel):
    """Decode a stored file name: the guard, the substitutions, and escapes of either case."""

    def __init__(self):
        self.function = pm_vitro_decode_filename
        self.limit = PM_MAX_PATH_BYTES


# --- OCFL ---------------------------------------------------------------------------------------------------


cdef extern from "mapping/omit_prefix.h":
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

    int pm_flat_omit_prefix_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_n_tuple_omit_prefix_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_differential_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_direct_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class DirectMap(Kernel):
    """Map an identifier to itself; this is its own inverse."""

    def __init__(self):
        self.function = pm_direct_map
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class _OmitPrefix(Kernel):
    """Base of the three layouts: removes the prefix up to and including the right-most delimiter."""

    cdef pm_omit_prefix layout
    cdef bytes delimiter

    def __init__(self, bytes delimiter not None):
        self.delimiter = bytes([pm_lower[byte] for byte in delimiter])
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
    """OCFL 0007: tuples of the padded and optionally reversed rest, then the rest."""

    def __init__(
        self, bytes delimiter not None, int64_t tuple_size, int64_t number_of_tuples, bint pad_left, bint reverse
    ):
        super().__init__(delimiter)
        self.layout.tuple_size = tuple_size
        self.layout.number_of_tuples = number_of_tuples
        self.layout.pad_left = pad_left
        self.layout.reverse = reverse
        self.function = pm_n_tuple_omit_prefix_map


cdef class DifferentialMap(_OmitPrefix):
    """OCFL 0010: segments of the given sizes, which must add up to the rest, then optionally the rest."""

    cdef const int64_t[::1] sizes

    def __init__(self, bytes delimiter not None, sizes not None, bint full_identifier):
        super().__init__(delimiter)
        self.sizes = array("q", sizes)
        self.layout.sizes = &self.sizes[0]
        self.layout.sizes_count = len(sizes)
        self.layout.full_identifier = full_identifier
        self.function = pm_differential_map


cdef extern from "mapping/digest.h":
    ctypedef void (*pm_digests)(int, const uint8_t *, const int64_t *, int64_t, uint8_t *) noexcept nogil


cdef extern from "mapping/hashed.h":
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

    int pm_map_hashed_column(const pm_hashed *, int64_t, const pm_column *, pm_column *, pm_errors *) noexcept nogil
    int pm_encapsulation_decode(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class _Tuples(Kernel):
    """Base of the three layouts: ``number_of_tuples`` pieces of ``tuple_size`` from the start of the digest."""

    cdef pm_hashed hashed

    def __init__(self, algorithm, int64_t tuple_size, int64_t number_of_tuples):
        self.hashed.digests = digest_column
        self.hashed.algorithm = algorithm_number(algorithm)
        self.hashed.digest_size = digest_size(self.hashed.algorithm)
        self.hashed.tuple_size = tuple_size
        self.hashed.number_of_tuples = number_of_tuples
        self.limit = PM_MAX_IDENTIFIER_BYTES

    cdef int run(self, const pm_column *source, pm_column *out, pm_errors *errors) noexcept nogil:
        return pm_map_hashed_column(&self.hashed, self.limit, source, out, errors)


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
        # One more than needed: malloc(0) may return NULL.
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
    """OCFL 0004: digest tuples, then the digest or its rest."""

    def __init__(self, algorithm, int64_t tuple_size, int64_t number_of_tuples, bint short_root):
        super().__init__(algorithm, tuple_size, number_of_tuples)
        self.hashed.name_start = tuple_size * number_of_tuples if short_root else 0


cdef class _EncapsulationDecode(Kernel):
    """The lenient half of the inverse: percent-decodes the last segment."""

    def __init__(self):
        self.function = pm_encapsulation_decode
        self.limit = PM_MAX_PATH_BYTES


cdef class HashAndIdUnmap(Inverse):
    """The strict inverse of OCFL 0003: checks the digest tuples against the decoded identifier."""

    def __init__(self, algorithm, int64_t tuple_size, int64_t number_of_tuples):
        super().__init__(_EncapsulationDecode(), HashAndIdMap(algorithm, tuple_size, number_of_tuples, ()))


cdef extern from "mapping/clean_path.h":
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

    int pm_clean_path_map(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil
    int pm_clean_path_decode(const void *, const uint8_t *, int64_t, pm_work *) noexcept nogil


cdef class _CleanPathKernel(Kernel):
    """The parameters of OCFL 0011, named as in its section "Parameters"; strings are UTF-8."""

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
        cdef uint8_t byte
        self.replacement = replacement_string
        # White space is replaced first, so a dangerous character in its replacement is replaced as well. Do this once,
        # here.
        self.white = b"".join([
            replacement_string if pm_clean_dangerous[byte] else bytes([byte]) for byte in whitespace_replacement_string
        ])
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
        self.layout.digest_size = digest_size(self.layout.algorithm)
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
    """The lenient half of the inverse with encodeUTF: decodes each ``=uXXXX``, left to right."""

    def __init__(self, *values):
        super().__init__(*values)
        self.function = pm_clean_path_decode
        self.limit = PM_MAX_PATH_BYTES


cdef class CleanPathUnmap(Inverse):
    """The strict inverse of OCFL 0011 with encodeUTF."""

    def __init__(self, *values):
        super().__init__(_CleanPathDecode(*values), CleanPathMap(*values))
