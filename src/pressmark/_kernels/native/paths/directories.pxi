# Sizes of trees, many in one call. paths.pyx includes this file.

cdef extern from "paths/tree_sizes.h":
    ctypedef struct pm_tree_size:
        int64_t files
        int64_t bytes
        int64_t blocks
        int64_t directories

    int64_t pm_tree_sizes(const pm_column *, pm_tree_size *, pm_column *, pm_column *) nogil


def tree_sizes(ByteColumn tops not None):
    """Measure trees of regular files.

    A tree is deferred if it cannot be read, or contains a link, a special file or an empty directory.

    :param tops: the paths of the trees
    :return: for each tree the number of its files, their bytes, the bytes of their blocks of 4 KiB, and the number of
        directories with files, or None if it is deferred; for each tree the names of its files, each with a NUL
        at its end; and in the same order the size of each file, and the seconds and nanoseconds of its times of
        modification and of status change, as integers of 64 bits. All are shorter if the call took too long; call it
        again with the rest
    """
    cdef ByteColumn names = ByteColumn.__new__(ByteColumn)
    cdef ByteColumn stamps = ByteColumn.__new__(ByteColumn)
    cdef int64_t count = tops.column.count
    cdef pm_tree_size *sizes = <pm_tree_size *>malloc(max(1, count) * sizeof(pm_tree_size))
    if sizes == NULL:
        raise MemoryError
    try:
        with nogil:
            count = pm_tree_sizes(&tops.column, sizes, &names.column, &stamps.column)
        if count < 0:
            raise MemoryError
        found = []
        for index in range(count):
            size = sizes[index]
            if size.files < 0:
                found.append(None)
            else:
                found.append((size.files, size.bytes, size.blocks, size.directories))
        return found, names, stamps
    finally:
        free(sizes)
