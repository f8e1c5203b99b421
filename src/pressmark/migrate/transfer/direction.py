"""What every direction of a migration does with one object: have it arrive, and look at what is there."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pressmark.errors import ObjectError
from pressmark.fixity import Outcome
from pressmark.fixity.copying import Copying
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.object_digest import ALGORITHM, Read, object_digest, read_files
from pressmark.migrate.options import Options
from pressmark.migrate.planning.conflicts import Names
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.planning.targets import Targets
from pressmark.migrate.transfer.failures import TransferError
from pressmark.migrate.transfer.in_flight import InFlight
from pressmark.migrate.transfer.reading import Content, Reader, check_complete, listed_digests, tree_files
from pressmark.stores import Store, StoredObject, StoreObject
from pressmark.stores.bags.bag_folder_reader import BagObject
from pressmark.stores.ocfl.inventory import logical_files
from pressmark.stores.ocfl.ocfl_object import OcflObject
from pressmark.stores.refusals import SourceError, object_errors

__all__ = [
    "Copied",
    "Way",
    "all_files",
    "changed_at",
    "compare",
    "located",
    "names",
    "newest",
    "note_left_out",
    "place_of",
    "read_target",
    "says_what_it_is",
    "target_files",
]


class Way(ABC):
    """One direction; a context manager that lasts for a chunk.

    :param options: of the migration
    :param source: the store that objects come from
    :param destination: the store that they go to
    """

    #: Whether whole objects go as they are.
    verbatim = False

    def __init__(self, options: Options, source: Store, destination: Any) -> None:
        self.options = options
        self.source = source
        self.destination = destination
        self.reader = Reader(options, source)
        self.mode: Any = "auto" if options.copy_mode == "rename" else options.copy_mode
        # Names that a local file system does not take it refuses itself.
        self.target_names = None if options.profile == "unix" else (Names(options), Targets(options))

    def __enter__(self) -> Way:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def prepare(self, entries: Sequence[Entry]) -> None:
        """Find out at once what would take longer one by one."""
        return None

    @abstractmethod
    def begin(self, item: InFlight, replace: bool = False) -> bool:
        """Have an object arrive, and note what is known of it then.

        :param replace: in the place of the one that is there
        :return: whether it is there; otherwise :meth:`settle` tells what became of it
        :raises ObjectError: it is not; of kind ``exists`` where something is in its place
        """

    def settle(self) -> Iterator[tuple[InFlight, ObjectError | None]]:
        """Have those arrive that wait, and give what stood in the way of each."""
        return iter(())

    def waiting(self) -> int:
        """Return how many wait."""
        return 0

    def content(self, entry: Entry) -> Content:
        """Return what an object is made of, if the target system takes the names of all its files.

        :raises ObjectError: it is not there, or cannot be looked at
        :raises TransferError: it is not as it should be, or has a name that is refused
        """
        content = self.reader.content(entry)
        self.check_names(entry, content.files)
        return content

    def check_names(self, entry: Entry, files: Iterable[tuple[bytes, bytes]]) -> None:
        """Look at the names of files that are there now: the plan has seen those that were there then.

        :raises TransferError: the target system does not take one of them
        """
        if self.target_names is None:
            return
        taken, targets = self.target_names
        inside = [decode_fs(name) for name, _path in files]
        whole = targets.whole(entry.id, entry.target, inside, entry.encapsulation)
        (fault,) = taken.faults([[whole, *(f"{whole}/{name}" for name in targets.files(inside))]])
        if fault is not None:
            kind, path, why = fault
            raise TransferError("refused_name", kind, f"{path!r}: {why}")

    def note_time(self, item: InFlight, content: Content) -> None:
        """Note when the object was changed last, where its source is to be removed: only what stayed like that is."""
        if self.options.move:
            with object_errors(self.source.root, item.entry.source_id):
                item.changed = newest(content.files)

    def of_source(self, entry: Entry) -> Read:
        """Read an object of the source again, to compare it with what is there.

        :raises FileError: one of its files cannot be read
        """
        content = self.reader.content(entry)
        read = read_files(((decode_fs(name), path) for name, path in content.files), _algorithms(content.known))
        compare(read, content.known)
        return read

    def note_left_out(self, item: InFlight) -> None:
        """Note what the destination has no place for, of an object that was there already."""
        note_left_out(item, self.reader.content(item.entry), self.options.to)

    def of_target(self, entry: Entry) -> list[Read]:
        """Read what is in an object's place, to compare it; see :func:`read_target`."""
        return read_target(self.destination, entry)

    def measured(self, entry: Entry) -> tuple[int, int]:
        """Return how many bytes an object of the source has, and when the newest of its files was changed."""
        with object_errors(self.source.root, entry.source_id):
            statuses = [os.stat(path) for _name, path in self.reader.content(entry).files]
        return sum(one.st_size for one in statuses), changed_at(statuses)


