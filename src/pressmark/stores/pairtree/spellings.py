"""The other ppaths of an identifier: programs write letters instead of escapes, or escapes in upper case.

Each level of the tree is listed, and only directories that decode to the next bytes of the identifier are opened. A
Pairtree that contains nothing but canonical ppaths costs one listing for each level.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, filterfalse

from pressmark.fs.names import decode_fs, encode_fs
from pressmark.layouts.pairtree import unclean
from pressmark.stores.directories.store_directory import StoreDirectory

__all__ = ["Spellings"]

# Names without escapes that cleaning does not change: they spell their bytes in the only canonical way.
_is_plain = re.compile(rb'[^\x00- "*.:<>?\\^|\x7f-\xff]{1,2}').fullmatch
_is_hex = re.compile(rb"[0-9A-Fa-f]{0,2}").fullmatch
_UNDO = {b"=": b"/", b"+": b":", b",": b"."}
# A name of two characters has at most so many bytes.
_LONGEST = 8
_KEPT = 100_000  # directories
_Names = tuple[list[bytes], list[bytes]]  # of all entries, and of those that may extend a ppath and are not plain
_UNKNOWN: _Names = ([], [])


class Spellings:
    """Finds the other ppaths of identifiers.

    :param tree: the directory pairtree_root
    :param keeps: keep the names of directories, for many identifiers; a spelling that another program adds meanwhile
        may not be found
    """

    def __init__(self, tree: StoreDirectory, *, keeps: bool = False) -> None:
        self._tree = tree
        self._kept: dict[str, _Names | None] | None = {} if keeps else None

    def others(self, ppath: str) -> Iterator[str]:
        """Yield the ppaths that decode to the same bytes as a canonical one, if there are directories of these names.

        :raises OSError: a directory of the tree cannot be read
        """
        if self._tree.is_remote:
            from pressmark.buckets.requests import in_order  # only in object storage

            # All levels at a time: each costs a request.
            levels = ["", *accumulate(ppath.split("/")[:-1], "{}/{}".format)]
            self._kept = dict(zip(levels, in_order(self._list, levels), strict=True))
        wanted = b""
        above = spelled = ""
        for part in ppath.split("/"):
            names = self._names(above)
            if names is None:
                return
            # The canonical escape that the names above have begun.
            pending = spelled[-2:][spelled[-2:].find("^") :] if "^" in spelled[-2:] else ""
            candidates = names[0] if pending else names[1]
            if candidates:
                wanted = wanted or encode_fs(unclean(ppath.replace("/", "")))
                done = len(spelled) - len(pending) - 2 * (spelled.count("^") - bool(pending))
                own = encode_fs(part)
                yield from self._below(above, [one for one in candidates if one != own], wanted, done, pending.encode())
            above = f"{above}/{part}" if above else part
            spelled += part

    def _below(self, above: str, names: list[bytes], wanted: bytes, done: int, pending: bytes) -> Iterator[str]:
        """Yield the ppaths below a directory that go on with some names and spell the rest of the identifier.

        :param done: the number of bytes that are spelled already
        :param pending: the beginning of an incomplete escape
        """
        for name in names:
            read = _read(wanted, done, pending + name)
            if read is None or not _is_short(name):
                continue
            text = decode_fs(name)
            ppath = f"{above}/{text}" if above else text
            if read == (len(wanted), b""):
                yield ppath
            elif len(text) == 2:  # a shorter name ends the ppath
                below = self._names(ppath)
                if below is not None:
                    yield from self._below(ppath, below[0], wanted, *read)

    def _names(self, ppath: str) -> _Names | None:
        """Return the names in a directory, and those of them that may extend a ppath and are not plain.

        :return: :data:`None` without such a directory
        """
        if self._kept is None:
            return self._list(ppath)
        # Without a second look-up: another thread may clear it.
        names = self._kept.get(ppath, _UNKNOWN)
        if names is _UNKNOWN:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            names = self._kept[ppath] = self._list(ppath)
        return names

    def _list(self, ppath: str) -> _Names | None:
        try:
            listed = self._tree.names(encode_fs(ppath))
        except (FileNotFoundError, NotADirectoryError, PermissionError):  # no walk can read it either
            return None
        return listed, [name for name in filterfalse(_is_plain, listed) if _is_short(name)]


def _is_short(name: bytes) -> bool:
    """Return whether a name may extend a ppath."""
    return len(name) <= _LONGEST and (len(name) <= 2 or len(decode_fs(name)) <= 2)


def _read(wanted: bytes, done: int, data: bytes) -> tuple[int, bytes] | None:
    """Compare names of a ppath with the rest of an identifier.

    :return: the number of bytes that are spelled now, and the beginning of an incomplete escape; :data:`None` if the
        names spell something else
    """
    at = 0
    while at < len(data):
        character = data[at : at + 1]
        if character == b"^":
            digits = data[at + 1 : at + 3]
            if not _is_hex(digits):
                return None
            if len(digits) < 2:
                return done, data[at:]
            character = bytes([int(digits, 16)])
            at += 2
        else:
            character = _UNDO.get(character, character)
        if wanted[done : done + 1] != character:
            return None
        done += 1
        at += 1
    return done, b""
