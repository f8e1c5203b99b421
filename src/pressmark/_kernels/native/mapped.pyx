"""A large file as memory, for digests that read faster than the kernel copies. What is safe about it says mapped.h."""

from cpython.buffer cimport PyBuffer_FillInfo

__all__ = ["mapped"]


cdef extern from "mapped.h":
    int pm_mapped_open(int, size_t, const char **) nogil
    int pm_mapped_spoiled(int) nogil
    void pm_mapped_close(int) nogil


cdef class Mapped:
    """So many bytes of a file, to be read through the buffer protocol.

    A part that cannot be read, because the file has become shorter or its disk fails, reads as zeros, and the whole is
    spoiled then. Closed when nothing refers to it any more.
    """

    cdef int slot
    cdef const char *data
    cdef Py_ssize_t size

    def __cinit__(self):
        self.slot = -1

    def __dealloc__(self):
        if self.slot >= 0:
            with nogil:
                pm_mapped_close(self.slot)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, <void *>self.data, self.size, 1, flags)

    @property
    def spoiled(self):
        """Whether something in it could not be read so far."""
        return bool(pm_mapped_spoiled(self.slot))


def mapped(int descriptor, Py_ssize_t size):
    """Map the first bytes of a regular file.

    :param size: how many; not more than it has
    :return: something with the buffer protocol and ``spoiled``; None where the file must be read instead
    """
    cdef Mapped made = Mapped.__new__(Mapped)
    made.size = size
    with nogil:
        made.slot = pm_mapped_open(descriptor, size, &made.data)
    return made if made.slot >= 0 else None
