"""The queue between the threads of a run over many files, and the lanes that compute most of them: the fast twin."""

from collections import deque

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pressmark._kernels.native.digests cimport lane_calls, lane_level_number

from pressmark._kernels.native.digests import level

__all__ = ["Engine", "lane_count", "lane_level", "sha_extensions"]


cdef extern from "Python.h":
    object PyMemoryView_FromMemory(char *, Py_ssize_t, int)
    int PyBUF_READ
    object PyUnicode_New(Py_ssize_t, uint32_t)
    void *PyUnicode_DATA(object)


cdef extern from "files.h":
    enum:
        PM_FILES_IN_LANES
        PM_FILES_AT_ONCE
        PM_MAXIMUM_LANES
        PM_FILE_DIGESTS

    ctypedef enum pm_algorithm:
        PM_MD5
        PM_SHA1
        PM_SHA224
        PM_SHA256
        PM_SHA384
        PM_SHA512
        PM_SHA512_256
        PM_BLAKE2B_160
        PM_BLAKE2B_256
        PM_BLAKE2B_384
        PM_BLAKE2B_512

    ctypedef enum pm_level:
        pass

    ctypedef struct pm_lane_calls:
        size_t (*digest_size)(pm_algorithm) noexcept nogil
        unsigned (*lanes)(pm_level, pm_algorithm) noexcept nogil

    ctypedef struct pm_file:
        int64_t priority
        int64_t ticket
        char *path

    ctypedef struct pm_file_result:
        pm_file_result *next
        int64_t ticket
        int ending
        int error
        int there
        uint32_t mode
        int64_t size
        int64_t mtime_ns
        int64_t inode
        int64_t size_after
        int64_t mtime_ns_after
        int64_t total
        uint8_t *digests

    ctypedef struct pm_engine:
        const pm_lane_calls *calls
        pm_level level
        unsigned algorithms
        pm_algorithm *algorithm
        size_t digests_size
        unsigned width
        int flags
        int sequential
        int closed
        int64_t read_bytes

    ctypedef struct pm_lane:
        pm_file file
        int64_t total
        uint8_t *buffer
        size_t filled

    ctypedef struct pm_worker:
        pm_lane *lane

    ctypedef int (*pm_beside)(void *, pm_worker *, uint32_t, uint32_t) noexcept nogil

    bint pm_sha_extensions() noexcept nogil
    void pm_engine_init(pm_engine *) noexcept nogil
    void pm_engine_beneath(pm_engine *, int) noexcept nogil
    void pm_engine_free(pm_engine *) noexcept nogil
    size_t pm_engine_submit(pm_engine *, const pm_file *, size_t) noexcept nogil
    void pm_engine_close(pm_engine *) noexcept nogil
    void pm_engine_wake(pm_engine *) noexcept nogil
    pm_file_result *pm_engine_collect(pm_engine *, double) noexcept nogil
    int pm_engine_work(pm_engine *, pm_beside, void *, int64_t *) noexcept nogil
    void pm_engine_lock_reading(pm_engine *) noexcept nogil
    void pm_engine_unlock_reading(pm_engine *) noexcept nogil


cdef dict _NUMBERS = {
    "md5": PM_MD5,
    "sha1": PM_SHA1,
    "sha224": PM_SHA224,
    "sha256": PM_SHA256,
    "sha384": PM_SHA384,
    "sha512": PM_SHA512,
    "sha512/256": PM_SHA512_256,
    "blake2b-160": PM_BLAKE2B_160,
    "blake2b-256": PM_BLAKE2B_256,
    "blake2b-384": PM_BLAKE2B_384,
    "blake2b-512": PM_BLAKE2B_512,
}


def lane_count(str algorithm not None):
    """Return how many files of ``algorithm`` are computed side by side; 0 where lanes do not know it."""
    if not PM_FILES_IN_LANES or algorithm not in _NUMBERS:
        return 0
    cdef const pm_lane_calls *calls = <const pm_lane_calls *>lane_calls()
    return calls.lanes(<pm_level>lane_level_number(), <pm_algorithm><int>_NUMBERS[algorithm])