def compare(read: Read, known: Mapping[str, Mapping[str, str]], says: str = "the source") -> None:
    """Compare files that were read with digests that are known of them.

    :param says: who gave those
    :raises SourceError: of kind ``mismatch``
    """
    for algorithm, block in known.items():
        for name, expected in block.items():
            found = read.digests.get(name, {}).get(algorithm)
            if found != expected:
                raise SourceError("mismatch", _mismatch(name, algorithm, found, expected, says))


def _mismatch(name: str, algorithm: str, found: str | None, expected: str, says: str = "the source") -> str:
    return f"{name!r}: its {algorithm} is {found}, not {expected} as {says} says"


def _algorithms(known: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((ALGORITHM, *known)))


class Copied:
    """Notes files as they are copied, and compares them with what is known.

    :param item: of the object
    :param content: what it is made of
    """

    def __init__(self, item: InFlight, content: Content) -> None:
        self.algorithms = _algorithms(content.known)
        self._item = item
        self._known = content.known
        self._digests: dict[str, str] = {}
        item.files = item.bytes = 0

    def file(self, name: bytes, outcome: Outcome) -> None:
        """Note a file.

        :raises SourceError: of kind ``mismatch``
        """
        digests = outcome.digests
        assert digests is not None
        logical = decode_fs(name)
        for algorithm, block in self._known.items():
            expected = block.get(logical)
            if expected is not None and digests[algorithm] != expected:
                raise SourceError("mismatch", _mismatch(logical, algorithm, digests[algorithm], expected))
        self._digests[logical] = digests[ALGORITHM]
        item = self._item
        item.files += 1
        item.bytes += outcome.size or 0

    def event(self, event: object) -> None:
        """Note how files are copied."""
        if isinstance(event, Copying):
            self._item.mode = event.mode

    def finish(self) -> None:
        """Note the digest of the whole, and check that nothing was left out.

        :raises SourceError: of kind ``mismatch``
        """
        for algorithm, block in self._known.items():
            for name in block.keys() - self._digests.keys():
                raise SourceError("mismatch", f"{algorithm} of {name!r} is known, but there is no such file")
        self._item.digest = object_digest(self._digests)


def note_left_out(item: InFlight, content: Content, to: str) -> None:
    """Note what the destination has no place for.

    :param to: its kind
    """
    item.note = content.left_out(to)


# --- what is there ----------------------------------------------------------------------------------------------------


def target_files(store: Store, entry: Entry) -> tuple[list[tuple[str, bytes]], Mapping[str, Mapping[str, str]]]:
    """Return the files of an object of the destination, and the digests that the store itself holds of them.

    Of a bag these are all files.

    :raises ObjectError: it is not there
    """
    return _files_of(store, entry, located(store, entry))


def located(store: Store, entry: Entry) -> StoredObject:
    """Return an object of the destination.

    :raises ObjectError: it is not there
    """
    return store.locate(StoreObject(entry.id, entry.target, True, None, ()))


def _files_of(
    store: Store, entry: Entry, found: StoredObject
) -> tuple[list[tuple[str, bytes]], Mapping[str, Mapping[str, str]]]:
    if isinstance(found, OcflObject):
        algorithm = str(found.inventory.get("digestAlgorithm"))
        known = {name: digest.lower() for name, _content, digest in logical_files(found.inventory)}
        return list(found.files()), {algorithm: known}
    if isinstance(found, BagObject) and not found.serialized:
        return [(decode_fs(name), path) for name, path in all_files(store, entry.id, entry.target)], {}
    return list(found.files()), {}


