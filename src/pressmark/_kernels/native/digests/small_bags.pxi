cdef extern from "digests/small_bags.h":
    ctypedef struct pm_bag_counts:
        int64_t files
        int64_t bytes
        int64_t tag_files
        int64_t long_lines
        int64_t first_long

    bint pm_check_small_bags(pm_level, const char **, int, pm_bag_counts *) nogil


def check_small_bags(list paths not None):
    """Validate bags of a few small files, with all checksums. No symbolic link in a bag is followed.

    :return: for each valid bag the number and size of its payload files, the number of its other files, the number of
        long lines in bag-info.txt, and the first of them, from 1; :data:`None` for a bag with another problem, and for
        one that may have problems: with links, unusual tag files, names that are not ASCII, or many, large or empty files
    """
    cdef int count = len(paths), i
    cdef bint done
    cdef pm_bag_counts *one
    cdef list found = []
    cdef tuple held = tuple(paths)
    cdef bytes path
    cdef const char **names = <const char **>malloc((count + 1) * sizeof(char *))
    cdef pm_bag_counts *counts = <pm_bag_counts *>malloc((count + 1) * sizeof(pm_bag_counts))
    try:
        if names == NULL or counts == NULL:
            raise MemoryError
        for i in range(count):
            path = held[i]
            # A path with a NUL names no bag.
            names[i] = b"" if b"\0" in path else path
        with nogil:
            done = pm_check_small_bags(current_level(), names, count, counts)
        if not done:
            raise MemoryError
        for i in range(count):
            one = &counts[i]
            known = (one.files, one.bytes, one.tag_files, one.long_lines, one.first_long)
            found.append(known if one.tag_files >= 0 else None)
        return found
    finally:
        free(names)
        free(counts)
