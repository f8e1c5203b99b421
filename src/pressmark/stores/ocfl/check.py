"""The check of an OCFL storage root: the root itself, its hierarchy, each object strictly, and optionally all content.

Everything is streamed: objects come from the walk, their files are read in one run of the fixity engine, and results
keep the order of the walk. Only the objects whose files are being read are in memory.
"""

from __future__ import annotations

import os
import stat
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, starmap
from time import monotonic
from typing import NamedTuple

from pressmark.errors import quoted
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.staging import kind_of_leftover
from pressmark.fs.trees import DirectoryEntry
from pressmark.reports import Problem, Progress, Report
from pressmark.stores.ocfl.declarations import EXTENSIONS
from pressmark.stores.ocfl.inventory import INVENTORY
from pressmark.stores.ocfl.inventory_rules import plain_advice
from pressmark.stores.ocfl.layout_files import WORK_DIRECTORY, read_root
from pressmark.stores.ocfl.object_check import Advice, Checked, ContentFile, check_object, plain_objects
from pressmark.stores.ocfl.storage import PlainObjects, Storage, status_or_none
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.ocfl.walk import BatchReader, FoundObject, Walk, ignored
from pressmark.stores.problems import problem
from pressmark.stores.readability import find_unreadable, unreadable_file
from pressmark.stores.recheck import abandoned, agreed
from pressmark.stores.store import OnEvent, OnProblem
from pressmark.stores.stored_object import is_same_version

__all__ = ["Check", "ObjectResult", "advice_problems", "extension_problems", "root_problems"]

PROGRESS_EVERY = 0.1  # seconds
# Files with other algorithms than most are read in batches of this size.
BESIDE = 4096
# Objects that are read in one call.
BATCH = 64
# After this many objects without files to read, no more are read ahead.
IDLE = 512
_INVENTORY = encode_fs(INVENTORY)
_KINDS = {"missing": "content-missing", "changed-while-read": "content-changing"}


class ObjectResult(NamedTuple):
    """The result of checking one object.

    :ivar id: its identifier; :data:`None` if missing in its inventory
    :ivar path: its path, relative to the root
    :ivar problems: all problems
    :ivar advice: recommendations that the object does not follow
    :ivar files: number of content files
    """

    id: str | None
    path: str
    problems: tuple[Problem, ...]
    advice: tuple[Advice, ...]
    files: int


@dataclass
class _Open:
    """An object, plain objects, or a problem outside of objects, before it is reported.

    :ivar checked: :data:`None` for plain objects, for a problem, and for an object that another run has removed
    :ivar left: number of files that are not yet verified
    :ivar without_content: number of problems before any file was verified
    """

    place: bytes
    checked: Checked | None
    problems: list[Problem]
    files: Sequence[ContentFile] = ()
    inside: bytes | None = None
    plain: PlainObjects | None = None
    left: int = field(init=False)
    without_content: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = len(self.files)
        self.without_content = len(self.problems)


def root_problems(storage: Storage, layout_is_given: bool) -> list[Problem]:
    """Return the problems of a storage root itself, and the leftovers of killed runs.

    :param layout_is_given: the caller's layout replaces a missing or unknown one
    :raises OSError: the root cannot be read
    """
    overruled = {"layout-unknown", "layout-missing"} if layout_is_given else set()
    root, staging = storage.path(b""), storage.path(EXTENSIONS + b"/" + WORK_DIRECTORY)

    def look() -> list[Problem]:
        return [one for one in read_root(storage).problems if one.kind not in overruled]

    left = [problem(kind_of_leftover(path), os.path.relpath(path, root)) for path in abandoned(staging)]
    # A run that begins or ends creates or removes the extensions directory.
    return agreed(look(), look, lambda found: all(one.kind != "directory-empty" for one in found), staging)[0] + left


