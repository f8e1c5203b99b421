"""The check of an OCFL storage root: the root itself, its hierarchy, each object strictly, and optionally all content.

Everything is streamed: objects come from the walk, their files are read in one run of the fixity engine, and results
keep the order of the walk. Only the objects whose files are being read are in memory.
"""

from __future__ import annotations

import os
import stat
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, starmap, takewhile
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pressmark.errors import quoted, quoted_path
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.staging import kind_of_leftover
from pressmark.fs.trees import DirectoryEntry
from pressmark.reports import Problem, ProgressEvent, Report
from pressmark.stores.objects import OnEvent
from pressmark.stores.ocfl.checking.checked import Advice, Checked, ContentFile
from pressmark.stores.ocfl.checking.object_check import check_object
from pressmark.stores.ocfl.checking.object_tree import ObjectTree, StoredTree, object_trees
from pressmark.stores.ocfl.declarations import EXTENSIONS, WORK_DIRECTORY, read_root
from pressmark.stores.ocfl.inventory import INVENTORY
from pressmark.stores.ocfl.storage import Reads, Storage, status_or_none
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.ocfl.walk import Walk, ignored
from pressmark.stores.problems import METHODS, problem
from pressmark.stores.recheck import abandoned, agreed, find_unreadable, unreadable_file
from pressmark.stores.stored_object import is_same_version
from pressmark.threads import ordered_map

if TYPE_CHECKING:
    from pressmark.stores.ocfl.remote.server_digests import ServerDigests

T = TypeVar("T")

__all__ = ["Check", "ObjectResult", "advice_problems", "extension_problems", "root_problems"]

PROGRESS_EVERY = 0.1  # seconds
# Files with other algorithms than most are read in batches of this size.
BESIDE = 4096
# Objects that are read in one call.
BATCH = 64
# After this many objects without files to read, no more are read ahead.
IDLE = 512
_INVENTORY = encode_fs(INVENTORY)
_KINDS = {
    "missing": "content-missing",
    "changed-while-read": "content-changing",
    "unverified": "content-unverified",
    "archived": "content-archived",
}
_UNREAD = ("content-unverified", "content-archived")


class ObjectResult(NamedTuple):
    """The result of checking one object.

    :ivar id: its identifier; :data:`None` if missing in its inventory
    :ivar path: its path, relative to the root
    :ivar problems: all problems
    :ivar advice: recommendations that the object does not follow
    :ivar files: number of content files
    :ivar bytes: the size of those that were read
    :ivar digest: of its inventory; :data:`None` if it is damaged
    :ivar measured: what ``measure`` of the check has returned
    """

    id: str | None
    path: str
    problems: tuple[Problem, ...]
    advice: tuple[Advice, ...]
    files: int
    bytes: int
    digest: str | None
    measured: Any


# The path of an object, and the object that contains it.
ObjectPath = tuple[bytes, bytes | None]
# An object, or a problem outside of objects.
_Item = Checked | Problem


@dataclass
class _Open:
    """An object or a problem that waits until the files before it are read.

    :ivar item: :data:`None` for an object that another run has removed
    :ivar left: number of files that are not yet verified
    :ivar without_content: number of problems before any file was verified
    :ivar bytes: the size of the files that were read
    :ivar methods: number of files by how their digests were found: one of :data:`~pressmark.stores.problems.METHODS`
    """

    item: _Item | None
    left: int = field(init=False)
    without_content: int = field(init=False)
    bytes: int = field(init=False, default=0)
    methods: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self.left = len(self.item.unread) if isinstance(self.item, Checked) else 0
        self.without_content = len(self.item.problems) if isinstance(self.item, Checked) else 0

    @property
    def has_content_errors(self) -> bool:
        """Whether content does not have its digests, or cannot be read."""
        problems = self.item.problems[self.without_content :] if isinstance(self.item, Checked) else ()
        return any(one.kind not in _UNREAD for one in problems)

    def result(self) -> _Item | None:
        """Return the item, after all its files were verified."""
        return self.item._replace(bytes=self.item.bytes + self.bytes) if isinstance(self.item, Checked) else self.item


