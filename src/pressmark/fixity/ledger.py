"""A ledger of finished files, used to resume an interrupted run.

A ledger is an append-only text file. Each line is a CRC-32 in eight hex digits, a space, and JSON: first a header that
describes the run, then for each file ``[path, size, mtime_ns, ctime_ns, inode, date, [digest, …]]`` with the day of
reading in UTC, and the digests in the order of the algorithms in the header. Bytes of a path that are not UTF-8 are the
surrogates of :func:`os.fsdecode`, escaped.

A file counts as finished while its size, times and inode match its record. The time of its last status change
(``ctime_ns``, 0 on Windows) also changes if its content is replaced and its modification time is set back. Records that
are incomplete or have a wrong CRC are ignored: their files are read again. A ledger of an earlier version, whose
records lack that time, is refused.
"""

from __future__ import annotations

import json
import os
import stat
from array import array
from collections.abc import Iterable, Sequence
from time import gmtime, monotonic, strftime
from types import TracebackType
from zlib import crc32

from pressmark.errors import LedgerError
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_names
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.durable import flush_file
from pressmark.fs.locks import lock_descriptor
from pressmark.fs.owners import open_shared

__all__ = ["Ledger"]

VERSION = 1
CHECKED = 9  # bytes before the JSON: the CRC and a space
# After a power failure, at most the work of this time is repeated.
SYNC_EVERY = 30.0  # seconds
_COUNT_SIZE = 1 << 20  # 1 MiB
_OTHER_VERSION = "written by another version of Pressmark; choose another file for the ledger"
_HAS_CTIME = os.name != "nt"  # there it is the time of creation
_in_json = json.JSONEncoder().encode  # takes half the time of json.dumps


