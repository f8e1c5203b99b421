"""Verification of files against a manifest."""

from __future__ import annotations

import os
import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import chain, groupby
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple, cast

from pressmark.buckets.address import is_address
from pressmark.errors import quoted, short_digest
from pressmark.fixity.algorithms import ALGORITHMS, algorithms_of_size
from pressmark.fixity.manifest_reader import ManifestEntry, ManifestReader
from pressmark.fixity.outcomes import Fetched, Outcome, Readable
from pressmark.fixity.pool import hash_tasks
from pressmark.fixity.tree import walk_files
from pressmark.fs.beneath import HAS_DESCRIPTORS, open_directory
from pressmark.progress_event import EventListener, Progress, ProgressEvent, ProgressOfCalls

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger
    from pressmark.fixity.matching.moved_files import MovedFiles

__all__ = ["MISSING", "MISSPELLED", "ManifestCheck", "Verdict", "check_manifest", "respelled", "verify"]

_FIRST = 16  # files: if none of them matches, the digests may be of another algorithm
_SPOOL = 1 << 24  # a longer manifest from a pipe goes to a temporary file

MISSING = ("missing", "dangling-link")
MISSPELLED = "misspelled"
_NOT_LISTED = "not in the manifest"


class Verdict(NamedTuple):
    """The result of verifying a file.

    :ivar path: its name in the manifest; for a new file, its path relative to the root
    :ivar state: ``ok``, ``changed``, ``missing``, ``unreadable`` or ``new``; ``moved`` if a missing file is a new one
        under another name, or ``duplicate`` if a new file has the content of another file in the manifest
    :ivar algorithm: for a changed file, the first algorithm whose digest differs
    :ivar expected: the digest in the manifest
    :ivar found: the digest of the file
    :ivar kind: the kind of the outcome for a missing or unreadable file, and for a new file that could not be read;
        ``misspelled`` if a missing file exists under a name with other slashes; otherwise the state
    :ivar message: the problem, on one line, without the path
    :ivar size: bytes read
    :ivar same_as: path of a moved file relative to the root; for a duplicate, the name of the other file
    :ivar outcome: for a moved file, and a new file that was read: its path relative to the root, with all digests
    :ivar line: number of its first line in the manifest, from 1; 0 for a new file
    """

    path: str
    state: str
    algorithm: str | None = None
    expected: str | None = None
    found: str | None = None
    kind: str = "ok"
    message: str = ""
    size: int | None = None
    same_as: str | None = None
    outcome: Outcome | None = None
    line: int = 0

    @property
    def ok(self) -> bool:
        """Whether the file matches the manifest."""
        return self.state == "ok"


