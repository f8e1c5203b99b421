"""Digests of short messages and of files, several at a time, and copies of files."""

from collections import deque

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, strlen, strpbrk

__all__ = [
    "Engine",
    "best_level",
    "hexdigest_function",
    "lane_count",
    "lane_level",
    "level",
    "levels",
    "run_steps",
    "sha_extensions",
    "supported",
    "use_level",
]


cdef extern from "Python.h":
    object PyMemoryView_FromMemory(char *, Py_ssize_t, int)
    int PyBUF_READ
    object PyUnicode_New(Py_ssize_t, uint32_t)
    void *PyUnicode_DATA(object)
    char *PyByteArray_AS_STRING(object)


cdef extern from "shared/clock.h":
    enum:
        PM_TURN
    int64_t pm_now() nogil

cdef extern from "shared/text.h":
    uint8_t *pm_put_hex(uint8_t *, const uint8_t *, int64_t, int64_t) noexcept nogil


# --- lanes --------------------------------------------------------------------------------------------------


cdef extern from "digests/lanes/lanes.h":
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

    size_t pm_digest_size(pm_algorithm) noexcept nogil
    pm_level pm_best_level() noexcept nogil
    bint pm_permutes_bytes(pm_level) noexcept nogil
    int pm_sha_extensions() noexcept nogil
    unsigned pm_lanes(pm_level, pm_algorithm) noexcept nogil
    const char *pm_level_name(pm_level) noexcept nogil
    void pm_digest_column(pm_level, pm_algorithm, const uint8_t *, const int64_t *, int64_t, uint8_t *) noexcept nogil


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

# Set at import, and by tests between batches. Each batch reads it.
cdef pm_level _level = pm_best_level()


def level():
    """Return the name of the vector level in use."""
    return pm_level_name(_level).decode()


def best_level():
    """Return the name of the highest vector level that this machine runs."""
    return pm_level_name(pm_best_level()).decode()


def levels():
    """Return the names of all vector levels, lowest first."""
    return [pm_level_name(<pm_level>number).decode() for number in range(PM_LEVELS)]


def use_level(str name not None):
    """Select the vector level ``name``, at most :func:`best_level`."""
    global _level
    runnable = [pm_level_name(<pm_level>number).decode() for number in range(pm_best_level() + 1)]
    _level = <pm_level>runnable.index(name)


def supported(algorithm):
    """Return whether ``algorithm`` is supported."""
    from pressmark._kernels.tables import DIGESTS  # most commands need no table

    return algorithm in DIGESTS


def hexdigest_function(algorithm):
    """Return a function that returns the digest of a message in lower-case hex."""
    cdef int number = algorithm_number(algorithm)

    def hexdigest(bytes message not None):
        cdef uint8_t[64] digest
        cdef int64_t[2] offsets
        offsets[0] = 0
        offsets[1] = len(message)
        digest_column(number, message, offsets, 1, digest)
        return digest[:digest_size(number)].hex().encode()

    return hexdigest


cdef int algorithm_number(object algorithm) except -1:
    return _NUMBERS[algorithm]


cdef int64_t digest_size(int algorithm) noexcept nogil:
    return pm_digest_size(<pm_algorithm>algorithm)


cdef void digest_column(int algorithm, const uint8_t *data, const int64_t *offsets, int64_t count,
                        uint8_t *out) noexcept nogil:
    pm_digest_column(_level, <pm_algorithm>algorithm, data, offsets, count, out)


cdef pm_level current_level() noexcept nogil:
    return _level


cdef bint permutes_bytes() noexcept nogil:
    return pm_permutes_bytes(_level)


cdef str _hex(const uint8_t *digest, Py_ssize_t size):
    cdef object text = PyUnicode_New(2 * size, 127)
    pm_put_hex(<uint8_t *>PyUnicode_DATA(text), digest, 0, 2 * size)
    return text


# --- files in lanes -----------------------------------------------------------------------------------------


include "../shared/times.pxi"


