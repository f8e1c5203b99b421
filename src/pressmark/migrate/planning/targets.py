"""The destination of a plan: the paths of objects and of their files, the copy mode, and free space."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

from pressmark.errors import BagError, IdentifierError, quoted
from pressmark.fixity.copying import copy_files
from pressmark.fs.names import encode_fs, is_utf8
from pressmark.layouts import Pairtree, Vitro, layout_from_config
from pressmark.migrate.options import Options, nearest_existing
from pressmark.migrate.planning.conflicts import ObjectConflict, first_collision
from pressmark.migrate.workdir import SCRATCH
from pressmark.stores.registry import store_class
from pressmark.summaries import format_bytes

__all__ = ["TargetPath", "Targets", "lack_of_space", "mode_of", "request_count"]

_PAIRTREE, _VITRO = "pairtree_root", "file_storage_root"
# The directory of the content of a new object.
_CONTENT = {"ocfl": "v1/content/", "bags": "data/", "pairtree": "", "vitro": ""}

#: A path, or :data:`None`; then the kind of the conflict, and the reason.
TargetPath = tuple[str | None, str, str]


class Targets:
    """The paths of a destination's objects.

    :raises StoreError: the destination cannot be created with these options
    :raises LayoutConfigError: the layout is invalid
    """

    def __init__(self, options: Options) -> None:
        self._kind = options.to
        self._verbatim = options.verbatim
        self._layout = options.resulting_layout()
        content_paths: Any = options.destination_options.get("content_paths")
        self._content_paths = None if content_paths is None else layout_from_config(content_paths)
        self._is_reserved = store_class(options.to).is_reserved

    def paths(self, identifiers: Sequence[str]) -> list[TargetPath]:
        """Return the paths of objects, relative to the destination's root."""
        if self._layout is None:
            return [self._named(identifier) for identifier in identifiers]
        paths: list[str] | list[str | None] = self._layout.map_ids(identifiers, on_error="none")
        return [self._checked(one, path) for one, path in zip(identifiers, paths, strict=True)]

    def _named(self, identifier: str) -> TargetPath:
        """Return the path of a bag without a layout: its cleaned identifier."""
        try:
            name = Pairtree.clean(identifier)
        except IdentifierError as error:
            return None, "unmapped", error.reason
        if name in ("", ".", ".."):
            return None, "unmapped", "the cleaned identifier is not a valid directory name"
        return self._checked(identifier, name)

    def _checked(self, identifier: str, path: str | None) -> TargetPath:
        if path is None:
            assert self._layout is not None
            try:
                self._layout.map_id(identifier)
            except IdentifierError as error:
                return None, "unmapped", error.reason
            raise AssertionError(identifier)
        if self._kind == "pairtree":
            return f"{_PAIRTREE}/{path}", "", ""
        if self._kind == "vitro":
            return f"{_VITRO}/{path}", "", ""
        why = self._unstorable(identifier, path)
        if why is not None:
            return None, "unmapped", why
        if self._is_reserved(encode_fs(path)):
            what = f"the store reserves the path {quoted(path)} for itself; choose another layout"
            return None, "reserved", what
        return path, "", ""

    def _unstorable(self, identifier: str, path: str) -> str | None:
        """Return why a store cannot record the identifier of an object; :data:`None` if it can, or if the path does."""
        if self._kind == "ocfl":
            is_text = is_utf8(encode_fs(identifier))
            return None if is_text else "the identifier is not UTF-8, as an OCFL inventory requires"
        if self._verbatim:
            return None
        from pressmark.stores.bags.new_bag import is_writable_identifier  # only for bags
        from pressmark.stores.bags.walk import IDENTIFIER

        layout = self._layout
        is_in_path = layout is not None and layout.reversible and layout.unmap_path(path) == identifier
        if is_in_path or is_writable_identifier(identifier):
            return None
        return f"the identifier cannot be written as an {IDENTIFIER}, which is one line of text"

    def conflict_of(self, names: Sequence[str]) -> ObjectConflict | None:
        """Return the first file of an object whose name the kind of store does not allow on any system.

        :return: the kind of the conflict, the name, and the reason; :data:`None` if all names are allowed
        """
        # Bags and OCFL objects are stored as they are.
        if self._verbatim or self._kind not in ("ocfl", "bags"):
            return None
        if self._kind == "bags" and _is_bag(names):
            return None
        strange = [name for name in names if not name.isascii()]
        for name in strange:
            if not is_utf8(encode_fs(name)):
                where = "an inventory" if self._kind == "ocfl" else "a manifest"
                return "refused-name", name, f"the name is not UTF-8, as {where} requires; rename the file"
        return _same_in_manifest(strange) if self._kind == "bags" else None

    def own_path(self, identifier: str, target: str, names: Sequence[str], encapsulation: str | None) -> str:
        """Return the exclusive path of an object: no other path may be equal to it, above it or below it.

        The ppaths of a Pairtree and the directories of a Vitro store may be inside one another; the encapsulating
        directories and the files at their ends may not.

        :param target: the object's path
        :param names: of its files
        :param encapsulation: the name of its encapsulating directory, which it keeps in a Pairtree
        :raises IdentifierError: the object cannot be stored
        """
        if isinstance(self._layout, Pairtree) and self._kind == "pairtree":
            return f"{target}/{encapsulation or self._layout.encapsulation_name(identifier)}"
        if isinstance(self._layout, Vitro) and self._kind == "vitro" and names:
            return f"{_VITRO}/{self._layout.object_path(identifier, names[0])}"
        return target

    def files(self, names: Sequence[str]) -> Sequence[str]:
        """Return the paths of files below :meth:`own_path`.

        :param names: of an object's files; of an object that is stored unchanged, with their directories
        :raises IdentifierError: a name cannot be stored
        """
        if self._kind == "vitro":
            return ()
        if self._verbatim:
            return names
        if self._content_paths is not None:
            names = [self._content_paths.map_id(name) for name in names]
        inside = _CONTENT[self._kind]
        return [inside + name for name in names] if inside else names


