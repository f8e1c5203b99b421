# Times of files. digests.pyx and directories.pxi include this file.

cdef extern from "shared/times.h":
    ctypedef struct pm_time:
        int64_t seconds
        int64_t nanoseconds


cdef inline object nanoseconds(pm_time time):
    """Return a time in nanoseconds since 1970, as os.stat_result has it, also beyond 64 bits."""
    if -9_000_000_000 < time.seconds < 9_000_000_000:
        return time.seconds * 1_000_000_000 + time.nanoseconds
    return <object>time.seconds * 1_000_000_000 + time.nanoseconds
