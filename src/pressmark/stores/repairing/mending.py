"""Mending: damaged and lost files of objects are replaced by files of a good copy.

The digests that an object records, an OCFL object in its inventory and a bag in its manifests, show which files are
damaged, and prove that a file of the good copy is the right one, whatever its name. Nothing else of an object changes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from typing import NamedTuple

from pressmark.errors import IdentifierError, ObjectError, StoreError, quoted_path
from pressmark.fixity.copying import copy_files
from pressmark.fixity.hasher import CHANGED
from pressmark.fixity.outcomes import Outcome, require_written
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.beneath import open_directory
from pressmark.fs.durable import flush_directories, flush_trees, walk
from pressmark.fs.moves import exchange, make_parents, rename_new
from pressmark.fs.names import encode_fs, first_link
from pressmark.progress_event import Progress
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.objects import OnEvent, Path, RecordedFiles, RepairStep, StoreObject, encode_path
from pressmark.stores.problems import problem
from pressmark.stores.registry import kind_of, open as open_store
from pressmark.stores.store import Store
from pressmark.stores.store_change import above

__all__ = ["GoodCopy", "mend"]

# A bag is looked at again when a manifest was mended: it says what the payload is.
ROUNDS = 3


class _Damage(NamedTuple):
    """A file that is damaged or lost.

    :ivar name: its path in the object's directory
    :ivar outcome: of reading it
    """

    name: bytes
    algorithm: str
    digest: str
    outcome: Outcome

    @property
    def is_lost(self) -> bool:
        """Whether there is no file at its path."""
        return self.outcome.kind == "missing"


def mend(
    store: Store,
    good: Path,
    ids: Sequence[str | bytes] = (),
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
    ignore: Sequence[str] = (),
) -> Report:
    """Replace damaged and lost files of objects by files of a good copy, and return a report of what remains.

    All files of the objects are read, and compared with the digests that the objects record. A file of the good copy
    takes the place of a damaged one only if it has that digest. A damaged file is kept until the new one was read.

    :param store: an OCFL storage root, or a folder of bags
    :param good: a store of any kind that has the objects, or a bag or directory, in which files are found by their
        digests
    :param ids: of the objects to mend; without any, all objects
    :param dry_run: report the changes without making them
    :param progress: can cancel the call between two files
    :param ignore: globs of names to ignore
    :return: with the numbers of ``objects`` and ``files`` that were read, and of ``mended`` files; the ``steps`` are a
        :class:`RepairStep` for each file, with the action ``mend``
    :raises StoreError: the store or the good copy cannot be read; or objects of this kind record no digests
    """
    return _Mending(store, good, dry_run, progress).run(ids, ignore)


class _Mending:
    """One run that mends objects."""

    def __init__(self, store: Store, good: Path, dry_run: bool, on_event: OnEvent | None) -> None:
        self._store = store
        self._base = encode_path(store.root)
        self._good = GoodCopy(good, self._base)
        self._dry_run = dry_run
        self._on_event = on_event
        self._report = Report(counts={"objects": 0, "files": 0, "mended": 0})

    def run(self, identifiers: Sequence[str | bytes], ignore: Sequence[str]) -> Report:
        """Mend the objects with these identifiers, or all, and return the report of what remains."""
        with store_errors(self._base), self._store._writer("copy") as writer:
            self._writer = writer
            for record in self._records(identifiers, ignore):
                self._report.counts["objects"] += 1
                try:
                    with object_errors(self._store.root, record.id or record.path):
                        self._report.add(self._mend(record))
                except ObjectError as error:
                    self._report.add([problem("unrepaired", encode_fs(record.path), error.reason)])
        return self._report

    def _records(self, identifiers: Sequence[str | bytes], ignore: Sequence[str]) -> Iterator[StoreObject]:
        if not identifiers:
            yield from self._store.objects(ignore=ignore)
        for identifier in identifiers:
            try:
                yield self._store.find(identifier)
            except (ObjectError, IdentifierError) as error:
                self._report.add([problem("unrepaired", encode_fs(identifier), error.reason)])

    def _mend(self, record: StoreObject) -> list[Problem]:
        """Mend an object, and return the problems that remain."""
        for turn in range(ROUNDS):
            recorded = self._store.recorded_files(record)
            damaged = self._damaged(recorded, recorded.files)
            if not turn:
                self._report.counts["files"] += len(recorded.files)
            found = self._good.find(record.id, damaged)
            remaining = [self._lacking(recorded, one) for one in damaged if one.name not in found]
            mended = [one for one in damaged if one.name in found]
            if self._dry_run:
                for one in mended:
                    self._report_mended(recorded, one)
                return remaining
            copies = [(one, self._copy(recorded, one, found[one.name])) for one in mended]
            exchanged: list[tuple[_Damage, bytes]] = []
            with self._writer.staging.lock() if copies else nullcontext():
                # Once for all files: the manifests of a bag may be large.
                is_same = not copies or self._store.recorded_files(record).proof == recorded.proof
                for one, (new, refused) in copies:
                    if refused is None and not (is_same and self._is_as_found(recorded, one)):
                        refused = "changed by another run; run the command again"
                    if refused is None:
                        exchanged.append((one, self._publish(recorded, one, new)))
                    else:
                        remaining.append(self._unrepaired(recorded, one.name, refused))
            changed = {path for one, _old in exchanged for path in above(recorded.directory, one.name)}
            flush_directories([os.path.join(self._base, path) for path in sorted(changed)])
            remaining += self._verified(recorded, exchanged)
            if not recorded.describing & {one.name for one, _old in exchanged}:
                break
        return remaining

    def _damaged(self, recorded: RecordedFiles, names: Collection[bytes]) -> list[_Damage]:
        """Return the files whose content is not the recorded one, in the order of their names."""
        damaged: list[_Damage] = []
        if not names:  # as in a serialized bag, which is no directory
            return damaged
        with open_directory(os.path.join(self._base, recorded.directory)) as opened:
            for algorithm in sorted({recorded.files[name][0] for name in names}):
                tasks = ((name, name) for name in sorted(names) if recorded.files[name][0] == algorithm)
                with closing(hash_tasks(tasks, (algorithm,), links="refuse", beneath=opened)) as outcomes:
                    for name, outcome in outcomes:
                        digest = recorded.files[name][1]
                        if outcome.digests is None or outcome.digests[algorithm] != digest:
                            damaged.append(_Damage(name, algorithm, digest, outcome))
        return sorted(damaged, key=lambda one: one.name)

    def _copy(self, recorded: RecordedFiles, damage: _Damage, source: bytes) -> tuple[bytes, str | None]:
        """Copy a good file to the private directory, and flush it.

        :return: the path of the copy, and why it cannot be used
        """
        new = self._writer.new_path()
        [(_key, outcome)] = copy_files([(None, source, new)], (damage.algorithm,), links="refuse")
        require_written(outcome)
        if outcome.digests is None or outcome.digests[damage.algorithm] != damage.digest:
            return new, f"{quoted_path(source)} changed while it was read; run the command again"
        if damage.outcome.kind == CHANGED:
            return new, "changed while it was read; run the command again"
        if not damage.is_lost:
            with suppress(FileNotFoundError):  # reported when it is looked at again
                os.chmod(new, stat.S_IMODE(os.lstat(self._path(recorded, damage)).st_mode))
        flush_trees(new)
        return new, None

    def _publish(self, recorded: RecordedFiles, damage: _Damage, new: bytes) -> bytes:
        """Move a copy to the path of a damaged or lost file, while no run moves anything.

        :return: the path of the damaged file, which is kept beside; empty if it was lost
        """
        target = self._path(recorded, damage)
        if damage.is_lost:
            make_parents(self._base, os.path.dirname(os.path.join(recorded.directory, damage.name)))
            rename_new(new, target)
            return b""
        if exchange(new, target):
            return new
        os.replace(new, target)
        return b""

    def _path(self, recorded: RecordedFiles, damage: _Damage) -> bytes:
        return os.path.join(self._base, recorded.directory, damage.name)

    def _is_as_found(self, recorded: RecordedFiles, damage: _Damage) -> bool:
        """Return whether a damaged file has not changed since it was read, while no run moves anything."""
        if first_link(self._base, os.path.dirname(os.path.join(recorded.directory, damage.name))) is not None:
            return False
        try:
            status = os.lstat(self._path(recorded, damage))
        except (FileNotFoundError, NotADirectoryError):
            return damage.is_lost
        outcome = damage.outcome
        if damage.is_lost or not stat.S_ISREG(status.st_mode):
            return False
        return outcome.inode is None or (status.st_ino, status.st_size, status.st_mtime_ns) == (
            outcome.inode,
            outcome.size,
            outcome.mtime_ns,
        )

    def _verified(self, recorded: RecordedFiles, exchanged: list[tuple[_Damage, bytes]]) -> list[Problem]:
        """Read the new files at their paths; put a damaged one back where the new one is not better."""
        wrong = {one.name for one in self._damaged(recorded, [damage.name for damage, _old in exchanged])}
        problems = []
        for damage, old in exchanged:
            if damage.name not in wrong:
                self._report_mended(recorded, damage)
                self._report.counts["mended"] += 1
            else:
                if old:
                    exchange(old, self._path(recorded, damage))
                problems.append(self._unrepaired(recorded, damage.name, "the new file cannot be read; check the disk"))
            if old:
                with suppress(OSError):  # removed with the private directory
                    os.unlink(old)
        return problems

    def _report_mended(self, recorded: RecordedFiles, damage: _Damage) -> None:
        step = RepairStep.of("mend", os.path.join(recorded.directory, damage.name))
        self._report.steps.append(step)
        if self._on_event is not None:
            self._on_event(step)

    def _lacking(self, recorded: RecordedFiles, damage: _Damage) -> Problem:
        what = "lost" if damage.is_lost else damage.outcome.message or "damaged"
        reason = f"{what}, and the good copy has no file with its {damage.algorithm} digest; use another copy"
        path = os.path.join(recorded.directory, damage.name)
        return problem("unmended", path, reason, algorithm=damage.algorithm, expected=damage.digest)

    @staticmethod
    def _unrepaired(recorded: RecordedFiles, name: bytes, reason: str) -> Problem:
        return problem("unrepaired", os.path.join(recorded.directory, name), reason)


class GoodCopy:
    """Files of which good ones are taken: of a store, of a bag, or of a directory.

    :param path: a store of any kind, in which only the object with the same identifier is looked at; or another
        directory, such as a bag, with all files in it; or one file
    :param base: the store that is mended
    :raises StoreError: it does not exist, is the store itself, or cannot be read
    """

    def __init__(self, path: Path, base: bytes) -> None:
        self._top = encode_path(path)
        self._store: Store | None = None
        # The digests of files that several objects may need.
        self._known: dict[tuple[bytes, str], str | None] = {}
        with store_errors(self._top):
            if os.path.samefile(self._top, base):
                raise StoreError(self._top, "this is the store itself; specify a good copy of its files")
        if os.path.isdir(self._top):
            try:
                kind = kind_of(path)
            except StoreError:  # another directory, whose files are found by their digests
                return
            self._store = open_store(path, kind)

    def find(self, identifier: str | None, damaged: Sequence[_Damage]) -> dict[bytes, bytes]:
        """Return the path of a good file for each damaged one that has one.

        :param identifier: of the object
        :raises OSError: a directory of the good copy cannot be read
        """
        top = self._directory(identifier) if damaged else None
        if top is None:
            return {}
        paths = list(_files(top))
        wanted = {(one.algorithm, one.digest): one.name for one in damaged}
        good: dict[tuple[str, str], bytes] = {}
        # Those of the same names first: the others need not be read if these are good.
        names = {os.path.basename(one.name) for one in damaged}
        for is_named in (True, False):
            candidates = [path for path in paths if (os.path.basename(path) in names) == is_named]
            for algorithm in sorted({algorithm for algorithm, _digest in wanted.keys() - good.keys()}):
                for path, digest in self._hashed(candidates, algorithm):
                    if (algorithm, digest) in wanted:
                        good.setdefault((algorithm, digest), path)
                    if good.keys() >= {key for key in wanted if key[0] == algorithm}:
                        break
        return {one.name: good[key] for one in damaged if (key := (one.algorithm, one.digest)) in good}

    def _directory(self, identifier: str | None) -> bytes | None:
        """Return the directory or file whose files are looked at; :data:`None` without one."""
        if self._store is None:
            return self._top
        if identifier is None:
            return None
        try:
            found = self._store.get(identifier)
        except (ObjectError, IdentifierError):
            return None
        return os.fsencode(getattr(found, "bag_path", found.path))  # a bag's tag files as well

    def _hashed(self, paths: Sequence[bytes], algorithm: str) -> Iterator[tuple[bytes, str]]:
        """Yield the files that can be read, each with its digest."""
        unread = [path for path in paths if (path, algorithm) not in self._known]
        yield from ((path, digest) for path in paths if (digest := self._known.get((path, algorithm))) is not None)
        with closing(hash_tasks(((path, path) for path in unread), (algorithm,), links="refuse")) as outcomes:
            for path, outcome in outcomes:
                digest = None if outcome.digests is None else outcome.digests[algorithm]
                if self._store is None:
                    self._known[path, algorithm] = digest
                if digest is not None:
                    yield path, digest


def _files(top: bytes) -> Iterator[bytes]:
    """Yield the paths of a file, or of all regular files in a directory; links are not followed."""
    if not os.path.isdir(top):
        yield top
        return
    for directory, folders, files in walk(top):
        folders.sort()
        paths = (os.path.join(directory, name) for name in sorted(files))
        yield from (path for path in paths if not os.path.islink(path))
