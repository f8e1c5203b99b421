"""Digests of short messages, several at a time, by their OCFL names."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from pressmark._kernels.tables import DIGESTS

__all__ = ["best_level", "hexdigest_function", "level", "levels", "supported", "use_level"]


cdef extern from "lanes/lanes.h":
    ctypedef enum pm_algorithm:
        PM_MD5
        PM_SHA1
        PM_SHA256
        PM_SHA512
        PM_SHA512_256
        PM_BLAKE2B_160
        PM_BLAKE2B_256
        PM_BLAKE2B_384
        PM_BLAKE2B_512

    ctypedef enum pm_level:
        PM_PORTABLE
        PM_LEVELS

    size_t pm_digest_size(pm_algorithm) noexcept nogil
    pm_level pm_best_level() noexcept nogil
    unsigned pm_lanes(pm_level, pm_algorithm) noexcept nogil
    const char *pm_level_name(pm_level) noexcept nogil
    void pm_digest_column(pm_level, pm_algorithm, const uint8_t *, const int64_t *, int64_t, uint8_t *) noexcept nogil


cdef extern from "lane_calls.h":
    """
    static const pm_lane_calls pm_linked_lanes = {
        pm_digest_size, pm_lanes, pm_bank_init, pm_bank_start, pm_bank_update, pm_bank_finish_many,
    };
    """
    ctypedef struct pm_lane_calls:
        pass
    const pm_lane_calls pm_linked_lanes


cdef dict _NUMBERS = {
    "PM_MD5": PM_MD5,
    "PM_SHA1": PM_SHA1,
    "PM_SHA256": PM_SHA256,
    "PM_SHA512": PM_SHA512,
    "PM_SHA512_256": PM_SHA512_256,
    "PM_BLAKE2B_160": PM_BLAKE2B_160,
    "PM_BLAKE2B_256": PM_BLAKE2B_256,
    "PM_BLAKE2B_384": PM_BLAKE2B_384,
    "PM_BLAKE2B_512": PM_BLAKE2B_512,
}

# Written once at import, or by a test between two batches; read by every batch.
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
    """Use the vector level called ``name``, which must not be above :func:`best_level`."""
    global _level
    runnable = [pm_level_name(<pm_level>number).decode() for number in range(pm_best_level() + 1)]
    _level = <pm_level>runnable.index(name)


def supported(algorithm):
    """Return whether ``algorithm`` can be computed: here always."""
    return algorithm in DIGESTS


def hexdigest_function(algorithm):
    """Return the function from a message to its digest in lower-case hex."""
    cdef int number = algorithm_number(algorithm)

    def hexdigest(bytes message not None):
        cdef uint8_t[64] digest
        cdef int64_t[2] offsets
        offsets[0] = 0
        offsets[1] = len(message)
        digest_column(number, message, offsets, 1, digest)
        return digest[:digest_octets(number)].hex().encode()

    return hexdigest


cdef int algorithm_number(object algorithm) except -1:
    return _NUMBERS[DIGESTS[algorithm][2]]


cdef int64_t digest_octets(int algorithm) noexcept nogil:
    return pm_digest_size(<pm_algorithm>algorithm)


cdef void digest_column(int algorithm, const uint8_t *data, const int64_t *offsets, int64_t count,
                        uint8_t *out) noexcept nogil:
    # Lanes that stay empty are paid for all the same.
    cdef pm_level chosen = PM_PORTABLE if count < pm_lanes(_level, <pm_algorithm>algorithm) else _level
    pm_digest_column(chosen, <pm_algorithm>algorithm, data, offsets, count, out)


cdef const void *lane_calls() noexcept nogil:
    return &pm_linked_lanes


cdef int lane_level_number() noexcept nogil:
    return _level
