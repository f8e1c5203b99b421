"""Pairtree: a tree of directories of two characters, in which each object lies at its identifier's path.

The specification is draft-kunze-pairtree-01; what it leaves open is decided as its sibling of December 2008 ("Pairtrees
for Collection Storage") says. In particular a directory of one character ends every ppath.

What is changed is changed under the store's workshop (:mod:`pressmark.stores.directories`), a directory beside
``pairtree_root`` that is there while a run is at work. Interrupted changes of one object show as names that begin with
``pairtree_pressmark`` in its last directory; whoever changes the object next, or repairs the store, finishes them.
"""

from __future__ import annotations

import contextlib
import heapq
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, ClassVar, Literal

from pressmark.errors import ObjectError, StoreError, shown
from pressmark.fixity import Outcome
from pressmark.fixity.copying import Event as CopyEvent
from pressmark.fs.durable import exists, flush_directory, flush_tree
from pressmark.fs.removal import remove_tree
from pressmark.layouts import Layout, Pairtree
from pressmark.reports import Problem, Report
from pressmark.stores.directories import (
    TRIES,
    Refused,
    Workshop,
    copy_source,
    exchange,
    first_link,
    folds_case,
    is_absent,
    longest_inside,
    make_parents,
    misspelled,
    own_leftovers,
    prune_upward,
    rename_new,
    scan,
    tidy_upward,
    too_long,
    would_be_empty,
)
from pressmark.stores.pairtree import dialects
from pressmark.stores.pairtree.encapsulation import encapsulate, unmovable
from pressmark.stores.pairtree.version_files import (
    PREFIX,
    VERSION,
    encoded_prefix,
    prefix_of,
    version_problems,
    write_prefix,
    write_version,
)
from pressmark.stores.pairtree.walk import (
    OBJECT,
    REPAIRING,
    REPLACED,
    RESERVED,
    ROOT,
    WORKSHOP,
    Contents,
    Walk,
    contents,
    is_morty,
)
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, settled
from pressmark.stores.store import (
    Changed,
    CopyMode,
    OnEvent,
    OnProblem,
    Path,
    Progress,
    Source,
    Store,
    StoredObject,
    StoreObject,
    encode_path,
    object_errors,
    octets,
    store_errors,
    text,
    unrepaired,
)

__all__ = ["PairtreeStore"]

PROGRESS_EVERY = 10_000  # objects
# What a repair mends, by moving everything that is the object's into one directory.
_MENDED = {"bare-file", "post-morty", "split-end", "unfinished"}
# What other runs make, too, for the moment in which they change something.
_PASSING = {"empty", "unfinished", "unreadable"}