class Ledger:
    """An open ledger, locked for one process; a context manager.

    :param path: the file, created if it does not exist
    :param algorithms: the algorithms of the run, by any of their names
    :param roots: the files and directories of the run; must be the same each time

    :ivar name: path of the file
    :ivar algorithms: official names of the algorithms
    :ivar records: number of valid records when it was opened
    :ivar damaged: number of other lines
    :ivar added: number of files that were read and recorded since then
    :ivar found: number of files that were not read, because it lists them
    :ivar since: the day when the first of them was read, in UTC (``2026-11-26``); empty if there is none
    :raises LedgerError: it cannot be opened, is in use, is not a ledger, or belongs to another run
    """

    def __init__(
        self, path: str | bytes | os.PathLike[str], algorithms: Iterable[str] | str, roots: Sequence[str | bytes]
    ) -> None:
        self.algorithms = algorithm_names(algorithms)
        self.name: str = os.fsdecode(path)
        self.records = self.damaged = self.added = self.found = 0
        self.since = ""
        # Length of a record after the inode: the day, and hex of fixed length in [" and "]], joined by ",".
        self._tail = len(_today()) + 6 + sum(2 * ALGORITHMS[name].size + 3 for name in self.algorithms)
        self._table = array("Q", [0])
        self._next_sync = monotonic() + SYNC_EVERY
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        try:
            # Not a terminal or a pipe.
            if os.path.exists(path) and not os.path.isfile(path):
                raise LedgerError(self.name, "not a regular file; choose another file for the ledger")
            self._descriptor = open_shared(os.fspath(path), flags)
        except (OSError, ValueError) as error:
            raise LedgerError(self.name, _reason(error)) from None
        try:
            self._lock()
            self._begin(_header(self.algorithms, roots))
        except OSError as error:
            os.close(self._descriptor)
            raise LedgerError(self.name, _reason(error)) from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Flush the ledger to disk and close it; no effect if it is already closed.

        :raises LedgerError: the file cannot be written
        """
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            flush_file(descriptor)
        except OSError as error:
            raise LedgerError(self.name, _reason(error)) from error
        finally:
            os.close(descriptor)  # releases the lock

    def status(self) -> os.stat_result:
        """Return the status of the ledger file, which walks skip."""
        return os.fstat(self._descriptor)

    def find(self, path: str | bytes, status: os.stat_result) -> dict[str, str] | None:
        """Return the digests of a finished file that has not changed since, or :data:`None`.

        Devices are read again: their times do not tell whether their content has changed.
        """
        if not self.records or not stat.S_ISREG(status.st_mode):
            return None
        key = _key(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        mask = len(self._table) - 1
        slot = hash(key) & mask
        while offset := self._table[slot]:
            line = self._read(offset, CHECKED + len(key) + self._tail)
            # Check the CRC again: the disk may have failed since.
            if line.startswith(key, CHECKED) and _is_whole(line):
                # The day and the digests have fixed positions; parsing the JSON takes longer than the rest.
                day, digests = line[-self._tail :].decode("ascii").split(",", 1)
                self.found += 1
                if day[1:-1] < self.since or not self.since:
                    self.since = day[1:-1]
                return dict(zip(self.algorithms, digests[2:-4].split('","'), strict=True))
            slot = (slot + 1) & mask
        return None

    def append(self, outcomes: Iterable[Outcome]) -> None:
        """Append a record for each outcome.

        :raises LedgerError: the file cannot be written
        :raises ValueError: an outcome has no digests
        """
        lines = []
        today = _today()
        for path, found, size, mtime_ns, inode, _kind, _message, ctime_ns, _number in outcomes:
            if found is None or size is None or mtime_ns is None or inode is None:
                raise ValueError("outcome without digests")
            digests = '","'.join(found[name] for name in self.algorithms)
            lines.append(_line(_key(path, size, mtime_ns, ctime_ns, inode) + f'"{today}",["{digests}"]]'.encode()))
        try:
            self._write(b"".join(lines))
            self.added += len(lines)
            if monotonic() >= self._next_sync:
                self._next_sync = monotonic() + SYNC_EVERY
                flush_file(self._descriptor)
        except OSError as error:
            raise LedgerError(self.name, _reason(error)) from error

    # --- the file -------------------------------------------------------------------------------------------------

    def _lock(self) -> None:
        try:
            lock_descriptor(self._descriptor)
        except BlockingIOError:
            raise LedgerError(self.name, "in use by another run; wait for it to finish") from None

    def _begin(self, header: bytes) -> None:
        """Check the header and index the records; write the header if the file is empty."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", closefd=False) as file:
            first = file.readline(1 << 20)
            if not first.endswith(b"\n"):
                if not header.startswith(first):
                    raise LedgerError(self.name, "not a ledger; choose another file for the ledger")
                # New, or interrupted in the first line.
                os.ftruncate(self._descriptor, 0)
                self._write(header)
                return
            if not _is_whole(first) or b'"pressmark_ledger"' not in first:
                raise LedgerError(self.name, "not a ledger; choose another file for the ledger")
            self._compare(json.loads(first[CHECKED:]), json.loads(header[CHECKED:]))
            begin = len(first)
            record = file.readline()
            if _is_whole(record) and record.endswith(b"\n") and not self._is_record(record):
                raise LedgerError(self.name, _OTHER_VERSION)
            file.seek(begin)
            lines, end = _lines(file)
            if end < os.fstat(self._descriptor).st_size:
                os.ftruncate(self._descriptor, end)  # an incomplete record
            file.seek(begin)
            # A power of two, at most two thirds full.
            self._table = array("Q", bytes(8)) * (1 << (3 * lines // 2 + 1).bit_length())
            self._index(file, begin)

    def _compare(self, found: dict[str, object], wanted: dict[str, object]) -> None:
        if found.get("pressmark_ledger") != VERSION:
            raise LedgerError(self.name, _OTHER_VERSION)
        for key, what in (("algorithms", "algorithms"), ("roots", "paths"), ("directory", "directory")):
            if found.get(key) != wanted[key]:
                old, new = json.dumps(found.get(key)), json.dumps(wanted[key])
                reason = f"ledger was created for other {what}: {old}, not {new}; choose another file for this run"
                raise LedgerError(self.name, reason)

    def _index(self, file: Iterable[bytes], offset: int) -> None:
        table, mask, tail = self._table, len(self._table) - 1, self._tail
        for line in file:
            if _is_whole(line) and self._is_record(line):
                slot = hash(line[CHECKED:-tail]) & mask
                while table[slot]:
                    slot = (slot + 1) & mask
                table[slot] = offset
                self.records += 1
            else:
                self.damaged += 1
            offset += len(line)

    def _is_record(self, line: bytes) -> bool:
        return line.endswith(b"\n") and line.endswith(b",", CHECKED, -self._tail)

    def _read(self, offset: int, size: int) -> bytes:
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        return os.read(self._descriptor, size)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


def _header(algorithms: Sequence[str], roots: Sequence[str | bytes]) -> bytes:
    given = [os.fsdecode(root) for root in roots]
    header = {
        "pressmark_ledger": VERSION,
        "algorithms": list(algorithms),
        # Relative paths depend on the working directory.
        "directory": None if all(map(os.path.isabs, given)) else os.getcwd(),
        "roots": given,
    }
    return _line(json.dumps(header).encode())


def _key(path: str | bytes, size: int, mtime_ns: int, ctime_ns: int, inode: int) -> bytes:
    """Return the start of the record of a file, which identifies it."""
    return f"[{_in_json(os.fsdecode(path))},{size},{mtime_ns},{ctime_ns if _HAS_CTIME else 0},{inode},".encode("ascii")


def _today() -> str:
    return strftime("%Y-%m-%d", gmtime())


def _line(text: bytes) -> bytes:
    return b"%08x %b\n" % (crc32(text), text)


def _is_whole(line: bytes) -> bool:
    text = line[CHECKED:].rstrip(b"\n")
    return line[:CHECKED] == b"%08x " % crc32(text)


def _lines(file: object) -> tuple[int, int]:
    """Return the number of complete lines left in ``file``, and the offset where the last one ends."""
    count, end = 0, file.tell()  # type: ignore[attr-defined]
    offset = end
    while block := file.read(_COUNT_SIZE):  # type: ignore[attr-defined]
        found = block.count(b"\n")
        if found:
            count += found
            end = offset + block.rindex(b"\n") + 1
        offset += len(block)
    return count, end


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