def lane_level():
    """Return the name of the vector level in use."""
    return level()


def sha_extensions():
    """Return whether this processor has instructions for SHA-1 and SHA-256, which OpenSSL uses."""
    return pm_sha_extensions()


cdef class Engine:
    """Tickets in, tickets and results out.

    :param names: all algorithms, in the order of a result's digests
    :param lanes: those of them that are computed in lanes
    :param serials: for each of the others a function that begins its digest, for files in lanes; the name and it
    :param flags: for opening files
    :param sequential: no two files are read at the same time
    :param beneath: descriptor of the directory that paths are relative to and must not lead out of; then none is
        absolute, leads upwards, or ends without the name of a file
    """

    cdef pm_engine engine
    cdef tuple names, lanes, serials
    cdef list sizes
    cdef object done, failure
    cdef dict beside

    def __cinit__(self):
        pm_engine_init(&self.engine)

    def __dealloc__(self):
        # Whoever works holds a reference: nobody is in there any more.
        pm_engine_free(&self.engine)

    def __init__(self, names, lanes, serials, int flags, bint sequential, beneath=None):
        cdef pm_engine *engine = &self.engine
        cdef unsigned index, width = PM_FILES_AT_ONCE if PM_FILES_IN_LANES and not lanes else 0
        self.names = tuple(names)
        self.lanes = tuple(lanes)
        self.serials = tuple(serials)
        self.done = deque()
        self.beside = {}
        engine.calls = <const pm_lane_calls *>lane_calls()
        engine.level = <pm_level>lane_level_number()
        engine.flags = flags
        engine.sequential = sequential
        if beneath is not None:
            pm_engine_beneath(engine, beneath)
        for index, name in enumerate(self.lanes):
            engine.algorithm[index] = <pm_algorithm><int>_NUMBERS[name]
            engine.digests_size += engine.calls.digest_size(engine.algorithm[index])
            width = max(width, engine.calls.lanes(engine.level, engine.algorithm[index]))
        engine.algorithms = len(self.lanes)
        engine.width = width
        self.sizes = [engine.calls.digest_size(engine.algorithm[index]) for index in range(engine.algorithms)]

    def submit(self, list files not None):
        """Queue files: of each its ticket, its priority, and its path where it is for lanes, else :data:`None`.

        The highest priority comes first.
        """
        cdef size_t made = 0, taken = 0, count = len(files)
        cdef bytes path
        cdef pm_file *file
        cdef pm_file *queued = <pm_file *>malloc((count + 1) * sizeof(pm_file))
        if queued == NULL:
            raise MemoryError
        try:
            for ticket, priority, path in files:
                file = &queued[made]
                file.ticket = ticket
                file.priority = priority
                file.path = NULL
                if path is not None and self.engine.width:
                    file.path = <char *>malloc(len(path) + 1)
                    if file.path == NULL:
                        raise MemoryError
                    memcpy(file.path, <char *>path, len(path) + 1)
                made += 1
            with nogil:
                taken = pm_engine_submit(&self.engine, queued, count)
            if taken < count:
                raise MemoryError
        finally:
            while made > taken:
                made -= 1
                free(queued[made].path)
            free(queued)

    def work(self):
        """Compute files in lanes until a serial file's turn comes, and return its ticket.

        Return :data:`None` when the engine is closed.
        """
        cdef int64_t ticket = -1
        cdef int status
        cdef pm_beside function = NULL
        cdef _Beside beside = _Beside.__new__(_Beside)
        if self.serials:
            beside.engine = self
            beside.running = [None] * PM_MAXIMUM_LANES
            function = _beside
        with nogil:
            status = pm_engine_work(&self.engine, function, <void *>beside, &ticket)
        if status == -2:
            raise self.failure or MemoryError()
        return ticket if status == 0 else None

    def finish(self, ticket, result):
        """Hand over the result of a serial file."""
        self.done.append((ticket, result))
        pm_engine_wake(&self.engine)

    def collect(self, double seconds):
        """Return what was finished; wait for the first, at most for so many ``seconds``.

        Serial files are ``(ticket, result)``, files in lanes ``(ticket, digests, size, mtime_ns, inode, failure)``, with
        digests a :class:`dict`, or else failure ``(errno, mode, size after, mtime_ns after, bytes read, there)``.
        """
        cdef pm_file_result *result
        cdef pm_file_result *following
        cdef list found = []
        with nogil:
            result = pm_engine_collect(&self.engine, seconds)
        while result != NULL:
            found.append(self.shown(result))
            following = result.next
            free(result)
            result = following
        while self.done:
            found.append(self.done.popleft())
        return found

    cdef tuple shown(self, const pm_file_result *result):
        cdef Py_ssize_t size, offset = 0
        cdef object beside = self.beside.pop(result.ticket, None) if self.serials else None
        if result.ending != PM_FILE_DIGESTS:
            failure = (result.error, result.mode, result.size_after, result.mtime_ns_after, result.total, result.there)
            return (result.ticket, None, result.size, result.mtime_ns, result.inode, failure)
        cdef dict digests = {}
        for name, size in zip(self.lanes, self.sizes):
            digests[name] = _hex(result.digests + offset, size)
            offset += size
        if beside is not None:
            digests.update(beside)
        if len(digests) > 1:
            digests = {name: digests[name] for name in self.names}
        return (result.ticket, digests, result.total, result.mtime_ns, result.inode, None)

    def read_bytes(self):
        """Return how many bytes the lanes have read."""
        return self.engine.read_bytes

    def lock_reading(self):
        """Wait until nobody else reads, where reading is sequential."""
        with nogil:
            pm_engine_lock_reading(&self.engine)

    def unlock_reading(self):
        """Let the next one read."""
        pm_engine_unlock_reading(&self.engine)

    def close(self):
        """Forget what is queued, and let every worker return."""
        pm_engine_close(&self.engine)

    def closed(self):
        """Return whether :meth:`close` was called."""
        return self.engine.closed != 0