def root_problems(storage: Storage, layout_is_given: bool) -> list[Problem]:
    """Return the problems of a storage root itself, and the leftovers of killed runs.

    :param layout_is_given: the caller's layout replaces a missing or unknown one
    :raises OSError: the root cannot be read
    """
    overruled = {"layout-unknown", "layout-missing"} if layout_is_given else set()
    root, staging = storage.path(b""), storage.work_directory

    def look() -> list[Problem]:
        return [one for one in read_root(storage).problems if one.kind not in overruled]

    paths = () if staging is None else abandoned(staging)
    left = [problem(kind_of_leftover(path), os.path.relpath(path, root)) for path in paths]
    # A run that begins or ends creates or removes the extensions directory.
    return agreed(look(), look, lambda found: all(one.kind != "directory-empty" for one in found), staging)[0] + left


def extension_problems(storage: Storage) -> Iterator[Problem]:
    """Yield the problem of everything that cannot be read in the directories of a root's extensions on a disk."""
    if storage.work_directory is None:
        return
    for found in find_unreadable(
        storage.path(EXTENSIONS), EXTENSIONS, links="skip", ignored=decode_fs(WORK_DIRECTORY).__eq__
    ):
        # The directory itself is reported with the layout.
        if found.kind == "unreadable" and found.path != decode_fs(EXTENSIONS):
            yield found


def advice_problems(advice: Mapping[str, tuple[str, int, bytes, str]]) -> Iterator[Problem]:
    """Yield one problem for each recommendation: usually all objects or none follow it.

    :param advice: by code: kind of problem, number of objects, path of the first, message
    """
    for code, (kind, count, first, message) in sorted(advice.items()):
        more = f"; {count:,} objects affected; this is the first" if count > 1 else ""
        yield problem(kind, first, f"{message}{more}", code=code)


def _is_fine(checked: Checked | None) -> bool:
    """Return whether an object has no error, or is gone."""
    return checked is None or not checked.problems or all(one.severity != "error" for one in checked.problems)


def _parts(walked: Iterable[Problem | ObjectPath], together: int) -> Iterator[Problem | ObjectPath | list[bytes]]:
    """Yield problems and objects in order; the paths of objects that are inside of none, ``together`` at a time."""
    waiting: list[bytes] = []
    for item in walked:
        if not isinstance(item, Problem) and item[1] is None and together > 1:
            waiting.append(item[0])
            if len(waiting) < together:
                continue
        if waiting:
            yield waiting
            waiting = []
        if isinstance(item, Problem) or item[1] is not None or together == 1:
            yield item
    if waiting:
        yield waiting