class PairtreeStore(Store):
    """A Pairtree that is there; :meth:`create` makes one.

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
        self._tree = os.path.join(self._base, octets(ROOT))
        self.root = os.fsdecode(self._base)
        self.prefix = prefix_of(self._base)
        self.layout = Pairtree(self.prefix, encapsulation, prefix_required)
        self.dialect = dialect
        self._follow = links == "follow"
        self._ignore = tuple(ignore)
        self._durable = durable

    @classmethod
    def create(cls, path: Path, layout: Layout | None = None, *, prefix: str = "", **options: object) -> PairtreeStore:
        """Make an empty Pairtree in a directory that is empty or not there, and open it.

        :param layout: a :class:`pressmark.Pairtree` whose prefix and encapsulation are taken
        :param prefix: what every identifier begins with and no path shows
        :param options: as for opening
        :raises StoreError: there is something in the directory, or it cannot be written
        """
        if layout is not None:
            if not isinstance(layout, Pairtree):
                raise StoreError(encode_path(path), f"a Pairtree has the layout pairtree, not {layout.name}")
            prefix = prefix or layout.prefix
            options = {"encapsulation": layout.encapsulation, "prefix_required": layout.prefix_required, **options}
        base = encode_path(path)
        data = encoded_prefix(base, prefix)  # before anything is made
        with store_errors(base):
            os.makedirs(base, exist_ok=True)
            # What an interrupted call has left is written again.
            strangers = sorted(set(os.listdir(base)) - {PREFIX, VERSION})
            if strangers:
                raise StoreError(base, f"it holds {text(strangers[0])!r}: name a directory that is empty or not there")
            if prefix_of(base) not in ("", prefix):
                raise StoreError(base, f"it holds the prefix of another tree, whose {ROOT} is missing; restore that")
            write_version(base)
            write_prefix(base, data)
            # Last: this is what makes a Pairtree of it.
            os.mkdir(os.path.join(base, octets(ROOT)))
            flush_directory(base)
        return cls(path, **options)  # type: ignore[arg-type]

    # --- reading --------------------------------------------------------------------------------------------------

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
            for found in walk.items(threads):
                if isinstance(found, StoreObject) and not found.problems:
                    yield found
                    continue
                for item in self._second_look(walk, found):
                    if isinstance(item, StoreObject):
                        yield self._with_duplicates(item, others)
                    elif on_problem is not None:
                        on_problem(item)

    def _second_look(self, walk: Walk, item: Item) -> list[Item]:
        """Return what the walk has found, or what is there in its place where another run was changing that."""
        problems = item.problems if isinstance(item, StoreObject) else (item,)
        if not any(one.kind in _PASSING for one in problems):
            return [item]
        return settled(item, lambda: walk.again(item), self._workshop(text(octets(item.path)).removeprefix(ROOT)))

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
            return (problem("unreadable", octets(record.path), error.strerror or str(error)),)
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
        found = problem("duplicate-id", octets(record.path), message, expected=canonical, found=other)
        return record._replace(problems=(*record.problems, found))

    def _is_object(self, place: str) -> bool:
        found = self._contents(place)
        return found is not None and bool(found.members or found.ours)

    def _contents(self, place: str) -> Contents | None:
        """Return what the last directory of a ppath holds; :data:`None` where there is none."""
        if self._link(place) is not None:
            return None
        directory = os.path.join(self._tree, octets(place))
        try:
            return contents(directory, is_morty(place), follow=self._follow, ignore=self._ignore)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            if is_absent(self._tree, octets(place)):
                return None
            raise

    def _link(self, place: str) -> str | None:
        """Return the path of the first symbolic link on the way to a place, where links are refused."""
        link = None if self._follow else first_link(self._tree, octets(place))
        return None if link is None else f"{ROOT}/{text(link)}"

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

    def _place(self, identifier: str | bytes) -> str:
        if self.dialect is None:
            return self.layout.map_id(identifier)
        self.layout.map_id(identifier)  # refuses what no Pairtree takes
        whole = text(identifier) if isinstance(identifier, bytes) else identifier
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
        directory = os.path.join(tree, octets(place)) if place else tree
        with object_errors(self.root, identifier):
            for _ in range(TRIES):
                found = self._contents(place)
                if found is None or REPLACED not in found.ours:
                    replaced = []
                    break
                # Between the two looks the old object may have been put aside, or the new one have come.
                replaced = _replaced(directory)
                names = {entry.name for entry in found.members}
                if (names or replaced) and names.isdisjoint(replaced):
                    break
            if found is None:
                raise self._missing(identifier, place)
            shown_id = text(identifier) if isinstance(identifier, bytes) else identifier
            if replaced or REPAIRING in found.ours:
                return self._between(shown_id, directory, found, replaced)
            if not found.members:
                raise self._missing(identifier, place)
            links = "follow" if self._follow else "refuse"
            if place and _is_one_directory(found):
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
            parts: list[_Folder] = [(directory, members)]
            parts += [(os.path.join(directory, REPAIRING), None)] if REPAIRING in found.ours else []
            parts += [(aside, replaced)] if replaced else []
            return _Interrupted(self.root, identifier, directory, parts, links)
        if len(replaced) == 1 and os.path.isdir(os.path.join(aside, replaced[0])):
            return StoredObject(self.root, identifier, os.path.join(aside, replaced[0]), None, links)
        return StoredObject(self.root, identifier, aside, replaced, links)

    def _missing(self, identifier: str | bytes, place: str) -> ObjectError:
        return ObjectError(self.root, identifier, "missing", f"there is no object at {ROOT}/{place}")

    # --- changing -------------------------------------------------------------------------------------------------

    def put(
        self,
        identifier: str | bytes,
        source: Source,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        encapsulation: str | None = None,
        check: Callable[[bytes], object] | None = None,
        algorithms: tuple[str, ...] = (),
        on_file: Callable[[bytes, Outcome], object] | None = None,
        on_event: Callable[[CopyEvent], object] | None = None,
    ) -> StoreObject:
        """Store an object in an encapsulating directory: whole or not at all.

        An object that is replaced keeps the name of its encapsulating directory, and is replaced in one step where the
        system can exchange two names (Linux).

        :param encapsulation: the directory's name, instead of the one that the store gives
        :param check: called with the path of the object before it appears; what it raises ends this
        :param algorithms: of the digests that ``on_file`` gets
        :param on_file: called with the name and the outcome of each file that was copied; what it raises ends this
        :param on_event: called with the events of :func:`pressmark.fixity.copying.copy_files`
        :raises ObjectError: nothing was stored; its ``kind`` says why
        :raises IdentifierError: the identifier has no place in this tree
        """
        place, name = self._new_place(identifier, encapsulation)
        with object_errors(self.root, identifier):
            if not replace and self._is_object(place):
                raise self._exists(identifier, place)
            with Workshop(self._workshop(place)) as shop:
                new = shop / b"object"
                try:
                    copy_source(
                        source, new, mode=mode, links=links, algorithms=algorithms, on_file=on_file, on_event=on_event
                    )
                except Refused as refused:
                    raise ObjectError(self.root, identifier, refused.kind, refused.reason) from refused
                if check is not None:
                    check(new)
                if self._durable:
                    flush_tree(new)
                longest = longest_inside(new)
                with shop.turn():
                    name = self._move_in(shop, identifier, new, place, name, longest, replace)
        return self._proper(place, name)

    def adopt(self, identifier: str | bytes, directory: bytes, encapsulation: str | None = None) -> StoreObject:
        """Have a directory, on the same file system, moved in as it is: it becomes the encapsulating directory.

        :raises ObjectError: nothing was moved; its ``kind`` says why
        :raises IdentifierError: the identifier has no place in this tree
        """
        place, name = self._new_place(identifier, encapsulation)
        with object_errors(self.root, identifier):
            if self._is_object(place):
                raise self._exists(identifier, place)
            longest = longest_inside(directory)
            with Workshop(self._workshop(place)) as shop, shop.turn():
                name = self._move_in(shop, identifier, directory, place, name, longest, False)
        return self._proper(place, name)

    def _new_place(self, identifier: str | bytes, encapsulation: str | None) -> tuple[str, str]:
        """Return the ppath of an object that is put, and the name of its encapsulating directory."""
        self.refuse_changes()
        place, _, name = self.layout.object_path(identifier).rpartition("/")
        if encapsulation is not None:
            name = encapsulation
            if not _encapsulates(octets(name)):
                reason = f"no object can be in a directory called {shown(name)}"
                way_out = "choose a name of three characters or more that does not begin with pairtree"
                raise ObjectError(self.root, identifier, "bad-name", f"{reason}; {way_out}")
        too_much = too_long(self._tree, octets(f"{place}/{name}"))
        if too_much:
            raise ObjectError(self.root, identifier, "bad-name", f"{too_much}; use a shorter identifier")
        return place, name

    def _proper(self, place: str, name: str) -> StoreObject:
        """Return the record of an object that was put."""
        problems = self._walk().identified(place)[1]
        return StoreObject(self.layout.unmap_path(place), f"{ROOT}/{place}", True, name, tuple(problems))

    def _exists(self, identifier: str | bytes, place: str) -> ObjectError:
        reason = f"there is one at {ROOT}/{place}: replace it, or delete it first"
        return ObjectError(self.root, identifier, "exists", reason)

    def refuse_changes(self) -> None:
        if self.dialect is not None:
            raise StoreError(self.root, f"a tree in the dialect {self.dialect} is only read: migrate it to a new one")

    def _move_in(
        self,
        shop: Workshop,
        identifier: str | bytes,
        new: bytes,
        place: str,
        name: str,
        longest: bytes,
        replace: bool,
    ) -> str:
        """Give what was prepared its place; return the name that it has there.

        :param longest: path in it, as of :func:`longest_inside`
        """
        ppath = octets(place)
        directory = os.path.join(self._tree, ppath)
        link = self._link(place)
        if link is not None:
            reason = f"{link} is a symbolic link, and links are refused; follow them, or put what it leads to there"
            raise ObjectError(self.root, identifier, "collision", reason)
        if folds_case(self._tree):
            clash = misspelled(self._tree, ppath)
            if clash is not None:
                reason = f"{text(clash)!r} is there in the other case, and this file system has one name for both"
                raise ObjectError(self.root, identifier, "collision", f"{reason}; use one that distinguishes case")
        made: list[bytes] = []
        try:
            made = make_parents(self._tree, ppath)
            found = self._settled(identifier, directory, place, self._ignore)
            if not found.members:
                self._refuse_too_long(identifier, place, name, longest)
                rename_new(new, os.path.join(directory, octets(name)))
            elif replace:
                name = text(found.members[0].name) if _is_one_directory(found) else text(OBJECT)
                self._refuse_too_long(identifier, place, name, longest)
                if not _is_one_directory(found):
                    encapsulate(directory, found.members)
                self._replace(shop, new, directory, octets(name))
            else:
                raise self._exists(identifier, place)
        except BaseException as error:
            tidy_upward(self._tree, ppath)
            if isinstance(error, NotADirectoryError):
                reason = "a file lies where its ppath goes on; repair the store first"
                raise ObjectError(self.root, identifier, "collision", reason) from None
            raise
        if self._durable:
            flush_directory(directory)
            for above in made:
                flush_directory(os.path.dirname(os.path.join(self._tree, above)))
        return name

    def _refuse_too_long(self, identifier: str | bytes, place: str, name: str, longest: bytes) -> None:
        reason = too_long(self._tree, octets(f"{place}/{name}") + longest)
        if reason is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use a shorter identifier or file names")

    def _replace(self, shop: Workshop, new: bytes, directory: bytes, name: bytes) -> None:
        """Put the new object in the place of the old one, which goes into the workshop."""
        old = os.path.join(directory, name)
        if exchange(new, old):
            return
        # Under its name, which tells whoever comes next whether the new object has taken its place.
        aside = os.path.join(directory, REPLACED)
        os.mkdir(aside)
        os.rename(old, os.path.join(aside, name))
        try:
            rename_new(new, old)
        except BaseException:
            _take_back(directory)
            raise
        os.rename(aside, shop / b"replaced")

    def _settled(self, identifier: str | bytes, directory: bytes, place: str, ignore: Sequence[str]) -> Contents:
        """Finish an interrupted change of one object, and return what its last directory holds then.

        :raises ObjectError: nobody can tell what is the object's there
        """
        found = contents(directory, is_morty(place), follow=self._follow, ignore=ignore)
        unreached = _unreached(found, place)
        if unreached:
            reason = (
                f"{ROOT}/{place}/{text(unreached[0])} is a symbolic link that leads nowhere now, and may be a branch"
            )
            way_out = "mount what it leads to, or remove the link"
            raise ObjectError(self.root, identifier, "unreadable", f"{reason} of the tree; {way_out}")
        if not found.ours:
            return found
        if REPLACED in found.ours:
            _take_back(directory)
            found = contents(directory, is_morty(place), follow=self._follow, ignore=ignore)
        if REPAIRING in found.ours:
            encapsulate(directory, found.members)
        return contents(directory, is_morty(place), follow=self._follow, ignore=ignore)

    def delete(self, identifier: str | bytes) -> None:
        """Remove one object, never the objects below it; then directories above it that are empty.

        Of an encapsulating directory that is a symbolic link the link is removed, not what it leads to.

        :raises ObjectError: of kind ``missing``, or nothing could be removed
        :raises IdentifierError: the identifier has no place in this tree
        """
        self.refuse_changes()
        place = self.layout.map_id(identifier)
        ppath = octets(place)
        directory = os.path.join(self._tree, ppath)
        with object_errors(self.root, identifier):
            if not self._is_object(place):
                raise self._missing(identifier, place)
            with Workshop(self._workshop(place)) as shop, shop.turn():
                try:
                    found = self._settled(identifier, directory, place, self._ignore)
                except FileNotFoundError:
                    raise self._missing(identifier, place) from None
                if not found.members:
                    raise self._missing(identifier, place)
                if len(found.members) > 1:
                    # So that it goes in one step.
                    encapsulate(directory, found.members)
                name = OBJECT if len(found.members) > 1 else found.members[0].name
                os.rename(os.path.join(directory, name), shop / b"object")
                if self._durable:
                    flush_directory(directory)
                tidy_upward(self._tree, ppath)

    def _workshop(self, place: str) -> bytes:
        """Return the workshop for changes at a ppath: beside the tree, or within it on another file system."""
        at = self._tree
        top, device = self._base, os.stat(self._base).st_dev
        for name in ["", *place.split("/")]:
            at = os.path.join(at, octets(name)) if name else at
            try:
                status = os.stat(at)
            except OSError:
                break
            if status.st_dev != device:
                top, device = at, status.st_dev
        return os.path.join(top, WORKSHOP)

    # --- checking -------------------------------------------------------------------------------------------------

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
        report = Report(counts={"objects": 0, "proper": 0})

        def found(problems: Sequence[Problem]) -> None:
            report.add(problems)
            if on_problem is not None:
                for each in problems:
                    on_problem(each)

        found(version_problems(self._base))
        walk = self._walk(ignore, readable=True)
        for record in self._objects(walk, threads, lambda each: found([each])):
            report.counts["objects"] += 1
            report.counts["proper"] += record.proper
            if record.problems:
                found(record.problems)
            if on_event is not None and report.counts["objects"] % PROGRESS_EVERY == 0:
                on_event(Progress(report.counts["objects"], len(report.problems)))
        if on_event is not None:
            on_event(Progress(report.counts["objects"], len(report.problems)))
        return report

    # --- repairing ------------------------------------------------------------------------------------------------

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Encapsulate every object that is not, finish what was interrupted, and remove empty ppaths.

        Everything of an object that is not properly encapsulated is moved into a directory ``obj`` in the same place;
        identifiers and ppaths stay, and so does every byte (section 2). Done twice, it changes nothing. What is not
        for a repair to decide stays as it is and is in the report.

        :param dry_run: only say what would be done
        :param on_event: called with :class:`Changed`: ``encapsulate``, ``finish``, ``prune`` or ``remove``
        """
        if not dry_run:
            self.refuse_changes()
        run = _Repair(self, dry_run, on_event, (*self._ignore, *ignore))
        with store_errors(self._base), run:
            for item in self._walk(ignore).items():
                run.see(item)
        return run.report


