"""Pairtree: a tree of directories of two characters, in which each object lies at its identifier's path.

The specification is draft-kunze-pairtree-01; what it leaves open is decided as its sibling of December 2008 ("Pairtrees
for Collection Storage") says. In particular a directory of one character ends every ppath.

What is changed is changed under the store's workshop (:mod:`pressmark.fs.run_directories`), a directory beside
``pairtree_root`` that is there while a run is at work. Interrupted changes of one object show as names that begin with
``pairtree_pressmark`` in its last directory; whoever changes the object next, or repairs the store, finishes them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar, Literal

from pressmark.errors import ObjectError, StoreError
from pressmark.fs.durable import exists
from pressmark.fs.entries import scan
from pressmark.fs.moves import TRIES
from pressmark.fs.names import decode_fs, encode_fs, first_link, is_absent
from pressmark.layouts import Pairtree
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import object_errors, store_errors
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
from pressmark.stores.pairtree.version_files import prefix_of, version_problems
from pressmark.stores.pairtree.walk import REPAIRING, REPLACED, ROOT, WORKSHOP, Contents, Walk, contents, is_morty
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, settled, settled_objects
from pressmark.stores.running_report import RunningReport
from pressmark.stores.store import OnEvent, OnProblem, Path, Store, StoreObject, encode_path
from pressmark.stores.stored_object import StoredObject

__all__ = ["PairtreeReader"]

PROGRESS_EVERY = 10_000  # objects
# What other runs make, too, for the moment in which they change something.
_PASSING = {"empty", "unfinished", "unreadable"}


class PairtreeReader(Store):
    """A Pairtree that is there, and the objects in it.

    :param path: the directory that holds ``pairtree_root``, or ``pairtree_root`` itself
    :param encapsulation: how new objects' directories are named; see :class:`pressmark.Pairtree`
    :param prefix_required: refuse identifiers that do not begin with the tree's prefix
    :param links: ``"follow"`` symbolic links in the tree, or ``"refuse"`` them: report and do not follow
    :param dialect: a tree that another program has written, as ``pairtree_dialects`` lists them; it is only read
    :param ignore: globs of names that are passed over everywhere in the tree, such as ``.DS_Store``
    :param durable: have everything on the disk before a change is made; without it a crash of the system, not one of
        the program, may lose objects that were just put

    :ivar prefix: what is put before every identifier of the tree
    :raises StoreError: it is no Pairtree, or cannot be read
    """

    kind: ClassVar[str] = "pairtree"
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
        self._durable = durable

    def _workshop(self, place: str) -> bytes:
        """Return the workshop for changes at a ppath: beside the tree, or within it on another file system."""
        at = self._tree
        top, device = self._base, os.stat(self._base).st_dev
        for name in ["", *place.split("/")]:
            at = os.path.join(at, encode_fs(name)) if name else at
            try:
                status = os.stat(at)
            except OSError:
                break
            if status.st_dev != device:
                top, device = at, status.st_dev
        return os.path.join(top, WORKSHOP)

    # --- all objects --------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Give every object, lazily, in the order of the octets of the ppaths' names.

        What belongs to no object (reserved names, empty directories, what lies beside the tree, …) goes to
        ``on_problem``. Memory does not grow, but by the identifiers of objects whose ppath is not canonical.

        :param threads: how many read directories; :data:`None` or 0 for as many as there are cores
        :param ignore: globs of names that are passed over, besides those of the store
        """
        return self._objects(self._walk(ignore), threads, on_problem)

    def _objects(self, walk: Walk, threads: int | None, on_problem: OnProblem | None) -> Iterator[StoreObject]:
        with store_errors(self._base):
            others: dict[str, str] = {}
            for record in settled_objects(walk.items(threads), partial(self._second_look, walk), on_problem):
                yield self._with_duplicates(record, others) if record.problems else record

    def _second_look(self, walk: Walk, item: Item) -> list[Item]:
        """Return what the walk has found, or what is there in its place where another run was changing that."""
        problems = item.problems if isinstance(item, StoreObject) else (item,)
        if not any(one.kind in _PASSING for one in problems):
            return [item]
        return settled(
            item, lambda: walk.again(item), self._workshop(decode_fs(encode_fs(item.path)).removeprefix(ROOT))
        )

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
        """Return what cannot be read of the object of a record of :meth:`objects`; none if it is gone."""
        try:
            found = self._contents(record.path.removeprefix(ROOT).lstrip("/"))
        except OSError as error:
            return (problem("unreadable", encode_fs(record.path), error.strerror or str(error)),)
        return () if found is None else self._walk(readable=True).unreadable_in(record.path, found)

    def _with_duplicates(self, record: StoreObject, others: dict[str, str]) -> StoreObject:
        """Add that another ppath stands for the same identifier; one of two such is not canonical (rule A19)."""
        if not any(found.kind == "not-canonical" for found in record.problems):
            return record
        assert record.id is not None
        canonical = next(found.expected for found in record.problems if found.kind == "not-canonical")
        other = others.setdefault(record.id, record.path)
        if not self._is_object(other.removeprefix(f"{ROOT}/")):
            other = others[record.id] = record.path  # it has gone since
        if canonical is not None and self._is_object(canonical.removeprefix(f"{ROOT}/")):
            other = canonical
        if other == record.path:
            return record
        message = f"{other} is the same identifier's; remove one, or move it"
        found = problem("duplicate-id", encode_fs(record.path), message, expected=canonical, found=other)
        return record._replace(problems=(*record.problems, found))

    def _is_object(self, place: str) -> bool:
        found = self._contents(place)
        return found is not None and bool(found.members or found.ours)

    def _contents(self, place: str) -> Contents | None:
        """Return what the last directory of a ppath holds; :data:`None` where there is none."""
        if self._link(place) is not None:
            return None
        directory = os.path.join(self._tree, encode_fs(place))
        try:
            return contents(directory, is_morty(place), follow=self._follow, ignore=self._ignore)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            if is_absent(self._tree, encode_fs(place)):
                return None
            raise

    def _link(self, place: str) -> str | None:
        """Return the path of the first symbolic link on the way to a place, where links are refused."""
        link = None if self._follow else first_link(self._tree, encode_fs(place))
        return None if link is None else f"{ROOT}/{decode_fs(link)}"

    def dialects(self, *, threads: int | None = None) -> dict[str, int]:
        """Test in which dialect a tree is written: return how many objects each may have written.

        ``spec`` counts the ppaths that are canonical, and ``unknown`` those that nobody known writes. What several
        dialects write alike counts for each.
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
        """Walk the whole tree and return what is wrong.

        Files in objects are not read, only that they can be read is checked. A Pairtree holds no digests: with
        ``digests`` nothing more is done.
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
        self.layout.map_id(identifier)  # refuses what no Pairtree takes
        whole = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
        return dialects.path(self.dialect, whole.removeprefix(self.prefix))

    def get(self, identifier: str | bytes) -> StoredObject:
        """Return an object.

        :raises ObjectError: of kind ``missing``: it is not there
        :raises IdentifierError: the identifier has no place in a Pairtree
        """
        return self._stored(identifier, self._place(identifier))

    def locate(self, record: StoreObject) -> StoredObject:
        """Return the object of a record of :meth:`objects`: also one whose ppath is not its identifier's."""
        return self._stored(record.id or "", record.path.removeprefix(ROOT).lstrip("/"))

    def _stored(self, identifier: str | bytes, place: str) -> StoredObject:
        # Absolute paths are made once: of many small objects that would cost a tenth of what is done for each.
        tree = self._tree if os.path.isabs(self._tree) else os.path.abspath(self._tree)
        directory = os.path.join(tree, encode_fs(place)) if place else tree
        with object_errors(self.root, identifier):
            for _ in range(TRIES):
                found = self._contents(place)
                if found is None or REPLACED not in found.ours:
                    replaced = []
                    break
                # Between the two looks the old object may have been put aside, or the new one have come.
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
        """Return an object that is between two steps of a change.

        :param directory: the last of its ppath, which holds ``found``
        :param replaced: the names of the object that are put aside there
        """
        links = "follow" if self._follow else "refuse"
        aside = os.path.join(directory, REPLACED)
        members = [entry.name for entry in found.members]
        if REPAIRING in found.ours or members:
            # Everything is there, in several directories.
            parts: list[Folder] = [(directory, members)]
            parts += [(os.path.join(directory, REPAIRING), None)] if REPAIRING in found.ours else []
            parts += [(aside, replaced)] if replaced else []
            return InterruptedObject(self.root, identifier, directory, parts, links)
        if len(replaced) == 1 and os.path.isdir(os.path.join(aside, replaced[0])):
            return StoredObject(self.root, identifier, os.path.join(aside, replaced[0]), None, links)
        return StoredObject(self.root, identifier, aside, replaced, links)

    def _missing(self, identifier: str | bytes, place: str) -> ObjectError:
        return ObjectError(self.root, identifier, "missing", f"there is no object at {ROOT}/{place}")

    def _settled(self, identifier: str | bytes, directory: bytes, place: str, ignore: Sequence[str]) -> Contents:
        """Finish an interrupted change of one object, and return what its last directory holds then.

        :raises ObjectError: nobody can tell what is the object's there
        """
        found = contents(directory, is_morty(place), follow=self._follow, ignore=ignore)
        links = unreached(found, place)
        if links:
            link = f"{ROOT}/{place}/{decode_fs(links[0])}"
            reason = "is a symbolic link that leads nowhere now, and may be a branch of the tree"
            way_out = "mount what it leads to, or remove the link"
            raise ObjectError(self.root, identifier, "unreadable", f"{link} {reason}; {way_out}")
        if not found.ours:
            return found
        if REPLACED in found.ours:
            take_back(directory)
            found = contents(directory, is_morty(place), follow=self._follow, ignore=ignore)
        if REPAIRING in found.ours:
            encapsulate(directory, found.members)
        return contents(directory, is_morty(place), follow=self._follow, ignore=ignore)


def _base_of(path: Path) -> bytes:
    """Return the directory that holds pairtree_root, from that or from pairtree_root itself (rule A11)."""
    given = encode_path(path)
    with store_errors(given):
        if not os.path.isdir(given):
            what = "it is not a directory" if exists(given) else "it is not there"
            raise StoreError(given, f"{what}; name the directory that holds {ROOT}")
        tree = os.path.join(given, encode_fs(ROOT))
        if os.path.isdir(tree):
            scan(tree)  # it opens
            return given
        if exists(tree):
            raise StoreError(given, f"{ROOT} in it is no directory; restore it")
        absolute = os.path.abspath(given)
        if os.path.basename(absolute) == encode_fs(ROOT):
            return os.path.dirname(absolute)
    raise StoreError(given, f"there is no {ROOT} in it: it is no Pairtree")
