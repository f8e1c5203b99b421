"""Small files, copied and written: one call each, without the lock, for what Python needs ten for."""

from libc.stdint cimport int64_t, uint8_t

from pressmark._kernels.native.digests cimport algorithm_number, digest_column, digest_octets

__all__ = ["copy_small", "write_small"]


cdef extern from "small_files.h":
    """
    typedef struct stat pm_small_status;
    """
    ctypedef struct pm_small_status:
        pass
    ctypedef struct pm_small:
        int error
        int64_t size
        int64_t mtime_ns
        int64_t inode
        int64_t size_after
        int64_t mtime_ns_after
        int64_t octets
    enum:
        PM_SMALL_MOST
        PM_SMALL_HERE
        PM_SMALL_DONE
        PM_SMALL_NOT_HERE
        PM_SMALL_SOURCE
        PM_SMALL_TARGET
        PM_SMALL_CHANGED
    int pm_small_read(const char *, int, pm_small_status *, uint8_t *, pm_small *) nogil
    int pm_small_write_like(const char *, const pm_small_status *, const uint8_t *, int64_t) nogil
    int pm_small_new(const char *, const uint8_t *, int64_t) nogil


def copy_small(bytes source not None, bytes target not None, int flags):
    """Copy a small regular file, with its permission bits and times, and compute its SHA-512 on the way.

    :param flags: for opening the source
    :return: :data:`None` where it is not for this, and nothing was made; else a word and what belongs to it:
        ``done``: digest in hex, size, time of modification in nanoseconds, inode;
        ``source`` or ``target``: the errno of what failed there, 0;
        ``changed``: size, time of modification and inode before, size and time after, octets that were read
    """
    cdef uint8_t data[PM_SMALL_MOST + 1]
    cdef uint8_t digest[64]
    cdef int64_t offsets[2]
    cdef pm_small_status before
    cdef pm_small small
    cdef int ended, error = 0
    cdef int sha512 = algorithm_number("sha512")
    cdef const char *here = source
    cdef const char *there = target
    if b"\0" in source or b"\0" in target:
        return None
    with nogil:
        ended = pm_small_read(here, flags, &before, data, &small)
        if ended == PM_SMALL_DONE:
            offsets[0] = 0
            offsets[1] = small.size
            digest_column(sha512, data, offsets, 1, digest)
            error = pm_small_write_like(there, &before, data, small.size)
    if ended == PM_SMALL_NOT_HERE:
        return None
    if ended == PM_SMALL_SOURCE:
        return "source", small.error, 0
    if ended == PM_SMALL_CHANGED:
        return (
            "changed", small.size, small.mtime_ns, small.inode, small.size_after, small.mtime_ns_after, small.octets
        )
    if error:
        return "target", error, 0
    return "done", (<const char *>digest)[:64].hex(), small.size, small.mtime_ns, small.inode


def write_small(list paths not None, list contents not None):
    """Write new files and make directories, in order, up to the first that fails.

    :param contents: of each file; :data:`None` for a directory
    :return: :data:`False` where it is not for this, and nothing was made; :data:`True`, or the index of what failed and
        its errno
    """
    cdef const char *path
    cdef const uint8_t *data
    cdef int64_t size
    cdef int error
    cdef bytes name, content
    if not PM_SMALL_HERE:
        return False
    for index in range(len(paths)):
        name, content = paths[index], contents[index]
        if b"\0" in name:
            return index, 22  # EINVAL everywhere
        path = name
        data, size = NULL, 0
        if content is not None:
            data, size = <const uint8_t *><const char *>content, len(content)
        with nogil:
            error = pm_small_new(path, data, size)
        if error:
            return index, error
    return True