class _Repair(contextlib.ExitStack):
    """One repair of a tree; a context manager, which keeps its workshops.

    :ivar report: what remains, and what was done
    """

    def __init__(self, store: PairtreeStore, dry_run: bool, on_event: OnEvent | None, ignore: Sequence[str]) -> None:
        super().__init__()
        self._store = store
        self._dry_run = dry_run
        self._tell = on_event or (lambda _event: None)
        self._ignore = ignore
        self._shops: dict[bytes, Workshop] = {}
        self._pruned: set[bytes] = set()
        self.report = Report(counts={"objects": 0, "repaired": 0})

    def __enter__(self) -> _Repair:
        super().__enter__()
        folder = os.path.join(self._store._base, WORKSHOP)
        if not self._dry_run and os.path.isdir(folder):
            for left in own_leftovers(folder):
                self._tell(Changed("remove", WORKSHOP + b"/" + os.path.basename(left)))
            self._shop(folder)  # also where nothing is left in it
        return self

    def see(self, item: StoreObject | Problem) -> None:
        """Mend what can be mended of one thing that the walk found, and report the rest."""
        if isinstance(item, Problem):
            if not self._see_problem(item):
                self.report.add([item])
            return
        self.report.counts["objects"] += 1
        kinds = {found.kind for found in item.problems}
        if item.path == ROOT or not kinds & _MENDED:
            self.report.add(item.problems)
            return
        try:
            mended = self._mend(item)
        except OSError as error:
            self.report.add([unrepaired(octets(item.path), error)])
            mended = False
        self.report.counts["repaired"] += mended
        self.report.add(found for found in item.problems if not mended or found.kind not in _MENDED)

    def _see_problem(self, found: Problem) -> bool:
        if found.kind == "leftover":
            # Entering the workshop removes it.
            self._tell(Changed("remove", found.path))
            if not self._dry_run:
                self._shop(os.path.dirname(os.path.join(self._store._base, found.path)))
            return True
        if found.kind != "empty":
            return False
        return self._prune(text(found.path).removeprefix(f"{ROOT}/"))

    def _prune(self, place: str) -> bool:
        """Remove an empty directory, and those above it that are empty then; return whether it is gone."""
        removed: list[bytes] = []
        try:
            if self._dry_run:
                removed = self._would_prune(octets(place))
            else:
                with self._shop(self._store._workshop(place)).turn():
                    prune_upward(self._store._tree, octets(place), removed)
        except OSError as error:
            stuck = os.path.relpath(error.filename, self._store._base) if error.filename else octets(f"{ROOT}/{place}")
            self.report.add([unrepaired(stuck, error)])  # it may be one above
        for path in removed:
            self._tell(Changed("prune", octets(ROOT) + b"/" + path))
        return bool(removed) or not exists(os.path.join(self._store._tree, octets(place)))

    def _would_prune(self, place: bytes) -> list[bytes]:
        """Return what pruning would remove after all that it would have removed already."""
        removed = []
        while place:
            directory = os.path.join(self._store._tree, place)
            if os.path.islink(directory) or not would_be_empty(directory, place, self._pruned):
                break
            self._pruned.add(place)
            removed.append(place)
            place = os.path.dirname(place)
        return removed

    def _mend(self, record: StoreObject) -> bool:
        """Encapsulate one object; return whether that was done, or would be."""
        store = self._store
        place = record.path.removeprefix(f"{ROOT}/")
        directory = os.path.join(store._tree, octets(place))
        if self._dry_run:
            try:
                found = contents(directory, is_morty(place), follow=store._follow, ignore=self._ignore)
            except FileNotFoundError:
                return True  # as below
            change = self._change(record, directory, found)
            if change is not None:
                self._tell(change)
            return change is not None
        shop = self._shop(store._workshop(place))
        with shop.turn():
            try:
                found = contents(directory, is_morty(place), follow=store._follow, ignore=self._ignore)
            except FileNotFoundError:
                return True  # somebody has deleted it meanwhile
            change = self._change(record, directory, found)
            if change is None:
                return False
            if found.ours:
                found = store._settled(record.id or "", directory, place, self._ignore)
            if found.members and not _is_one_directory(found):
                encapsulate(directory, found.members)
        self._tell(change)
        return True

    def _change(self, record: StoreObject, directory: bytes, found: Contents) -> Changed | None:
        """Return what is to be done; :data:`None` where nothing must be."""
        if not found.ours and (_is_one_directory(found) or not found.members):
            return None  # it is no longer as the walk found it
        if any(entry.name in (REPAIRING, REPLACED) for entry in found.reserved):
            return None  # what is in the way is none of ours
        if _unreached(found, record.path):
            return None  # it would cut off the branch that they may lead to
        broken = unmovable(directory, found.members)
        if broken:
            path = octets(record.path) + b"/"
            self.report.add(problem("link-unmoved", path + name) for name in broken)
            return None
        names = tuple(entry.name for entry in found.members)
        return Changed("finish" if found.ours else "encapsulate", octets(record.path), names)

    def _shop(self, folder: bytes) -> Workshop:
        if folder not in self._shops:
            with store_errors(folder):  # no repair at all without one
                self._shops[folder] = self.enter_context(Workshop(folder))
        return self._shops[folder]


