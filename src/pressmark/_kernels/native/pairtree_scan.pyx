"""The walk of a Pairtree as far as it is plain: directories of one or two characters, and one directory that ends each.

What is plain and what is deferred says the readable twin.
"""

from libc.stdint cimport int64_t

from pressmark._kernels.native.packed cimport Packed, pm_column

__all__ = ["scan_pairtree"]


cdef extern from "pairtree_scan.h":
    int pm_scan_pairtree(const char *, const pm_column *, int, int64_t, pm_column *, pm_column *, pm_column *) nogil


def scan_pairtree(bytes root not None, Packed paths not None, bint follow, int64_t budget):
    """Look through directories of a Pairtree and those below them, in the order of octets.

    :param root: the directory that the paths are relative to
    :param paths: the directories, in their order, of ASCII names behind the last slash
    :param follow: whether a symbolic link to a directory is one where it has three characters or more
    :param budget: how many directories to read at most
    :return: in order, the paths of objects and of directories deferred; for each the name of the directory that ends
        it, empty for those deferred; and, to be looked through after them, the paths that were not read
    """
    cdef Packed places = Packed.__new__(Packed)
    cdef Packed names = Packed.__new__(Packed)
    cdef Packed rest = Packed.__new__(Packed)
    cdef const char *top = root
    cdef int64_t most = max(budget, 0)
    cdef int status
    with nogil:
        status = pm_scan_pairtree(
            top, &paths.column, follow, most, &places.column, &names.column, &rest.column
        )
    if status < 0:
        raise MemoryError
    return places, names, rest
