"""The difference between the newest version of an OCFL object and the next one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pressmark.errors import quoted
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.names import encode_fs
from pressmark.stores.exceptions import SourceError
from pressmark.stores.object_sources import source_entries
from pressmark.stores.objects import ObjectSource
from pressmark.stores.ocfl.declarations import VERSIONS, later
from pressmark.stores.ocfl.history import VersionMissingError, find_version
from pressmark.stores.ocfl.inventory import ALGORITHMS, inventory_type, logical_files
from pressmark.stores.ocfl.inventory_rules import path_conflicts
from pressmark.stores.ocfl.writing.object_writer import CopiedFiles, Files, logical_name

__all__ = ["Edit", "Form", "Restored", "damage", "damaged_content", "kept_files", "next_files"]


class Restored(NamedTuple):
    """Files of an earlier version that come back.

    :ivar version: its name or number
    :ivar paths: logical paths of files or directories; empty for all files
    :ivar verify: whether their content is read
    """

    version: str | int
    paths: Sequence[str] = ()
    verify: bool = True


class Form(NamedTuple):
    """The form of the next version, where it is not that of the object.

    :ivar version: OCFL version, unless the object has a later one
    :ivar algorithm: digest algorithm
    """

    version: str | None = None
    algorithm: str | None = None

    def fits(self, document: Mapping[str, Any]) -> bool:
        """Return whether an inventory has the form, or a later OCFL version; not if its own form is unknown."""
        algorithms = ALGORITHMS if self.algorithm is None else (self.algorithm,)
        is_known = any(inventory_type(version) == document.get("type") for version in VERSIONS)
        return is_known and document.get("digestAlgorithm") in algorithms and not self._is_later(document)

    def _is_later(self, document: Mapping[str, Any]) -> bool:
        return self.version is not None and any(
            inventory_type(version) == document.get("type") and later(self.version, version) for version in VERSIONS
        )

    def applied(
        self,
        document: Mapping[str, Any],
        hash_contents: Callable[[Iterable[tuple[str, str]], tuple[str, ...]], Iterable[tuple[str, Outcome]]],
    ) -> Mapping[str, Any]:
        """Return an inventory in this form.

        :param document: the inventory, already checked
        :param hash_contents: hashes content files, each given twice, with algorithms
        :raises SourceError: a file does not match its digest
        """
        if self.version is not None and self._is_later(document):
            document = {**document, "type": inventory_type(self.version)}
        old, new = document["digestAlgorithm"], self.algorithm
        if new in (None, old):
            return document
        assert new is not None
        expected = {path: digest for digest, paths in document["manifest"].items() for path in paths}
        digests: dict[str, str] = {}
        for path, outcome in hash_contents(((path, path) for path in expected), (old, new)):
            if outcome.digests is None or outcome.digests[old] != expected[path].lower():
                raise damaged_content(path, outcome)
            digests[expected[path]] = outcome.digests[new]
        manifest = {digests[digest]: paths for digest, paths in document["manifest"].items()}
        versions = {
            name: {**block, "state": {digests[digest]: paths for digest, paths in block["state"].items()}}
            for name, block in document["versions"].items()
        }
        return {**document, "digestAlgorithm": new, "manifest": manifest, "versions": versions}


class Edit(NamedTuple):
    """The difference between the newest version of an object and the next one.

    :ivar add: files to add, or to store in place of files with these names
    :ivar remove: logical paths to remove
    :ivar rename: new logical paths by old ones
    :ivar keep: whether all other files are kept
    :ivar restored: files of an earlier version that come back
    :ivar form: its form
    """

    add: ObjectSource
    remove: Sequence[str] = ()
    rename: Mapping[str, str] = {}
    keep: bool = True
    restored: Restored | None = None
    form: Form = Form()


def kept_files(document: Mapping[str, Any], version: str | None = None) -> dict[str, str]:
    """Return the digests of the files of a version, by logical path.

    :param document: the inventory, already checked
    :param version: its name; :data:`None` for the newest
    """
    return {path: digest for path, _content, digest in logical_files(document, version)}


def next_files(
    edit: Edit, document: Mapping[str, Any], before: Mapping[str, str], top: bytes, links: str
) -> tuple[dict[str, str], ObjectSource | Files]:
    """Return the digests of the files in the next version that are not copied, by logical path; and the files to copy.

    :param document: the inventory of the object, already checked
    :param before: the digests of the newest version, by logical path
    :param top: the directory of the copy
    :raises SourceError: of kind ``missing``, ``bad-name`` or ``collision``: the changes contradict the object or each
        other
    """
    if not edit.keep:
        return {}, edit.add
    if edit.restored is not None:
        return _restored(edit.restored, document, before), {}
    return _kept(edit, before, top, links)


def damage(outcome: Outcome) -> str:
    """Return what is wrong with a content file that was read."""
    return outcome.message if outcome.digests is None else f"{next(iter(outcome.digests))} digest mismatch"


def damaged_content(content: str, outcome: Outcome) -> SourceError:
    """Return the error that a content file cannot be in the next version."""
    what = f"content of {quoted(content)}: {damage(outcome)}"
    if outcome.kind == "archived":
        return SourceError("unreadable", what)
    advice = "restore the file from a good copy"
    if outcome.kind == "missing":
        return SourceError("content-missing", f"{what}; {advice}")
    if outcome.digests is not None:
        return SourceError("content-mismatch", f"{what}; {advice}")
    return SourceError("unreadable", what)


def _restored(restored: Restored, document: Mapping[str, Any], before: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of the next version, by logical path."""
    try:
        version = find_version(document, restored.version)
    except VersionMissingError as error:
        raise SourceError("missing", str(error)) from None
    then = kept_files(document, version)
    if not restored.paths:
        return then
    names = [logical_name(encode_fs(path)) for path in restored.paths]
    for name in names:
        if not any(_selected(then, name)):
            raise SourceError("missing", f"{quoted(name)} is not in {version}")
    gone = {path for name in names for path in _selected(before, name)}
    back = {path for name in names for path in _selected(then, name)}
    after = {path: digest for path, digest in before.items() if path not in gone}
    after.update((path, then[path]) for path in back)
    _refuse_conflicts(after)
    return after


