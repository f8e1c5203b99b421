"""OCFL objects as source objects: the files of a version, with the digests of the inventory; and their check."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pressmark.errors import quoted_path
from pressmark.fixity import ALGORITHMS
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import Entry, TransferError, status_of_problem
from pressmark.migrate.transfer.content import Content, listed
from pressmark.migrate.transfer.places import DISK, Place
from pressmark.reports import ERROR
from pressmark.stores.ocfl.checking.checked import Checked, ContentFile
from pressmark.stores.ocfl.checking.object_check import check_object
from pressmark.stores.ocfl.checking.object_tree import StoredTree, object_trees
from pressmark.stores.ocfl.declarations import MUTABLE_HEAD
from pressmark.stores.ocfl.inventory import logical_files
from pressmark.stores.ocfl.ocfl_object import OcflObject
from pressmark.stores.ocfl.storage import Storage

__all__ = ["check_ocfl_object", "check_rest", "compare_digests", "ocfl_content"]

# Problems of a content file that copying it meets, too.
_OF_COPYING = frozenset({"content-missing", "content-unreadable"})


def ocfl_content(found: OcflObject, place: Place = DISK) -> Content:
    """Return the files of an object's version, with the digests of its inventory.

    :param place: where they are
    """
    document = found.inventory
    algorithm = str(document.get("digestAlgorithm"))
    known: dict[str, dict[str, str]] = {algorithm: {}} if algorithm in ALGORITHMS else {}
    contents: dict[str, list[str]] = {}
    for logical, content, digest in logical_files(document, found.version):
        contents.setdefault(content, []).append(logical)
        if known:
            known[algorithm][logical] = digest.lower()
    fixity = document.get("fixity")
    for name, block in fixity.items() if isinstance(fixity, dict) else ():
        if name not in ALGORITHMS or not isinstance(block, dict):
            continue
        for digest, paths in block.items():
            for path in paths if isinstance(paths, list) else ():
                for logical in contents.get(path, ()):
                    known.setdefault(name, {})[logical] = str(digest).lower()
    files = [(encode_fs(name), os.fsencode(path)) for name, path in found.files()]
    return Content(files, known, [], unversioned=_unversioned(found), place=place)


def check_ocfl_object(entry: Entry, storage: Storage, root_version: str, content: Content | None = None) -> Checked:
    """Check an object against the specification, apart from its content.

    :param storage: of the object, or of a copy of it
    :param root_version: the version of OCFL that its storage root declares
    :param content: what another kind of store will contain: copying it reports missing files, and a copy has no hard
        links
    :raises TransferError: the object is invalid
    """
    [(_path, _tree, found)] = object_trees(storage.trees(b"", [b""], "rules"))
    checked = check_object(found or StoredTree(storage, b"", storage.scan(b"")), root_version)
    wrong = [one for one in checked.problems if one.severity == ERROR]
    if content is not None:
        copied = {path for _name, path in content.files}
        wrong = [
            one
            for one in wrong
            if one.kind != "hard-link"
            and not (one.kind in _OF_COPYING and storage.path(os.fsencode(one.path)) in copied)
        ]
    if wrong:
        what = f"{quoted_path(os.path.join(entry.source, wrong[0].path))}: {wrong[0].message}"
        raise TransferError(
            status_of_problem(wrong[0].kind), wrong[0].kind, f"the object is not valid: {what}; check the store"
        )
    if checked.identifier != entry.source_id:
        what = f"its inventory has the identifier {checked.identifier!r}"
        raise TransferError("source_invalid", "misplaced", f"{what}, not {entry.source_id!r}; check the store")
    return checked


def check_rest(checked: Checked, directory: bytes, content: Content) -> None:
    """Compare the content of a valid object that is not migrated, such as that of other versions, with its digests.

    :param content: what is migrated, which is compared as it is copied
    :raises FileError: a file cannot be read
    :raises TransferError: a file is damaged
    """
    migrated = {path for _name, path in content.files}
    for file in checked.unread_files():
        path = os.path.join(directory, file.path)
        algorithms = [name for name in file.digests if name in ALGORITHMS]
        if path in migrated or not algorithms:
            continue
        found = content.place.hash([("", path)], tuple(algorithms))
        compare_digests(file, found[""])


def compare_digests(file: ContentFile, found: Mapping[str, str]) -> None:
    """Compare the digests of a content file with those of the inventory.

    :param found: its digests, of the algorithms that were computed
    :raises TransferError: they differ
    """
    for algorithm, expected in file.digests.items():
        digest = found.get(algorithm)
        if digest is not None and digest != expected.lower():
            where = f"{quoted_path(file.path)}: its {algorithm} is {digest}"
            raise TransferError("digest_mismatch", "mismatch", f"{where}, not {expected} as in the inventory")


def _unversioned(found: OcflObject) -> list[str]:
    """Return descriptions of everything in an OCFL object that is not in one version.

    :raises ObjectError: the object cannot be read
    """
    texts = []
    others = len(found.inventory["versions"]) - 1
    if others:
        which = "older" if found.version == found.inventory["head"] else "other"
        texts.append(f"1 {which} version" if others == 1 else f"{others} {which} versions")
    unversioned = found.unversioned()
    rest = [path for path in unversioned if not path.startswith(MUTABLE_HEAD)]
    if len(rest) < len(unversioned):
        texts.append(f"staged content in {decode_fs(MUTABLE_HEAD)} (commit it with ocfl-java first)")
    if rest:
        texts.append(listed(rest))
    return texts
