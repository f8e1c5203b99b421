"""Where objects go: their places in the destination, and the paths that their files have there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from pressmark.bagit.paths import normal_key
from pressmark.errors import IdentifierError, quoted
from pressmark.fs.names import encode_fs, is_utf8
from pressmark.layouts import Pairtree, Vitro, layout_from_config
from pressmark.migrate.options import Options
from pressmark.stores.bags.bag_folder_reader import CONFIG, IDENTIFIER, REPLACED, is_writable_identifier
from pressmark.stores.bags.bag_folder_reader import WORK_DIRECTORY as BAGS_WORK_DIRECTORY
from pressmark.stores.ocfl.declarations import EXTENSIONS
from pressmark.stores.ocfl.layout_files import LAYOUT

__all__ = ["Place", "Targets"]

_PAIRTREE, _VITRO = "pairtree_root", "file_storage_root"
# Around what is put into an object that is made anew.
_CONTENT = {"ocfl": "v1/content/", "bags": "data/", "pairtree": "", "vitro": ""}

#: A place, or :data:`None`; then the kind of the refusal, and why.
Place = tuple[str | None, str, str]


class Targets:
    """The places of a destination's objects.

    :raises StoreError: the destination cannot be made like this
    :raises LayoutConfigError: its layout is refused
    """

    def __init__(self, options: Options) -> None:
        self._kind = options.to
        self._verbatim = options.verbatim
        self._layout = options.places()
        content_paths = options.destination_options.get("content_paths")
        self._content_paths = None if content_paths is None else layout_from_config(content_paths)
        self._root = os.fsencode(options.destination)

    def places(self, identifiers: Sequence[str]) -> list[Place]:
        """Return where objects go, relative to the destination's root."""
        if self._layout is None:
            return [self._named(identifier) for identifier in identifiers]
        paths: list[str] | list[str | None] = self._layout.map_ids(identifiers, on_error="none")
        return [self._checked(one, path) for one, path in zip(identifiers, paths, strict=True)]

    def _named(self, identifier: str) -> Place:
        """Return where a bag goes that is called by its cleaned identifier."""
        try:
            name = Pairtree.clean(identifier)
        except IdentifierError as error:
            return None, "unmapped", error.reason
        if name in ("", ".", ".."):
            return None, "unmapped", "it has no name"
        return self._checked(identifier, name)

    def _checked(self, identifier: str, path: str | None) -> Place:
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
        if self._kind == "ocfl":
            try:
                identifier.encode()
            except UnicodeEncodeError:
                return None, "unmapped", "it is not UTF-8, and an OCFL inventory can hold no other"
        elif (
            not self._verbatim
            and not is_writable_identifier(identifier)
            and not self._place_gives_identifier(path, identifier)
        ):
            return None, "unmapped", f"it cannot be written as an {IDENTIFIER}, on one line of text"
        if self._reserved(encode_fs(path)):
            return None, "reserved", f"its place {quoted(path)} is what the store has for itself; take another layout"
        return path, "", ""

    def _place_gives_identifier(self, path: str, identifier: str) -> bool:
        """Return whether a place says the identifier."""
        layout = self._layout
        return layout is not None and layout.reversible and layout.unmap_path(path) == identifier

    def _reserved(self, place: bytes) -> bool:
        names = place.split(b"/")
        if self._kind == "ocfl":
            return names[0].lower() in (EXTENSIONS, LAYOUT) or names[0].startswith(b"0=")
        return any(name in (CONFIG, BAGS_WORK_DIRECTORY) or name.endswith(REPLACED) for name in names)

    def fault_of(self, names: Sequence[str]) -> tuple[str, str, str] | None:
        """Return the first file of an object whose name no store of the kind takes, whatever the system: see ``KINDS``.

        :return: the refusal's kind, the name, and why; :data:`None` where all are taken
        """
        # Bags and OCFL objects are as they are, and so is a bag in another store.
        if self._verbatim or self._kind not in ("ocfl", "bags") or (self._kind == "bags" and _is_bag(names)):
            return None
        strange = [name for name in names if not name.isascii()]
        for name in strange:
            if not is_utf8(encode_fs(name)):
                held = "an inventory" if self._kind == "ocfl" else "a manifest"
                return "refused-name", name, f"the name is not UTF-8, and {held} can hold no other; rename it"
        if self._kind == "bags":
            return _same_in_manifest(strange)
        return None

    def whole(self, identifier: str, target: str, names: Sequence[str], encapsulation: str | None) -> str:
        """Return the path that an object has for itself: no other may be equal to it, above it or below it.

        A Pairtree's ppaths, and the directories of a Vitro store, may lie in one another; what they end in may not.

        :param target: its place
        :param names: of its files
        :param encapsulation: that it has, and keeps in a Pairtree
        :raises IdentifierError: the object cannot be stored
        """
        if isinstance(self._layout, Pairtree) and self._kind == "pairtree":
            return f"{target}/{encapsulation or self._layout.encapsulation_name(identifier)}"
        if isinstance(self._layout, Vitro) and self._kind == "vitro" and names:
            return f"{_VITRO}/{self._layout.object_path(identifier, names[0])}"
        return target

    def files(self, names: Sequence[str]) -> Iterator[str]:
        """Give the paths that files have below :meth:`whole`.

        :param names: of an object's files; of one that goes as it is, all of them, with their directories
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


def _is_bag(names: Sequence[str]) -> bool:
    return "bagit.txt" in names and any(name.startswith("manifest-") for name in names)


def _same_in_manifest(names: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the first of some paths that is another one's in Unicode's normalization form C (BagIt, 6.1.1.3)."""
    seen: dict[bytes, str] = {}
    for name in names:
        path = name
        while path and seen.get(normal_key(encode_fs(path))) != path:
            other = seen.setdefault(normal_key(encode_fs(path)), path)
            if other != path:
                what = f"{quoted(other)} is the same name in a manifest, written otherwise in Unicode; rename one"
                return "normalization", path, what
            path = path.rpartition("/")[0]
    return None
