# Changes of files in directories, in order. digests.pyx includes this file.


cdef extern from "digests/file_steps.h":
    enum:
        PM_STEP_MOVE
        PM_STEP_ALONE
        PM_STEPS
    ctypedef struct pm_step:
        int kind
        const char *path
        const char *other
        int64_t size
    int pm_step_run(const char *, const pm_step *, int *) nogil


def run_steps(list bases not None, list lists not None):
    """Change files in order, in many directories; stop in each directory at its first failure.

    :param bases: the directories
    :param lists: for each directory its steps, which several may share: see :data:`~pressmark._kernels.records.Step`
    :return: for each directory 0 or an errno, the number of steps that were made, and the descriptor of a locked file,
        or -1; the caller closes it
    :raises ValueError: there are not as many lists as directories
    """
    cdef Py_ssize_t total = 0, count = len(bases), i, end = 0
    cdef bytes base
    cdef list steps, shared = None
    cdef tuple step, one = (), held = tuple(bases)
    cdef list kept = []
    cdef pm_step *all_steps = NULL
    cdef _change *found = NULL
    if len(lists) != count:
        raise ValueError("one list of steps for each directory")
    for steps in lists:
        if steps is not shared:
            one, shared = tuple(steps), steps
            total += len(one)
        kept.append(one)
    try:
        all_steps = <pm_step *>malloc((total + 1) * sizeof(pm_step))
        found = <_change *>malloc((count + 1) * sizeof(_change))
        if all_steps == NULL or found == NULL:
            raise MemoryError
        for i in range(count):
            base = held[i]
            found[i].base, found[i].lock, found[i].made = base, -1, 0
            found[i].error = 22 if not base or b"\0" in base else 0  # EINVAL on all systems
            if i and kept[i] is kept[i - 1]:
                found[i].first, found[i].end = found[i - 1].first, found[i - 1].end
                continue
            found[i].first = end
            for step in <tuple>kept[i]:
                _set_step(&all_steps[end], step[0], step[1], step[2])
                end += 1
            found[i].end = end
        with nogil:
            for i in range(count):
                end = found[i].first
                while end < found[i].end and not found[i].error:
                    found[i].error = pm_step_run(found[i].base, &all_steps[end], &found[i].lock)
                    found[i].made += not found[i].error
                    end += 1
        return [(found[i].error, found[i].made, found[i].lock) for i in range(count)]
    finally:
        free(all_steps)
        free(found)


# The steps of a directory, by their numbers in a list of all steps.
ctypedef struct _change:
    const char *base
    Py_ssize_t first
    Py_ssize_t end
    Py_ssize_t made
    int error
    int lock


cdef int _set_step(pm_step *step, int kind, bytes path, object other) except -1:
    step.kind = kind
    step.path = path
    step.other = b""
    step.size = 0
    if isinstance(other, bytes):
        step.other = <bytes>other
        step.size = len(<bytes>other)
    elif other is not None:
        step.size = other
    # A path with a NUL would be another path.
    if b"\0" in path or (kind in (PM_STEP_MOVE, PM_STEP_ALONE) and b"\0" in other):
        step.kind = PM_STEPS
    return 0
