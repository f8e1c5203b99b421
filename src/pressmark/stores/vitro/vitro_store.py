"""Vitro file storage: the identifier in groups of three characters is a directory, and the one file in it the object.

::

    <root>/
    ├── file_storage_namespaces.properties   what each prefix stands for: see :mod:`pressmark.stores.vitro.namespaces`
    ├── file_storage_pressmark/              while something is changed: see :mod:`pressmark.stores.directories`
    └── file_storage_root/
        └── a~n/342/4/myPhoto.jpg

Directories may hold other objects' directories besides their own file. Nothing but objects' files is ever in them, not
even for a moment: Vitro takes every file for the object's.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from itertools import islice
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple

from pressmark.errors import IdentifierError, ObjectError, PathError, StoreError, shown
from pressmark.fixity import Outcome
from pressmark.fixity.copying import Event as CopyEvent
from pressmark.fs.atomic import Replacement
from pressmark.fs.durable import exists, flush_directory, flush_tree
from pressmark.layouts import Layout, Vitro
from pressmark.reports import Problem, Report
from pressmark.stores.directories import (
    LOCK,
    Entry,
    Refused,
    Workshop,
    copy_source,
    first_link,
    folds_case,
    is_absent,
    is_in_the_way,
    kind_of_leftover,
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
from pressmark.stores.problems import problem
from pressmark.stores.readability import unreadable_file
from pressmark.stores.recheck import Item, abandoned, settled
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
    is_same_version,
    object_errors,
    octets,
    status_of,
    store_errors,
    text,
    unrepaired,
)
from pressmark.stores.vitro.namespaces import NAMESPACES, read_namespaces, render, with_declared

__all__ = ["VitroObject", "VitroStore"]

ROOT = "file_storage_root"
WORKSHOP = b"file_storage_pressmark"
# In the workshop, while an object gets a file of another name: what is to be finished.
JOURNAL = b"renaming"
PROGRESS_EVERY = 1_000  # objects
SHOWN_NAMES = 5
# What other runs make, too, for the moment in which they change something.
_PASSING = {"bad-file-name", "duplicate-id", "empty", "files-several", "unfinished", "unreadable"}
# What is wrong with an object that Vitro itself cannot have.
_IMPROPER = {"bad-file-name", "files-several", "hidden", "not-canonical", "undecodable", "unknown-prefix"}


class VitroObject(StoredObject):
    """An object of a Vitro store: one file.

    :ivar name: the file's name, decoded
    :ivar file: its path, absolute
    """

    def __init__(self, store: str, identifier: str, directory: bytes, stored: bytes, name: str) -> None:
        super().__init__(store, identifier, directory, (stored,), "refuse")
        self.name = name
        self.file = os.path.join(directory, stored)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Give the file's name and its path.

        :raises ObjectError: of kind ``changed``
        """
        yield self.name, self.file
        self.confirm()

    def was_seen(self) -> bool:
        """Return whether there was a status of the file to be had when it was got."""
        return self._seen[self.file] is not None

    def is_current(self) -> bool:
        """Return whether it is still the one that was got."""
        return is_same_version(status_of(self.file), self._seen[self.file])

    def open(self, name: str) -> BinaryIO:
        """Open the file for reading.

        :raises ObjectError: it has another name, is no longer the one that was got, or cannot be read
        """
        file = self._opened(self.file, self.file) if name == self.name else None
        if file is None:
            raise ObjectError(self._store, self.id, "missing", f"there is no file {name!r} in it but {self.name!r}")
        return file


class _Renaming(NamedTuple):
    """A file that gets new content and another name: first the content, at once, then the name.

    :ivar place: its directory, relative to file_storage_root
    :ivar inode: of the new content
    """

    place: str
    old: str
    new: str
    inode: int