def extension_problems(storage: Storage) -> Iterator[Problem]:
    """Yield the problem of everything that cannot be read in the directories of a root's extensions."""
    for found in find_unreadable(
        storage.path(EXTENSIONS), EXTENSIONS, links="skip", ignored=decode_fs(WORK_DIRECTORY).__eq__
    ):
        # The directory itself is reported with the layout.
        if found.kind == "unreadable" and found.path != EXTENSIONS:
            yield found


def advice_problems(advice: Mapping[str, tuple[str, int, bytes, str]]) -> Iterator[Problem]:
    """Yield one problem for each recommendation: usually all objects or none follow it.

    :param advice: by code: kind of problem, number of objects, path of the first, message
    """
    for code, (kind, count, first, message) in sorted(advice.items()):
        more = f"; {count:,} objects affected; this is the first" if count > 1 else ""
        yield problem(kind, first, f"{message}{more}", code=code)


class Check:
    """One check of a storage root.

    :ivar advice: the advice so far, as for :func:`advice_problems`
    """

    def __init__(
        self,
        store: StorageRoot,
        on_event: OnEvent | None,
        on_problem: OnProblem | None,
        on_object: Callable[[ObjectResult], object] | None,
    ) -> None:
        self._store = store
        self._storage = store.storage
        self._on_event = on_event
        self._on_problem = on_problem
        self._on_object = on_object
        self._report = Report()
        self._work_directory = self._storage.path(EXTENSIONS + b"/" + WORK_DIRECTORY)
        self._ignored = ignored(())
        self._reads_content = False
        self._objects = self._files = self._bytes = 0
        self.advice: dict[str, tuple[str, int, bytes, str]] = {}
        # Hashes of identifiers, eight bytes each: without a layout, nothing else shows duplicates.
        self._seen = array("Q") if store.layout is None else None
        self._next_progress = monotonic() + PROGRESS_EVERY

    def report(self, digests: bool, threads: int, ignore: Sequence[str]) -> Report:
        """Check the root, and return the report."""
        self._ignored = ignored(ignore)
        for found in root_problems(self._storage, self._store.layout_is_given):
            self._tell(found)
        for found in extension_problems(self._storage):
            self._tell(found)
        self._reads_content = digests
        opened = self._walk(threads, ignore)
        for one in self._verified(opened, threads) if digests else opened:
            self._settle(self._confirmed(one, threads))
        self._tell_advice()
        self._tell_duplicates(threads, ignore)
        counts = {"objects": self._objects, "files": self._files}
        if digests:
            counts["bytes"] = self._bytes
        self._report.counts.update(counts)
        self._tell_progress()
        return self._report

    def report_on(
        self,
        found: Iterable[Problem | tuple[bytes, bytes | None]],
        digests: bool,
        threads: int,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Check the given objects only, and return the report.

        :param found: the results of a walk: path and surrounding object of each object, and the problems in between
        """
        self._reads_content = digests
        self._ignored = ignored(ignore)
        opened = self._opened(found, 1 if ignore else BATCH)
        for one in self._verified(opened, threads) if digests else opened:
            self._settle(self._confirmed(one, threads))
        self._tell_advice()
        self._report.counts.update(objects=self._objects, files=self._files, bytes=self._bytes)
        return self._report

    def _object(self, place: bytes, entries: Sequence[DirectoryEntry]) -> Checked:
        """Check one object; unreadable files are found here, unless the content is read."""
        checked = check_object(self._storage, place, entries, self._store.version)
        for file in () if self._reads_content else checked.files:
            path = os.path.join(place, file.path)
            checked.problems.extend(unreadable_file(self._storage.why_unreadable(path), path, "content-unreadable"))
        return checked

    def _opened(self, found: Iterable[Problem | tuple[bytes, bytes | None]], batch: int) -> Iterator[_Open]:
        """Check the given objects without their content, up to ``batch`` in one call."""
        waiting: list[bytes] = []
        for item in found:
            if not isinstance(item, Problem) and item[1] is None and batch > 1:
                waiting.append(item[0])
                if len(waiting) < batch:
                    continue
            yield from self._given(waiting)
            waiting.clear()
            if isinstance(item, Problem):
                yield _Open(item.path, None, [item])
            elif item[1] is not None or batch == 1:
                yield self._looked_at(*item)
        yield from self._given(waiting)

    def _given(self, places: Sequence[bytes]) -> Iterator[_Open]:
        """Check objects that are inside of none, most of them in one call."""
        if not places:
            return
        budget, version = len(places), self._store.version
        plain: dict[bytes, Checked] = {}
        for _path, found in self._storage.scan_objects(b"", places, self._reads, version, False, budget)[1]:
            if isinstance(found, PlainObjects):
                plain.update(plain_objects(found))
        items = [(place, plain.get(place)) for place in places]
        wrong = self._store.misplacements([(place, None, one and one.identifier) for place, one in items])
        for (place, one), problems in zip(items, wrong, strict=True):
            yield self._looked_at(place, None) if one is None else _Open(place, one, problems)

    def _looked_at(self, place: bytes, inside: bytes | None) -> _Open:
        try:
            checked = self._look(place, self._scan(place))
        except OSError as error:
            return _Open(place, None, [problem("unreadable", place, error.strerror or str(error))])
        if checked is None:
            return _Open(place, None, [])
        checked.problems[:0] = self._store.misplacements([(place, inside, checked.identifier)])[0]
        return _Open(place, checked, checked.problems, checked.files, inside)

    # --- looking again --------------------------------------------------------------------------------------------

    def _scan(self, place: bytes) -> list[DirectoryEntry] | None:
        """Return the entries of an object's directory; :data:`None` if it is gone.

        :raises OSError: it cannot be read
        """
        try:
            entries = self._storage.scan(place)
        except FileNotFoundError:
            return None
        return [entry for entry in entries if not self._ignored(entry.name)]

    def _look(self, place: bytes, entries: Sequence[DirectoryEntry] | None) -> Checked | None:
        """Check an object; after errors, until two checks agree, because another run may be changing it.

        :return: :data:`None` if the object is gone
        :raises OSError: it cannot be read
        """

        def look(entries: Sequence[DirectoryEntry] | None) -> Checked | None:
            return None if entries is None else self._object(place, entries)

        def is_fine(checked: Checked | None) -> bool:
            return checked is None or all(one.severity != "error" for one in checked.problems)

        is_whole = False

        def again() -> Checked | None:
            nonlocal is_whole
            entries = self._scan(place)
            checked = look(entries)
            # False if the object was removed or replaced during the check.
            is_whole = checked is not None and self._scan(place) == entries and self._is_as_seen(place, checked)
            return checked

        def is_same(one: Checked | None, other: Checked | None) -> bool:
            return is_whole and one is not None and other is not None and set(one.problems) == set(other.problems)

        checked, is_settled = agreed(look(entries), again, is_fine, self._work_directory, is_same=is_same)
        if checked is None or is_settled:
            return checked
        return checked._replace(problems=[problem("object-changing", place)], files=[])

    def _confirmed(self, one: _Open, threads: int) -> _Open:
        """Return an object with content errors; check it again if another run has changed it."""

        if len(one.problems) == one.without_content:
            return one

        def again() -> _Open:
            [now] = self._verified(iter([self._looked_at(one.place, one.inside)]), threads)
            return now

        def is_fine(now: _Open) -> bool:
            return now.checked is None or len(now.problems) == now.without_content or not self._is_changed(now)

        found, is_settled = agreed(one, again, is_fine, self._work_directory, is_same=lambda _one, _other: False)
        if not is_settled:
            found.problems[:] = [problem("object-changing", one.place)]
        return found

    def _is_changed(self, one: _Open) -> bool:
        """Return whether the inventory was replaced since the object was checked."""
        assert one.checked is not None
        return not self._is_as_seen(one.place, one.checked)

    def _is_as_seen(self, place: bytes, checked: Checked) -> bool:
        """Return whether the inventory is still the one that was checked."""
        status = status_or_none(self._storage, os.path.join(place, _INVENTORY))
        if checked.seen is None:
            return status is None or not stat.S_ISREG(status.st_mode)
        return is_same_version(status, checked.seen)

    @property
    def _reads(self) -> str:
        """What is read of objects in one call."""
        return "content" if self._reads_content else "objects"

    # --- the walk -------------------------------------------------------------------------------------------------

    def _walk(self, threads: int, ignore: Sequence[str]) -> Iterator[_Open]:
        def visit(place: bytes, entries: Sequence[DirectoryEntry]) -> Checked | None:
            try:
                return self._look(place, entries)
            except OSError as error:
                unreadable = problem("unreadable", place, error.strerror or str(error))
                return Checked(None, None, [unreadable], [], [], None)

        def finish(found: list[FoundObject[Checked | None]]) -> list[FoundObject[Checked | None]]:
            there = [(item, item.value) for item in found if item.value is not None]
            items = [(item.place, item.inside, value.identifier) for item, value in there]
            for (_item, value), wrong in zip(there, self._store.misplacements(items), strict=True):
                value.problems[:0] = wrong
            return found

        def split(found: PlainObjects) -> list[FoundObject[Checked | None]] | None:
            if self._store.in_place(found.places, found.identifiers):
                return None
            return [FoundObject(place, None, checked) for place, checked in plain_objects(found)]

        reader = BatchReader(self._reads, split, self._store.version)
        walk = Walk(self._storage, visit, reader=reader, finish=finish, threads=threads, clashes=True, ignore=ignore)
        for item in walk:
            if isinstance(item, PlainObjects):
                yield _Open(encode_fs(item.places[0]), None, [], plain=item)
            elif not isinstance(item, FoundObject):
                yield _Open(item.path, None, [item])
            elif item.value is not None:
                yield _Open(item.place, item.value, item.value.problems, item.value.files, item.inside)

    def _settle(self, one: _Open) -> None:
        for found in one.problems:
            self._tell(found)
        checked = one.checked
        if one.plain is not None:
            self._settle_plain(one.plain)
        elif checked is not None:
            self._objects += 1
            self._files += len(one.files) + checked.verified
            self._bytes += checked.bytes
            for code, message, kind in checked.advice:
                self._count_advice(code, message, kind, 1, one.place)
            if self._seen is not None and checked.identifier is not None:
                self._seen.append(hash(checked.identifier) & 0xFFFF_FFFF_FFFF_FFFF)
            if self._on_object is not None:
                self._on_object(
                    ObjectResult(
                        checked.identifier,
                        decode_fs(one.place),
                        tuple(one.problems),
                        tuple(checked.advice),
                        len(one.files) + checked.verified,
                    )
                )
        if self._on_event is not None and monotonic() >= self._next_progress:
            self._tell_progress()

    def _settle_plain(self, found: PlainObjects) -> None:
        if self._on_object is not None:
            for place, checked in plain_objects(found):
                self._settle(_Open(place, checked, []))
            return
        self._objects += len(found.places)
        self._files += sum(found.files)
        self._bytes += sum(found.sizes)
        for advice in sorted(set(found.advice), key=found.advice.index):
            first = found.advice.index(advice)
            count, place = found.advice.count(advice), encode_fs(found.places[first])
            for finding in plain_advice(advice, found.identifiers[first]):
                self._count_advice(finding.code, finding.message, finding.kind, count, place)
        if self._seen is not None:
            self._seen.extend(hash(identifier) & 0xFFFF_FFFF_FFFF_FFFF for identifier in found.identifiers)

    def _count_advice(self, code: str, message: str, kind: str, count: int, place: bytes) -> None:
        kind, before, first, words = self.advice.get(code, (kind, 0, place, message))
        self.advice[code] = (kind, before + count, first, words)

    def _tell(self, found: Problem) -> None:
        self._report.problems.append(found)
        if self._on_problem is not None:
            self._on_problem(found)

    def _tell_progress(self) -> None:
        if self._on_event is not None:
            self._next_progress = monotonic() + PROGRESS_EVERY
            self._on_event(Progress(items=self._objects, failed=len(self._report.problems)))

    def _tell_advice(self) -> None:
        for found in advice_problems(self.advice):
            self._tell(found)

    def _tell_duplicates(self, threads: int, ignore: Sequence[str]) -> None:
        """Report identifiers of several objects, where no layout shows them."""
        if self._seen is None or len(self._seen) < 2:
            return
        numbers = sorted(self._seen)
        several = {one for one, other in pairwise(numbers) if one == other}
        if not several:
            return
        first: dict[str, str] = {}
        for record in self._store.objects(threads=threads, ignore=ignore):
            if record.id is not None and hash(record.id) & 0xFFFF_FFFF_FFFF_FFFF in several:
                other = first.setdefault(record.id, record.path)
                if other != record.path:
                    what = f"the object at {other!r} has the same identifier {quoted(record.id)}"
                    path = encode_fs(record.path)
                    self._tell(problem("duplicate-id", path, what, code="E037"))

    # --- content --------------------------------------------------------------------------------------------------

    def _verified(self, opened: Iterator[_Open], threads: int) -> Iterator[_Open]:
        """Read all content, and yield everything in the same order, with the problems of the content."""
        for one in opened:
            if one.files:
                yield from self._read(one, opened, threads)
            else:
                yield one

    def _read(self, first: _Open, opened: Iterator[_Open], threads: int) -> Iterator[_Open]:
        """Read the content of an object and of those after it, until many have none to be read."""
        main = tuple(first.files[0].digests)
        window: deque[_Open] = deque()
        beside: dict[tuple[str, ...], list[tuple[_Open, ContentFile]]] = {}
        waiting = 0

        def task(one: _Open, file: ContentFile) -> tuple[tuple[_Open, ContentFile], bytes]:
            return (one, file), os.path.join(one.place, file.path)

        def read_others() -> None:
            for algorithms, files in beside.items():
                for item, outcome in self._storage.hash_tasks(starmap(task, files), algorithms, threads):
                    self._compare(*item, outcome)
            beside.clear()

        def feed(objects: Iterable[_Open]) -> Iterator[tuple[tuple[_Open, ContentFile], bytes]]:
            nonlocal waiting
            idle = 0
            for one in objects:
                window.append(one)
                idle = 0 if one.files else idle + (1 if one.plain is None else len(one.plain.places))
                for file in one.files:
                    algorithms = tuple(file.digests)
                    if algorithms == main:
                        yield task(one, file)
                    else:
                        beside.setdefault(algorithms, []).append((one, file))
                        waiting += 1
                if waiting and (waiting >= BESIDE or len(window) >= BESIDE):
                    read_others()
                    waiting = 0
                if idle >= IDLE:
                    return

        for item, outcome in self._storage.hash_tasks(feed(chain([first], opened)), main, threads):
            self._compare(*item, outcome)
            while window and not window[0].left:
                yield window.popleft()
        read_others()
        yield from window

    def _compare(self, one: _Open, file: ContentFile, outcome: Outcome) -> None:
        one.left -= 1
        path = one.place + b"/" + file.path if one.place else file.path
        if outcome.digests is None:
            kind = _KINDS.get(outcome.kind or "", "content-unreadable")
            one.problems.append(problem(kind, path, f"file not verified: {outcome.message}"))
            return
        self._bytes += outcome.size or 0
        for algorithm, expected in file.digests.items():
            found = outcome.digests[algorithm]
            if found != expected.lower():
                kind = "fixity-mismatch" if algorithm in file.fixity else "content-mismatch"
                what = f"{algorithm} digest mismatch"
                one.problems.append(
                    problem(kind, path, what, algorithm=algorithm, expected=expected.lower(), found=found)
                )
