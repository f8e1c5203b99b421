"""What an object of a source is made of, and the digests that are known of it before a byte is read.

A bag is all of its files, tag files included, and its manifests say what they must be. A bag that a migration has made
around an object of another store says so in its bag-info.txt (:data:`WRAPPED`); on the way to another store it is
unwrapped, if nobody has added to it since.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.bag_tags import BagTags, open_listing
from pressmark.bagit.validation.validate import validate
from pressmark.fixity import ALGORITHMS
from pressmark.fixity.hasher import CHANGED
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.options import Options
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.transfer.failures import TransferError, status_of_problem
from pressmark.migrate.transfer.left_out import HOLDS_EMPTY, empty_text, unversioned_texts
from pressmark.stores import Store, StoredObject
from pressmark.stores.bags.bag_folder_reader import IDENTIFIER, BagObject
from pressmark.stores.ocfl.inventory import logical_files
from pressmark.stores.ocfl.ocfl_object import OcflObject
from pressmark.stores.refusals import object_errors
from pressmark.stores.stored_object import is_same_version, status_of

__all__ = [
    "WRAPPED",
    "Content",
    "Reader",
    "check_complete",
    "check_unchanged",
    "content_of",
    "is_bag",
    "listed_digests",
    "tree_files",
    "wrapping",
]

#: The element of a bag's bag-info.txt that says of what kind of store its payload was an object.
WRAPPED = "Pressmark-Wrapped"
# What else such a bag has.
_ELEMENTS = {IDENTIFIER, WRAPPED, "Bagging-Date", "Bag-Size", "Bag-Software-Agent", "Payload-Oxum"}
_PAYLOAD = b"data/"


class Content(NamedTuple):
    """The files of an object.

    :ivar files: names within the object, and paths, by the octets of the names
    :ivar known: digests, by algorithm and name
    :ivar empty: names and paths of directories with nothing in them
    :ivar encapsulation: of a Pairtree's object, or of one that was unwrapped
    :ivar top: the directory that holds just these files under these names; :data:`None` where none does
    :ivar seen: what it was listed from, paths with the status of each: see :func:`check_unchanged`
    :ivar besides: what else the object has, in words: it goes to no other kind of store
    """

    files: list[tuple[bytes, bytes]]
    known: dict[str, dict[str, str]]
    empty: list[tuple[bytes, bytes]]
    encapsulation: str | None = None
    top: bytes | None = None
    seen: Sequence[tuple[bytes, os.stat_result | None]] = ()
    besides: Sequence[str] = ()

    def left_out(self, to: str) -> str | None:
        """Return in one line what does not go to a store of another kind; :data:`None` where all of it goes.

        :param to: the kind
        """
        texts = [*self.besides]
        if self.empty and to not in HOLDS_EMPTY:
            texts.append(empty_text([name for name, _path in self.empty]))
        return f"not migrated, a store of kind {to} has no place for it: {'; '.join(texts)}" if texts else None


class Reader:
    """Looks into the objects of a source.

    :param options: of the migration
    :param store: the source
    """

    def __init__(self, options: Options, store: Store) -> None:
        self._store = store
        self._base = os.fsencode(store.root)
        self._follow = options.links == "follow"
        self._unwrap = options.to != "bags"

    def content(self, entry: Entry) -> Content:
        """Return what an object is made of.

        :raises ObjectError: it is not there, or cannot be looked at
        :raises TransferError: it is not as it should be
        """
        place, name = self.encapsulated(entry)
        if name:
            top = self._alone(entry, place, name)
            if top is not None:
                return self._tree(entry, top, entry.encapsulation)
        found = self._store.locate(entry.record())
        if isinstance(found, OcflObject):
            return _of_ocfl(found)
        if isinstance(found, BagObject) and not found.serialized:
            return self._of_bag(entry, found)
        if self._store.kind == "pairtree" and not self._follow:
            self._refuse_links(entry, found.path, [name for name, _path in found.files()])
        content = content_of(found)
        # One file is of one version; of more, each says for itself which: others' may lie beside them.
        seen = [(path, status_of(path)) for _name, path in content.files] if len(content.files) > 1 else []
        return content._replace(seen=seen)

    def encapsulated(self, entry: Entry) -> tuple[bytes, bytes]:
        """Return where the plan has seen an object of a Pairtree: its place, and the name of its directory there.

        No name, where it has none, or the source is of another kind.
        """
        if entry.encapsulation is None or self._store.kind != "pairtree":
            return b"", b""
        return self._base + b"/" + encode_fs(entry.source), encode_fs(entry.encapsulation)

    @staticmethod
    def _alone(entry: Entry, place: bytes, name: bytes) -> bytes | None:
        """Return the directory of an object that is alone at its place; :data:`None` where something else is there."""
        try:
            beside = os.listdir(place)
        except OSError:
            return None
        if len(entry.source.rpartition("/")[2]) == 1:
            return place + b"/" + name if beside == [name] else None
        for one in beside:
            # What extends the ppath has one character or two.
            if one != name and (len(one) > 2 or not os.path.isdir(place + b"/" + one)):
                return None
        return place + b"/" + name if name in beside else None

    def _tree(self, entry: Entry, top: bytes, encapsulation: str | None) -> Content:
        files: list[tuple[bytes, bytes]] = []
        empty: list[tuple[bytes, bytes]] = []
        seen = [(top, status_of(top))]
        with object_errors(self._store.root, entry.source_id):
            links = tree_files(top, files, empty)
        if links and self._follow:
            found = self._store.locate(entry.record())
            return content_of(found)._replace(encapsulation=encapsulation, seen=seen)
        if links:
            raise _link(links[0])
        files.sort()
        return Content(files, {}, empty, encapsulation, top, seen)

    def _refuse_links(self, entry: Entry, top: bytes, names: list[str]) -> None:
        for name in names:
            path = top
            for part in encode_fs(name).split(b"/"):
                path = os.path.join(path, part)
                if os.path.islink(path):
                    raise _link(path)

    # --- bags -----------------------------------------------------------------------------------------------------

    def _of_bag(self, entry: Entry, found: BagObject) -> Content:
        """Return the content of a bag, with the digests of its manifests.

        :raises TransferError: it is not complete
        """
        check_complete(found.bag_path)
        content = self._tree(entry, found.bag_path, None)
        bag = BagTags.open(found.bag_path)
        known = listed_digests(bag, found.bag_path, [name for name, _path in content.files])
        encapsulation = wrapping(bag, content) if self._unwrap else None
        if encapsulation is None:
            return content._replace(known=known)
        return _payload(content, known, found.bag_path, encapsulation)


def check_unchanged(content: Content) -> None:
    """Make sure that no other version of an object came in its place since it was listed; no file is read.

    Its files are opened by their paths, one after another: each may be whole, and all together be of two versions.

    :raises TransferError: one may have come
    """
    for path, before in content.seen:
        if not is_same_version(status_of(path), before):
            what = f"{decode_fs(path)} was changed or replaced while the object was read"
            raise TransferError("source_invalid", CHANGED, f"{what}; migrate it again when nobody changes it")


def check_complete(path: bytes) -> None:
    """Make sure that a bag is complete; no file is read.

    :raises TransferError: it is not
    """
    report = validate(path, "complete", threads=1)
    if not report.ok:
        wrong = report.errors[0]
        what = f"{decode_fs(wrong.path)}: {wrong.message}" if wrong.path else wrong.message
        raise TransferError(status_of_problem(wrong.kind), wrong.kind, f"the bag is not complete: {what}; validate it")


def listed_digests(bag: BagTags, path: bytes, names: Iterable[bytes]) -> dict[str, dict[str, str]]:
    """Return the digests that the manifests of a bag list, by algorithm and name.

    :param path: its base directory
    :param names: of all its files
    """
    known: dict[str, dict[str, str]] = {}
    with BagDirectory(path) as base:
        for manifests, tag in ((bag.manifests, False), (bag.tag_manifests, True)):
            kept = [manifest for manifest in manifests if manifest.known]
            with open_listing(base, bag, kept, [], tag=tag) as listing:
                # All of them before another spelling is looked for.
                found = {name: listing.find(name, mark=True) for name in names if name.startswith(_PAYLOAD) != tag}
                for name, digests in found.items():
                    for again in listing.find_rest(name, digests):
                        digests.update(again.digests)
                    for algorithm, digest in digests.items():
                        if algorithm in ALGORITHMS:
                            known.setdefault(algorithm, {})[decode_fs(name)] = digest
    return known


def _payload(content: Content, known: Mapping[str, Mapping[str, str]], bag: bytes, encapsulation: str) -> Content:
    """Return what a bag was made around."""
    prefix = decode_fs(_PAYLOAD)
    return Content(
        [(name.removeprefix(_PAYLOAD), path) for name, path in content.files if name.startswith(_PAYLOAD)],
        {
            algorithm: {name.removeprefix(prefix): digest for name, digest in block.items() if name.startswith(prefix)}
            for algorithm, block in known.items()
        },
        [(name.removeprefix(_PAYLOAD), path) for name, path in content.empty if name.startswith(_PAYLOAD)],
        encapsulation or None,
        os.path.join(bag, b"data"),
        content.seen,
    )


def wrapping(bag: BagTags, content: Content) -> str | None:
    """Return how the object was encapsulated that a migration has made a bag of, empty where it was not.

    :data:`None` for any other bag, and for one with anything in it that such a bag does not have.
    """
    said = bag.info.all(WRAPPED)
    if len(said) != 1 or {label for label, _value in bag.info.elements} - _ELEMENTS:
        return None
    usual = {b"bagit.txt", b"bag-info.txt", *(one.name for one in (*bag.manifests, *bag.tag_manifests))}
    if any(not name.startswith(_PAYLOAD) and name not in usual for name, _path in content.files):
        return None
    if any(not name.startswith(_PAYLOAD) and name != _PAYLOAD[:-1] for name, _path in content.empty):
        return None
    return said[0].partition(" ")[2]


def _of_ocfl(found: OcflObject) -> Content:
    """Return the files of an object's newest version, with the digests of its inventory."""
    document = found.inventory
    algorithm = str(document.get("digestAlgorithm"))
    known: dict[str, dict[str, str]] = {algorithm: {}} if algorithm in ALGORITHMS else {}
    contents: dict[str, list[str]] = {}
    for logical, content, digest in logical_files(document):
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
    return Content(files, known, [], besides=unversioned_texts(found))