def all_files(store: Store, identifier: str, place: str) -> list[tuple[bytes, bytes]]:
    """Return all files of an object that is a directory, by their octets.

    :raises ObjectError: it is not there
    :raises TransferError: there is anything in it but files and directories
    """
    found: list[tuple[bytes, bytes]] = []
    top = os.path.join(os.path.abspath(os.fsencode(store.root)), encode_fs(place))
    if not os.path.lexists(top):
        raise ObjectError(store.root, identifier, "missing", f"there is nothing at {place!r}")
    with object_errors(store.root, identifier):
        others = tree_files(top, found, [])
    if others:
        raise TransferError("source_invalid", "special-file", f"{decode_fs(others[0])} is neither file nor directory")
    return sorted(found)


def read_target(store: Store, entry: Entry, *, thorough: bool = False) -> list[Read]:
    """Read an object of the destination, and return what it may be as an object of the source.

    A bag may be the object itself, or what was made around it.

    :param thorough: all of it, with the older versions of an OCFL object, and not what the system remembers of it,
        where that can be asked for
    :raises ObjectError: it is not there
    :raises FileError: a file cannot be read
    :raises SourceError: of kind ``mismatch``: it is not what the store itself says
    """
    found = located(store, entry)
    files, known = _files_of(store, entry, found)
    if thorough:
        if isinstance(found, BagObject) and not found.serialized:
            known = _listed(found, files)
        for _name, path in files:
            _forget(path)
    read = read_files(files, _algorithms(known))
    compare(read, known, "the destination")
    if thorough and isinstance(found, OcflObject):
        _read_older(found)
    payload = read.below("data/") if store.kind == "bags" else None
    return [read] if payload is None else [read, payload]


def says_what_it_is(store: Store, entry: Entry) -> bool:
    """Return whether an object of the destination can be compared with itself: it has an inventory, or manifests.

    :raises ObjectError: it is not there
    """
    if store.kind == "bags":
        found = located(store, entry)
        return isinstance(found, BagObject) and not found.serialized
    return store.kind == "ocfl"


def _listed(found: BagObject, files: list[tuple[str, bytes]]) -> Mapping[str, Mapping[str, str]]:
    """Return the digests that a bag's manifests list.

    :raises SourceError: of kind ``mismatch``: it is not complete
    """
    try:
        check_complete(found.bag_path)
        return listed_digests(found.bag(), found.bag_path, [encode_fs(name) for name, _path in files])
    except TransferError as error:
        raise SourceError("mismatch", error.failure.message) from None


def _read_older(found: OcflObject) -> None:
    """Read what only older versions of an object have, and compare it with its inventory.

    :raises FileError: a file cannot be read
    :raises SourceError: of kind ``mismatch``
    """
    older = list(found.older_files())
    for _content, path, _digest in older:
        _forget(path)
    known = {str(found.inventory.get("digestAlgorithm")): {content: digest for content, _path, digest in older}}
    read = read_files(((content, path) for content, path, _digest in older), _algorithms(known))
    compare(read, known, "the destination")


def _forget(path: bytes) -> None:
    """Have the system read a file from the disk next time."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # whoever reads it says why not
    try:
        advise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def newest(files: Iterable[tuple[bytes, bytes]]) -> int:
    """Return when the newest of some files was changed: its content, or its status, whose time nobody can set.

    :raises OSError: one is not there
    """
    return changed_at([os.stat(path) for _name, path in files])


def changed_at(statuses: Iterable[os.stat_result]) -> int:
    """Return the same of files that were looked at, in nanoseconds since 1970."""
    return max((max(one.st_mtime_ns, one.st_ctime_ns) for one in statuses), default=0)


def names(content: Content) -> dict[str, bytes]:
    """Return an object as a source that names each of its files, and its empty directories."""
    return {decode_fs(name): path for name, path in (*content.files, *content.empty)}


def place_of(store: Store, entry: Entry) -> bytes:
    """Return where an object of the source is, absolute."""
    return os.path.join(os.path.abspath(os.fsencode(store.root)), encode_fs(entry.source))