cdef extern from "digests/engine.h":
    enum:
        PM_FILES_IN_LANES
        PM_FILES_AT_ONCE
        PM_MAXIMUM_LANES
        PM_FILE_DIGESTS
        PM_FILE_TARGET

    ctypedef struct pm_file:
        int64_t priority
        int64_t ticket
        char *path
        const char *target
        int64_t offset
        int64_t size

    ctypedef struct pm_file_result:
        pm_file_result *next
        int64_t ticket
        int ending
        int error
        int there
        uint32_t mode
        int64_t size
        uint64_t inode
        pm_time mtime
        pm_time ctime
        int64_t size_after
        pm_time mtime_after
        int64_t total
        uint8_t *digests

    ctypedef struct pm_block

    ctypedef struct pm_engine:
        pm_level level
        unsigned algorithms
        pm_algorithm *algorithm
        size_t digests_size
        unsigned width
        int flags
        int walked
        int source
        int sequential
        size_t hex_size
        size_t *hex_at
        int closed
        int64_t read_bytes

    void pm_engine_init(pm_engine *) noexcept nogil
    void pm_engine_free(pm_engine *) noexcept nogil
    size_t pm_engine_submit(pm_engine *, const pm_file *, size_t) noexcept nogil
    void pm_engine_close(pm_engine *) noexcept nogil
    void pm_engine_wake(pm_engine *) noexcept nogil
    void pm_engine_submit_block(pm_engine *, pm_block *) noexcept nogil
    pm_file_result *pm_engine_collect(pm_engine *, double, pm_block **) noexcept nogil
    void pm_engine_lock_reading(pm_engine *) noexcept nogil
    void pm_engine_unlock_reading(pm_engine *) noexcept nogil


cdef extern from "digests/beneath.h":
    void pm_engine_beneath(pm_engine *, int) noexcept nogil


cdef extern from "digests/small_files.h":
    ctypedef struct pm_small:
        int error
        int64_t size
        uint64_t inode
        pm_time mtime
        pm_time ctime
        int64_t size_after
        pm_time mtime_after
        int64_t done


cdef extern from "digests/file_block.h":
    enum:
        PM_BLOCK_DIGESTS
        PM_BLOCK_LEFT
        PM_BLOCK_TARGET

    ctypedef struct pm_block_file:
        int ending
        pm_small small

    ctypedef struct pm_block:
        pm_block *next
        int64_t ticket
        int64_t count
        int64_t most
        const char **paths
        const char **targets
        pm_block_file *files
        uint8_t *hex

    ctypedef struct pm_block_group:
        int64_t count
        int64_t *members
        int64_t *offsets
        uint8_t *data

    ctypedef int (*pm_extra_block)(void *, pm_block *, const pm_block_group *) noexcept nogil


cdef extern from "digests/worker.h":
    ctypedef struct pm_lane:
        pm_file file
        int64_t total
        uint8_t *buffer
        size_t filled

    ctypedef struct pm_worker:
        pm_lane *lane

    ctypedef int (*pm_extra_hashers)(void *, pm_worker *, uint32_t, uint32_t) noexcept nogil

    ctypedef struct pm_extra:
        pm_extra_hashers hashers
        pm_extra_block block
        void *context

    int pm_engine_work(pm_engine *, const pm_extra *, int, int64_t *) noexcept nogil


def lane_count(str algorithm not None):
    """Return how many files of ``algorithm`` are hashed at a time in lanes; 0 if lanes do not support it."""
    if not PM_FILES_IN_LANES or algorithm not in _NUMBERS:
        return 0
    return pm_lanes(_level, <pm_algorithm><int>_NUMBERS[algorithm])


def lane_level():
    """Return the name of the vector level in use."""
    return level()


cdef int _extensions = -1  # unknown


def sha_extensions():
    """Return which instructions OpenSSL finds in this processor: 1 for SHA-1 and SHA-256, 2 also for SHA-512."""
    global _extensions
    if _extensions < 0:
        # Once: virtual machines answer cpuid themselves, which takes longer than hashing a small file.
        _extensions = pm_sha_extensions()
    return _extensions