class VitroStore(Store):
    """A Vitro store that is there; :meth:`create` makes one.

    Symbolic links within it are reported and not followed. Vitro itself takes no locks: do not let it write at the same
    time.

    :param path: the directory that holds file_storage_root
    :param encoding: of the namespaces file
    :param ignore: globs of names that are passed over everywhere, such as ``.DS_Store``
    :param durable: have everything on the disk before a change is made

    :ivar namespaces: what each prefix stands for
    :ivar namespaces_problems: what is wrong with the namespaces file; with an error among them the store is only read
    :raises StoreError: it is no Vitro store, or cannot be read
    """

    kind: ClassVar[str] = "vitro"
    layout: Vitro

    def __init__(
        self, path: Path, *, encoding: str = "utf-8", ignore: Sequence[str] = (), durable: bool = True
    ) -> None:
        self._base = _base_of(path)
        self._tree = os.path.join(self._base, octets(ROOT))
        self.root = os.fsdecode(self._base)
        self._encoding = encoding
        self._ignore = tuple(ignore)
        self._durable = durable
        self._read()

    def _read(self) -> None:
        file = read_namespaces(self._base, self._encoding)
        self.namespaces, self.namespaces_problems = file
        self._doubt = file.doubt
        self.layout = Vitro(self.namespaces)

    def refuse_changes(self) -> None:
        """Return where the store may be changed, as far as it knows without trying.

        :raises StoreError: the meaning of its namespaces file is in doubt, and with it where objects belong
        """
        if self._doubt is not None:
            raise StoreError(os.path.join(self._base, NAMESPACES), f"the store is only read: {self._doubt}")

    @classmethod
    def create(
        cls, path: Path, layout: Layout | None = None, *, namespaces: Iterable[str] = (), **options: Any
    ) -> VitroStore:
        """Make an empty Vitro store in a directory that is empty or not there, and open it.

        :param layout: a :class:`pressmark.Vitro` whose prefixes and namespaces are taken
        :param namespaces: more of them; each gets the first letter that is free
        :param options: as for opening
        :raises StoreError: there is something in the directory, it cannot be written, or a namespace is refused
        """
        given: Mapping[str, str] = {}
        if layout is not None:
            if not isinstance(layout, Vitro):
                raise StoreError(encode_path(path), f"a Vitro store has the layout vitro, not {layout.name}")
            given = dict(layout.namespaces)
        base = encode_path(path)
        # Those of the layout are checked as those that are declared.
        with_declared(base, {}, given.values())
        wanted = with_declared(base, given, namespaces)
        with store_errors(base):
            os.makedirs(base, exist_ok=True)
            # What an interrupted call has left is written again.
            strangers = sorted(set(os.listdir(base)) - {NAMESPACES, WORKSHOP})
            if strangers:
                raise StoreError(base, f"it holds {text(strangers[0])!r}: name a directory that is empty or not there")
            if exists(os.path.join(base, NAMESPACES)) and read_namespaces(base).namespaces != wanted:
                raise StoreError(base, f"it holds other namespaces, of a store whose {ROOT} is missing; restore that")
            with Workshop(os.path.join(base, WORKSHOP)) as shop, shop.turn():
                _write(shop, base, wanted, "utf-8")
                # Last: this is what makes a store of it.
                os.mkdir(os.path.join(base, octets(ROOT)))
            flush_directory(base)
        return cls(path, **options)

    def declare(self, *namespaces: str) -> None:
        """Add namespaces that the store does not have; each gets the first letter that is free.

        Objects that are there already under a new namespace are hidden then: :meth:`check` lists them, :meth:`repair`
        moves them.

        :raises StoreError: one would not be read back, or there is no letter left; nothing was written
        """
        with store_errors(self._base), Workshop(self._workshop()) as shop, shop.turn():
            self._read()  # another run may have declared some
            self.refuse_changes()
            wanted = with_declared(self._base, self.namespaces, namespaces)
            if wanted != self.namespaces:
                _write(shop, self._base, wanted, self._encoding)
            self._read()

    def _workshop(self) -> bytes:
        """Return the workshop: beside the tree, or within it where that is on another file system."""
        same = os.stat(self._base).st_dev == os.stat(self._tree).st_dev
        return os.path.join(self._base if same else self._tree, WORKSHOP)

    # --- reading --------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Give every object, lazily, in the order of the octets of the directories' names.

        What belongs to no object goes to ``on_problem``.

        :param threads: has no effect: directories are read one after another
        :param ignore: globs of names that are passed over, besides those of the store
        """
        return self._objects(ignore, on_problem)

    def _objects(
        self, ignore: Sequence[str], on_problem: OnProblem | None, *, readable: bool = False
    ) -> Iterator[StoreObject]:
        with store_errors(self._base):
            for found in self._walk(ignore, readable=readable):
                if isinstance(found, StoreObject) and not found.problems:
                    yield found
                    continue
                for item in self._second_look(found, ignore, readable):
                    if isinstance(item, StoreObject):
                        yield item
                    elif on_problem is not None:
                        on_problem(item)

    def _second_look(self, item: Item, ignore: Sequence[str], readable: bool) -> list[Item]:
        """Return what the walk has found, or what is there in its place where another run was changing that."""
        problems = item.problems if isinstance(item, StoreObject) else (item,)
        if not any(one.kind in _PASSING for one in problems):
            return [item]
        ignored = _matcher((*self._ignore, *ignore))
        place = text(octets(item.path)).removeprefix(ROOT).lstrip("/")

        def again() -> list[Item]:
            found = self._walk_from(place, ignored, readable)
            if isinstance(item, StoreObject):
                # What else is there, and below, the walk finds by itself.
                return [one for one in islice(found, 1) if octets(one.path) == octets(item.path)]
            return list(found)

        return settled(item, again, self._workshop())

    def _walk(self, ignore: Sequence[str] = (), *, readable: bool = False) -> Iterator[Item]:
        """Give objects and problems in their order.

        :param readable: report files that cannot be read
        """
        ignored = _matcher((*self._ignore, *ignore))
        yield from self._beside(ignored)
        yield from self._walk_from("", ignored, readable)

    def _walk_from(self, place: str, ignored: Any, readable: bool) -> Iterator[Item]:
        """Give what is at and below a place: of an object's directory, the object first."""
        renaming = self._renaming()
        # Places that are still to be looked at, the next one last.
        places = [place]
        while places:
            place = places.pop()
            path = octets(f"{ROOT}/{place}" if place else ROOT)
            try:
                entries = scan(os.path.join(self._tree, octets(place)), follow=False)
            except FileNotFoundError:
                continue  # removed as empty since its name was read
            except OSError as error:
                yield problem("unreadable", path, error.strerror or str(error))
                continue
            kept = [entry for entry in entries if not ignored(text(entry.name))]
            if not place:
                kept = [entry for entry in kept if not self._is_workshop(self._tree, entry)]
            files = [entry.name for entry in kept if entry.kind == "file"]
            if files and not place:
                for name in files:
                    yield problem("file-in-root", path + b"/" + name)
            elif files:
                record = self._object(place, path, files, renaming)
                if readable:
                    record = record._replace(problems=(*record.problems, *self._unreadable_in(place, files)))
                yield record
            for entry in kept:
                if entry.kind == "link":
                    yield problem("link", path + b"/" + entry.name, section="")
                elif entry.kind == "special":
                    yield problem("special-file", path + b"/" + entry.name, section="")
            if place and not entries:
                yield problem("empty", path, "an empty directory; it holds no object", section="")
            below = [text(entry.name) for entry in kept if entry.kind == "directory"]
            places += [f"{place}/{name}" if place else name for name in reversed(below)]

    def _object(self, place: str, path: bytes, files: Sequence[bytes], renaming: _Renaming | None) -> StoreObject:
        identifier, problems = self._identified(place, path)
        if len(files) > 1:
            problems.append(problem("files-several", path, f"it has {len(files)} files: {_listed(files)}"))
        for name in files:
            problems += self._named(name, path)
        if renaming is not None and renaming.place == place:
            problems.append(problem("unfinished", path))
        if identifier is not None and {found.kind for found in problems} & {"hidden", "not-canonical"}:
            canonical = self._canonical(identifier)
            if canonical and canonical != place and self._files(canonical):
                message = f"{ROOT}/{canonical} is the same identifier's; remove one"
                problems.append(problem("duplicate-id", path, message, section="", found=f"{ROOT}/{canonical}"))
        proper = not any(found.kind in _IMPROPER for found in problems)
        return StoreObject(identifier, text(path), proper, None, tuple(problems))

    def unreadable(self, record: StoreObject) -> list[Problem]:
        """Return what cannot be read of the object of a record of :meth:`objects`; none if it is gone."""
        place = record.path.removeprefix(f"{ROOT}/")
        try:
            return self._unreadable_in(place, self._files(place))
        except OSError as error:
            return [problem("unreadable", octets(record.path), error.strerror or str(error))]

    def _unreadable_in(self, place: str, files: Sequence[bytes]) -> list[Problem]:
        paths = [octets(f"{ROOT}/{place}/") + name for name in files]
        return [found for path in paths for found in unreadable_file(os.path.join(self._base, path), path)]

    def _identified(self, place: str, path: bytes) -> tuple[str | None, list[Problem]]:
        """Return the identifier of a place, and what is to be said of the two."""
        try:
            return self.layout.unmap_path(place), []
        except PathError as error:
            why = error.reason
        prefix = place.replace("/", "")[:2]
        if prefix[1:] == "~" and prefix[0] not in self.namespaces:
            return None, [problem("unknown-prefix", path, f"no namespace has the prefix {prefix[0]!r}")]
        try:
            identifier = Vitro().unmap_path(place)
        except PathError:
            return None, [problem("undecodable", path, why, section="")]
        # Without namespaces it is somebody's: it was stored before its namespace was declared.
        canonical = f"{ROOT}/{self.layout.map_id(identifier)}"
        message = f"its namespace was declared later, and Vitro looks for it at {canonical}"
        return identifier, [problem("hidden", path, message, expected=canonical)]

    def _canonical(self, identifier: str) -> str | None:
        try:
            return self.layout.map_id(identifier)
        except IdentifierError:
            return None

    def _named(self, stored: bytes, path: bytes) -> list[Problem]:
        """Return what is to be said of a file's name."""
        where = path + b"/" + stored
        try:
            expected = self.layout.encode_filename(self.layout.decode_filename(stored))
        except (PathError, IdentifierError) as error:
            return [problem("bad-file-name", where, error.reason)]
        if octets(expected) == stored:
            return []
        return [problem("bad-file-name", where, f"Vitro would look for {expected!r}", expected=expected)]

    def _beside(self, ignored: Any) -> Iterator[Problem]:
        """Give what is beside file_storage_root and not Vitro's, and what interrupted runs have left."""
        workshop = self._workshop()
        for left in abandoned(workshop):
            yield problem(kind_of_leftover(left), os.path.relpath(left, self._base))
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            # What a link in its place leads to is not the store's.
            for entry in [] if os.path.islink(workshop) else scan(workshop, follow=False):
                if entry.kind != "directory" and entry.name not in (LOCK, JOURNAL, JOURNAL + b".new"):
                    yield problem("beside", os.path.relpath(os.path.join(workshop, entry.name), self._base))
        for entry in scan(self._base, follow=False):
            known = entry.name in (NAMESPACES, octets(ROOT)) or self._is_workshop(self._base, entry)
            if not known and not ignored(text(entry.name)):
                yield problem("beside", entry.name)

    def _is_workshop(self, directory: bytes, entry: Entry) -> bool:
        """Return whether an entry of a directory is where this store's changes are prepared."""
        return entry.kind == "directory" and os.path.join(directory, entry.name) == self._workshop()

    def _files(self, place: str, ignore: Sequence[str] = ()) -> list[bytes]:
        """Return the names of the files in the directory of an object; none where there is none."""
        ignored = _matcher((*self._ignore, *ignore))
        return [one.name for one in self._entries(place) if one.kind == "file" and not ignored(text(one.name))]

    def _link(self, place: str) -> str | None:
        """Return the path of the first symbolic link on the way to a place; what is behind it is not the store's."""
        link = first_link(self._tree, octets(place))
        return None if link is None else f"{ROOT}/{text(link)}"

    def _entries(self, place: str) -> list[Entry]:
        if self._link(place) is not None:
            return []
        try:
            return scan(os.path.join(self._tree, octets(place)), follow=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError:
            if is_absent(self._tree, octets(place)):
                return []
            raise

    def get(self, identifier: str | bytes) -> VitroObject:
        """Return an object.

        :raises ObjectError: of kind ``missing``: it is not there; of kind ``ambiguous``: it has several files
        :raises IdentifierError: the identifier has no place in this store
        """
        return self._stored(identifier, self.layout.map_id(identifier))

    def locate(self, record: StoreObject) -> VitroObject:
        """Return the object of a record of :meth:`objects`: also one that is not where its identifier belongs."""
        return self._stored(record.id or "", record.path.removeprefix(ROOT).lstrip("/"))

    def _stored(self, identifier: str | bytes, place: str) -> VitroObject:
        shown_id = text(identifier) if isinstance(identifier, bytes) else identifier
        directory = os.path.abspath(os.path.join(self._tree, octets(place)))
        with object_errors(self.root, identifier):
            while True:
                stored = self._only_file(identifier, place)
                found = VitroObject(self.root, shown_id, directory, stored, text(stored))
                renaming = self._renaming()
                # Of one that has gone nothing is seen, as of one that nobody may look at.
                if found.is_current() and (found.was_seen() or stored in self._files(place)):
                    break  # it was neither replaced nor renamed meanwhile
            with contextlib.suppress(PathError):
                found.name = self.layout.decode_filename(self._name_of(place, stored, renaming))
        return found

    def _only_file(self, identifier: str | bytes, place: str) -> bytes:
        """Return the name of an object's one file.

        :raises ObjectError: there is none, or there are several
        """
        files = self._files(place)
        if not files:
            reason = f"there is no object at {ROOT}/{place}"
            link = self._link(place)
            if link is not None:
                reason += f": {link} is a symbolic link, and is not followed; put what it leads to in its place"
            raise ObjectError(self.root, identifier, "missing", reason)
        if len(files) > 1:
            reason = f"it has {len(files)} files at {ROOT}/{place} ({_listed(files)}); leave the one that is meant"
            raise ObjectError(self.root, identifier, "ambiguous", reason)
        return files[0]

    # --- changing -------------------------------------------------------------------------------------------------

    def put(
        self,
        identifier: str | bytes,
        source: Source,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        algorithms: tuple[str, ...] = (),
        on_file: Callable[[bytes, Outcome], object] | None = None,
        on_event: Callable[[CopyEvent], object] | None = None,
    ) -> StoreObject:
        """Store an object: whole or not at all.

        :param source: one file: by its path, in a directory that holds nothing else, or with the name that it shall
            have; names may have any characters up to U+00FF
        :param replace: the file that is there, whatever its name, in one step
        :param algorithms: of the digests that ``on_file`` gets
        :param on_file: called with the stored name and the outcome of the file; what it raises ends this
        :param on_event: called with the events of :func:`pressmark.fixity.copying.copy_files`
        :raises ObjectError: nothing was stored; its ``kind`` says why
        :raises IdentifierError: the identifier has no place in this store
        """
        self.refuse_changes()
        place = self.layout.map_id(identifier)
        with object_errors(self.root, identifier):
            name, path = self._source(identifier, source, links)
            try:
                stored = octets(self.layout.object_path(identifier, name).removeprefix(f"{place}/"))
            except IdentifierError as error:
                reason = f"the file's name {shown(error.identifier)}: {error.reason}; give it another"
                raise ObjectError(self.root, identifier, "bad-name", reason) from None
            reason = too_long(self._tree, octets(place) + b"/" + stored) or ""
            if reason:
                raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use a shorter one")
            self._refuse(identifier, place, stored, replace)
            with Workshop(self._workshop()) as shop:
                new = shop / b"object"
                try:
                    copy_source(
                        {text(stored): path},
                        new,
                        mode=mode,
                        links=links,
                        threads=1,
                        algorithms=algorithms,
                        on_file=on_file,
                        on_event=on_event,
                    )
                except Refused as refused:
                    raise ObjectError(self.root, identifier, refused.kind, refused.reason) from refused
                if not os.path.isfile(os.path.join(new, stored)):
                    raise ObjectError(self.root, identifier, "source", "it is no file, and a Vitro object is one")
                if self._durable:
                    flush_tree(new)
                with shop.turn():
                    self._settle()
                    self._refuse(identifier, place, stored, replace)
                    self._move_in(os.path.join(new, stored), place, stored)
        path_ = octets(f"{ROOT}/{place}")
        return self._object(place, path_, [stored], None)

    def _source(self, identifier: str | bytes, source: Source, links: str) -> tuple[str, Path]:
        """Return the name and the path of the one file of a source."""
        count = 1
        if isinstance(source, Mapping):
            count = len(source)
            if count == 1:
                return next((text(name) if isinstance(name, bytes) else name, path) for name, path in source.items())
        else:
            path = os.fsencode(source)
            if not os.path.isdir(path):
                return text(os.path.basename(path)), path
            entries = scan(path, follow=False)
            count = len(entries)
            # A link that the source itself does not name is followed on request only.
            if count == 1 and (entries[0].kind == "file" or (entries[0].kind == "link" and links == "follow")):
                return text(entries[0].name), os.path.join(path, entries[0].name)
        what = f"the source has {count} names" if count != 1 else f"{text(entries[0].name)!r} in the source is no file"
        raise ObjectError(self.root, identifier, "source", f"{what}, and a Vitro object is one file; name that")

    def _refuse(self, identifier: str | bytes, place: str, stored: bytes, replace: bool) -> None:
        """Refuse what cannot be stored, before anything is written.

        :raises ObjectError: as said
        """
        at = self._tree
        for name in octets(place).split(b"/"):
            at = os.path.join(at, name)
            if is_in_the_way(at):
                shorter = text(os.path.relpath(at, self._base))
                reason = f"{shorter} is a file of another object, and a directory is needed there; rename that file"
                raise ObjectError(self.root, identifier, "collision", reason)
        link = self._link(place)
        if link is not None:
            reason = f"{link} is a symbolic link, and is not followed; put what it leads to in its place"
            raise ObjectError(self.root, identifier, "collision", reason)
        if folds_case(self._tree):
            clash = misspelled(self._tree, octets(place))
            if clash is not None:
                reason = f"{text(clash)!r} is there in the other case, and this file system has one name for both"
                raise ObjectError(self.root, identifier, "collision", f"{reason}; use one that distinguishes case")
        target = os.path.join(at, stored)
        if os.path.isdir(target) or os.path.islink(target):
            reason = f"{ROOT}/{place}/{text(stored)} is there and no file, but other objects' directory or a link"
            raise ObjectError(self.root, identifier, "collision", f"{reason}; give the file another name")
        files = self._files(place)
        if len(files) > 1:
            self._only_file(identifier, place)
        if files and not replace:
            reason = f"there is one at {ROOT}/{place}: replace it, or delete it first"
            raise ObjectError(self.root, identifier, "exists", reason)

    def _move_in(self, new: bytes, place: str, stored: bytes) -> None:
        """Give a file that was prepared its place, instead of the one that is there."""
        directory = os.path.join(self._tree, octets(place))
        files = self._files(place)
        made: list[bytes] = []
        try:
            if not files:
                made = make_parents(self._tree, octets(place))
                rename_new(new, os.path.join(directory, stored))
            elif files == [stored]:
                os.replace(new, os.path.join(directory, stored))
            else:
                # First the content, then the name: at each moment it is one whole file, and who looks knows its name.
                self._note(_Renaming(place, text(files[0]), text(stored), os.stat(new).st_ino))
                os.replace(new, os.path.join(directory, files[0]))
                self._settle()
        except BaseException:
            tidy_upward(self._tree, octets(place))
            raise
        if self._durable:
            flush_directory(directory)
            for above in made:
                flush_directory(os.path.dirname(os.path.join(self._tree, above)))

    def _note(self, renaming: _Renaming) -> None:
        """Write down what is about to be done, so that whoever comes next finishes it."""
        path = os.path.join(self._workshop(), JOURNAL)
        with Replacement(path, part=path + b".new", durable=self._durable) as file:
            file.write(json.dumps(renaming).encode())

    def _renaming(self) -> _Renaming | None:
        """Return what was to be finished, if anything was.

        :raises OSError: it is there and cannot be read
        """
        try:
            with open(os.path.join(self._workshop(), JOURNAL), "rb") as file:
                return _Renaming(*json.loads(file.read()))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None

    def _name_of(self, place: str, stored: bytes, renaming: _Renaming | None) -> bytes:
        """Return the name that a file has, or is about to get."""
        if renaming is not None and renaming.place == place and octets(renaming.old) == stored:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(os.path.join(self._tree, octets(place), stored)).st_ino == renaming.inode:
                    return octets(renaming.new)
        return stored

    def _settle(self) -> None:
        """Finish what was written down; to be called in our turn."""
        renaming = self._renaming()
        if renaming is not None:
            directory = os.path.join(self._tree, octets(renaming.place))
            old = octets(renaming.old)
            if self._name_of(renaming.place, old, renaming) != old:
                rename_new(os.path.join(directory, old), os.path.join(directory, octets(renaming.new)))
                if self._durable:
                    flush_directory(directory)
        for name in (JOURNAL, JOURNAL + b".new"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._workshop(), name))

    def delete(self, identifier: str | bytes) -> None:
        """Remove an object's file, whatever its name; then directories above it that are empty.

        :raises ObjectError: of kind ``missing`` or ``ambiguous``, or it could not be removed
        :raises IdentifierError: the identifier has no place in this store
        """
        self.refuse_changes()
        place = self.layout.map_id(identifier)
        directory = os.path.join(self._tree, octets(place))
        with object_errors(self.root, identifier):
            self._only_file(identifier, place)
            with Workshop(self._workshop()) as shop, shop.turn():
                self._settle()
                os.rename(os.path.join(directory, self._only_file(identifier, place)), shop / b"object")
                if self._durable:
                    flush_directory(directory)
                tidy_upward(self._tree, octets(place))

    # --- checking and repairing -----------------------------------------------------------------------------------

    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Walk the whole store and return what is wrong.

        Files are not read, only that they can be read is checked. A Vitro store holds no digests: with ``digests``
        nothing more is done.
        """
        report = Report(counts={"objects": 0, "proper": 0})

        def found(problems: Iterable[Problem]) -> None:
            for each in problems:
                report.problems.append(each)
                if on_problem is not None:
                    on_problem(each)

        found(self.namespaces_problems)
        for record in self._objects(ignore, lambda each: found([each]), readable=True):
            report.counts["objects"] += 1
            report.counts["proper"] += record.proper
            found(record.problems)
            if on_event is not None and report.counts["objects"] % PROGRESS_EVERY == 0:
                on_event(Progress(report.counts["objects"], len(report.problems)))
        if on_event is not None:
            on_event(Progress(report.counts["objects"], len(report.problems)))
        return report

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Mend what has one answer, and report what remains.

        =========== ==========================================================================================
        ``finish``  an interrupted change is finished
        ``move``    an object that a namespace hides, to where Vitro looks for it, if nothing is there
        ``prune``   empty directories are removed
        ``remove``  what a killed run left in the workshop
        ``rename``  a file, to the name that Vitro looks for, if that is free
        =========== ==========================================================================================

        Identifiers, decoded file names and every byte stay. Done twice, it changes nothing.
        """
        self.refuse_changes()
        run = _Repair(self, dry_run, on_event)
        with store_errors(self._base):
            return run.run(ignore)


