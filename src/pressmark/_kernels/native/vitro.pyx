"""Vitro file storage: identifiers to paths of three-character groups, and file names."""

from libc.stdint cimport int64_t, uint8_t

from pressmark._kernels.native.packed cimport (
    PM_MAX_IDENTIFIER_BYTES,
    PM_MAX_PATH_BYTES,
    Inverse,
    Kernel,
    pm_work,
)

__all__ = ["VitroDecodeFilename", "VitroEncodeFilename", "VitroMap", "VitroUnmap"]


cdef extern from "vitro.h":
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
        # The lowest prefix character wins when several namespaces match (rules/vitro.md section 4, number 8).
        self.kept = sorted(namespaces.items())
        if len(self.kept) > PM_VITRO_NAMESPACES:
            raise ValueError("more namespaces than there are prefixes")
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
    """The loose half of the inverse; :class:`VitroUnmap` maps the result again to be sure."""

    def __init__(self, namespaces not None):
        super().__init__(namespaces)
        self.function = pm_vitro_decode
        self.limit = PM_MAX_PATH_BYTES


cdef class VitroUnmap(Inverse):
    """Map a path under ``file_storage_root`` to its identifier, strictly."""

    def __init__(self, namespaces not None):
        super().__init__(_VitroDecode(namespaces), VitroMap(namespaces))


cdef class VitroEncodeFilename(Kernel):
    """Encode a file's name: the steps of identifiers, except that periods stay and nothing is split."""

    def __init__(self):
        self.function = pm_vitro_encode_filename
        self.limit = PM_MAX_IDENTIFIER_BYTES


cdef class VitroDecodeFilename(Kernel):
    """Decode a stored file's name: the guard, the substitutions, then the escapes of either case."""

    def __init__(self):
        self.function = pm_vitro_decode_filename
        self.limit = PM_MAX_PATH_BYTES