class Check:
    """One check of a storage root.

    :param duplicates: without a layout, look for objects with the same identifier
    :param measure: called with each object, in any thread, for the result of the object
    :ivar advice: the advice so far, as for :func:`advice_problems`
    """

    def __init__(
        self,
        store: StorageRoot,
        on_event: OnEvent | None,
        on_object: Callable[[ObjectResult], object] | None = None,
        server: ServerDigests | None = None,
        *,
        duplicates: bool = True,
        measure: Callable[[ObjectTree], object] | None = None,
    ) -> None:
        self._store = store
        self._measure = measure
        self._storage = store.storage
        self._server = server
        self._methods: Counter[str] = Counter()
        self._on_event = on_event
        self._on_object = on_object
        self._report = Report()
        self._ignored = ignored(())
        self._reads_content = False
        self._objects = self._files = self._bytes = 0
        self.advice: dict[str, tuple[str, int, bytes, str]] = {}
        # Hashes of identifiers, eight bytes each: without a layout, nothing else shows duplicates.
        self._seen = array("Q") if duplicates and store.layout is None else None
        self._next_progress = monotonic() + PROGRESS_EVERY

    def report(self, digests: bool, threads: int, ignore: Sequence[str]) -> Report:
        """Check the root, and return the report."""
        self._ignored = ignored(ignore)
        for found in root_problems(self._storage, self._store.layout_is_given):
            self._report_problem(found)
        for found in extension_problems(self._storage):
            self._report_problem(found)
        self._reads_content = digests
        walk = Walk(
            self._storage,
            self._visit,
            reads=self._reads,
            finish=self._with_misplacements,
            threads=threads,
            clashes=True,
            ignore=ignore,
        )
        self._finish_all(iter(walk), threads)
        return self.finish(threads, ignore)

    def report_on(
        self,
        walked: Iterable[Problem | ObjectPath],
        digests: bool,
        threads: int,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Check the given objects only, and return the report.

        :param walked: the results of a walk: path and surrounding object of each object, and the problems in between
        """
        self.check_objects(walked, digests, threads, ignore)
        return self.finish(threads, ignore)

    def check_objects(
        self,
        walked: Iterable[Problem | ObjectPath],
        digests: bool,
        threads: int,
        ignore: Sequence[str] = (),
        goes_on: Callable[[Checked | Problem], bool] = lambda _item: True,
    ) -> None:
        """Check some objects, as :meth:`report_on` does; any number of calls, before :meth:`finish`.

        :param goes_on: called with each object before its large files are read; returns whether to read them.
            Otherwise the call ends with the objects before it
        """
        self._reads_content = digests
        self._ignored = ignored(ignore)
        parts = _parts(walked, 1 if ignore else BATCH)
        checked = ordered_map(self._part, parts, threads=threads, name="pressmark-check")
        self._finish_all(takewhile(goes_on, chain.from_iterable(checked)), threads)

    def _part(self, part: Problem | ObjectPath | list[bytes]) -> list[_Item]:
        """Check an object, or many."""
        if isinstance(part, Problem):
            return [part]
        return [*self._batch(part)] if isinstance(part, list) else self._with_misplacements(self._again(*part))

    def _batch(self, paths: list[bytes]) -> Iterator[_Item]:
        """Check objects that are inside of none, most of them in one call."""
        while paths:
            batch = self._storage.trees(b"", paths, self._reads)
            items: list[_Item] = []
            for path, _tree, found in object_trees(batch):
                if found is None:
                    items += self._again(path, None)
                elif (checked := self._visit(found)) is not None:
                    items.append(checked)
            yield from self._with_misplacements(items)
            paths = paths[batch.begun :]

    def _again(self, directory: bytes, inside: bytes | None) -> list[_Item]:
        """Check an object that was not read with others; the list is empty if it is gone."""
        try:
            entries = self._scan(directory)
        except OSError as error:
            return [problem("unreadable", directory, error.strerror or str(error))]
        checked = None if entries is None else self._visit(self._tree(directory, entries, inside))
        return [] if checked is None else [checked]

    def _with_misplacements(self, found: list[T]) -> list[T]:
        """Add what is wrong with the paths of objects."""
        there = [one for one in found if isinstance(one, Checked)]
        identifiers = [one.identifier for one in there if one.identifier is not None and one.inside is None]
        if len(identifiers) < len(there) or not self._store.in_place(
            [decode_fs(one.path) for one in there], identifiers
        ):
            items = [(one.path, one.inside, one.identifier) for one in there]
            for one, wrong in zip(there, self._store.misplacements(items), strict=True):
                one.problems[:0] = wrong
        return found

    # --- looking again --------------------------------------------------------------------------------------------

    def _scan(self, directory: bytes) -> list[DirectoryEntry] | None:
        """Return the entries of an object's directory; :data:`None` if it is gone.

        :raises OSError: it cannot be read
        """
        try:
            return self._storage.scan(directory)
        except FileNotFoundError:
            return None

    def _tree(self, directory: bytes, entries: Sequence[DirectoryEntry], inside: bytes | None) -> StoredTree:
        return StoredTree(self._storage, directory, entries, inside, self._ignored)

    def _look(self, tree: ObjectTree) -> Checked:
        """Check one object; unreadable files are found here, unless the content is read."""
        checked = check_object(tree, self._store.version)
        if any(one.kind == "version-later" for one in checked.problems):
            self._store.read_declaration()  # another run may have upgraded the root
            checked = check_object(tree, self._store.version)
        for path, error in () if self._reads_content else tree.unreadable(checked.unread):
            full = os.path.join(tree.path, encode_fs(path))
            checked.problems.extend(unreadable_file(error, full, "content-unreadable"))
        return checked if self._measure is None else checked._replace(measured=self._measure(tree))

    def _visit(self, tree: ObjectTree) -> Checked | None:
        """Check an object; after errors, until two checks agree, because another run may be changing it.

        :return: :data:`None` if the object is gone
        """
        first = self._look(tree)
        return first if _is_fine(first) else self._agreed(tree, first)

    def _agreed(self, tree: ObjectTree, first: Checked | None) -> Checked | None:
        """Repeat the check of an object with errors.

        :param first: its first result
        """
        is_whole = False

        def again() -> Checked | None:
            nonlocal is_whole
            entries = self._scan(tree.path)
            checked = None if entries is None else self._look(self._tree(tree.path, entries, tree.inside))
            # False if the object was removed or replaced during the check.
            is_whole = checked is not None and self._scan(tree.path) == entries and self._is_as_seen(checked)
            return checked

        def is_same(one: Checked | None, other: Checked | None) -> bool:
            return is_whole and one is not None and other is not None and set(one.problems) == set(other.problems)

        try:
            checked, is_agreed = agreed(first, again, _is_fine, self._storage.work_directory, is_same=is_same)
        except OSError as error:
            unreadable = problem("unreadable", tree.path, error.strerror or str(error))
            return Checked(tree.path, tree.inside, None, [unreadable], (), None)
        if checked is None or is_agreed:
            return checked
        return checked._replace(problems=[problem("object-changing", tree.path)], files=0, unread=())

    def _confirmed(self, one: _Open, threads: int) -> _Open:
        """Return an object with content errors; check it again if another run has changed it."""
        checked = one.item
        if not one.has_content_errors or not isinstance(checked, Checked):
            return one
        path, inside = checked.path, checked.inside

        def again() -> _Open:
            items = self._with_misplacements(self._again(path, inside))
            now = next(self._hashed(iter(items), threads), None)
            return now if isinstance(now, _Open) else _Open(now)

        def is_fine(now: _Open) -> bool:
            return not now.has_content_errors or not self._is_changed(now.item)

        found, is_agreed = agreed(one, again, is_fine, self._storage.work_directory, is_same=lambda _one, _other: False)
        if not is_agreed and isinstance(found.item, Checked):
            found.item.problems[:] = [problem("object-changing", path)]
        return found

    def _is_changed(self, checked: _Item | None) -> bool:
        """Return whether the inventory was replaced since the object was checked."""
        return isinstance(checked, Checked) and not self._is_as_seen(checked)

    def _is_as_seen(self, checked: Checked) -> bool:
        """Return whether the inventory is still the one that was checked."""
        status = status_or_none(self._storage, os.path.join(checked.path, _INVENTORY))
        if checked.seen is None:
            return status is None or not stat.S_ISREG(status.st_mode)
        return is_same_version(status, checked.seen)

    @property
    def _reads(self) -> Reads:
        """What is read of objects in one call."""
        return "content" if self._reads_content else "rules"

    # --- the report -----------------------------------------------------------------------------------------------

    def finish(self, threads: int, ignore: Sequence[str]) -> Report:
        """Report what concerns several objects, and return the report."""
        self._report_advice()
        self._report_duplicates(threads, ignore)
        counts = {"objects": self._objects, "files": self._files}
        if self._reads_content:
            counts["bytes"] = self._bytes
        if self._server is not None:
            counts.update({method: self._methods[method] for method in METHODS})
        self._report.counts.update(counts)
        self._report_progress()
        return self._report

    def _finish_all(self, items: Iterator[_Item], threads: int) -> None:
        """Report everything, in order, after reading content."""
        if not self._reads_content:
            for one in items:
                self._finish(one)
            return
        for opened in self._hashed(items, threads):
            item: _Item | None
            if isinstance(opened, _Open):
                confirmed = self._confirmed(opened, threads)
                self._methods.update(confirmed.methods)
                item = confirmed.result()
            else:
                item = opened
            if item is not None:
                self._finish(item)

    def _finish(self, one: _Item) -> None:
        if isinstance(one, Problem):
            self._report_problem(one)
        else:
            self._finish_object(one)
        if self._on_event is not None and monotonic() >= self._next_progress:
            self._report_progress()

    def _finish_object(self, checked: Checked) -> None:
        if checked.problems and not self._store.shows_ids:
            checked.problems[:] = [one._replace(id=checked.identifier) for one in checked.problems]
        for found in checked.problems:
            self._report_problem(found)
        self._objects += 1
        self._files += checked.files
        self._bytes += checked.bytes
        for code, message, kind in checked.advice:
            self._count_advice(code, message, kind, checked.path)
        if self._seen is not None and checked.identifier is not None:
            self._seen.append(hash(checked.identifier) & 0xFFFF_FFFF_FFFF_FFFF)
        if self._on_object is not None:
            self._on_object(
                ObjectResult(
                    checked.identifier,
                    decode_fs(checked.path),
                    tuple(checked.problems),
                    tuple(checked.advice),
                    checked.files,
                    checked.bytes,
                    checked.digest,
                    checked.measured,
                )
            )

    def _count_advice(self, code: str, message: str, kind: str, path: bytes) -> None:
        kind, before, first, words = self.advice.get(code, (kind, 0, path, message))
        self.advice[code] = (kind, before + 1, first, words)

    def _report_problem(self, found: Problem) -> None:
        self._report.problems.append(found)
        if self._on_event is not None:
            self._on_event(found)

    def _report_progress(self) -> None:
        if self._on_event is not None:
            self._next_progress = monotonic() + PROGRESS_EVERY
            self._on_event(ProgressEvent(items=self._objects, failed=len(self._report.problems)))

    def _report_advice(self) -> None:
        for found in advice_problems(self.advice):
            self._report_problem(found)

    def _report_duplicates(self, threads: int, ignore: Sequence[str]) -> None:
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
                    what = f"the object at {quoted_path(other)} has the same identifier {quoted(record.id)}"
                    path = encode_fs(record.path)
                    self._report_problem(problem("duplicate-id", path, what, code="E037"))

    # --- content --------------------------------------------------------------------------------------------------

    def _hashed(self, items: Iterator[_Item], threads: int) -> Iterator[_Item | _Open]:
        """Read all content that is not in memory, and yield everything in the same order, with its problems.

        Objects whose files were read are returned as :class:`_Open`.
        """
        for one in items:
            if isinstance(one, Checked) and one.unread:
                yield from self._read(one, items, threads)
            else:
                yield one

    def _read(self, first: Checked, items: Iterator[_Item], threads: int) -> Iterator[_Open]:
        """Read the content of an object and of those after it, until many have none to be read."""
        main = tuple(next(first.unread_files()).digests)
        window: deque[_Open] = deque()
        beside: dict[tuple[str, ...], list[tuple[_Open, ContentFile]]] = {}
        waiting = 0

        def task(one: _Open, file: ContentFile) -> tuple[tuple[_Open, ContentFile], bytes]:
            assert isinstance(one.item, Checked)
            return (one, file), os.path.join(one.item.path, file.path)

        def read_others() -> None:
            for algorithms, files in beside.items():
                for item, outcome, method in self._hash_tasks(starmap(task, files), algorithms, threads):
                    self._compare(*item, outcome, method)
            beside.clear()

        def feed(items: Iterable[_Item]) -> Iterator[tuple[tuple[_Open, ContentFile], bytes]]:
            nonlocal waiting
            idle = 0
            for item in items:
                one = _Open(item)
                window.append(one)
                idle = 0 if one.left else idle + 1
                for file in item.unread_files() if isinstance(item, Checked) else ():
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

        for item, outcome, method in self._hash_tasks(feed(chain([first], items)), main, threads):
            self._compare(*item, outcome, method)
            while window and not window[0].left:
                yield window.popleft()
        read_others()
        yield from window

    def _hash_tasks(
        self, tasks: Iterable[tuple[T, bytes]], algorithms: tuple[str, ...], threads: int
    ) -> Iterator[tuple[T, Outcome, str]]:
        """Yield the key and outcome of each file, and how its digests were found."""
        if self._server is not None:
            yield from self._server.hash_tasks(tasks, algorithms)
            return
        for key, outcome in self._storage.hash_tasks(tasks, algorithms, threads):
            yield key, outcome, "read"

    def _compare(self, one: _Open, file: ContentFile, outcome: Outcome, method: str) -> None:
        assert isinstance(one.item, Checked)
        one.left -= 1
        one.methods["unverified" if outcome.digests is None else method] += 1
        path = one.item.path
        if outcome.digests is None:
            kind = _KINDS.get(outcome.kind or "", "content-unreadable")
            full = os.path.join(path, file.path)
            what = "" if kind in _UNREAD else "file not verified: "
            one.item.problems.append(problem(kind, full, f"{what}{outcome.message}"))
            return
        if method == "read":
            one.bytes += outcome.size or 0
        one.item.problems.extend(file.problems(path, outcome.digests))