class _Repair:
    """One repair of a store."""

    def __init__(self, store: VitroStore, dry_run: bool, on_event: OnEvent | None) -> None:
        self._store = store
        self._dry_run = dry_run
        self._tell = on_event or (lambda _event: None)
        self._shop: Workshop | None = None
        self._mended = 0
        # What a dry run would have done so far: paths that would be gone, that would be there, and names by the old.
        self._gone: set[bytes] = set()
        self._come: set[bytes] = set()
        self._renamed: dict[bytes, bytes] = {}

    def run(self, ignore: Sequence[str]) -> Report:
        """Do it, and check what is there then."""
        store = self._store
        done: set[Problem] = set()
        with contextlib.ExitStack() as stack:
            renaming = store._renaming()
            if renaming is not None:
                self._tell(Changed("finish", octets(f"{ROOT}/{renaming.place}")))
            for left in own_leftovers(store._workshop()):
                self._tell(Changed("remove", os.path.relpath(left, store._base)))
            if not self._dry_run and os.path.isdir(store._workshop()):
                # Entering it removes what is left there.
                self._enter(stack)
                with self._turn(stack):
                    store._settle()
            # All of it before anything is moved, so that nothing is met again where it was moved to.
            items = list(self._to_mend(ignore))
            stuck: list[Problem] = []
            for item, problems in items:
                for found in problems:
                    try:
                        if self._mend(item, found, stack, ignore):
                            done.add(found)
                    except OSError as error:
                        stuck.append(unrepaired(found.path, error))
        report = store.check(ignore=ignore)
        report.add(stuck)
        if self._dry_run:
            gone = {"leftover", "unfinished"}
            report.problems = [one for one in report.problems if one not in done and one.kind not in gone]
        report.counts["repaired"] = self._mended
        return report

    def _to_mend(self, ignore: Sequence[str]) -> Iterator[tuple[StoreObject | None, Sequence[Problem]]]:
        for item in self._store._walk(ignore):
            if isinstance(item, Problem):
                if item.kind == "empty":
                    yield None, [item]
            elif {found.kind for found in item.problems} & {"bad-file-name", "hidden"}:
                # A move takes the name along: first the name.
                yield item, sorted(item.problems, key=lambda found: found.kind)

    def _enter(self, stack: contextlib.ExitStack) -> Workshop:
        if self._shop is None:
            with store_errors(self._store._base):  # no repair at all without one
                self._shop = stack.enter_context(Workshop(self._store._workshop()))
        return self._shop

    def _turn(self, stack: contextlib.ExitStack) -> Any:
        return contextlib.nullcontext() if self._dry_run else self._enter(stack).turn()

    def _mend(
        self, item: StoreObject | None, found: Problem, stack: contextlib.ExitStack, ignore: Sequence[str]
    ) -> bool:
        """Mend one problem, or on a dry run find out whether it could be."""
        with self._turn(stack):
            if item is None:
                return self._prune(found.path)
            place = item.path.removeprefix(f"{ROOT}/")
            files = self._store._files(place, ignore)
            if len(files) != 1 or found.expected is None:
                return False
            if found.kind == "bad-file-name":
                if octets(f"{item.path}/") + files[0] != found.path:
                    return False  # it has been replaced since it was looked at
                new, action = os.path.join(octets(place), octets(found.expected)), "rename"
            elif found.kind == "hidden" and item.id is not None:
                target = found.expected.removeprefix(f"{ROOT}/")
                if self._store._files(target):
                    return False
                new, action = os.path.join(octets(target), files[0]), "move"
            else:
                return False
            return self._rename(action, os.path.join(octets(place), files[0]), new)

    def _prune(self, path: bytes) -> bool:
        place = path.removeprefix(octets(ROOT) + b"/")
        removed = self._would_prune(place) if self._dry_run else prune_upward(self._store._tree, place)
        for one in removed:
            self._tell(Changed("prune", octets(ROOT) + b"/" + one))
        return True

    def _would_prune(self, place: bytes) -> list[bytes]:
        """Return what pruning would remove after all that would have been done already."""
        removed = []
        while place and place not in self._come:
            if not would_be_empty(os.path.join(self._store._tree, place), place, self._gone):
                break
            self._gone.add(place)
            removed.append(place)
            place = os.path.dirname(place)
        return removed

    def _would_rename(self, action: str, old: bytes, new: bytes) -> tuple[bytes, bytes]:
        """Note what renaming would do, and return the names that it would have."""
        if action == "rename":
            self._renamed[old] = new
            return old, new
        self._gone.add(old)
        name = os.path.basename(self._renamed.get(old, old))
        above = os.path.dirname(new)
        new = os.path.join(above, name)
        while above:
            self._come.add(above)
            above = os.path.dirname(above)
        self._would_prune(os.path.dirname(old))
        return os.path.join(os.path.dirname(old), name), new

    def _rename(self, action: str, old: bytes, new: bytes) -> bool:
        tree = self._store._tree
        target = os.path.join(tree, new)
        if len(os.path.basename(new)) > 255 or exists(target):
            return False
        if self._store._link(text(os.path.dirname(new))) is not None:
            return False
        if self._dry_run:
            old, new = self._would_rename(action, old, new)
        else:
            try:
                made = make_parents(tree, os.path.dirname(new))
                rename_new(os.path.join(tree, old), target)
            except OSError as error:
                tidy_upward(tree, os.path.dirname(new))
                if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
                    return False
                raise
            if self._store._durable:
                for directory in {os.path.dirname(target), *(os.path.dirname(os.path.join(tree, m)) for m in made)}:
                    flush_directory(directory)
        self._mended += 1
        self._tell(Changed(action, octets(ROOT) + b"/" + old, (octets(ROOT) + b"/" + new,)))
        if not self._dry_run:
            tidy_upward(tree, os.path.dirname(old))
        return True