def _selected(paths: Iterable[str], name: str) -> Iterable[str]:
    """Return the paths of a file, or of the files below a directory."""
    return (path for path in paths if path == name or path.startswith(f"{name}/"))


def _kept(edit: Edit, before: Mapping[str, str], top: bytes, links: str) -> tuple[dict[str, str], ObjectSource | Files]:
    """Return the digests of the files that stay in the next version, by their new logical paths; and the files to copy.

    :param before: the digests of the newest version, by logical path
    :param top: the directory of the copy
    :raises SourceError: of kind ``missing``, ``bad-name`` or ``collision``: the changes contradict the object or each
        other
    """
    entries = list(source_entries(edit.add, top, links == "follow", deepest=CopiedFiles.DEEPEST))
    added = [logical_name(entry.name) for entry in entries if entry.content is not None]
    removed = [logical_name(encode_fs(path)) for path in edit.remove]
    renamed = {logical_name(encode_fs(old)): logical_name(encode_fs(new)) for old, new in edit.rename.items()}
    for path in (*removed, *renamed):
        if path not in before:
            is_folder = any(other.startswith(f"{path}/") for other in before)
            what = "is a directory in the object; specify its files" if is_folder else "is not in the object"
            raise SourceError("missing", f"{quoted(path)} {what}")
    for paths in ((*removed, *renamed, *added), (*renamed.values(), *added)):
        path, count = Counter(paths).most_common(1)[0] if paths else ("", 0)
        if count > 1:
            raise SourceError("collision", f"{quoted(path)} is specified twice; use another name")
    kept = {path: before[path] for path in before.keys() - {*removed, *renamed, *added}}
    for old, new in renamed.items():
        if new in kept:
            raise SourceError("collision", f"{quoted(new)} is in the object; rename {quoted(old)} to another name")
    kept.update((new, before[old]) for old, new in renamed.items())
    _refuse_conflicts({*kept, *added})
    return kept, entries


def _refuse_conflicts(paths: Iterable[str]) -> None:
    for path in path_conflicts(paths):
        raise SourceError("collision", f"{quoted(path)} would be a file and a directory; rename one of them")