# A directory, and the names in it that are meant; None for all.
_Folder = tuple[bytes, Sequence[bytes] | None]


class _Interrupted(StoredObject):
    """An object of which a change was interrupted: its files are in two directories."""

    def __init__(
        self,
        store: str | bytes,
        identifier: str,
        path: bytes,
        parts: Sequence[_Folder],
        links: str,
    ) -> None:
        super().__init__(store, identifier, path, (), links)
        self._parts = [StoredObject(store, identifier, folder, members, links) for folder, members in parts]

    def files(self) -> Iterator[tuple[str, bytes]]:
        return heapq.merge(*(part.files() for part in self._parts), key=lambda found: octets(found[0]))

    def empty_directories(self) -> Iterator[tuple[str, bytes]]:
        return heapq.merge(*(part.empty_directories() for part in self._parts), key=lambda found: octets(found[0]))

    def confirm(self) -> None:
        for part in self._parts:
            part.confirm()

    def open(self, name: str) -> BinaryIO:
        for part in self._parts[:-1]:
            try:
                return part.open(name)
            except ObjectError as error:
                if error.kind != "missing":
                    raise
        return self._parts[-1].open(name)


def _replaced(directory: bytes) -> list[bytes]:
    """Return the name of the object that was to be replaced, unless another has taken its place.

    Where several names lie there, which we do not write, all are returned whose places are free: none is to be lost.
    """
    try:
        names = sorted(os.listdir(os.path.join(directory, REPLACED)))
    except FileNotFoundError:  # another run has just finished
        return []
    return [name for name in names if not exists(os.path.join(directory, name))]


