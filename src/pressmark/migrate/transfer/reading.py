"""The objects of the source, looked up and listed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from pressmark.fixity import ALGORITHMS, hash_file
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import Entry, TransferError, status_of_problem
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.content import (
    Content,
    File,
    all_files,
    content_of,
    link_error,
    list_tree,
    listed,
)
from pressmark.reports import ERROR
from pressmark.stores import Store, StoredObject, StoreObject
from pressmark.stores.exceptions import object_errors
from pressmark.stores.ocfl.checking.checked import Checked, ContentFile
from pressmark.stores.ocfl.checking.object_check import check_object
from pressmark.stores.ocfl.checking.object_tree import StoredTree
from pressmark.stores.ocfl.declarations import MUTABLE_HEAD
from pressmark.stores.ocfl.inventory import logical_files
from pressmark.stores.ocfl.ocfl_object import OcflObject
from pressmark.stores.ocfl.storage import LocalStorage
from pressmark.stores.stored_object import status_of

if TYPE_CHECKING:
    from pressmark.stores.bags.bag_folder_reader import BagObject
    from pressmark.stores.ocfl.root import OcflRoot

__all__ = [
    "ContentReader",
    "bag_directory",
    "check_ocfl_object",
    "check_rest",
    "compare_digests",
    "locate_source",
    "object_path",
    "ocfl_content",
]

# Problems of a content file that copying it meets, too.
_OF_COPYING = frozenset({"content-missing", "content-unreadable"})


def locate_source(options: Options, store: Store, record: StoreObject) -> StoredObject:
    """Return an object of the source, of an OCFL object the version to migrate.

    :raises ObjectError: of kind ``missing``: the object was removed, or does not have the version
    """
    if options.version is None:
        return store.locate(record)
    return cast("OcflRoot", store).locate(record, options.version)


def object_path(store: Store, found: StoredObject) -> bytes:
    """Return the path of an object: of a bag its base directory or file."""
    return cast("BagObject", found).bag_path if store.kind == "bags" else found.path


def bag_directory(store: Store, found: StoredObject) -> bytes | None:
    """Return the base directory of a bag; :data:`None` for a serialized bag and for any other object."""
    if store.kind != "bags" or cast("BagObject", found).serialized:
        return None
    return cast("BagObject", found).bag_path


class ContentReader:
    """Lists the content of source objects.

    :param options: options of the migration
    :param store: the source
    """

    def __init__(self, options: Options, store: Store) -> None:
        self._options = options
        self._store = store
        self._base = os.fsencode(store.root)
        self._follow = options.links == "follow"
        self._unwrap = options.to != "bags"
        self._all_files = options.verbatim and options.to == "ocfl"

    def content(self, entry: Entry) -> Content:
        """Return the content of an object.

        :raises ObjectError: the object does not exist, or cannot be read
        :raises TransferError: the object is invalid
        """
        if self._all_files:
            return Content(all_files(self._store, entry.source_id, entry.source), {}, [])
        place, name = self.encapsulated(entry)
        if name:
            top = self._alone(entry, place, name)
            if top is not None:
                return self._tree(entry, top, entry.encapsulation)
        found = locate_source(self._options, self._store, entry.in_source())
        if isinstance(found, OcflObject):
            return ocfl_content(found)
        bag = bag_directory(self._store, found)
        if bag is not None:
            return self._of_bag(entry, bag)
        if self._store.kind == "pairtree" and not self._follow:
            self._refuse_links(found.path, [name for name, _path in found.files()])
        content = content_of(found)
        # Several files may belong to several versions: others may replace one at a time.
        seen = [(path, status_of(path)) for _name, path in content.files] if len(content.files) > 1 else []
        return content._replace(seen=seen)

    def encapsulated(self, entry: Entry) -> tuple[bytes, bytes]:
        """Return the directory of an object of a Pairtree and the name of its encapsulating directory, by the plan.

        Both are empty without an encapsulating directory, and for a source of another kind.
        """
        if entry.encapsulation is None or self._store.kind != "pairtree":
            return b"", b""
        return self._base + b"/" + encode_fs(entry.source), encode_fs(entry.encapsulation)

    @staticmethod
    def _alone(entry: Entry, place: bytes, name: bytes) -> bytes | None:
        """Return the encapsulating directory if nothing else is beside it, :data:`None` otherwise."""
        try:
            beside = os.listdir(place)
        except OSError:
            return None
        if len(entry.source.rpartition("/")[2]) == 1:
            return place + b"/" + name if beside == [name] else None
        for one in beside:
            # A name of one or two characters extends the ppath.
            if one != name and (len(one) > 2 or not os.path.isdir(place + b"/" + one)):
                return None
        return place + b"/" + name if name in beside else None

    def _tree(self, entry: Entry, top: bytes, encapsulation: str | None) -> Content:
        files: list[File] = []
        empty: list[File] = []
        seen = [(top, status_of(top))]
        with object_errors(self._store.root, entry.source_id):
            links = list_tree(top, files, empty)
        if links and self._follow:
            found = self._store.locate(entry.in_source())
            return content_of(found)._replace(encapsulation=encapsulation, seen=seen)
        if links:
            raise link_error(links[0])
        files.sort()
        return Content(files, {}, empty, encapsulation, top, seen)

    @staticmethod
    def _refuse_links(top: bytes, names: list[str]) -> None:
        for name in names:
            path = top
            for part in encode_fs(name).split(b"/"):
                path = os.path.join(path, part)
                if os.path.islink(path):
                    raise link_error(path)

    def _of_bag(self, entry: Entry, path: bytes) -> Content:
        from pressmark.migrate.transfer.bag_content import check_bag, with_manifests

        check_bag(path)
        return with_manifests(self._tree(entry, path, None), path, self._unwrap)


def ocfl_content(found: OcflObject) -> Content:
    """Return the files of an object's version, with the digests of its inventory."""
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
    files = [(encode_fs(name), path) for name, path in found.files()]
    return Content(files, known, [], unversioned=_unversioned(found))


def check_ocfl_object(entry: Entry, directory: bytes, root_version: str, content: Content | None = None) -> Checked:
    """Check an object against the specification, apart from its content.

    :param directory: the object, or a copy of it
    :param root_version: the version of OCFL that its storage root declares
    :param content: what another kind of store will contain: copying it reports missing files, and a copy has no hard
        links
    :raises TransferError: the object is invalid
    """
    storage = LocalStorage(directory)
    checked = check_object(StoredTree(storage, b"", storage.scan(b"")), root_version)
    wrong = [one for one in checked.problems if one.severity == ERROR]
    if content is not None:
        copied = {path for _name, path in content.files}
        wrong = [
            one
            for one in wrong
            if one.kind != "hard-link"
            and not (one.kind in _OF_COPYING and os.path.join(directory, encode_fs(one.path)) in copied)
        ]
    if wrong:
        what = f"{decode_fs(os.path.join(encode_fs(entry.source), wrong[0].path))}: {wrong[0].message}"
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
        found = hash_file(path, algorithms)
        compare_digests(file, found)


def compare_digests(file: ContentFile, found: Mapping[str, str]) -> None:
    """Compare the digests of a content file with those of the inventory.

    :param found: its digests, of the algorithms that were computed
    :raises TransferError: they differ
    """
    for algorithm, expected in file.digests.items():
        digest = found.get(algorithm)
        if digest is not None and digest != expected.lower():
            where = f"{decode_fs(file.path)}: its {algorithm} is {digest}"
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
