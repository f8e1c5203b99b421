"""Many objects into an OCFL storage root: staged one by one, then published together.

The fixed costs of an object (a private directory, a flush, a lock) are paid once for many. Each object still appears by
one rename, after all of its bytes are on disk, and never over, inside or around another object.
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
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.ocfl.writing.object_writer import (
    CopyOptions,
    Files,
    Provenance,
    Written,
    write_inventories,
    write_object,
)
from pressmark.stores.store import CopyMode

__all__ = ["BulkWriter", "Staged", "WrittenSmall", "write_small_object"]

_CONTENT = b"/v1/" + encode_fs(CONTENT_DIRECTORY)
_SHA512 = "sha512"
_SMALL = OpenOptions(follow=False)
# Objects moved while the lock is held; other runs wait for a few milliseconds.
TURN = 256


class WrittenSmall(NamedTuple):
    """A written small object.

    :ivar digests: SHA-512 of each file, in hex, by its logical path
    :ivar size: of all files together
    :ivar changed: the latest modification or status change of a source file before it was read, in nanoseconds
    """

    digests: dict[str, str]
    size: int
    changed: int


class Staged(NamedTuple):
    """An object ready to be published.

    :ivar identifier: its identifier
    :ivar place: its future path, relative to the root
    :ivar path: its current path, absolute
    :ivar written: the written object; :data:`None` for an adopted one
    :ivar mode: how its files were transferred: ``copy`` or ``reflink``; :data:`None` without files, or if adopted
    """

    identifier: str
    place: bytes
    path: bytes
    written: Written | WrittenSmall | None
    mode: str | None


class BulkWriter:
    """Write many objects to a storage root; a context manager. Objects that are not committed are removed on exit.

    :param root: the storage root
    :param durable_places: flush the names of published objects; otherwise the caller must
    """

    def __init__(self, root: StorageRoot, durable_places: bool = True) -> None:
        self._root = root
        self._wanted = root.durable and durable_places
        self._base = os.fsencode(root.root)
        self._length = len(os.path.abspath(self._base)) + 1
        self._provenance = Provenance(None, root.message, root.user)
        self._stack = ExitStack()
        self._waiting: list[Staged] = []

    def __enter__(self) -> BulkWriter:
        with store_errors(self._base):
            self._staging: RunDirectory = self._stack.enter_context(self._root.staging())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def __len__(self) -> int:
        """Return the number of objects that wait to be committed."""
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
        """Write version 1 of an object to the staging directory.

        :param files: names in the object, and the files to copy there
        :param place: as returned by :meth:`StorageRoot.places`, if known
        :param mode: as for :meth:`OcflRoot.put`
        :param fixity: as for :meth:`OcflRoot.put`
        :param also: more algorithms whose digests are returned, but not stored in the inventory
        :param check: called with the path of the written object; an exception discards it
        :raises ObjectError: the object cannot be stored; nothing of it is left
        :raises IdentifierError: the identifier has no path in this root
        :raises StoreError: the layout is unknown
        """
        root = self._root
        if mode == "hardlink":
            raise StoreError(root.root, "OCFL forbids hard links (E090); use copy, reflink or auto")
        if place is None:
            place = root.place(identifier)
        new = self._staging / root.new_name()
        copy_options = CopyOptions(mode, links, None, root.copied)
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
                    copy_options=copy_options,
                    also=also,
                )
                root.refuse_too_long(identifier, place, new)
                if check is not None:
                    check(new)
        except BaseException:
            self._discard(new)
            raise
        staged = Staged(identifier, place, new, written, copy_options.used)
        self._waiting.append(staged)
        return staged

    def stage_small(
        self, identifier: str, above: bytes, name: bytes, place: bytes, mode: CopyMode = "auto"
    ) -> Staged | None:
        """Write version 1 of an object of a few small files to the staging directory, quickly.

        :param above: a directory that contains nothing but the object's directory
        :param name: the name of the object's directory
        :param place: as for :meth:`stage`
        :return: :data:`None` if the object needs :meth:`stage`, which reports why; nothing of it is left
        """
        root = self._root
        copied = root.copied
        # Only copying a first file shows whether a device can share blocks.
        device = -1 if mode == "copy" else next(iter(copied)) if mode == "auto" and len(copied) == 1 else None
        is_long = self._length + len(place) + len("/v1/content/") + NAME_MAX >= PATH_MAX
        if is_long or device is None or root.algorithm != "sha512" or root.content_paths is not None:
            return None
        new = self._staging / root.new_name()
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
        """Publish a complete object from ``directory``, on the same file system, without copying it.

        :raises ObjectError: the object has no path
        :raises IdentifierError: the identifier has no path in this root
        """
        staged = Staged(identifier, place or self._root.place(identifier), directory, None, None)
        self._waiting.append(staged)
        return staged

    def new_path(self) -> bytes:
        """Return a path for an object that the caller copies whole, and then adopts."""
        return self._staging / self._root.new_name()

    def finish_version(self, place: bytes) -> bool:
        """Finish a version of the object at ``place`` whose publishing was interrupted; return whether there was one.

        :raises SourceError: of kind ``improper``: the content of the version does not match its inventory
        :raises OSError: the version cannot be read, or the object cannot be written
        """
        from pressmark.stores.ocfl.writing.version_writer import finish_version  # only for existing objects

        return finish_version(self._root, self._staging, place)

    def adopt_version(self, directory: bytes, place: bytes) -> None:
        """Publish a complete next version of the object at ``place``, unless another run does.

        :param directory: in a directory of :meth:`new_path`, with the name of the version
        :raises SourceError: as for :meth:`finish_version`
        :raises OSError: as for :meth:`finish_version`
        """
        if self._root.durable:
            flush_tree(directory)
        with suppress(FileExistsError), self._staging.lock():
            self._root.storage.add(directory, place + b"/" + os.path.basename(directory))
        self.finish_version(place)

    def commit(self, on_moved: Callable[[Staged], object] | None = None) -> Iterator[tuple[Staged, ObjectError | None]]:
        """Publish all waiting objects, and yield each with its error, if any.

        Refused objects are removed if they were staged here.

        :param on_moved: called with each object as soon as it is in its place, while the lock is held
        :raises StoreError: published names could not be flushed
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
                with self._staging.lock():
                    known: set[bytes] = set()
                    results = [(staged, self._move_in(staged, known, on_moved)) for staged in turn]
            except OSError as error:  # the lock is not available
                results = [(staged, self._refusal(staged, error)) for staged in turn]
            done += results
        self._flush_places([staged.place for staged, error in done if error is None])
        for staged, refused in done:
            if refused is not None and self._is_ours(staged):
                self._discard(staged.path)
            yield staged, refused

    def _is_ours(self, staged: Staged) -> bool:
        """Return whether an object was written to the private directory."""
        return staged.path.startswith(self._staging.path + b"/")

    def _flush(self, waiting: list[Staged]) -> None:
        """Flush everything that was written, before any of it appears."""
        # Adopted objects are on disk already.
        if not self._root.durable or all(staged.written is None and not self._is_ours(staged) for staged in waiting):
            return
        if can_flush_filesystem():
            flush_filesystem(self._staging.path)
        else:
            for staged in waiting:
                flush_tree(staged.path)

    def _flush_places(self, places: list[bytes]) -> None:
        """Flush the names of published objects."""
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
        # The rest is removed with the private directory.
        with suppress(OSError):
            if os.path.lexists(path):
                remove_tree(path)

    def _move_in(
        self, staged: Staged, known: set[bytes], on_moved: Callable[[Staged], object] | None
    ) -> ObjectError | None:
        """Publish one object while the lock is held, and return the error, if any.

        :param known: directories that are known not to be objects while the lock is held
        :param on_moved: called when the object is in its place
        """
        try:
            with object_errors(self._root.root, staged.identifier):
                try:
                    self._by_one_rename(staged, known)
                except FileNotFoundError:
                    if not os.path.lexists(staged.path):
                        what = "another run has moved or removed the object; run the command again"
                        raise ObjectError(self._root.root, staged.identifier, "changed", what) from None
                    raise
                except (FileExistsError, NotADirectoryError):
                    # The place is not free: report why, or handle it.
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

    The result equals that of :func:`write_object`.

    :param above: a directory that contains nothing but the object's directory
    :param name: the name of the object's directory
    :param place: the future path; nothing is written if it is taken
    :param device: the device of the source's files; negative for any
    :return: :data:`None` if the object needs :func:`write_object`, which reports why; the caller removes ``top``
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