def content_of(found: StoredObject) -> Content:
    """Return the content of an object of which nothing is known but its files.

    :raises ObjectError: it cannot be looked at
    """
    files = [(encode_fs(name), path) for name, path in found.files()]
    return Content(files, {}, [(encode_fs(name), path) for name, path in found.empty_directories()])


def is_bag(content: Content) -> bool:
    """Return whether an object is a bag: its files are all that a bag must have."""
    names = {name for name, _path in content.files if b"/" not in name}
    payload = any(name.startswith(_PAYLOAD) for name, _path in content.files)
    payload = payload or any((name + b"/").startswith(_PAYLOAD) for name, _path in content.empty)
    return b"bagit.txt" in names and payload and any(name.startswith(b"manifest-") for name in names)


def tree_files(
    top: bytes, files: list[tuple[bytes, bytes]], empty: list[tuple[bytes, bytes]], below: bytes = b""
) -> list[bytes]:
    """Add all files of a tree to ``files``, and directories with nothing in them to ``empty``.

    :param below: what names begin with
    :return: links, and what is neither file nor directory
    :raises OSError: a directory cannot be read
    """
    others: list[bytes] = []
    count = 0
    with os.scandir(top) as entries:
        for entry in entries:
            count += 1
            if entry.is_file(follow_symlinks=False):
                files.append((below + entry.name, entry.path))
            elif entry.is_dir(follow_symlinks=False):
                others += tree_files(entry.path, files, empty, below + entry.name + b"/")
            else:
                others.append(entry.path)
    if not count and below:
        empty.append((below[:-1], top))
    return others


def _link(path: bytes) -> TransferError:
    is_link = os.path.islink(path)
    what = "a symbolic link; follow links, or leave it out" if is_link else "neither file nor directory; leave it out"
    return TransferError("source_invalid", "link" if is_link else "special-file", f"{decode_fs(path)} is {what}")
