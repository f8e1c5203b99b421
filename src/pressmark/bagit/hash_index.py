"""Numbers indexed by path, at about 24 bytes each; paths are not kept."""

from __future__ import annotations

from array import array

__all__ = ["HashIndex"]

_MASK = (1 << 64) - 1


class HashIndex:
    """A table of numbers by fingerprints of paths: 64 bits of a hash that differs between runs.

    Two paths may have the same fingerprint, although rarely, so only the wording of a problem may depend on the table.
    """

    def __init__(self) -> None:
        self._used = 0
        self._keys = array("Q", bytes(8 * 64))
        self._values = array("Q", bytes(8 * 64))

    def __len__(self) -> int:
        return self._used

    def put(self, path: bytes, number: int) -> None:
        """Set the number of a path."""
        if 3 * self._used >= 2 * len(self._keys):
            self._grow()
        self._set(_fingerprint(path), number)

    def get(self, path: bytes) -> int | None:
        """Return the number of a path; :data:`None` if it has none."""
        key = _fingerprint(path)
        slot = self._slot(key)
        return self._values[slot] if self._keys[slot] == key else None

    def _set(self, key: int, number: int) -> None:
        slot = self._slot(key)
        self._used += self._keys[slot] == 0
        self._keys[slot] = key
        self._values[slot] = number

    def _slot(self, key: int) -> int:
        """Return the position of ``key``, or the free position for it."""
        mask = len(self._keys) - 1
        slot = key & mask
        while self._keys[slot] not in (0, key):
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        keys, values = self._keys, self._values
        empty = bytes(16 * len(keys))
        self._keys, self._values, self._used = array("Q", empty), array("Q", empty), 0
        for key, number in zip(keys, values, strict=True):
            if key:
                self._set(key, number)


def _fingerprint(path: bytes) -> int:
    return hash(path) & _MASK or 1