cdef class _Beside:
    """What one worker computes beside its lanes, with the GIL: the digests that lanes do not know."""

    cdef Engine engine
    cdef list running

    cdef void turn(self, pm_worker *worker, uint32_t fresh, uint32_t ended) except *:
        cdef int index
        cdef pm_lane *lane
        for index in range(PM_MAXIMUM_LANES):
            lane = &worker.lane[index]
            if fresh >> index & 1:
                if lane.total == <int64_t>lane.filled:
                    self.running[index] = self.begun()
                data = PyMemoryView_FromMemory(<char *>lane.buffer, lane.filled, PyBUF_READ)
                for _name, hasher in self.running[index]:
                    hasher.update(data)
            if ended >> index & 1:
                hashers = self.running[index] if lane.total else self.begun()
                self.engine.beside[lane.file.ticket] = [(name, hasher.hexdigest()) for name, hasher in hashers]

    cdef list begun(self):
        return [(name, make(1)) for name, make in self.engine.serials]


cdef int _beside(void *context, pm_worker *worker, uint32_t fresh, uint32_t ended) noexcept with gil:
    cdef _Beside beside = <_Beside>context
    try:
        beside.turn(worker, fresh, ended)
    except BaseException as error:
        beside.engine.failure = error
        return -1
    return 0


cdef str _hex(const uint8_t *digest, Py_ssize_t size):
    cdef object text = PyUnicode_New(2 * size, 127)
    cdef char *out = <char *>PyUnicode_DATA(text)
    cdef const char *digits = b"0123456789abcdef"
    cdef Py_ssize_t index
    for index in range(size):
        out[2 * index] = digits[digest[index] >> 4]
        out[2 * index + 1] = digits[digest[index] & 15]
    return text