cdef class Engine:
    """A queue of files, identified by tickets, and of their results.

    :param names: all algorithms, in the order of a result's digests
    :param lanes: the algorithms that are computed in lanes
    :param serials: name and constructor of each other algorithm, for files in lanes
    :param direct: for each algorithm in ``serials`` its name, a function that returns the digest of a small message in
        hex, and the number of hex digits; needed for blocks
    :param flags: flags for opening files
    :param sequential: read one file at a time
    :param beneath: descriptor of a directory: paths are relative to it and must not lead out of it. They must not be
        absolute, must not contain ``..``, and must end with a file name
    :param source: descriptor of a file whose parts are hashed, instead of files
    :param walked: all paths are those of files and links in directories that were listed: those in blocks are opened
        without examining them first
    """

    cdef pm_engine engine
    cdef tuple names, lanes, serials
    cdef list sizes, spans, direct
    cdef dict blocks
    cdef object done, failure
    cdef dict extra

    def __cinit__(self):
        pm_engine_init(&self.engine)

    def __dealloc__(self):
        # A thread that works holds a reference, so no thread uses the engine any more.
        pm_engine_free(&self.engine)

    def __init__(self, names, lanes, serials, direct, int flags, bint sequential, beneath=None,
                 source=None, bint walked=False):
        cdef pm_engine *engine = &self.engine
        cdef unsigned index, width = PM_FILES_AT_ONCE if PM_FILES_IN_LANES and not lanes else 0
        self.names = tuple(names)
        self.lanes = tuple(lanes)
        self.serials = tuple(serials)
        self.done = deque()
        self.extra = {}
        self.blocks = {}
        engine.level = current_level()
        engine.flags = flags
        engine.sequential = sequential
        engine.walked = walked
        if not names:
            width = PM_FILES_IN_LANES
        if beneath is not None:
            pm_engine_beneath(engine, beneath)
        if source is not None:
            engine.source = source
        for index, name in enumerate(self.lanes):
            engine.algorithm[index] = <pm_algorithm><int>_NUMBERS[name]
            engine.digests_size += pm_digest_size(engine.algorithm[index])
            width = max(width, pm_lanes(engine.level, engine.algorithm[index]))
        engine.algorithms = len(self.lanes)
        engine.width = width
        self.sizes = [pm_digest_size(engine.algorithm[index]) for index in range(engine.algorithms)]
        self._place_hex(list(direct))

    cdef _place_hex(self, list direct):
        """Lay out the digests of a file of a block, in the order of their names."""
        cdef pm_engine *engine = &self.engine
        cdef dict sizes = {name: 2 * size for name, size in zip(self.lanes, self.sizes)}
        sizes.update({name: size for name, _function, size in direct})
        self.spans = []
        for name in self.names:
            if name in sizes:
                self.spans.append((name, engine.hex_size, sizes[name]))
                engine.hex_size += sizes[name]
        starts = {name: start for name, start, _size in self.spans}
        for index, name in enumerate(self.lanes):
            engine.hex_at[<int>index] = starts[name]
        self.direct = [(function, starts[name], size) for name, function, size in direct]

    def submit_block(self, int64_t ticket, bytes paths not None, int64_t count, list targets, int64_t most):
        """Queue a block of files, before all other files. Its result is a :class:`FileBlock`.

        :param paths: separated by NUL; empty ones are left
        :param count: number of paths
        :param targets: paths of the copies; :data:`None` to hash only
        :param most: size of the largest files to be read in this block, in bytes; -1 for none
        """
        cdef FileBlock block = FileBlock(self, paths, count, targets)
        block.block.ticket = ticket
        block.block.most = most
        if not PM_FILES_IN_LANES:  # all files are left
            self.finish(ticket, block)
            return
        self.blocks[ticket] = block
        with nogil:
            pm_engine_submit_block(&self.engine, &block.block)

    def submit(self, list files not None):
        """Queue files: ticket, priority, source or :data:`None`, and the path of its copy or :data:`None`.

        The highest priority comes first. A file with a source, a path or a part of a file with its offset and size, is
        hashed and copied in lanes.
        """
        cdef size_t made = 0, taken = 0, count = len(files)
        cdef bytes path, target
        cdef size_t length
        cdef pm_file *file
        cdef pm_file *queued = <pm_file *>malloc((count + 1) * sizeof(pm_file))
        if queued == NULL:
            raise MemoryError
        try:
            for ticket, priority, given, copy in files:
                file = &queued[made]
                file.ticket = ticket
                file.priority = priority
                file.path = NULL
                file.target = NULL
                file.offset = file.size = 0
                if given is not None and self.engine.source >= 0:
                    file.offset, file.size = given
                    given = b""
                path = given
                if path is not None and self.engine.width:
                    target = copy if copy is not None else b""
                    length = len(path) + 1
                    file.path = <char *>malloc(length + len(target) + 1)
                    if file.path == NULL:
                        raise MemoryError
                    memcpy(file.path, <char *>path, length)
                    memcpy(file.path + length, <char *>target, len(target) + 1)
                    if copy is not None:
                        file.target = file.path + length
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

    def work(self, bint wait=True):
        """Hash files in lanes until a file without a path is next, and return its ticket.

        Return :data:`None` if the engine is closed, and without ``wait`` if no file is left.
        """
        cdef int64_t ticket = -1
        cdef int status
        cdef pm_extra functions
        cdef _ExtraHashers extra = _ExtraHashers.__new__(_ExtraHashers)
        functions.hashers = NULL
        functions.block = NULL
        functions.context = <void *>extra
        if self.serials:
            extra.engine = self
            extra.running = [None] * PM_MAXIMUM_LANES
            functions.hashers = _run_extra_hashers
            functions.block = _run_extra_block
        with nogil:
            status = pm_engine_work(&self.engine, &functions, wait, &ticket)
        if status == -2:
            raise self.failure or MemoryError()
        return ticket if status == 0 else None

    def finish(self, ticket, result):
        """Add the result of a file that was not hashed in lanes."""
        self.done.append((ticket, result))
        pm_engine_wake(&self.engine)

    def collect(self, double seconds):
        """Return the finished files; wait for the first at most ``seconds``.

        A file in lanes is ``(ticket, digests, size, mtime_ns, inode, ctime_ns)``, or if it has no digests ``(ticket,
        size, mtime_ns, inode, errno, mode, size after, mtime_ns after, bytes read, path status)``, or
        ``(ticket, errno, None)`` if its copy failed. A block is ``(ticket, block)``, and any other file
        ``(ticket, result)``.
        """
        cdef pm_file_result *result
        cdef pm_file_result *following
        cdef pm_block *block
        cdef list found = []
        with nogil:
            result = pm_engine_collect(&self.engine, seconds, &block)
        try:
            while result != NULL:
                found.append(self.shown(result))
                following = result.next
                free(result)
                result = following
        finally:
            while result != NULL:
                following = result.next
                free(result)
                result = following
        while block != NULL:
            ticket = block.ticket
            block = block.next
            found.append((ticket, self.blocks.pop(ticket)))
        while self.done:
            found.append(self.done.popleft())
        return found

    cdef tuple shown(self, const pm_file_result *result):
        cdef Py_ssize_t size, offset = 0
        cdef object extra = self.extra.pop(result.ticket, None) if self.serials else None
        if result.ending != PM_FILE_DIGESTS:
            if result.ending == PM_FILE_TARGET:
                return (result.ticket, result.error, None)
            return (
                result.ticket, result.size, nanoseconds(result.mtime), result.inode, result.error, result.mode,
                result.size_after, nanoseconds(result.mtime_after), result.total, result.there,
            )
        cdef dict digests
        digests = {}
        for name, size in zip(self.lanes, self.sizes):
            digests[name] = _hex(result.digests + offset, size)
            offset += size
        if extra is not None:
            digests.update(extra)
        if len(digests) > 1:
            digests = {name: digests[name] for name in self.names}
        return (
            result.ticket, digests, result.total, nanoseconds(result.mtime), result.inode, nanoseconds(result.ctime)
        )

    def read_bytes(self):
        """Return how many bytes the lanes have read."""
        return self.engine.read_bytes

    def lock_reading(self):
        """If reading is sequential, wait until no other thread reads."""
        with nogil:
            pm_engine_lock_reading(&self.engine)

    def unlock_reading(self):
        """Let the next thread read."""
        pm_engine_unlock_reading(&self.engine)

    def close(self):
        """Discard the queue and let all workers return."""
        pm_engine_close(&self.engine)

    def closed(self):
        """Return whether :meth:`close` was called."""
        return self.engine.closed != 0