def verify(
    entries: Iterable[ManifestEntry],
    root: str | bytes | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    links: str = "follow",
    read: str = "parallel",
    ledger: Ledger | None = None,
    leave_out: Collection[tuple[int, int]] = (),
    exclude: Sequence[str] | str = (),
    one_file_system: bool = False,
    excluded: list[str] | None = None,
    digests: Literal["read", "stored"] = "read",
    read_new: bool | None = None,
) -> Iterator[Verdict]:
    """Verify the files of a manifest, and yield a verdict for each file, in order; then a verdict for each new file.

    With a root, the verdicts of missing and moved files come last before those of new files.

    :param entries: the entries of the manifest, from :func:`~pressmark.fixity.manifest_reader.read_manifest`. A file
        whose entry has no digests is not verified, but it is not new. Duplicates are found if the entries can be
        iterated again, as those of a :class:`ManifestCheck` and of a list
    :param root: directory that names are relative to and that is searched for new files, or an address in object
        storage, such as ``s3://bucket/prefix``; by default names are relative to the current directory, or are
        addresses, and new files are not searched
    :param links: ``"follow"`` or ``"refuse"`` symbolic links, also those in the directories of a name, or ``"skip"``
        those that the manifest does not list: they are not new; ``root`` itself is followed
    :param leave_out: device and inode of files that are not new, such as the manifest and the ledger
    :param exclude: globs of names that are not new, as for :func:`~pressmark.fixity.tree.walk`, like ``excluded``
        and ``one_file_system``; files in the manifest are verified in any case
    :param digests: with an address as root: ``"read"`` the content, or use the digests that are ``"stored"`` by the
        server, without reading it; a key without them is unreadable, of kind ``unverified``
    :param read_new: read the new files to find moved files and duplicates (default: if a file is missing)
    :param progress: new files that are read are its stage ``new``, without totals
    :raises AlgorithmError: an algorithm is not available
    :raises ManifestError: raised by ``entries``, after the verdicts for earlier entries
    :raises ValueError: an argument is invalid

    The other parameters are those of :func:`~pressmark.fixity.pool.hash_files`.
    """
    if links not in ("follow", "skip", "refuse"):
        raise ValueError(f"links={links!r}: expected follow, skip or refuse")
    base = None if root is None else os.fsencode(root)
    is_remote = base is not None and is_address(base)
    if digests not in ("read", "stored") or (digests == "stored" and not is_remote):
        raise ValueError(f"digests={digests!r}: expected read, or with an address as root stored")
    opened = "refuse" if links == "refuse" else "follow"
    known: _Known | _PathSet | None = None
    key_at: Callable[[bytes], Fetched | Outcome] | None = None
    if base is not None and is_remote:
        from pressmark.fixity.bucket_files import KeyTree  # few files are in object storage

        tree = KeyTree(base, digests)
        others: Callable[..., Iterator[str | bytes | Fetched | Outcome]] = partial(tree.files, exclude)
        known, key_at = _PathSet(), tree.file
        known.add(base.rstrip(b"/"))  # of which there is an outcome, if nothing is there
    elif base is not None:
        walked = partial(walk_files, base, once=True, one_file_system=one_file_system)
        others = partial(walked, links=links, leave_out=leave_out, exclude=exclude)
        known = _Known(base, links != "refuse", walked)
    # All names are opened from here, so that none leads through a link.
    top = real = None
    together = ProgressOfCalls(progress, ProgressEvent())
    with ExitStack() as stack:
        matched: MovedFiles | None = None  # once there are files to match: SQLite is not for every run
        matches = base is not None and read_new is not False
        algorithm_sets: dict[tuple[str, ...], None] = {}
        if links == "refuse" and HAS_DESCRIPTORS and not is_remote:
            top = stack.enter_context(open_directory(os.sep))
            real = os.path.realpath(base or b".")

        def listed() -> Iterator[tuple[ManifestEntry, bytes | Fetched | Outcome]]:
            nonlocal key_at
            for entry in entries:
                name = os.fsencode(entry.path)
                path = name if base is None else os.path.join(base, name)
                key: Fetched | Outcome | None = None
                if is_remote or (base is None and is_address(name)):
                    if key_at is None:
                        from pressmark.fixity.bucket_files import keys_at

                        key_at = keys_at()
                    key = key_at(name)
                    path = os.fsencode(key.path)
                if known is not None:
                    known.add(path)
                if entry.digests:
                    yield entry, key or (path if real is None else _without_links(real, name))

        for names, tasks in groupby(listed(), key=lambda task: tuple(task[0].digests)):
            algorithm_sets.setdefault(names)
            for entry, outcome in hash_tasks(
                tasks, names, threads, together.next(), links=opened, read=read, ledger=ledger, beneath=top
            ):
                verdict = _verdict(entry, outcome, base)
                if matches and verdict.kind in MISSING:
                    matched = matched or stack.enter_context(_moved_files())
                    matched.add_missing(entry, verdict.kind, verdict.message)
                else:
                    yield verdict
        if base is None or known is None:
            return
        found = _new(base, others, known, excluded)
        if matched is None and not (read_new and algorithm_sets):
            for _source, verdict in found:
                yield verdict
            return
        matched = matched or stack.enter_context(_moved_files())

        def report_new(event: ProgressEvent) -> None:
            # Without new files, the figures of the list stay.
            if progress is not None and (event.items or event.bytes):
                progress(event._replace(stage="new"))

        def new_files() -> Iterator[tuple[Verdict, bytes | Fetched | Outcome]]:
            for source, verdict in found:
                if real is not None and isinstance(source, bytes):
                    source = _without_links(real, os.fsencode(verdict.path))
                yield verdict, source

        for verdict, outcome in hash_tasks(
            new_files(),
            dict.fromkeys(chain.from_iterable(algorithm_sets)),
            threads,
            EventListener(report_new),
            links=opened,
            read=read,
            ledger=ledger,
            beneath=top,
        ):
            matched.add_new(verdict.state, outcome._replace(path=verdict.path), algorithm_sets)
        matched.match(() if iter(entries) is entries else entries)
        yield from _matched(matched)


