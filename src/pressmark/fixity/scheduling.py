"""Which files go to the lanes of vector registers, and which to hashlib: a table and a sum, no guessing.

A lane is slower than hashlib, all lanes of a register together are faster. So lanes pay when enough files run side by
side, and a file that is alone, or much larger than all others, does better in hashlib.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from operator import neg

from pressmark import _kernels

__all__ = ["SMALL", "Plan"]

# Gigabytes a second on one core, all lanes full, 256 KiB a lane: `python -m benchmarks lanes` on a Zen 4 server.
# Only the ratios matter here, and they move little between processors.
_SHA2_LONG = {"portable": 0.72, "avx2": 1.53, "avx512": 2.77}
_SHA2_SHORT = {"portable": 0.91, "avx2": 1.86, "avx512": 3.37}
_BLAKE2B = {"portable": 1.18, "avx2": 2.80, "avx512": 4.12}
LANE_RATES: dict[str, dict[str, float]] = {
    "md5": {"portable": 1.94, "avx2": 3.64, "avx512": 6.64},
    "sha1": {"portable": 1.93, "avx2": 4.02, "avx512": 6.94},
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
# The same for hashlib's OpenSSL and the packages, one file on one core.
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
}
# Where the processor has no SHA extensions, OpenSSL is this fast instead.
WITHOUT_EXTENSIONS = {"sha1": 0.95, "sha224": 0.50, "sha256": 0.50}
# Where nothing is for lanes, files up to this size are still read there, many at once: opening and reading a small file
# from Python takes longer than its digest. Larger ones are better computed while they are in the cache.
SMALL = 1 << 16  # bytes
# Lanes must promise this much more than hashlib: they also have their ends, where not all of them are full.
MARGIN = 1.15


class Plan:
    """What is decided once for a run: the algorithms in lanes, and from there each batch of files.

    :param names: official names of the algorithms
    :param threads: workers that read and compute

    :ivar lanes: the algorithms that lanes compute, in the order of ``names``; empty where lanes would not pay
    :ivar serials: the others
    """

    def __init__(self, names: Sequence[str], threads: int) -> None:
        kernels = _kernels.active
        self.threads = threads
        level = kernels.lane_level()
        serial = dict(SERIAL_RATES)
        if not kernels.sha_extensions():
            serial.update(WITHOUT_EXTENSIONS)
        self.lanes = tuple(
            name
            for name in names
            if kernels.lane_count(name) > 1 and LANE_RATES[name].get(level, 0.0) > MARGIN * serial[name]
        )
        self.serials = tuple(name for name in names if name not in self.lanes)
        # Seconds a gigabyte: times of algorithms add up, rates do not.
        self._serial = sum(1 / serial[name] for name in names)
        if self.lanes:
            beside = sum(1 / serial[name] for name in self.serials)
            self._full = beside + sum(1 / LANE_RATES[name][level] for name in self.lanes)
            self._lane = beside + sum(kernels.lane_count(name) / LANE_RATES[name][level] for name in self.lanes)

    def serial_files(self, sizes: Sequence[int], waiting: int) -> int:
        """Return how many files, counted from the largest, hashlib should take so that all are done soonest.

        Without lanes, those that are not small.

        :param sizes: bytes of each file, falling
        :param waiting: bytes that are queued already
        """
        if not self.lanes:
            return bisect_left(sizes, -SMALL, key=neg)
        if not sizes:
            return 0
        total = sum(sizes) + waiting
        if sizes[0] * self._lane <= total * self._full / self.threads:
            return 0  # nearly always: even the largest file is done before all together are
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
                break  # from here on, taking more only makes it slower
        return best
