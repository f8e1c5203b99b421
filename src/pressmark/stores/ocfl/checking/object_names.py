"""The names in an object that do not belong there, with links and unreadable files (sections 3.1 and 3.3)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, NamedTuple

from pressmark.errors import quoted_path
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.trees import DirectoryEntry
from pressmark.paths.folding import folded
from pressmark.reports import Problem
from pressmark.stores.ocfl.checking.checked import Advice
from pressmark.stores.ocfl.checking.object_tree import ObjectTree
from pressmark.stores.ocfl.declarations import (
    EXTENSIONS,
    LOGS,
    MUTABLE_HEAD,
    OBJECT,
    is_object_name,
    is_registered,
    is_version_name,
    later,
    read_declaration,
)
from pressmark.stores.ocfl.inventory import ALGORITHMS, INVENTORY, sidecar_name
from pressmark.stores.ocfl.unversioned import is_content_path_layout
from pressmark.stores.problems import code_in, problem
from pressmark.stores.recheck import unreadable_file

__all__ = ["SIDECAR", "Entry", "NameCheck", "clashes"]

SIDECAR = re.compile(rb"inventory\.json\.[A-Za-z0-9_\-]+")


class Entry(NamedTuple):
    """An entry of a directory, and its path relative to the object."""

    path: str
    entry: DirectoryEntry


def clashes(names: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield the names of a directory that equal an earlier one except for case and normalization, and say so."""
    seen: dict[bytes, bytes] = {}
    for name in names:
        other = seen.setdefault(folded(name), name)
        if other is not name:
            yield name, f"differs from {quoted_path(other)} only in case or Unicode normalization"