def _is_bag(names: Sequence[str]) -> bool:
    """Return whether an object with files of these names is a bag, and is stored as that bag."""
    return "bagit.txt" in names and any(name.startswith("manifest-") for name in names)


def _same_in_manifest(names: Sequence[str]) -> ObjectConflict | None:
    """Return the first path that equals another one in Unicode normalization form C (BagIt, section 6.1.1.3)."""
    from pressmark.bagit.paths import normal_key  # only for bags

    collision = first_collision(names, normal_key)
    if collision is None:
        return None
    path, other = collision
    what = f"{quoted(other)} is the same name in another Unicode normalization; rename one of the files"
    return "normalization", path, what


# --- the file system --------------------------------------------------------------------------------------------------


_BLOCK = 4096  # bytes of the test file


def mode_of(options: Options, folder: str) -> str:
    """Return the copy mode of the plan: the expected one, before the first file is copied."""
    if options.renames():
        return "rename"
    if options.copy_mode in ("auto", "reflink") and options.same_file_system():
        can = _can_clone(options, folder)
        return "reflink" if can or (can is None and options.copy_mode == "reflink") else "copy"
    return "copy" if options.copy_mode == "auto" else options.copy_mode


def _can_clone(options: Options, folder: str) -> bool | None:
    """Return whether the file system of the destination clones files.

    The work folder is used for the test; :data:`None` if it is on another file system.
    """
    if os.stat(folder).st_dev != os.stat(nearest_existing(options.destination)).st_dev:
        return None
    with tempfile.TemporaryDirectory(SCRATCH[1], SCRATCH[0], folder) as inside:
        one, other = (os.path.join(os.fsencode(inside), name) for name in (b"one", b"other"))
        with open(one, "wb") as file:
            file.write(bytes(_BLOCK))
        try:
            return all(found.ok for _key, found in copy_files([(None, one, other)], (), mode="reflink"))
        except (BagError, OSError):
            return False


def request_count(options: Options, objects: int, files: int) -> int:
    """Return about how many requests a run sends to object storage, if all objects are new; 0 without object storage.

    :param files: number of files that are copied
    """
    of_objects = of_files = 0
    if options.is_to_bucket:
        of_objects, of_files = (5 if options.verbatim else 9), 1
        if options.verify in ("reread", "stored"):
            of_objects, of_files = of_objects + 3, of_files + 1
    if options.is_from_bucket:
        of_source = 2 if options.verbatim else 6 if options.source_kind == "ocfl" else 3
        of_objects, of_files = of_objects + of_source + (13 if options.move else 0), of_files + 1
    return of_objects * objects + of_files * files


def lack_of_space(destination: str, blocks: int, files: int, directories: int) -> list[tuple[str, str]]:
    """Return whether the destination's file system lacks space or inodes: kind and message of each conflict.

    :param blocks: bytes of the new files in blocks of 4 KiB, without directories
    :param files: number of new files
    :param directories: minimum number of new directories
    """
    if not hasattr(os, "statvfs"):
        return []
    existing = nearest_existing(destination)
    status = os.statvfs(existing)
    found = []
    free = status.f_bavail * status.f_frsize
    if blocks > free:
        sizes = f"at least {format_bytes(blocks)} needed, {format_bytes(free)} free"
        what = f"{sizes}; free space, or use another file system"
        found.append(("space", f"{existing}: {what}"))
    # Some file systems allocate inodes on demand, and report none.
    if status.f_files and files + directories > status.f_favail:
        what = f"at least {files + directories} inodes needed, {status.f_favail} free; use another file system"
        found.append(("inodes", f"{existing}: {what}"))
    return found
