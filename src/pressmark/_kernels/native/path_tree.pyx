"""The directories of paths that are merged, counted without holding them.

What is counted says the readable twin.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from pressmark._kernels.native.packed cimport pm_bytes

__all__ = ["PathTree"]


cdef extern from "path_tree.h":
    int pm_tree_init(pm_tree *) noexcept nogil
    void pm_tree_free(pm_tree *) noexcept nogil
    int pm_tree_end(pm_tree *) noexcept nogil


cdef extern from "path_sort.h":
    int pm_read_path(const unsigned char *, int64_t, pm_bytes *) noexcept nogil
    void pm_free_bytes(pm_bytes *) noexcept nogil


cdef list _held(const pm_holding *holding):
    cdef int64_t much
    cdef dict crowds = {}
    found = [(much, holding.table[much]) for much in range(1, PM_TREE_ENTRIES + 1) if holding.table[much]]
    for index in range(holding.crowd_count):
        much = holding.crowds[index]
        crowds[much] = crowds.get(much, 0) + 1
    return found + sorted(crowds.items())


cdef class PathTree:
    """The directories of the paths that pass a merge; the root is not counted."""

    def __dealloc__(self):
        pm_tree_free(&self.tree)

    def __init__(self):
        if self.tree.fans.table != NULL:
            raise ValueError("made already")
        if pm_tree_init(&self.tree) < 0:
            raise MemoryError

    def end(self):
        """Say that no more paths come; what the other methods return is complete only then."""
        cdef int status
        with self.lock:
            with nogil:
                status = pm_tree_end(&self.tree)
        if status < 0:
            raise MemoryError

    def levels(self):
        """Return how many directories there are at each depth, from 1 on."""
        with self.lock:
            return [self.tree.levels[depth] for depth in range(self.tree.level_count)]

    def leaves(self):
        """Return how many different paths there are."""
        with self.lock:
            return self.tree.leaves

    def fans(self):
        """Return ascending pairs: a number of directories from 1 on, and how many (the root too) hold so many."""
        with self.lock:
            return _held(&self.tree.fans)

    def firsts(self):
        """Return ascending pairs: a number of different paths, and in how many directories below the root so many are.

        The path of such a directory itself is one of them.
        """
        with self.lock:
            return _held(&self.tree.firsts)

    def largest(self):
        """Return the directories that hold the most, the largest first, then by path: pairs of path and entries."""
        cdef pm_bytes path
        found = []
        with self.lock:
            for index in range(self.tree.largest_count):
                path.data = NULL
                path.size = path.capacity = 0
                try:
                    if pm_read_path(self.tree.largest[index].path.data, self.tree.largest[index].path.size, &path) < 0:
                        raise MemoryError
                    found.append((
                        PyBytes_FromStringAndSize(<const char *>self.tree.largest[index].path.data,
                                                  self.tree.largest[index].path.size),
                        PyBytes_FromStringAndSize(<const char *>path.data, path.size),
                        self.tree.largest[index].entries,
                    ))
                finally:
                    pm_free_bytes(&path)
        found.sort(key=lambda one: (-one[2], one[0]))
        return [(path_read, entries) for _, path_read, entries in found]

    def samples(self):
        """Return of each nested sample, all first: how many paths with repetitions, directories, different paths."""
        with self.lock:
            return [
                (self.tree.sampled[sample], self.tree.sampled_directories[sample], self.tree.sampled_leaves[sample])
                for sample in range(PM_TREE_SAMPLES)
            ]