def _write(shop: Workshop, base: bytes, namespaces: Mapping[str, str], encoding: str) -> None:
    """Write the namespaces file at once."""
    new = shop / NAMESPACES
    with open(new, "wb") as file:
        try:
            file.write(render(namespaces).encode(encoding))
        except UnicodeEncodeError:
            raise StoreError(os.path.join(base, NAMESPACES), f"a namespace cannot be written in {encoding}") from None
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, os.path.join(base, NAMESPACES))
    flush_directory(base)


def _matcher(globs: Sequence[str]) -> Any:
    """Return what tells whether a name matches one of ``globs``."""
    return re.compile("|".join(map(translate, globs))).match if globs else lambda _name: None


def _listed(names: Sequence[bytes]) -> str:
    shown_names = ", ".join(repr(text(name)) for name in names[:SHOWN_NAMES])
    return shown_names + (", …" if len(names) > SHOWN_NAMES else "")


def _base_of(path: Path) -> bytes:
    """Return the directory that holds file_storage_root, from that or from file_storage_root itself."""
    given = encode_path(path)
    with store_errors(given):
        if not os.path.isdir(given):
            what = "it is not a directory" if exists(given) else "it is not there"
            raise StoreError(given, f"{what}; name the directory that holds {ROOT}")
        tree = os.path.join(given, octets(ROOT))
        if not exists(tree) and os.path.basename(os.path.abspath(given)) == octets(ROOT):
            given = os.path.dirname(os.path.abspath(given))
            tree = os.path.join(given, octets(ROOT))
        has_names = exists(os.path.join(given, NAMESPACES))
        if not exists(tree):
            if has_names:
                raise StoreError(given, f"{ROOT} is missing beside {text(NAMESPACES)}; restore it")
            raise StoreError(given, f"there is no {ROOT} in it: it is no Vitro store")
        if not os.path.isdir(tree):
            raise StoreError(given, f"{ROOT} in it is no directory; restore it")
        if not has_names:
            names = text(NAMESPACES)
            raise StoreError(given, f"{names} is missing; restore it, or make it empty if no namespace was declared")
        scan(tree)  # it opens
    return given
