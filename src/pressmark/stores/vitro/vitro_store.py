"""Vitro stores: objects put, replaced and deleted, namespaces declared."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from pressmark.errors import IdentifierError, ObjectError, StoreError, quoted
from pressmark.fixity import Outcome
from pressmark.fixity.copying import Event as CopyEvent
from pressmark.fs.atomic import Replacement, replace_file
from pressmark.fs.durable import exists, flush_directory, flush_tree
from pressmark.fs.entries import scan
from pressmark.fs.moves import make_parents, prune_empty_parents, rename_new
from pressmark.fs.names import decode_fs, encode_fs, existing_spelling, is_blocked, is_case_insensitive, too_long
from pressmark.fs.run_directories import RunDirectory
from pressmark.layouts import Layout, Vitro
from pressmark.reports import Report
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.object_sources import copy_source
from pressmark.stores.store import CopyMode, OnEvent, Path, Source, StoreObject, encode_path
from pressmark.stores.vitro.namespaces import NAMESPACES, read_namespaces, render, with_declared
from pressmark.stores.vitro.vitro_reader import JOURNAL, ROOT, WORKSHOP, Renaming, VitroReader

__all__ = ["VitroStore"]


class VitroStore(VitroReader):
    """A Vitro store that is there, and can be changed; :meth:`create` makes one; see :class:`VitroReader`."""

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
                raise StoreError(
                    base, f"it holds {decode_fs(strangers[0])!r}: name a directory that is empty or not there"
                )
            if exists(os.path.join(base, NAMESPACES)) and read_namespaces(base).namespaces != wanted:
                raise StoreError(base, f"it holds other namespaces, of a store whose {ROOT} is missing; restore that")
            with RunDirectory(os.path.join(base, WORKSHOP)) as shop, shop.lock():
                _write(shop, base, wanted, "utf-8")
                # Last: this is what makes a store of it.
                os.mkdir(os.path.join(base, encode_fs(ROOT)))
            flush_directory(base)
        return cls(path, **options)

    def declare(self, *namespaces: str) -> None:
        """Add namespaces that the store does not have; each gets the first letter that is free.

        Objects that are there already under a new namespace are hidden then: :meth:`check` lists them, :meth:`repair`
        moves them.

        :raises StoreError: one would not be read back, or there is no letter left; nothing was written
        """
        with store_errors(self._base), RunDirectory(self._workshop()) as shop, shop.lock():
            self._read()  # another run may have declared some
            self.refuse_changes()
            wanted = with_declared(self._base, self.namespaces, namespaces)
            if wanted != self.namespaces:
                _write(shop, self._base, wanted, self._encoding)
            self._read()

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
                stored = encode_fs(self.layout.object_path(identifier, name).removeprefix(f"{place}/"))
            except IdentifierError as error:
                reason = f"the file's name {quoted(error.identifier)}: {error.reason}; give it another"
                raise ObjectError(self.root, identifier, "bad-name", reason) from None
            reason = too_long(self._tree, encode_fs(place) + b"/" + stored) or ""
            if reason:
                raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use a shorter one")
            self._refuse(identifier, place, stored, replace)
            with RunDirectory(self._workshop()) as shop:
                new = shop / b"object"
                copy_source(
                    {decode_fs(stored): path},
                    new,
                    mode=mode,
                    links=links,
                    threads=1,
                    algorithms=algorithms,
                    on_file=on_file,
                    on_event=on_event,
                )
                if not os.path.isfile(os.path.join(new, stored)):
                    raise ObjectError(self.root, identifier, "source", "it is no file, and a Vitro object is one")
                if self._durable:
                    flush_tree(new)
                with shop.lock():
                    self._settle()
                    self._refuse(identifier, place, stored, replace)
                    self._move_in(os.path.join(new, stored), place, stored)
        path_ = encode_fs(f"{ROOT}/{place}")
        return self._object(place, path_, [stored], None)

    def _source(self, identifier: str | bytes, source: Source, links: str) -> tuple[str, Path]:
        """Return the name and the path of the one file of a source."""
        count = 1
        if isinstance(source, Mapping):
            count = len(source)
            if count == 1:
                return next(
                    (decode_fs(name) if isinstance(name, bytes) else name, path) for name, path in source.items()
                )
        else:
            path = os.fsencode(source)
            if not os.path.isdir(path):
                return decode_fs(os.path.basename(path)), path
            entries = scan(path, follow=False)
            count = len(entries)
            # A link that the source itself does not name is followed on request only.
            if count == 1 and (entries[0].kind == "file" or (entries[0].kind == "link" and links == "follow")):
                return decode_fs(entries[0].name), os.path.join(path, entries[0].name)
        what = (
            f"the source has {count} names"
            if count != 1
            else f"{decode_fs(entries[0].name)!r} in the source is no file"
        )
        raise ObjectError(self.root, identifier, "source", f"{what}, and a Vitro object is one file; name that")

    def _refuse(self, identifier: str | bytes, place: str, stored: bytes, replace: bool) -> None:
        """Refuse what cannot be stored, before anything is written.

        :raises ObjectError: as said
        """
        at = self._tree
        for name in encode_fs(place).split(b"/"):
            at = os.path.join(at, name)
            if is_blocked(at):
                shorter = decode_fs(os.path.relpath(at, self._base))
                reason = f"{shorter} is a file of another object, and a directory is needed there; rename that file"
                raise ObjectError(self.root, identifier, "collision", reason)
        link = self._link(place)
        if link is not None:
            reason = f"{link} is a symbolic link, and is not followed; put what it leads to in its place"
            raise ObjectError(self.root, identifier, "collision", reason)
        if is_case_insensitive(self._tree):
            clash = existing_spelling(self._tree, encode_fs(place))
            if clash is not None:
                reason = f"{decode_fs(clash)!r} is there in the other case, and this file system has one name for both"
                raise ObjectError(self.root, identifier, "collision", f"{reason}; use one that distinguishes case")
        target = os.path.join(at, stored)
        if os.path.isdir(target) or os.path.islink(target):
            reason = f"{ROOT}/{place}/{decode_fs(stored)} is there and no file, but other objects' directory or a link"
            raise ObjectError(self.root, identifier, "collision", f"{reason}; give the file another name")
        files = self._files(place)
        if len(files) > 1:
            self._only_file(identifier, place)
        if files and not replace:
            reason = f"there is one at {ROOT}/{place}: replace it, or delete it first"
            raise ObjectError(self.root, identifier, "exists", reason)

    def _move_in(self, new: bytes, place: str, stored: bytes) -> None:
        """Give a file that was prepared its place, instead of the one that is there."""
        directory = os.path.join(self._tree, encode_fs(place))
        files = self._files(place)
        made: list[bytes] = []
        try:
            if not files:
                made = make_parents(self._tree, encode_fs(place))
                rename_new(new, os.path.join(directory, stored))
            elif files == [stored]:
                os.replace(new, os.path.join(directory, stored))
            else:
                # First the content, then the name: at each moment it is one whole file, and who looks knows its name.
                self._note(Renaming(place, decode_fs(files[0]), decode_fs(stored), os.stat(new).st_ino))
                os.replace(new, os.path.join(directory, files[0]))
                self._settle()
        except BaseException:
            prune_empty_parents(self._tree, encode_fs(place), strict=False)
            raise
        if self._durable:
            flush_directory(directory)
            for above in made:
                flush_directory(os.path.dirname(os.path.join(self._tree, above)))

    def _note(self, renaming: Renaming) -> None:
        """Write down what is about to be done, so that whoever comes next finishes it."""
        path = os.path.join(self._workshop(), JOURNAL)
        with Replacement(path, part=path + b".new", durable=self._durable) as file:
            file.write(json.dumps(renaming).encode())

    def delete(self, identifier: str | bytes) -> None:
        """Remove an object's file, whatever its name; then directories above it that are empty.

        :raises ObjectError: of kind ``missing`` or ``ambiguous``, or it could not be removed
        :raises IdentifierError: the identifier has no place in this store
        """
        self.refuse_changes()
        place = self.layout.map_id(identifier)
        directory = os.path.join(self._tree, encode_fs(place))
        with object_errors(self.root, identifier):
            self._only_file(identifier, place)
            with RunDirectory(self._workshop()) as shop, shop.lock():
                self._settle()
                os.rename(os.path.join(directory, self._only_file(identifier, place)), shop / b"object")
                if self._durable:
                    flush_directory(directory)
                prune_empty_parents(self._tree, encode_fs(place), strict=False)

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
        from pressmark.stores.vitro.repair import Repair

        self.refuse_changes()
        run = Repair(self, dry_run, on_event)
        with store_errors(self._base):
            return run.run(ignore)


def _write(shop: RunDirectory, base: bytes, namespaces: Mapping[str, str], encoding: str) -> None:
    """Write the namespaces file at once."""
    path = os.path.join(base, NAMESPACES)
    try:
        data = render(namespaces).encode(encoding)
    except UnicodeEncodeError:
        raise StoreError(path, f"a namespace cannot be written in {encoding}") from None
    replace_file(path, data, part=shop / NAMESPACES)