def _take_back(directory: bytes) -> None:
    """Undo an interrupted replacing, or finish it where the new object is there already."""
    aside = os.path.join(directory, REPLACED)
    for name in _replaced(directory):
        rename_new(os.path.join(aside, name), os.path.join(directory, name))
    remove_tree(aside)


def _encapsulates(name: bytes) -> bool:
    """Return whether a directory of this name, and nothing else, would be an object's."""
    return len(text(name)) > 2 and not name.startswith(RESERVED) and b"/" not in name and b"\0" not in name


def _unreached(found: Contents, place: str) -> list[bytes]:
    """Return the links that lead nowhere and by their names might extend the ppath.

    What they lead to may only be away for the moment: a file system that is not mounted, a server that does not answer.
    """
    if is_morty(place):
        return []
    return [entry.name for entry in found.members if entry.kind == "dangling" and len(text(entry.name)) <= 2]


def _is_one_directory(found: Contents) -> bool:
    """Return whether an object is in one directory of three characters or more, and nothing else is its."""
    first = found.members[0] if len(found.members) == 1 else None
    return first is not None and first.kind == "directory" and len(text(first.name)) > 2


def _base_of(path: Path) -> bytes:
    """Return the directory that holds pairtree_root, from that or from pairtree_root itself (rule A11)."""
    given = encode_path(path)
    with store_errors(given):
        if not os.path.isdir(given):
            what = "it is not a directory" if exists(given) else "it is not there"
            raise StoreError(given, f"{what}; name the directory that holds {ROOT}")
        tree = os.path.join(given, octets(ROOT))
        if os.path.isdir(tree):
            scan(tree)  # it opens
            return given
        if exists(tree):
            raise StoreError(given, f"{ROOT} in it is no directory; restore it")
        absolute = os.path.abspath(given)
        if os.path.basename(absolute) == octets(ROOT):
            return os.path.dirname(absolute)
    raise StoreError(given, f"there is no {ROOT} in it: it is no Pairtree")
