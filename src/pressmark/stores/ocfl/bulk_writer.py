"""Many objects into an OCFL storage root: each written aside, then all moved in together.

What one object costs besides its files is paid once for all: a private directory, a flush, and a turn at moving. Every
object still appears by one rename, after all of its bytes are on the disk, and never in the place of another, inside of
one, or around one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import NamedTuple

from pressmark import _kernels
from pressmark.errors import ObjectError, StoreError
from pressmark.fixity.hasher import OpenOptions
from pressmark.fs.durable import can_flush_filesystem, flush_directory, flush_filesystem, flush_tree
from pressmark.fs.moves import prune_empty_parents, rename_new
from pressmark.fs.names import NAME_MAX, PATH_MAX, encode_fs
from pressmark.fs.removal import remove_tree
from pressmark.fs.run_directories import RunDirectory
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.ocfl.inventory import CONTENT_DIRECTORY, first_version
from pressmark.stores.ocfl.object_writer import (
    Files,
    Manners,
    Provenance,
    Written,
    write_inventories,
    write_object,
)
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.store import CopyMode

__all__ = ["BulkWriter", "Staged", "WrittenSmall", "write_small_object"]

_CONTENT = b"/v1/" + encode_fs(CONTENT_DIRECTORY)
_SHA512 = "sha512"
_SMALL = OpenOptions(follow=False)
# So many are moved in one turn: others wait for a few milliseconds.
TURN = 256


class WrittenSmall(NamedTuple):
    """What was written of a small object.

    :ivar digests: SHA-512 of each file, in hex, by its logical path
    :ivar size: of all files together
    :ivar changed: when the newest of them was changed last before it was read, content or status, in nanoseconds
    """

    digests: dict[str, str]
    size: int
    changed: int


class Staged(NamedTuple):
    """An object that is about to appear.

    :ivar identifier: its identifier
    :ivar place: where, relative to the root
    :ivar path: where it is until then, absolute
    :ivar written: what was written; :data:`None` of an object that was there as it is
    :ivar mode: how its files came: ``copy`` or ``reflink``; :data:`None` where it has none, or was there
    """

    identifier: str
    place: bytes
    path: bytes
    written: Written | WrittenSmall | None
    mode: str | None


class BulkWriter:
    """Objects on their way into a storage root; a context manager. What is not committed when it is left is removed.

    :param root: the storage root
    :param flush_places: have the names of what was moved in on the disk as well; otherwise that is for who goes on
    """

    def __init__(self, root: StorageRoot, flush_places: bool = True) -> None:
        self._root = root
        self._wanted = root.flush and flush_places
        self._base = os.fsencode(root.root)
        self._length = len(os.path.abspath(self._base)) + 1
        self._provenance = Provenance(None, root.message, root.user)
        self._stack = ExitStack()
        self._waiting: list[Staged] = []

    def __enter__(self) -> BulkWriter:
        with store_errors(self._base):
            self._shop: RunDirectory = self._stack.enter_context(self._root.workshop())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def __len__(self) -> int:
        """How many objects wait to be committed."""
        return len(self._waiting)

    def stage(
        self,
        identifier: str,
        files: Files,
        *,
        place: bytes | None = None,
        mode: CopyMode = "auto",
        links: str = "refuse",
        fixity: Mapping[str, Mapping[str, str]] | None = None,
        also: tuple[str, ...] = (),
        check: Callable[[bytes], object] | None = None,
    ) -> Staged:
        """Write version 1 of an object aside.

        :param files: names within the object, and the files that are copied there
        :param place: what :meth:`StorageRoot.places` has said, if that was asked
        :param mode: as for :meth:`OcflRoot.put`
        :param fixity: as for :meth:`OcflRoot.put`
        :param also: more algorithms whose digests are wanted, and not noted in the inventory
        :param check: called with the path of the object when it is written; what it raises ends this
        :raises ObjectError: it cannot be stored; nothing of it is left
        :raises IdentifierError: the identifier has no place in this root
        :raises StoreError: the layout is not known
        """
        root = self._root
        if mode == "hardlink":
            raise StoreError(root.root, "OCFL forbids hard links (E090); take copy, reflink or auto")
        if place is None:
            place = root.place(identifier)
        new = self._shop / root.new_name()
        manners = Manners(mode, links, None, root.copied)
        try:
            with object_errors(root.root, identifier):
                written = write_object(
                    new,
                    identifier,
                    files,
                    version=root.version,
                    algorithm=root.algorithm,
                    provenance=self._provenance,
                    fixity=fixity or {},
                    content_paths=root.content_paths,
                    manners=manners,
                    also=also,
                )
                root.refuse_too_long(identifier, place, new)
                if check is not None:
                    check(new)
        except BaseException:
            self._discard(new)
            raise
        staged = Staged(identifier, place, new, written, manners.used)
        self._waiting.append(staged)
        return staged

    def stage_small(
        self, identifier: str, above: bytes, name: bytes, place: bytes, mode: CopyMode = "auto"
    ) -> Staged | None:
        """Write version 1 of an object of a few small files aside, quickly.

        :param above: a directory with nothing in it but that of the object's files
        :param name: of that
        :param place: as for :meth:`stage`
        :return: :data:`None` where it is for :meth:`stage`, which finds out why; nothing of it is left then
        """
        root = self._root
        copied = root.copied
        # Where blocks may be shared, it takes the first file of a device to find out whether they can.
        device = -1 if mode == "copy" else next(iter(copied)) if mode == "auto" and len(copied) == 1 else None
        is_long = self._length + len(place) + len("/v1/content/") + NAME_MAX >= PATH_MAX
        if is_long or device is None or root.algorithm != "sha512" or root.content_paths is not None:
            return None
        new = self._shop / root.new_name()
        written = None
        try:
            written = write_small_object(
                new,
                identifier,
                above,
                name,
                self._base + b"/" + place,
                version=root.version,
                provenance=self._provenance,
                device=device,
            )
        finally:
            if written is None:
                self._discard(new)
        if written is None:
            return None
        staged = Staged(identifier, place, new, written, "copy")
        self._waiting.append(staged)
        return staged

    def adopt(self, identifier: str, directory: bytes, place: bytes | None = None) -> Staged:
        """Have an object that is complete, on the same file system, moved in from ``directory`` as it is.

        :raises ObjectError: it has no place
        :raises IdentifierError: the identifier has no place in this root
        """
        staged = Staged(identifier, place or self._root.place(identifier), directory, None, None)
        self._waiting.append(staged)
        return staged

    def new_path(self) -> bytes:
        """Return a path for an object that is to be copied whole, and then adopted."""
        return self._shop / self._root.new_name()

    def commit(self, on_moved: Callable[[Staged], object] | None = None) -> Iterator[tuple[Staged, ObjectError | None]]:
        """Move all objects that wait into their places, and give each with what stood in its way.

        Those that are refused are removed, if they were made here.

        :param on_moved: called with each object as soon as it is in its place, in our turn
        :raises StoreError: what was moved in could not be had on the disk
        """
        waiting, self._waiting = self._waiting, []
        done: list[tuple[Staged, ObjectError | None]] = []
        try:
            self._flush(waiting)
        except OSError as error:
            done = [(staged, self._refusal(staged, error)) for staged in waiting]
        while len(done) < len(waiting):
            turn = waiting[len(done) : len(done) + TURN]
            try:
                with self._shop.lock():
                    known: set[bytes] = set()
                    results = [(staged, self._move_in(staged, known, on_moved)) for staged in turn]
            except OSError as error:  # there is no turn to be had
                results = [(staged, self._refusal(staged, error)) for staged in turn]
            done += results
        self._flush_places([staged.place for staged, error in done if error is None])
        for staged, refused in done:
            if refused is not None and self._is_ours(staged):
                self._discard(staged.path)
            yield staged, refused

    def _is_ours(self, staged: Staged) -> bool:
        """Return whether an object was made in the private directory."""
        return staged.path.startswith(self._shop.path + b"/")

    def _flush(self, waiting: list[Staged]) -> None:
        """Have all that was written on the disk, before any of it appears."""
        # What was there as it is was on the disk before.
        if not self._root.flush or all(staged.written is None and not self._is_ours(staged) for staged in waiting):
            return
        if can_flush_filesystem():
            flush_filesystem(self._shop.path)
        else:
            for staged in waiting:
                flush_tree(staged.path)

    def _flush_places(self, places: list[bytes]) -> None:
        """Have the names of objects that were moved in on the disk."""
        if not self._wanted or not places:
            return
        with store_errors(self._base):
            if can_flush_filesystem():
                flush_filesystem(self._base)
            else:
                for directory in sorted({above for place in places for above in _above(place)}):
                    flush_directory(os.path.join(self._base, directory))

    def _refusal(self, staged: Staged, error: OSError) -> ObjectError:
        try:
            with object_errors(self._root.root, staged.identifier):
                raise error
        except ObjectError as refused:
            return refused

    @staticmethod
    def _discard(path: bytes) -> None:
        # What cannot be removed now goes when the private directory does.
        with suppress(OSError):
            if os.path.lexists(path):
                remove_tree(path)

    def _move_in(
        self, staged: Staged, known: set[bytes], on_moved: Callable[[Staged], object] | None
    ) -> ObjectError | None:
        """Move one object in, in our turn, and return what stands in its way.

        :param known: directories that were seen in this turn not to be objects
        :param on_moved: called when it is in its place
        """
        try:
            with object_errors(self._root.root, staged.identifier):
                try:
                    self._by_one_rename(staged, known)
                except FileNotFoundError:
                    if not os.path.lexists(staged.path):
                        what = "it was moved or removed by another run meanwhile"
                        raise ObjectError(self._root.root, staged.identifier, "changed", what) from None
                    raise
                except (FileExistsError, NotADirectoryError):
                    # Something is there: look at it closely, and say what, or get round it.
                    self._root.check_place_free(staged.identifier, staged.place)
                    self._root.move_in(staged.identifier, staged.path, staged.place)
        except ObjectError as error:
            prune_empty_parents(self._base, os.path.dirname(staged.place), strict=False)
            return error
        if on_moved is not None:
            on_moved(staged)
        return None

    def _by_one_rename(self, staged: Staged, known: set[bytes]) -> None:
        if self._root.is_elsewhere(staged.place):
            raise FileExistsError
        if _kernels.active.move_object(staged.path, self._base, staged.place, self._root.signs):
            return
        *above, name = staged.place.split(b"/")
        path = self._base
        for part in above:
            path += b"/" + part
            if path in known:
                continue
            try:
                os.mkdir(path)
            except FileExistsError:
                if not stat.S_ISDIR(os.lstat(path).st_mode) or self._root.declares_object(path):
                    raise
            known.add(path)
        rename_new(staged.path, path + b"/" + name)


def _above(place: bytes) -> Iterator[bytes]:
    while place:
        place = os.path.dirname(place)
        yield place


# --- small objects ----------------------------------------------------------------------------------------------------


def write_small_object(
    top: bytes,
    identifier: str,
    above: bytes,
    name: bytes,
    place: bytes,
    *,
    version: str,
    provenance: Provenance,
    device: int,
) -> WrittenSmall | None:
    """Write version 1 of an object of a few small files, with SHA-512, which one call of a kernel copies.

    What :func:`write_object` does, where that is nothing out of the ordinary.

    :param above: a directory with nothing in it but that of the object's files
    :param name: of that
    :param place: where it is to be in the end: nothing is written where something is
    :param device: that the source's files are on; any where it is negative
    :return: :data:`None` where it is for :func:`write_object`, which says what is wrong with it if anything is; what
        was made of ``top`` is for the caller to remove
    """
    if os.path.lexists(place):
        return None
    folders = (top, top + b"/v1", top + _CONTENT)
    found = _kernels.active.copy_small_tree(above, name, folders, device, _SMALL.flags)
    if found is None:
        return None
    changed, files = found
    digests = {}
    total = 0
    for file, digest, size in files:
        digests[file.decode()] = digest
        total += size
    content = _CONTENT[1:].decode()
    manifest = {digest: [f"{content}/{file}"] for file, digest in digests.items()}
    state = {digest: [file] for file, digest in digests.items()}
    try:
        document = first_version(identifier, version, _SHA512, manifest, provenance.block(state))
        write_inventories(top, document, version)
    except (OSError, UnicodeEncodeError):
        return None
    return WrittenSmall(digests, total, changed)