@contextmanager
def check_manifest(
    manifest: str | bytes | os.PathLike[str] | BinaryIO,
    root: str | bytes | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    algorithms: Sequence[str] | str | None = None,
    format: str | None = None,
) -> Iterator[ManifestCheck]:
    """Open a list of checksums for a ``with`` block, parse all of it, and return its check.

    :param manifest: path of the list, or a binary stream; the content of one that is not seekable is kept
    :param root: directory that names are relative to, by default the current directory
    :param name: name of the list, which can tell its algorithm; by default that of the file
    :param algorithms: see :func:`~pressmark.fixity.manifest_reader.read_manifest`, like ``format``
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises ManifestError: the list is malformed
    :raises OSError: it cannot be read
    """
    with ExitStack() as stack:
        if isinstance(manifest, (str, bytes, os.PathLike)):
            path = os.fsdecode(manifest)
            file: BinaryIO = stack.enter_context(open(manifest, "rb"))
        else:
            file = manifest
            if not file.seekable():
                file = cast(BinaryIO, stack.enter_context(SpooledTemporaryFile(_SPOOL)))
                shutil.copyfileobj(manifest, file)
                file.seek(0)
            path = str(getattr(manifest, "name", "manifest"))
        yield ManifestCheck(file, path, path if name is None else name, root, algorithms, format)


