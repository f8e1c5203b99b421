"""Directories of an OCFL storage root, many in one call."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from pressmark._kernels.native._digests cimport algorithm_number, digest_column

__all__ = ["scan_ocfl"]


cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)


cdef extern from "ocfl/scan.h":
    enum:
        PM_OCFL_PLACES
        PM_OCFL_IDENTITIES
        PM_OCFL_OBJECTS
        PM_OCFL_CONTENT
        PM_OCFL_DEFERRED
        PM_OCFL_OBJECT
        PM_OCFL_REST

    ctypedef void (*pm_ocfl_hash)(const uint8_t *, const int64_t *, int64_t, uint8_t *) noexcept nogil

    ctypedef struct pm_bytes:
        uint8_t *data

    ctypedef struct pm_ocfl_text:
        int64_t at
        int64_t size

    ctypedef struct pm_ocfl_item:
        int kind
        pm_ocfl_text place
        pm_ocfl_text text
        int advice
        int64_t files
        int64_t bytes

    ctypedef struct pm_ocfl_scan:
        int reads
        int minor
        bint clashes
        int64_t budget
        pm_ocfl_hash hash
        pm_ocfl_item *items
        int64_t items_count
        pm_bytes text

    int pm_ocfl_read(pm_ocfl_scan *, const char *, const char *, const char *, int64_t) nogil
    void pm_ocfl_free(pm_ocfl_scan *) nogil


cdef dict _READS = {
    "places": PM_OCFL_PLACES,
    "identities": PM_OCFL_IDENTITIES,
    "objects": PM_OCFL_OBJECTS,
    "content": PM_OCFL_CONTENT,
}
cdef dict _VERSIONS = {"1.0": 0, "1.1": 1}
cdef int _SHA512 = algorithm_number("sha512")


cdef void _hash(const uint8_t *data, const int64_t *offsets, int64_t count, uint8_t *digests) noexcept nogil:
    digest_column(_SHA512, data, offsets, count, digests)


cdef class _Scan:
    """The results of one call."""

    cdef pm_ocfl_scan scan

    def __cinit__(self):
        memset(&self.scan, 0, sizeof(pm_ocfl_scan))

    def __dealloc__(self):
        pm_ocfl_free(&self.scan)

    cdef bytes raw(self, pm_ocfl_text text):
        return PyBytes_FromStringAndSize(<char *>self.scan.text.data + text.at, text.size)

    cdef str decoded(self, pm_ocfl_text text):
        return PyUnicode_DecodeUTF8(<char *>self.scan.text.data + text.at, text.size, "surrogateescape")

    cdef tuple objects(self, int64_t first, int64_t last):
        """Return consecutive objects."""
        cdef int64_t index
        cdef pm_ocfl_item *item
        cdef list places = [], identifiers = [], files = [], sizes = []
        cdef bytearray advice = bytearray()
        for index in range(first, last):
            item = &self.scan.items[index]
            places.append(self.decoded(item.place))
            identifiers.append(self.decoded(item.text))
            advice.append(item.advice)
            files.append(item.files)
            sizes.append(item.bytes)
        return places, identifiers, bytes(advice), files, sizes

    cdef list found(self):
        cdef int64_t index = 0, first
        cdef pm_ocfl_item *item
        cdef list found = []
        while index < self.scan.items_count:
            item = &self.scan.items[index]
            first = index
            index += 1
            if item.kind == PM_OCFL_OBJECT:
                while index < self.scan.items_count and self.scan.items[index].kind == PM_OCFL_OBJECT:
                    index += 1
                found.append((self.raw(item.place), self.objects(first, index)))
            else:
                rest = self.raw(item.text).removesuffix(b"\0").split(b"\0") if item.kind == PM_OCFL_REST else None
                found.append((self.raw(item.place), rest))
        return found


def scan_ocfl(bytes top not None, bytes place not None, list names not None, str reads not None, str version not None,
              bint clashes, int64_t budget):
    """Read directories of an OCFL storage root and the directories below them, in the order of their bytes.

    :param top: the path of their parent directory
    :param place: the same, relative to the root
    :param names: the directories, in order
    :param reads: what to read of an object: ``places``, nothing; ``identities``, the beginning of its inventory;
        ``objects``, all files except content, which is only opened; ``content``, all files
    :param version: of OCFL; objects of later versions are deferred
    :param clashes: defer directories with names that may differ only in case
    :param budget: the maximum number of directories to read; those in an object do not count; fewer are read if
        that takes too long
    :return: the rest of the budget, 0 if it took too long; and in order, each with its path relative to the root:
        :data:`None` for a directory that is deferred: it has an unusual feature, or cannot be read;
        a list of the names in a directory that were not read;
        and for consecutive objects, with the path of the first one, five sequences with an item for each: paths,
        identifiers, advice as in ``ocfl/inventory.h``, the number of content files, and their size in bytes
    """
    cdef _Scan found = _Scan()
    cdef pm_ocfl_scan *scan = &found.scan
    cdef int status
    cdef int64_t count = len(names)
    cdef bytes joined = b"\0".join(names)
    cdef const char *here = top
    cdef const char *above = place
    cdef const char *below = joined
    if b"\0" in top or joined.count(b"\0") != max(count - 1, 0):
        raise ValueError("a path with a NUL")
    scan.reads = _READS[reads]
    scan.minor = _VERSIONS[version]
    scan.clashes = clashes
    scan.budget = max(budget, 0)
    scan.hash = _hash
    with nogil:
        status = pm_ocfl_read(scan, here, above, below, count)
    if status < 0:
        raise MemoryError
    return scan.budget, found.found()
