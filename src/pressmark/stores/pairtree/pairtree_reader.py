"""Pairtree: a tree of directories of two characters, where each object is at the path of its identifier.

The specification is draft-kunze-pairtree-01. Open points follow the related specification of December 2008 ("Pairtrees
for Collection Storage"); in particular, a directory of one character ends every ppath.

Changes are staged in the store's work directory (:mod:`pressmark.fs.staging`), which exists next to
``pairtree_root`` while a run is active. An interrupted change of an object leaves a name that begins with
``pairtree_pressmark`` in its last directory; the next change of the object, or a repair, completes it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar, Literal

from pressmark.errors import ObjectError, StoreError
from pressmark.fs.durable import exists, why_unreadable
from pressmark.fs.moves import TRIES
from pressmark.fs.names import decode_fs, encode_fs, existing_spelling, first_link, is_absent, is_case_insensitive
from pressmark.layouts import Pairtree
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.objects import OnEvent, OnProblem, Path, StoreObject, encode_path
from pressmark.stores.pairtree import dialects
from pressmark.stores.pairtree.encapsulation import encapsulate
from pressmark.stores.pairtree.interrupted import (
    Folder,
    InterruptedObject,
    is_one_directory,
    replaced_names,
    take_back,
    unreached,
)
from pressmark.stores.pairtree.spellings import Spellings
from pressmark.stores.pairtree.version_files import UNFINISHED, prefix_of, version_problems
from pressmark.stores.pairtree.walk import REPAIRING, REPLACED, ROOT, WORK_DIRECTORY, Contents, Walk, contents
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, RunningReport, settled, settled_objects
from pressmark.stores.store import Store
from pressmark.stores.stored_object import StoredObject, status_of

__all__ = ["PairtreeReader"]

PROGRESS_EVERY = 10_000  # objects
# Problems that a running change also causes for a moment.
_PASSING = {"empty", "unfinished", "unreadable"}


class PairtreeReader(Store):
    """An existing Pairtree, and the objects in it.

    :param path: the directory that contains ``pairtree_root``, or ``pairtree_root`` itself
    :param encapsulation: how encapsulating directories of new objects are named; see :class:`pressmark.Pairtree`
    :param prefix_required: refuse identifiers that do not begin with the tree's prefix
    :param links: ``"follow"`` symbolic links in the tree, or ``"refuse"`` them: report them and do not follow
    :param dialect: the dialect of a tree written by another program, see ``pairtree_dialects``; such a tree is
        read-only
    :param ignore: globs of names to ignore in the whole tree, such as ``.DS_Store``
    :param durable: flush everything before a change is made; otherwise a crash of the system (not of the program) may
        lose new objects
    :ivar prefix: the common prefix of all identifiers of the tree
    :raises StoreError: not a Pairtree, or not readable
    """

    kind: ClassVar[str] = "pairtree"
    unfinished_names = UNFINISHED
    layout: Pairtree

    def __init__(
        self,
        path: Path,
        *,
        encapsulation: str = "id",
        prefix_required: bool = True,
        links: Literal["follow", "refuse"] = "follow",
        dialect: str | None = None,
        ignore: Sequence[str] = (),
        durable: bool = True,
    ) -> None:
        if links not in ("follow", "refuse"):
            raise ValueError(f"links={links!r}: expected follow or refuse")
        if dialect is not None and dialect not in dialects.DIALECTS:
            raise ValueError(f"dialect={dialect!r}: expected one of {', '.join(dialects.DIALECTS)}")
        self._base = _base_of(path)
        self._tree = os.path.join(self._base, encode_fs(ROOT))
        self.root = os.fsdecode(self._base)
        self.prefix = prefix_of(self._base)
        self.layout = Pairtree(self.prefix, encapsulation, prefix_required)
        self.dialect = dialect
        self._follow = links == "follow"
        self._ignore = tuple(ignore)
        self.durable = durable

    def _work_directory(self) -> bytes:
        """Return the work directory: beside the tree, or within it on another file system."""
        same = os.stat(self._base).st_dev == os.stat(self._tree).st_dev
        return os.path.join(self._base if same else self._tree, WORK_DIRECTORY)

    # --- all objects --------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Yield every object lazily, in the order of the bytes of the ppaths' names.

        Names outside of objects (reserved names, empty directories, files outside the tree, …) are passed to
        ``on_problem``. Memory grows only with the number of ppaths that are not canonical.

        :param threads: number of threads that read directories; :data:`None` or 0 for one per core
        :param ignore: globs of names to ignore, in addition to those of the store
        """
        return self._objects(self._walk(ignore), threads, on_problem)

    def _objects(self, walk: Walk, threads: int | None, on_problem: OnProblem | None) -> Iterator[StoreObject]:
        with store_errors(self._base):
            others: dict[str, str] = {}
            for record in settled_objects(walk.items(threads), partial(self._second_look, walk), on_problem):
                yield self._with_duplicates(record, others) if record.problems else record

    def _second_look(self, walk: Walk, item: Item) -> list[Item]:
        """Return the item of a walk, or the items in its place if another run was changing it."""
        problems = item.problems if isinstance(item, StoreObject) else (item,)
        if not any(one.kind in _PASSING for one in problems):
            return [item]
        return settled(item, lambda: walk.again(item), self._work_directory())

    def _walk(self, ignore: Sequence[str] = (), *, readable: bool = False) -> Walk:
        return Walk(
            self._base,
            self.layout,
            dialect=self.dialect,
            follow=self._follow,
            ignore=(*self._ignore, *ignore),
            readable=readable,
        )

    def unreadable(self, record: StoreObject) -> tuple[Problem, ...]:
        """Return a problem for each unreadable file of an object of :meth:`objects`; none if the object no longer
        exists."""
        try:
            found = self._contents(record.path.removeprefix(ROOT).lstrip("/"))
        except OSError as error:
            return (problem("unreadable", encode_fs(record.path), error.strerror or str(error)),)
        return () if found is None else self._walk(readable=True).unreadable_in(record.path, found)

    def _with_duplicates(self, record: StoreObject, others: dict[str, str]) -> StoreObject:
        """Add the problem that another ppath has the same identifier; one of the two is not canonical."""
        if not any(found.kind == "not-canonical" for found in record.problems):
            return record
        assert record.id is not None
        canonical = next(found.expected for found in record.problems if found.kind == "not-canonical")
        other = others.setdefault(record.id, record.path)
        if not self._is_object(other.removeprefix(f"{ROOT}/")):
            other = others[record.id] = record.path  # removed meanwhile
        if canonical is not None and self._is_object(canonical.removeprefix(f"{ROOT}/")):
            other = canonical
        if other == record.path:
            return record
        message = f"{other} has the same identifier; compare both, and move one of them"
        found = problem("duplicate-id", encode_fs(record.path), message, expected=canonical, found=other)
        return record._replace(problems=(*record.problems, found))

    def _is_object(self, place: str) -> bool:
        found = self._contents(place)
        return found is not None and bool(found.members or found.ours)

    def _contents(self, place: str) -> Contents | None:
        """Return the content of a ppath's last directory; :data:`None` if it does not exist."""
        if self._link(place) is not None:
            return None
        directory = os.path.join(self._tree, encode_fs(place))
        try:
            return contents(directory, place, follow=self._follow, ignore=self._ignore)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            if is_absent(self._tree, encode_fs(place)):
                return None
            raise

    def _link(self, place: str) -> str | None:
        """Return the path of the first symbolic link above a place that a walk does not follow."""
        link = first_link(self._tree, encode_fs(place))
        if link is not None and self._follow:
            link = self._loop(encode_fs(place))
        return None if link is None else f"{ROOT}/{decode_fs(link)}"

    def _loop(self, place: bytes) -> bytes | None:
        """Return the first part of a place that is a symbolic link to a directory above it."""
        at = b""
        above = [status_of(self._tree)]
        for name in place.split(b"/"):
            at = os.path.join(at, name)
            path = os.path.join(self._tree, at)
            status = status_of(path)
            if status is None:
                return None
            if os.path.islink(path) and any(one is not None and os.path.samestat(status, one) for one in above):
                return at
            above.append(status)
        return None

    def _refuse_links(self, identifier: str | bytes, place: str) -> None:
        """Refuse to remove files behind a symbolic link, which may be another store's.

        :raises ObjectError: a directory above the object is a symbolic link
        """
        link = first_link(self._tree, encode_fs(place))
        if link is not None:
            what = f"{ROOT}/{decode_fs(link)} is a symbolic link, behind which nothing is removed or replaced"
            way_out = "change the object where the link leads to, or replace the link with its target"
            raise ObjectError(self.root, identifier, "link", f"{what}; {way_out}")

    def dialects(self, *, threads: int | None = None) -> dict[str, int]:
        """Detect the dialect of a tree: return the number of objects that each dialect may have written.

        ``spec`` counts canonical ppaths; ``unknown`` counts ppaths of unknown dialects. An object that several dialects
        write in the same way counts for each.
        """
        counts: Counter[str] = Counter()
        for record in self.objects(threads=threads):
            kinds = {found.kind for found in record.problems}
            if not kinds & {"not-canonical", "undecodable", "empty-id", "ambiguous"}:
                counts["spec" if self.dialect is None else self.dialect] += 1
            if kinds & {"not-canonical", "undecodable", "not-utf8"}:
                found = dialects.recognised(record.path.removeprefix(f"{ROOT}/"))
                counts.update(found or (["unknown"] if "not-utf8" not in kinds else []))
        return dict(sorted(counts.items()))

    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Walk the whole tree and return a report of all problems.

        Files in objects are only checked for being readable. A Pairtree contains no digests, so ``digests`` has no
        effect.
        """
        run = RunningReport(on_event, on_problem, PROGRESS_EVERY)
        run.add(version_problems(self._base))
        for record in self._objects(self._walk(ignore, readable=True), threads, run.add_item):
            run.add_item(record)
        return run.finish()

    # --- one object ---------------------------------------------------------------------------------------------------

    def _place(self, identifier: str | bytes) -> str:
        if self.dialect is None:
            return self.layout.map_id(identifier)
        self.layout.map_id(identifier)  # refuses invalid identifiers
        whole = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
        return dialects.path(self.dialect, whole.removeprefix(self.prefix))

    def _existing_place(self, identifier: str | bytes | StoreObject, spellings: Spellings | None = None) -> str | None:
        """Return the ppath of the object with an identifier, in whatever spelling; :data:`None` without such an object.

        :param identifier: or a record, whose path is returned
        :raises ObjectError: of kind ``duplicate-id``: several objects have the identifier
        :raises IdentifierError: the identifier has no path in a Pairtree
        """
        if isinstance(identifier, StoreObject):
            place = identifier.path.removeprefix(ROOT).lstrip("/")
            with object_errors(self.root, identifier.id or identifier.path):
                return place if self._is_object(place) else None
        place = self._place(identifier)
        with object_errors(self.root, identifier):
            found = [place] if self._is_listed(place) and self._is_object(place) else []
            # A path of a dialect has one spelling.
            if self.dialect is None:
                others = (spellings or Spellings(self._tree)).others(place)
                found += [other for other in others if self._is_object(other)]
        if len(found) > 1:
            raise self._duplicate(identifier, [f"{ROOT}/{one}" for one in found])
        return found[0] if found else None

    def _is_listed(self, place: str) -> bool:
        """Return whether a ppath is not the one of another identifier, on a file system that ignores case."""
        return not is_case_insensitive(self._tree) or existing_spelling(self._tree, encode_fs(place)) is None

    def find(self, identifier: str | bytes) -> StoreObject:
        place = self._existing_place(identifier)
        record = None if place is None else self._record_at(place)
        if record is None:
            raise self._missing(identifier, self._place(identifier))
        return record

    def at(self, path: str) -> StoreObject | None:
        place = path.removeprefix(f"{ROOT}/").rstrip("/")
        *above, last = place.split("/")
        if place == path.rstrip("/") or not all(len(name) == 2 for name in above) or not 1 <= len(last) <= 2:
            return None
        return None if {".", ".."} & {*above, last} else self._record_at(place)

    def _record_at(self, place: str) -> StoreObject | None:
        """Return the record that the walk yields for a ppath."""
        if not self._is_object(place):
            return None
        found = self._walk().again(StoreObject(None, f"{ROOT}/{place}", False, None, ()))
        return found[0] if found and isinstance(found[0], StoreObject) else None

    def get(self, identifier: str | bytes) -> StoredObject:
        """Return an object, even if its ppath is not canonical.

        :raises ObjectError: of kind ``missing``: the store has no such object; of kind ``duplicate-id``: it has several
        :raises IdentifierError: the identifier has no path in a Pairtree
        """
        place = self._existing_place(identifier)
        return self._stored(identifier, self._place(identifier) if place is None else place)

    def locate(self, record: StoreObject) -> StoredObject:
        """Return the object of a record of :meth:`objects`, even if its ppath is not canonical."""
        return self._stored(record.id or "", record.path.removeprefix(ROOT).lstrip("/"))

    def _stored(self, identifier: str | bytes, place: str) -> StoredObject:
        # Making each path absolute would take a tenth of the time for small objects.
        tree = self._tree if os.path.isabs(self._tree) else os.path.abspath(self._tree)
        directory = os.path.join(tree, encode_fs(place)) if place else tree
        with object_errors(self.root, identifier):
            for _ in range(TRIES):
                found = self._contents(place)
                if found is None or REPLACED not in found.ours:
                    replaced = []
                    break
                # The object may have been moved between the two checks.
                replaced = replaced_names(directory)
                names = {entry.name for entry in found.members}
                if (names or replaced) and names.isdisjoint(replaced):
                    break
            if found is None:
                raise self._missing(identifier, place)
            shown_id = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
            if replaced or REPAIRING in found.ours:
                return self._between(shown_id, directory, found, replaced)
            if not found.members:
                raise self._missing(identifier, place)
            links = "follow" if self._follow else "refuse"
            if place and is_one_directory(found):
                return StoredObject(self.root, shown_id, os.path.join(directory, found.members[0].name), None, links)
            return StoredObject(self.root, shown_id, directory, [entry.name for entry in found.members], links)

    def _between(self, identifier: str, directory: bytes, found: Contents, replaced: list[bytes]) -> StoredObject:
        """Return an object between two steps of a change.

        :param directory: the last directory of its ppath, with the content ``found``
        :param replaced: the names of the object that were put aside
        """
        links = "follow" if self._follow else "refuse"
        aside = os.path.join(directory, REPLACED)
        members = [entry.name for entry in found.members]
        if REPAIRING in found.ours or members:
            # The object is complete, in several directories.
            parts: list[Folder] = [(directory, members)]
            parts += [(os.path.join(directory, REPAIRING), None)] if REPAIRING in found.ours else []
            parts += [(aside, replaced)] if replaced else []
            return InterruptedObject(self.root, identifier, directory, parts, links)
        if len(replaced) == 1 and os.path.isdir(os.path.join(aside, replaced[0])):
            return StoredObject(self.root, identifier, os.path.join(aside, replaced[0]), None, links)
        return StoredObject(self.root, identifier, aside, replaced, links)

    def _missing(self, identifier: str | bytes, place: str) -> ObjectError:
        return ObjectError(self.root, identifier, "missing", f"object not found at {ROOT}/{place}")

    def _settled(self, identifier: str | bytes, directory: bytes, place: str, ignore: Sequence[str]) -> Contents:
        """Complete an interrupted change of one object, and return the content of its last directory.

        :raises ObjectError: the object's files cannot be determined
        """
        found = contents(directory, place, follow=self._follow, ignore=ignore)
        links = unreached(found, place)
        if links:
            link = f"{ROOT}/{place}/{decode_fs(links[0])}"
            reason = "is a symbolic link without a target, possibly a branch of the tree"
            way_out = "mount its target"
            raise ObjectError(self.root, identifier, "unreadable", f"{link} {reason}; {way_out}")
        if not found.ours:
            return found
        if REPLACED in found.ours:
            take_back(directory)
            found = contents(directory, place, follow=self._follow, ignore=ignore)
        if REPAIRING in found.ours:
            encapsulate(directory, found.members)
        return contents(directory, place, follow=self._follow, ignore=ignore)


def _base_of(path: Path) -> bytes:
    """Return the directory that contains pairtree_root, from that or from pairtree_root itself."""
    given = encode_path(path)
    with store_errors(given):
        if not os.path.isdir(given):
            what = "not a directory" if exists(given) else "No such file or directory"
            raise StoreError(given, f"{what}; specify the directory that contains {ROOT}")
        tree = os.path.join(given, encode_fs(ROOT))
        if os.path.isdir(tree):
            if (error := why_unreadable(tree)) is not None:
                raise error
            return given
        if exists(tree):
            raise StoreError(given, f"{ROOT} is not a directory; restore it")
        absolute = os.path.abspath(given)
        if os.path.basename(absolute) == encode_fs(ROOT):
            return os.path.dirname(absolute)
    raise StoreError(given, f"not a Pairtree, because {ROOT} is missing; specify a directory that contains it")