class ManifestCheck:
    """A list of checksums that was parsed, and the files that it is for: see :func:`check_manifest`.

    :ivar name: name of the list
    :ivar path: its path
    :ivar root: directory that names are relative to; :data:`None` for the current directory
    :ivar algorithms: the different sets of algorithms of its files, each of official names; none if it is empty
    :ivar files: number of files to verify
    :ivar passed_over: number of comments, blank lines and entries of other algorithms
    :ivar other_algorithms: if only the length of the digests tells their algorithm: others with digests of this length
    :ivar is_doubtful: becomes true if none of the first files matches, and the digests may be of one of
        ``other_algorithms``
    """

    def __init__(
        self,
        file: BinaryIO,
        path: str,
        name: str,
        root: str | bytes | os.PathLike[str] | None,
        algorithms: Sequence[str] | str | None,
        format: str | None,
    ) -> None:
        self.name = name
        self.path = path
        self._file = file
        self._begin = file.tell()
        self.root = None if root is None else os.fsencode(root)
        self._given = algorithms, format
        entries = iter(self)
        found = Counter(tuple(entry.digests) for entry in entries)
        found.pop((), None)
        self.files: int = found.total()
        self.algorithms = list(found)
        self.is_doubtful = False
        self.passed_over: int = entries.passed_over
        self.other_algorithms: tuple[str, ...] = ()
        if entries.is_guessed:
            ((used,),) = self.algorithms
            self.other_algorithms = tuple(one for one in algorithms_of_size(ALGORITHMS[used].size) if one != used)

    def __iter__(self) -> ManifestReader:
        """Yield the entries of the list."""
        self._file.seek(self._begin)
        return self.parse(self._file)

    def parse(self, file: Readable) -> ManifestReader:
        """Yield the entries of another stream, which is read like the list."""
        return ManifestReader(file, self.name, *self._given, with_others=True)

    def paths(self) -> Iterator[str]:
        """Yield the paths of the files, from another reading of the list: a thread may use it meanwhile.

        :raises OSError: the list is not a file that can be opened again
        """
        with open(self.path, "rb") as file:
            for entry in ManifestReader(file, self.name, *self._given):
                yield os.path.join(os.fsdecode(self.root or b""), entry.path)

    def verify(
        self,
        threads: int | None = None,
        progress: Progress | None = None,
        *,
        links: str = "follow",
        read: str = "parallel",
        ledger: Ledger | None = None,
        leave_out: Collection[tuple[int, int]] = (),
        exclude: Sequence[str] | str = (),
        one_file_system: bool = False,
        excluded: list[str] | None = None,
        digests: Literal["read", "stored"] = "read",
        read_new: bool | None = None,
    ) -> Iterator[Verdict]:
        """Verify the files as :func:`verify` does, which has the same parameters.

        :param progress: its total is :attr:`files`, in the stage ``new`` unknown
        """

        def report(event: ProgressEvent) -> None:
            if progress is not None:
                progress(event if event.stage else event._replace(of_items=self.files))

        differing: int | None = 0 if self.other_algorithms else None
        verdicts = verify(
            self,
            self.root,
            threads,
            EventListener(report),
            links=links,
            read=read,
            ledger=ledger,
            leave_out=leave_out,
            exclude=exclude,
            one_file_system=one_file_system,
            excluded=excluded,
            digests=digests,
            read_new=read_new,
        )
        for verdict in verdicts:
            if differing is not None and verdict.state in ("ok", "changed"):
                differing = None if verdict.ok else differing + 1
                if differing == _FIRST:
                    self.is_doubtful = True
                    differing = None
            yield verdict
        if differing:
            self.is_doubtful = True

    def first_missing(self) -> str | None:
        """Return the first name if none of the files exists; otherwise, or for an empty list, :data:`None`.

        Keys in object storage are not looked for.
        """
        if self.root is not None and is_address(self.root):
            return None
        first = None
        for entry in self:
            first = entry.path if first is None else first
            try:
                os.lstat(os.path.join(os.fsdecode(self.root or b""), entry.path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError):
                pass  # it may exist, and verifying reports the error
            return None
        return first

    def fitting_root(self, name: str | bytes | os.PathLike[str]) -> str | None:
        """Return a directory that contains ``name`` and could be the root, if the root does not contain it: the current
        directory, that of the list, or that above the root; :data:`None` if none of them does.
        """
        root = os.path.realpath(self.root or b".")
        above = b"" if self.root is None else os.path.normpath(os.path.join(self.root, b".."))
        for directory in (b".", os.path.dirname(os.fsencode(self.path)), above):
            is_other = directory and os.path.realpath(directory) != root
            if is_other and os.path.lexists(os.path.join(directory, os.fsencode(name))):
                return os.fsdecode(directory)
        return None


class _PathSet:
    """A set of paths, stored as keyed digests of eight bytes: there may be a hundred million.

    With n paths, another path is taken for one of them with a probability of n / 2^64. The random key prevents
    deliberate collisions.
    """

    def __init__(self) -> None:
        self._key = os.urandom(16)
        self._table = array("Q", bytes(8)) * 1024  # a power of two, at most two thirds full; 0 is free
        self._count = 0

    def add(self, path: bytes) -> None:
        """Add ``path``."""
        if 3 * self._count >= 2 * len(self._table):
            old, self._table = self._table, array("Q", bytes(8)) * (2 * len(self._table))
            for mark in old:
                if mark:
                    self._table[self._slot(mark)] = mark
        mark = self._mark(path)
        slot = self._slot(mark)
        if not self._table[slot]:
            self._table[slot] = mark
            self._count += 1

    def __contains__(self, path: bytes) -> bool:
        return self._table[self._slot(self._mark(path))] != 0

    def _mark(self, path: bytes) -> int:
        return int.from_bytes(blake2b(path, digest_size=8, key=self._key).digest(), "little") or 1

    def _slot(self, mark: int) -> int:
        """Return the slot of ``mark``, or the free slot for it."""
        table = self._table
        mask = len(table) - 1
        slot = mark & mask
        while table[slot] and table[slot] != mark:
            slot = (slot + 1) & mask
        return slot


class _Known:
    """The files of a list, under all spellings of their paths.

    :param root: the directory that is searched for other files
    :param follow: symbolic links are followed: a file is the same under the name of a link
    :param walked: yields the files below the directory
    """

    def __init__(self, root: bytes, follow: bool, walked: Callable[[], Iterator[str | bytes | Outcome]]) -> None:
        self._paths = _PathSet()
        self._walked = walked
        self._follow = follow
        self._knows_targets = not follow
        self._below = os.path.join(os.path.realpath(root), b"")
        # The last directory, as consecutive files are often in the same one, and others.
        self._directory = self._prefix = b""
        self._real = lru_cache(1024)(os.path.realpath)

    def add(self, path: bytes) -> None:
        """Add the file at ``path``."""
        spelled = self._spelled(path)
        self._paths.add(spelled)
        if not spelled.startswith(self._below):
            self._add_target(path)

    def __contains__(self, path: bytes) -> bool:
        spelled = self._spelled(path)
        if spelled in self._paths:
            return True
        if not self._knows_targets:
            # Asking of each file in the list whether it is a link takes long; most directories have no other files.
            self._knows_targets = True
            for item in self._walked():
                if not isinstance(item, Outcome) and self._spelled(os.fsencode(item)) in self._paths:
                    self._add_target(os.fsencode(item))
            return path in self
        return self._follow and os.path.islink(path) and os.path.realpath(path) in self._paths

    def _add_target(self, path: bytes) -> None:
        if self._follow and os.path.islink(path):
            self._paths.add(os.path.realpath(path))

    def _spelled(self, path: bytes) -> bytes:
        """Return the only spelling of ``path``, in which no directory is a link."""
        directory, name = os.path.split(path)
        try:
            if name in (b"", b".", b".."):
                return os.path.realpath(path)
            if directory != self._directory or not self._prefix:
                self._prefix = os.path.join(self._real(directory or b"."), b"")
                self._directory = directory
            return self._prefix + name
        except (OSError, ValueError):  # NUL in a name
            return path


def _without_links(real: bytes, name: bytes) -> bytes:
    """Return the path of a name in the directory ``real``, relative to the top directory."""
    # As long as it has no links, its parent directory is that of its path.
    while name.startswith(b"../"):
        real, name = os.path.dirname(real), name[3:].lstrip(b"/")
    return os.path.join(real, name).lstrip(b"/")


def _verdict(entry: ManifestEntry, outcome: Outcome, base: bytes | None) -> Verdict:
    if outcome.digests is None:
        state = "missing" if outcome.kind in MISSING else "unreadable"
        other = respelled(entry.path, base) if state == "missing" else None
        if other is not None:
            message = f"{quoted(other)} exists; correct the name in the manifest"
            return Verdict(entry.path, state, kind=MISSPELLED, message=message, line=entry.line)
        return Verdict(entry.path, state, kind=str(outcome.kind), message=outcome.message, line=entry.line)
    for name, expected in entry.digests.items():
        found = outcome.digests[name]
        if found != expected:
            message = f"{name} is {short_digest(found)}, expected {short_digest(expected)}"
            if entry.size is not None and entry.size != outcome.size:
                message = f"size is {outcome.size} bytes, expected {entry.size}; {message}"
            return Verdict(
                entry.path, "changed", name, expected, found, "changed", message, outcome.size, line=entry.line
            )
    return Verdict(entry.path, "ok", size=outcome.size, line=entry.line)


def respelled(name: str, base: str | bytes | os.PathLike[str] | None = None) -> str | None:
    """Return the other spelling of a missing file that exists, as lists of Windows have: with backslashes instead of
    slashes, or with a carriage return at its end.

    :param base: directory that ``name`` is relative to
    """
    other = name.removesuffix("\r").replace("\\", "/")
    path = os.path.join("" if base is None else os.fsdecode(base), other)
    if other in (name, "") or not os.path.lexists(path) or os.path.isdir(path):
        return None
    return other


def _moved_files() -> MovedFiles:
    from pressmark.fixity.matching.moved_files import MovedFiles

    return MovedFiles()


def _matched(files: MovedFiles) -> Iterator[Verdict]:
    for line, path, kind, message, moved in files.missing():
        if moved is None:
            yield Verdict(path, "missing", kind=kind, message=message, line=line)
        else:
            yield Verdict(
                path,
                "moved",
                kind="moved",
                message=f"now {quoted(moved.path)}",
                size=moved.size,
                same_as=moved.path,
                outcome=moved,
                line=line,
            )
    for state, new, original in files.new():
        if state == "unreadable":
            yield Verdict(new.path, state, kind=str(new.kind), message=new.message)
        elif new.kind is not None:
            yield Verdict(new.path, state, kind=new.kind, message=f"{_NOT_LISTED}, and not read: {new.message}")
        else:
            state, what = (state, "") if original is None else ("duplicate", f"; same content as {quoted(original)}")
            message = f"{_NOT_LISTED}{what}"
            yield Verdict(new.path, state, kind=state, message=message, size=new.size, same_as=original, outcome=new)


def _new(
    base: bytes,
    walked: Callable[..., Iterator[str | bytes | Fetched | Outcome]],
    known: _Known | _PathSet,
    excluded: list[str] | None,
) -> Iterator[tuple[bytes | Fetched | Outcome, Verdict]]:
    """Yield the source of each new file, and its verdict if it is not read."""
    left_out: list[bytes] = []

    def report() -> None:
        if excluded is not None:
            excluded.extend(os.fsdecode(path) for path in left_out if path not in known)
        left_out.clear()

    for item in walked(excluded=left_out):
        report()
        path = os.fsencode(item.path if isinstance(item, Outcome | Fetched) else item)
        if path in known:
            continue
        is_key = isinstance(item, Fetched)
        name = os.fsdecode(path.removeprefix(base.rstrip(b"/") + b"/") if is_key else os.path.relpath(path, base))
        if isinstance(item, Outcome):
            yield item, Verdict(name, "unreadable", kind=str(item.kind), message=item.message)
        else:
            yield item if isinstance(item, Fetched) else path, Verdict(name, "new", kind="new", message=_NOT_LISTED)
    report()