class NameCheck:
    """The part of the check of an object that looks at each name in it."""

    def __init__(self, tree: ObjectTree) -> None:
        self._tree = tree
        self._problems: list[Problem] = []
        self._advice: dict[str, Advice] = {}
        self._version: str | None = None  # that the object declares

    def _problem(self, kind: str, path: str, message: str = "", **more: Any) -> Problem:
        """Return a problem.

        :param path: relative to the object
        """
        full = os.path.join(self._tree.path, encode_fs(path)) if path else self._tree.path
        if (code := more.get("code")) is not None:
            more["code"] = code_in(self._version, code)
        return problem(kind, full, message, **more)

    def _report(self, kind: str, path: str, message: str = "", **more: Any) -> None:
        self._problems.append(self._problem(kind, path, message, **more))

    def _read(self, path: str) -> bytes | None:
        try:
            return self._tree.content(path)
        except OSError as error:
            self._report("unreadable", path, error.strerror or str(error))
            return None

    @cached_property
    def _unread(self) -> Set[str]:
        """Directories that cannot be read, and files that cannot be looked at."""
        return {str(one.path) for one in self._tree.others if one.kind in ("closed", "unseen")}

    def _is_unread(self, path: str) -> bool:
        """Return whether nothing is known of a path: it, or a directory above it, cannot be read."""
        while path not in self._unread:
            path = path.rpartition("/")[0]
            if not path:
                return False
        return True

    def _scan(self, folder: str) -> list[Entry]:
        """Return the files and directories in a directory of the object; all other entries are reported."""
        try:
            entries = self._tree.scan(os.path.join(self._tree.path, encode_fs(folder)) if folder else self._tree.path)
        except OSError as error:
            self._report("unreadable", folder, error.strerror or str(error))
            return []
        usable = []
        for entry in entries:
            one = Entry(f"{folder}/{decode_fs(entry.name)}" if folder else decode_fs(entry.name), entry)
            if entry.kind == "file" and (count := self._tree.linked.get(one.path)):
                what = f"the file has {count} hard links, which OCFL forbids; replace it with a copy"
                self._report("hard-link", one.path, what)
            if entry.kind in ("file", "directory"):
                usable.append(one)
            elif entry.kind == "unseen":
                code = next(other.errno for other in self._tree.others if other.path == one.path)
                self._report("content-unreadable", one.path, os.strerror(code))
            else:
                self._report("symbolic-link" if entry.is_link else "special-file", one.path)
        return usable

    def _readable(self, path: str) -> None:
        for _path, error in self._tree.unreadable([path]):
            self._problems += unreadable_file(error, os.path.join(self._tree.path, encode_fs(path)))

    def _explain_names(self, document: Mapping[str, Any] | None, root_version: str | None) -> list[str]:
        """Check everything in the object except its versions, and return the names of the version directories."""
        of_inventory, self._problems = self._problems, []
        entries = self._scan("")
        files = [one.entry.name for one in entries if one.entry.kind == "file"]
        version, problems = read_declaration(self._tree, self._tree.path, OBJECT, files)
        self._problems += problems
        if version is not None and root_version is not None and later(version, root_version):
            what = f"the object declares OCFL {version}, but its storage root declares OCFL {root_version}"
            self._report("version-later", "", what, expected=root_version, found=version)
        self._problems += of_inventory
        self._names(entries, document)
        self._extensions(entries)
        return [one.path for one in entries if one.entry.kind == "directory" and is_version_name(one.entry.name)]

    def _names(self, entries: Sequence[Entry], document: Mapping[str, Any] | None) -> None:
        """Report names that do not belong in an object's root."""
        algorithm = document.get("digestAlgorithm") if document is not None else None
        for path, entry in entries:
            if not is_object_name(entry):
                what = "directory" if entry.kind == "directory" else "file"
                self._report("object-extra", path, f"unknown {what} in the root of the object")
            elif (
                algorithm in ALGORITHMS
                and SIDECAR.fullmatch(entry.name)
                and entry.name != encode_fs(sidecar_name(str(algorithm)))
            ):
                what = f"not the sidecar of the inventory, whose digest algorithm is {algorithm}"
                self._report("object-extra", path, what)

    def _clashes(self) -> None:
        """Warn of names that some file systems take for the same."""
        listed = [*self._tree.files, *self._tree.directories]
        together = "\0".join(listed)
        if together.isascii() and len(set(together.lower().split("\0"))) == len(listed):
            return
        paths = list(map(encode_fs, listed))
        names: dict[bytes, list[bytes]] = {}
        for path in sorted(paths):
            above, slash, name = path.rpartition(b"/")
            names.setdefault(above + slash, []).append(name)
        for above, siblings in names.items():
            for name, what in clashes(siblings):
                self._report("case-clash", decode_fs(above + name), what)

    def _extensions(self, entries: Sequence[Entry]) -> None:
        for path, entry in entries:
            if entry.kind != "directory" or entry.name not in (EXTENSIONS, LOGS):
                continue
            found = self._scan(path)
            for inside in found:
                if inside.entry.kind == "directory":
                    self._undescribed(inside.path)
                    name = decode_fs(inside.entry.name)
                    if entry.name == EXTENSIONS and not is_registered(name):
                        what = f"{quoted_path(name)} is not the name of a registered extension"
                        self._advice.setdefault("W013", Advice("W013", what, "extension-unregistered"))
                elif entry.name == EXTENSIONS:
                    self._report("extensions-file", inside.path, code="E067")
                else:
                    self._readable(inside.path)
            if entry.name == EXTENSIONS:
                self._unversioned(found)

    def _unversioned(self, found: Sequence[Entry]) -> None:
        """Warn of extensions, which are lost when the object's versions are copied one by one."""
        for path, entry in found:
            if encode_fs(path) == MUTABLE_HEAD:
                self._report("mutable-head", path)
            elif entry.kind == "directory" and not is_content_path_layout(entry.name):
                self._report("unversioned", path, section="3.9")

    def _undescribed(self, folder: str) -> None:
        """Look for links and unreadable files in a directory that OCFL does not describe further."""
        waiting = [folder]
        while waiting:
            entries = self._scan(waiting.pop())
            for path, entry in entries:
                if entry.kind == "file":
                    self._readable(path)
            waiting += [path for path, entry in entries[::-1] if entry.kind == "directory"]

    def _sidecars(self, name: str, entries: Sequence[Entry], own: Mapping[str, Any] | None) -> None:
        """Report sidecars in a version's directory that do not belong to its inventory."""
        algorithm = None if own is None else own.get("digestAlgorithm")
        has_inventory = f"{name}/{INVENTORY}" in self._tree.files
        if has_inventory and algorithm not in ALGORITHMS:
            return  # unknown; reported already
        right = encode_fs(sidecar_name(str(algorithm))) if has_inventory else None
        for path, entry in entries:
            if entry.kind == "file" and SIDECAR.fullmatch(entry.name) and entry.name != right:
                self._report("version-file", path, "not the sidecar of the version's inventory")

    def _content(self, folder: str) -> bool:
        """Look at everything in a content directory, and return whether it contains anything."""
        # No recursion: a path can have more elements than Python allows recursive calls.
        waiting = [folder]
        is_empty = False
        while waiting:
            path = waiting.pop()
            entries = self._scan(path)
            if not entries and path == folder:
                is_empty = not self._is_unread(path)
            elif not entries and not self._is_unread(path):
                self._report("content-directory-empty", path)
            waiting += [path for path, entry in entries[::-1] if entry.kind == "directory"]
        return not is_empty
