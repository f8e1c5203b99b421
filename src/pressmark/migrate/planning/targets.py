"""The paths of objects and of their files in the destination."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from pressmark import stores
from pressmark.errors import IdentifierError, quoted
from pressmark.fs.names import encode_fs, is_utf8
from pressmark.layouts import Pairtree, Vitro, layout_from_config
from pressmark.migrate.options import Options

__all__ = ["TargetPath", "Targets"]

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
        content_paths = options.destination_options.get("content_paths")
        self._content_paths = None if content_paths is None else layout_from_config(content_paths)
        self._root = os.fsencode(options.destination)

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
        if stores.store_class(self._kind).is_reserved(encode_fs(path)):
            what = f"the store reserves the path {quoted(path)} for itself; choose another layout"
            return None, "reserved", what
        return path, "", ""

    def _unstorable(self, identifier: str, path: str) -> str | None:
        """Return why a store cannot record the identifier of an object."""
        if self._kind == "ocfl":
            is_text = is_utf8(encode_fs(identifier))
            return None if is_text else "the identifier is not UTF-8, as an OCFL inventory requires"
        if self._verbatim:
            return None
        from pressmark.migrate.planning.bag_targets import unstorable_identifier

        return unstorable_identifier(identifier, path, self._layout)

    def conflict_of(self, names: Sequence[str]) -> tuple[str, str, str] | None:
        """Return the first file of an object whose name the kind of store does not allow on any system.

        :return: the kind of the conflict, the name, and the reason; :data:`None` if all names are allowed
        """
        # Bags and OCFL objects are stored as they are.
        if self._verbatim or self._kind not in ("ocfl", "bags"):
            return None
        if self._kind == "bags":
            from pressmark.migrate.planning.bag_targets import is_bag, same_in_manifest

            if is_bag(names):
                return None
        strange = [name for name in names if not name.isascii()]
        for name in strange:
            if not is_utf8(encode_fs(name)):
                where = "an inventory" if self._kind == "ocfl" else "a manifest"
                return "refused-name", name, f"the name is not UTF-8, as {where} requires; rename the file"
        return same_in_manifest(strange) if self._kind == "bags" else None

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

    def files(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the paths of files below :meth:`own_path`.

        :param names: of an object's files; of an object that is stored unchanged, with their directories
        :raises IdentifierError: a name cannot be stored
        """
        if self._kind == "vitro":
            return
        if self._verbatim:
            yield from names
            return
        inside = _CONTENT[self._kind]
        for name in names:
            yield inside + (name if self._content_paths is None else self._content_paths.map_id(name))
