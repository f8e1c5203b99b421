"""Decides which files are hashed in lanes of vector registers, and which by hashlib.

One lane is slower than hashlib; all lanes of a register together are faster. So lanes are faster for many files, and
hashlib is faster for a single file, or a file that is much larger than the others. :func:`hash_trees` hashes files in
memory in this way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import neg

from pressmark import _kernels
from pressmark.fixity.algorithms import implementation

__all__ = ["SERIAL_RATES", "SMALL", "Plan", "hash_trees", "plan"]

# Gigabytes per second on one core of a Zen 4 server, all lanes full, 256 KiB per lane. Only the ratios matter, and
# they differ little between processors. Those of md5 with avx2 and avx512 are from a Zen 5 server, where two registers
# are 2.1 and 2.17 times as fast as one. The NEON levels are not measured: they are the serial rates times the ratio of
# cycles in llvm-mca's models of the Cortex-A72 (neon), Neoverse N1 (neon-sha2) and Neoverse V1 (neon-sha3).
_SHA2_LONG = {"portable": 0.72, "avx2": 1.53, "avx512": 3.2, "neon-sha3": 3.0}
_SHA2_SHORT = {"portable": 0.91, "avx2": 1.86, "avx512": 3.8, "neon": 0.78, "neon-sha2": 3.1, "neon-sha3": 3.9}
_BLAKE2B = {"portable": 1.18, "avx2": 2.80, "avx512": 4.12, "neon": 1.30, "neon-sha2": 1.28, "neon-sha3": 1.55}
LANE_RATES: dict[str, dict[str, float]] = {
    "md5": {"portable": 1.94, "avx2": 7.7, "avx512": 14.4, "neon": 1.92, "neon-sha2": 2.68, "neon-sha3": 2.76},
    "sha1": {"portable": 1.93, "avx2": 4.1, "avx512": 7.8, "neon": 2.6, "neon-sha2": 2.9, "neon-sha3": 3.6},
    "sha224": _SHA2_SHORT,
    "sha256": _SHA2_SHORT,
    "sha384": _SHA2_LONG,
    "sha512": _SHA2_LONG,
    "sha512/256": _SHA2_LONG,
    "blake2b-160": _BLAKE2B,
    "blake2b-256": _BLAKE2B,
    "blake2b-384": _BLAKE2B,
    "blake2b-512": _BLAKE2B,
}
# Gigabytes per second of hashlib (OpenSSL) and the packages, one file on one core.
SERIAL_RATES = {
    "md5": 0.77,
    "sha1": 1.94,
    "sha224": 1.81,
    "sha256": 1.81,
    "sha384": 0.88,
    "sha512": 0.88,
    "sha512/256": 0.88,
    "sha3-224": 0.54,
    "sha3-256": 0.43,
    "sha3-384": 0.39,
    "sha3-512": 0.23,
    "blake2b-160": 0.96,
    "blake2b-256": 0.96,
    "blake2b-384": 0.96,
    "blake2b-512": 0.96,
    "blake2s": 0.54,
    "blake3": 6.5,
    "xxh32": 3.2,
    "xxh64": 14.5,
    "xxh3-64": 30.0,
    "xxh128": 30.0,
    "crc32": 1.2,
}
# Rates of OpenSSL on processors without SHA extensions, and on those with instructions for SHA-512.
WITHOUT_EXTENSIONS = {"sha1": 0.95, "sha224": 0.50, "sha256": 0.50}
WITH_SHA512 = {"sha384": 1.9, "sha512": 1.9, "sha512/256": 1.9}
# Without lanes, files up to this size are still read by the engine, in batches: opening and reading a small file from
# Python takes longer than hashing it.
SMALL = 1 << 16  # bytes
# With lanes, opening and reading a file of up to this size from Python takes longer than hashing it in a single lane.
TINY = 1 << 14  # bytes
# Required advantage of lanes, as they are not always full.
MARGIN = 1.15


class Plan:
    """The division of work between lanes and hashlib.

    :param names: official names of the algorithms
    :param threads: number of workers

    :ivar lanes: the algorithms computed in lanes, in the order of ``names``
    :ivar serials: the other algorithms
    :ivar small: if no file is larger, in bytes, hashlib should hash none
    """

    def __init__(self, names: Sequence[str], threads: int) -> None:
        kernels = _kernels.active
        self.threads = threads
        level = kernels.lane_level()
        extensions = kernels.sha_extensions()
        serial = SERIAL_RATES | (WITHOUT_EXTENSIONS, {}, WITH_SHA512)[extensions]
        self.lanes = tuple(
            name
            for name in names
            if kernels.lane_count(name) > 1 and LANE_RATES[name].get(level, 0.0) > MARGIN * serial[name]
        )
        self.serials = tuple(name for name in names if name not in self.lanes)
        self.small = TINY if self.lanes else SMALL
        # Seconds per gigabyte, which add up over algorithms.
        self._serial = sum(1 / serial[name] for name in names)
        if self.lanes:
            beside = sum(1 / serial[name] for name in self.serials)
            self._full = beside + sum(1 / LANE_RATES[name][level] for name in self.lanes)
            self._lane = beside + sum(kernels.lane_count(name) / LANE_RATES[name][level] for name in self.lanes)

    def serial_files(self, sizes: Sequence[int], waiting: int) -> int:
        """Return how many files, from the largest, hashlib should hash so that the batch ends soonest.

        Without lanes, return the number of files that are not small.

        :param sizes: sizes of the files, in descending order
        :param waiting: bytes in the queue
        """
        if not self.lanes:
            return bisect_left(sizes, -SMALL, key=neg)
        if not sizes or sizes[0] <= self.small:
            return 0
        total = sum(sizes) + waiting
        if sizes[0] * self._lane <= total * self._full / self.threads:
            return 0  # the usual case: the largest file is done before the others
        best, best_time = 0, float("inf")
        for count, taken in enumerate(accumulate(sizes, initial=0)):
            longest = sizes[count] * self._lane if count < len(sizes) else 0.0
            if count:
                longest = max(longest, sizes[0] * self._serial)
            together = (taken * self._serial + (total - taken) * self._full) / self.threads
            time = max(longest, together)
            if time < best_time:
                best, best_time = count, time
            if longest <= together:
                break  # more would only be slower
        return best


def plan(names: Sequence[str], threads: int) -> Plan:
    """Return a plan; making one takes longer than copying a small file."""
    kernels = _kernels.active
    return _plan(tuple(names), threads, kernels, kernels.lane_level(), kernels.sha_extensions())


@lru_cache
def _plan(names: tuple[str, ...], threads: int, *_machine: object) -> Plan:
    return Plan(names, threads)


def hash_trees(batch: _kernels.active.TreeBatch, algorithms: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the digest of each file of a batch, by algorithm and number of the file.

    The digest of a file whose content is not in memory is :data:`None`: it must be read.

    :param algorithms: official names
    :return: lower-case hex digests
    """
    kernels = _kernels.active
    functions = _functions(kernels, kernels.lane_level(), tuple(algorithms))
    return {name: batch.digests(name, function) for name, function in functions}


@lru_cache(maxsize=16)  # many batches are small
def _functions(
    _kernels_in_use: object, _level: str, algorithms: tuple[str, ...]
) -> list[tuple[str, Callable[[bytes], str] | None]]:
    """Return the function that hashes one content, for each algorithm; :data:`None` to hash several at a time."""
    lanes = plan(algorithms, 1).lanes
    return [(name, None if name in lanes else implementation(name).one_shot()) for name in algorithms]