cdef class _ExtraHashers:
    """The hashers of one worker for the algorithms that lanes do not support; they need the GIL."""

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
                self.engine.extra[lane.file.ticket] = [(name, hasher.hexdigest()) for name, hasher in hashers]

    cdef list begun(self):
        return [(name, make(1)) for name, make in self.engine.serials]

    cdef void hash_block(self, pm_block *block, const pm_block_group *group) except *:
        cdef int64_t index
        cdef size_t start, size
        cdef uint8_t *hex
        for index in range(group.count):
            data = PyMemoryView_FromMemory(
                <char *>group.data + group.offsets[index], group.offsets[index + 1] - group.offsets[index], PyBUF_READ
            )
            hex = block.hex + group.members[index] * self.engine.engine.hex_size
            for function, start, size in self.engine.direct:
                digest = function(data)
                if len(<str?>digest) != <Py_ssize_t>size:
                    raise ValueError("digest has another length")
                memcpy(hex + start, PyUnicode_DATA(digest), size)


cdef int _run_extra_hashers(void *context, pm_worker *worker, uint32_t fresh, uint32_t ended) noexcept with gil:
    cdef _ExtraHashers extra = <_ExtraHashers>context
    try:
        extra.turn(worker, fresh, ended)
    except BaseException as error:
        extra.engine.failure = error
        return -1
    return 0


cdef int _run_extra_block(void *context, pm_block *block, const pm_block_group *group) noexcept with gil:
    cdef _ExtraHashers extra = <_ExtraHashers>context
    try:
        extra.hash_block(block, group)
    except BaseException as error:
        extra.engine.failure = error
        return -1
    return 0


# --- blocks of files ----------------------------------------------------------------------------------------


include "file_block.pxi"


# --- changes of files ---------------------------------------------------------------------------------------


include "file_steps.pxi"
