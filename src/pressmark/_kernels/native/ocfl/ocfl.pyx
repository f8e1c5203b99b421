"""Directories of an OCFL storage root, many in one call."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from pressmark._kernels.native._digests cimport algorithm_number, digest_column

__all__ = ["scan_ocfl"]


cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t, uint32_t)
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    void *PyUnicode_DATA(object)


cdef extern from "shared/text.h":
    uint8_t *pm_put_hex(uint8_t *, const uint8_t *, int64_t, int64_t) noexcept nogil


cdef extern from "ocfl/scan.h":
    enum:
        PM_OCFL_PLACES
        PM_OCFL_IDENTITIES
        PM_OCFL_OBJECTS
        PM_OCFL_CONTENT
        PM_OCFL_DEFERRED
        PM_OCFL_OBJECT
        PM_OCFL_REST

    ctypedef struct pm_bytes:
        uint8_t *data
        int64_t size

    ctypedef struct pm_ocfl_text:
        int64_t at
        int64_t size

    ctypedef struct pm_ocfl_item:
        int kind
        pm_ocfl_text place
        int minor
        int64_t inventory
        pm_ocfl_text sidecar
        int64_t first
        int64_t count
        int64_t bytes

    ctypedef struct pm_ocfl_file:
        pm_ocfl_text path
        int64_t message

    ctypedef struct pm_ocfl_scan:
        int64_t budget
        pm_ocfl_item *items
        int64_t items_count
        pm_ocfl_file *files
        pm_bytes text
        pm_bytes data
        int64_t *offsets
        int64_t messages

    int pm_ocfl_read(pm_ocfl_scan *, const char *, const char *, const char *, int64_t, int, int, int64_t) nogil
    void pm_ocfl_compare(pm_ocfl_scan *, const uint8_t *) nogil
    void pm_ocfl_free(pm_ocfl_scan *) nogil


cdef dict _READS = {
    "places": PM_OCFL_PLACES,
    "identities": PM_OCFL_IDENTITIES,
    "objects": PM_OCFL_OBJECTS,
    "content": PM_OCFL_CONTENT,
}
cdef tuple _VERSIONS = ("1.0", "1.1")


cdef class _Scan:
    """The results of one call."""

    cdef pm_ocfl_scan scan
    cdef uint8_t *digests

    def __dealloc__(self):
        pm_ocfl_free(&self.scan)
        free(self.digests)

    cdef bytes text(self, pm_ocfl_text text):
        return PyBytes_FromStringAndSize(<char *>self.scan.text.data + text.at, text.size)

    cdef tuple files(self, const pm_ocfl_item *item):
        cdef int64_t index
        cdef pm_ocfl_file *file
        cdef dict found = {}
        cdef object digest
        for index in range(item.first, item.first + item.count):
            file = &self.scan.files[index]
            digest = None
            if file.message >= 0:
                digest = PyUnicode_New(128, 127)
                pm_put_hex(<uint8_t *>PyUnicode_DATA(digest), self.digests + 64 * file.message, 0, 128)
            path = PyUnicode_DecodeUTF8(
                <char *>self.scan.text.data + file.path.at, file.path.size, "surrogateescape"
            )
            found[path] = digest
        cdef int64_t start = self.scan.offsets[item.inventory]
        inventory = PyBytes_FromStringAndSize(
            <char *>self.scan.data.data + start, self.scan.offsets[item.inventory + 1] - start
        )
        return _VERSIONS[item.minor], inventory, found, item.bytes

    cdef object found(self, const pm_ocfl_item *item, int reads):
        cdef int64_t index
        if item.kind == PM_OCFL_DEFERRED:
            return None
        if item.kind == PM_OCFL_REST:
            return [self.text(self.scan.files[index].path) for index in range(item.first, item.first + item.count)]
        if reads == PM_OCFL_PLACES:
            return ()
        return self.text(item.sidecar) if reads == PM_OCFL_IDENTITIES else self.files(item)


def scan_ocfl(bytes top not None, bytes place not None, list names not None, str reads not None, bint clashes,
              int64_t budget):
    """Read directories of an OCFL storage root and the directories below them, in the order of their bytes.

    :param top: the path of their parent directory
    :param place: the same, relative to the root
    :param names: the directories, in order
    :param reads: what to read of an object: ``places``, nothing; ``identities``, the beginning of its inventory;
        ``objects``, all files except content, which is only opened; ``content``, all files
    :param clashes: defer directories with names that may differ only in case
    :param budget: the maximum number of directories to read; those in an object do not count
    :return: the rest of the budget; and in order, for each path relative to the root:
        :data:`None` if the directory is deferred: it has an unusual feature, or cannot be read;
        a list of the names in this directory that were not read;
        and for an object an empty tuple, or the beginning of its inventory, or its OCFL version, its inventory, the
        SHA-512 of each file of ``v1/content`` (:data:`None` if it was not read), and their size in bytes
    """
    cdef _Scan found = _Scan()
    cdef pm_ocfl_scan *scan = &found.scan
    cdef int what = _READS[reads], status
    cdef int sha512 = algorithm_number("sha512")
    cdef int64_t count = len(names), most = max(budget, 0), index
    cdef bytes joined = b"\0".join(names)
    cdef const char *here = top
    cdef const char *above = place
    cdef const char *below = joined
    if b"\0" in top or joined.count(b"\0") != max(count - 1, 0):
        raise ValueError("a path with a NUL")
    with nogil:
        status = pm_ocfl_read(scan, here, above, below, count, what, clashes, most)
        if status == 0 and scan.messages:
            found.digests = <uint8_t *>malloc(64 * scan.messages)
            if found.digests == NULL:
                status = -1
            else:
                digest_column(sha512, scan.data.data, scan.offsets, scan.messages, found.digests)
                pm_ocfl_compare(scan, found.digests)
    if status < 0:
        raise MemoryError
    return scan.budget, [
        (found.text(scan.items[index].place), found.found(&scan.items[index], what))
        for index in range(scan.items_count)
    ]
