"""The plan: every object with its place, refused or cut into chunks, and nothing written to the destination.

::

    <work>/
    ├── entries.jsonl     an object a line, in the order of the source: :class:`pressmark.migrate.entries.Entry`
    ├── known.jsonl       rows of what is not done, known by now: ``source_missing``, ``source_invalid``
    ├── map.jsonl         which identifiers objects get, where a map says so: an old and a new one a line
    ├── refused.jsonl     why the plan is refused; empty where it is not
    ├── warnings.jsonl    what is worth a look
    ├── plan.json         how much it is; written last
    └── run.json, …       of the run: :class:`pressmark.jobs.WorkFolder`

All of it is written as the source is gone through, and nothing of it held: memory does not grow with the source, but
for what its own walk keeps.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain, compress
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

from pressmark import jobs, stores
from pressmark.bagit.copying import Job as CopyJob
from pressmark.bagit.copying import copy_files
from pressmark.cores import usable_threads
from pressmark.errors import BagError, IdentifierError, JobError, MigrationError, shown
from pressmark.jobs.folder import LOCK
from pressmark.jobs.locks import is_lock, locked
from pressmark.jobs.writing import is_temporary
from pressmark.layouts import Layout
from pressmark.layouts import layout as layout_by_name
from pressmark.migrate.digests import sha256_of
from pressmark.migrate.entries import Entry
from pressmark.migrate.events import OnEvent, Progress
from pressmark.migrate.index import IdentifierIndex, is_index
from pressmark.migrate.lookup import looked_up, missing
from pressmark.migrate.mapping import IdentifierMap, read_map
from pressmark.migrate.measuring import Measure, measure
from pressmark.migrate.options import COPY_MODES, IMPROPER, LINKS, VERIFICATIONS, Options, existing
from pressmark.migrate.refusals import Clashes, Fault, Names, Refusals, Side, folds, lack_of_space
from pressmark.migrate.rows import Row
from pressmark.migrate.sources import Identifiers, ListError, check_there, read_identifiers
from pressmark.migrate.targets import Place, Targets
from pressmark.paths import PROFILES
from pressmark.reports import ERROR, WARNING, Problem
from pressmark.stores import StoreObject
from pressmark.stores.base import text
from pressmark.stores.ocfl_declarations import VERSIONS
from pressmark.stores.ocfl_layout import refused_layout
from pressmark.trees import flush_directory

__all__ = [
    "BEGUN",
    "ENTRIES",
    "KNOWN",
    "PLAN",
    "PLANNED",
    "Plan",
    "Selection",
    "job_of",
    "make_options",
    "make_plan",
    "write_record",
]

ENTRIES, KNOWN, MAP, PLAN = "entries.jsonl", "known.jsonl", "map.jsonl", "plan.json"
#: There since the run was begun: the plan must not be replaced any more.
BEGUN = "begun.json"
#: What is in a work folder before that.
PLANNED = frozenset(
    {
        *(ENTRIES, f"{ENTRIES}.new", KNOWN, MAP, PLAN, f"{PLAN}.new", "refused.jsonl", "warnings.jsonl"),
        *("run.json", "plan.jsonl", "nonce", LOCK, "receipts", "output", f"{BEGUN}.new"),
    }
)
# The first of them that are made.
_FIRST = {"refused.jsonl", "warnings.jsonl"}
_EVERY = 0.5  # seconds between two events
# Objects that are looked at together, and by one thread.
_BATCH, _HANDFUL = 1024, 128
_BLOCK = 4096
# What is wrong with nothing but the place of an object: the destination has it right.
_ONLY_PLACED = frozenset({"misplaced", "path-ocfl-java", "identifier-unplaced", "not-canonical", "hidden"})
# What may hide objects that the walk cannot see.
_HIDING = frozenset({"unreadable", "link", "link-dangling", "link-loop", "symbolic-link"})
# What the destination adds to each object: files, and directories around them.
_ADDED = {"ocfl": (5, 3), "bags": (4, 2), "pairtree": (0, 2), "vitro": (0, 1)}


class Selection(Protocol):
    """Leaves objects of the source out."""

    def changed(self, identifiers: Sequence[str], sizes: Sequence[Measure]) -> Sequence[bool]:
        """Return of each object whether it is to be migrated."""

    def left_out(self, identifier: str) -> None:
        """Take note of an object that is in the source, but is left out for what is wrong with it."""

    def gone(self) -> Iterator[str]:
        """Give the identifiers of objects that should have been there, once all were asked for."""

    def new_ids(self) -> IdentifierMap | None:
        """Return which identifiers objects got before; :data:`None` where they kept theirs."""


@dataclass(frozen=True)
class Plan:
    """What is to be done.

    :ivar work: the work folder
    :ivar options: what was asked for
    :ivar objects: that are to be migrated
    :ivar files: of them
    :ivar bytes: of them
    :ivar chunks: that they are cut into
    :ivar mode: how files will come, as far as can be said now: ``rename``, ``reflink``, ``copy`` or ``hardlink``
    :ivar invalid: objects of the source that are not as its specification says, and are left out
    :ivar missing: identifiers of a list that are not in the source
    :ivar unchanged: objects that the first run has done, and that were not changed since
    :ivar warnings: how many there are of each kind; ``warnings.jsonl`` has them
    :ivar sha256: of the entries
    :ivar known_sha256: of the rows of what is not done, known by now
    :ivar map_sha256: of the map; empty where there was none
    :ivar seconds: it took
    :ivar before: the work folder of the run that this one catches up with, relative to its own
    """

    work: str
    options: Options
    objects: int
    files: int
    bytes: int
    chunks: int
    mode: str
    invalid: int = 0
    missing: int = 0
    unchanged: int = 0
    warnings: Mapping[str, int] = field(default_factory=dict)
    sha256: str = ""
    known_sha256: str = ""
    map_sha256: str = ""
    seconds: float = 0.0
    before: str | None = None

    def entries(self) -> Iterator[Entry]:
        """Give every object, in the order in which they are migrated."""
        with open(os.path.join(self.work, ENTRIES), "rb") as lines:
            for line in lines:
                yield Entry.parse(line)

    def new_ids(self) -> Iterator[tuple[str, str]] | None:
        """Give what the map says that it was made with, old and new identifiers; :data:`None` where it had no map.

        :raises MigrationError: that was written down, and is not as it was
        """
        if not self.map_sha256:
            return None
        path = os.path.join(self.work, MAP)
        try:
            found = sha256_of(path)
        except JobError:
            found = None
        # With a part of it, objects would get their old identifiers back.
        if found != self.map_sha256:
            what = f"{path} is not as the plan has written it; bring it back, or give a map of all objects"
            raise MigrationError(self.options.source, self.options.destination, what)
        return _pairs(path)

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON."""
        return {**dataclasses.asdict(self), "options": self.options.record()}

    def summary(self) -> dict[str, Any]:
        """Return how much it is, without what was asked for."""
        left_out = ("options", "sha256", "known_sha256", "map_sha256")
        return {key: value for key, value in self.record().items() if key not in left_out}

    @classmethod
    def open(cls, work: str | os.PathLike[str]) -> Plan:
        """Return the plan in a work folder.

        :raises MigrationError: there is none
        """
        folder = os.path.abspath(os.fspath(work))
        try:
            with open(os.path.join(folder, PLAN), "rb") as file:
                record = json.load(file)
            return cls(**{**record, "work": folder, "options": Options.from_record(record["options"])})
        except FileNotFoundError:
            refused = os.path.join(folder, "refused.jsonl")
            what = f"it was refused; {refused} says why" if os.path.exists(refused) else "there is no plan in it"
            raise MigrationError("", folder, f"{what}: plan the migration first") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MigrationError("", folder, f"its {PLAN} cannot be read ({error}); plan the migration again") from None


def _pairs(path: str) -> Iterator[tuple[str, str]]:
    with open(path, "rb") as lines:
        for line in lines:
            old, new = json.loads(line)
            yield old, new


# --- what is asked for ------------------------------------------------------------------------------------------------


def make_options(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    to: str,
    layout: Layout | str | Mapping[str, Any] | None = None,
    source_kind: str | None = None,
    source_layout: Layout | Mapping[str, Any] | None = None,
    source_options: Mapping[str, Any] | None = None,
    destination_options: Mapping[str, Any] | None = None,
    copy_mode: str = "auto",
    verify: str = "copy",
    move: bool = False,
    replace: bool = False,
    profile: str = "unix",
    links: str = "refuse",
    algorithms: Iterable[str] = ("sha512",),
    improper: str = "skip",
) -> Options:
    """Return the options of a migration, completed and compared with each other and with what is there.

    :raises MigrationError: they do not go together
    :raises StoreError: the source is no store, or the destination cannot be one
    :raises LayoutConfigError: a layout is refused
    :raises ValueError: an option has no such value
    """
    for name, value, known in (
        ("to", to, stores.KINDS),
        ("copy_mode", copy_mode, COPY_MODES),
        ("verify", verify, VERIFICATIONS),
        ("profile", profile, tuple(PROFILES)),
        ("links", links, LINKS),
        ("improper", improper, IMPROPER),
    ):
        if value not in known:
            raise ValueError(f"{name}={value!r}: expected one of {', '.join(known)}")
    options = Options(
        source=os.path.abspath(os.fspath(source)),
        source_kind=source_kind or stores.kind_of(os.fspath(source)),
        destination=os.path.abspath(os.fspath(destination)),
        to=to,
        layout=_config(layout),
        source_layout=_config(source_layout),
        source_options=dict(source_options or {}),
        destination_options=dict(destination_options or {}),
        copy_mode=copy_mode,
        verify=verify,
        move=move,
        replace=replace,
        profile=profile,
        links=links,
        algorithms=tuple(algorithms),
        improper=improper,
    )
    unknown = options.unknown()
    if unknown is not None:
        raise ValueError(unknown)
    options.open_source()
    options = _completed(options)
    why = _contradiction(options)
    if why is not None:
        raise MigrationError(options.source, options.destination, why)
    return options


def _config(layout: Layout | str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if layout is None:
        return None
    if isinstance(layout, str):
        layout = layout_by_name(layout)
    return layout.config() if isinstance(layout, Layout) else dict(layout)


def _completed(options: Options) -> Options:
    """Add what a destination that is there says of itself."""
    if not options.destination_is_there():
        return options
    store = options.open_destination()
    why = options.difference(store)
    if why is not None:
        raise MigrationError(options.source, options.destination, f"the destination is there already, and {why}")
    if options.layout is None and store.layout is not None:
        options = dataclasses.replace(options, layout=store.layout.config())
    return options


def _contradiction(options: Options) -> str | None:
    """Return why options do not go together, :data:`None` where they do."""
    source, destination = (os.path.realpath(path) for path in (options.source, options.destination))
    if source == destination:
        return "source and destination are one directory; name another destination"
    if _is_within(destination, source):
        return "the destination is inside of the source; name another one"
    if _is_within(source, destination):
        return "the source is inside of the destination; name another one"
    if options.to == "ocfl" and options.layout is None:
        return "an OCFL storage root needs a layout; give one, such as 0003-hash-and-id-n-tuple-storage-layout"
    layout = options.destination_layout()
    if layout is not None and options.to in ("pairtree", "vitro") and layout.name != options.to:
        return f"a destination of kind {options.to} has the layout {options.to}, not {layout.name}"
    if layout is not None and options.to == "ocfl":
        why = refused_layout(layout, options.destination_options.get("version", VERSIONS[0]))
        if why is not None:
            return why
    mode = options.copy_mode
    if mode == "hardlink" and options.to == "ocfl":
        return "OCFL forbids hard links (E090); take copy, reflink or auto"
    if mode == "rename" and not options.verbatim:
        return f"objects of kind {options.source_kind} are made anew as {options.to}, not renamed; take copy or auto"
    if mode == "rename" and not options.move:
        return "renaming takes the objects out of the source: ask for that with move, or take another copy mode"
    if mode in ("rename", "hardlink", "reflink") and not options.same_file_system():
        return f"{mode} works within one file system, and source and destination are on two; take copy or auto"
    if options.move and options.verify == "none" and not options.renames():
        return "sources are removed after verification only; ask for verify copy or reread, or do not move"
    return None


# --- the plan ---------------------------------------------------------------------------------------------------------


@dataclass
class _Totals:
    objects: int = 0
    files: int = 0
    bytes: int = 0
    blocks: int = 0
    directories: int = 0
    invalid: int = 0
    missing: int = 0
    unchanged: int = 0


class _Seen(NamedTuple):
    """An object that was looked at.

    :ivar whole: the path that it has for itself in the destination
    :ivar fault: kind, path and reason of why it is refused
    """

    record: StoreObject
    identifier: str
    target: str | None
    size: Measure
    whole: str | None
    fault: Fault | None


class _Lines:
    """A file of lines that is hashed as it is written."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb")  # noqa: SIM115  # closed in the end
        self.sha256 = hashlib.sha256()

    def write(self, line: bytes) -> None:
        self._file.write(line)
        self.sha256.update(line)

    def close(self) -> None:
        if self._file.closed:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def make_plan(
    options: Options,
    work: str | os.PathLike[str],
    *,
    ids: Identifiers | None = None,
    column: str | None = None,
    new_ids: IdentifierMap | None = None,
    order: str = "source",
    check_space: bool = True,
    threads: int | None = None,
    memory: int = 64 << 20,
    chunk_objects: int = jobs.FILES,
    chunk_bytes: int = jobs.BYTES,
    wanted: Selection | None = None,
    before: str | None = None,
    on_event: OnEvent | None = None,
) -> Plan:
    """Go through the source, and write a plan, or refuse.

    :param work: the work folder; a plan in it that was not begun is replaced
    :param ids: of the objects that are to be migrated; :data:`None` for all
    :param column: of the table that has them
    :param new_ids: which identifiers objects get
    :param order: ``source``: as they lie there, or ``size``: the largest first
    :param check_space: refuse where the destination's file system has too little space or inodes
    :param threads: that look at objects; :data:`None` or 0 for as many as there are cores
    :param memory: bytes that places are sorted in; what is more goes to the disk
    :param chunk_objects: objects in a chunk
    :param chunk_bytes: bytes in a chunk
    :param wanted: leave objects out
    :param before: the work folder of the run that this one catches up with
    :param on_event: called with :class:`~pressmark.migrate.events.Progress`
    :raises MigrationError: the plan is refused; its ``refused`` is the file that lists why
    :raises StoreError: the source cannot be read
    :raises JobError: the work folder cannot be used, or somebody else is at work in it
    """
    if order not in ("source", "size"):
        raise ValueError(f"order={order!r}: expected source or size")
    folder = os.path.abspath(os.fspath(work))
    try:
        for given in (ids, new_ids):
            check_there(given)
    except ListError as error:
        raise MigrationError(options.source, options.destination, str(error)) from None
    with ExitStack() as resources:
        _prepare(options, folder, resources)
        mode = _mode(options, folder)
        if options.copy_mode == "reflink" and mode != "reflink":
            what = "the destination's file system cannot clone files; take copy or auto"
            raise MigrationError(options.source, options.destination, what)
        tell = on_event or (lambda _event: None)
        size = (chunk_objects, chunk_bytes)
        planning = _Planning(options, folder, usable_threads(threads), wanted, tell, order, size, resources)
        layout = options.destination_layout()
        if options.to == "ocfl" and layout is not None and layout.name.startswith("0011"):
            planning.refusals.add("layout-0011")
        try:
            mapping = wanted.new_ids() if new_ids is None and wanted is not None else new_ids
            if mapping is not None:
                planning.read_map(mapping)
            with Clashes(folder, memory) as clashes:
                planning.go(ids, column, clashes)
                if new_ids is not None:  # what is gone of an earlier run's map is nothing to mend
                    planning.check_map(listed=ids is not None)
                clashes.refuse(planning.refusals, folds(options))
        except ListError as error:
            raise MigrationError(options.source, options.destination, str(error)) from None
        planning.weigh(mode, check_space)
        if planning.refusals.errors:
            reason = planning.refusals.reason()
            raise MigrationError(options.source, options.destination, reason, planning.refusals.path)
        return planning.finish(mode, before)


def _prepare(options: Options, folder: str, resources: ExitStack) -> None:
    """Make the work folder, or clear away a plan that was not begun, and hold it as a run does.

    :param resources: it is held until these are closed
    :raises MigrationError: it cannot be used
    :raises JobError: somebody else is at work in it
    """

    def refused(what: str) -> MigrationError:
        return MigrationError(options.source, options.destination, f"{what}; name another work folder")

    real = os.path.realpath(folder)
    for name, place in (("source", options.source), ("destination", options.destination)):
        if _is_within(real, os.path.realpath(place)):
            raise refused(f"the work folder {folder} is inside of the {name}")

    def look() -> list[str]:
        names = os.listdir(folder)
        if BEGUN in names:
            raise refused(f"{folder} holds a run that was begun; if it is not finished resume it")
        # The names of a plan's files alone do not say that they are a plan's.
        ours = set(names) >= _FIRST or _is_hardly_begun(folder, names)
        stranger = next((name for name in sorted(names) if not _is_of_plan(name, ours)), None)
        if stranger is not None:
            raise refused(f"the work folder {folder} holds {stranger!r}, which is nothing of a plan")
        return names

    try:
        os.makedirs(folder, exist_ok=True)
        look()  # before a lock is written beside what is somebody else's
        resources.enter_context(locked(Path(folder, LOCK)))
        for name in look():
            if name == LOCK:
                continue
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isdir(path):
                os.unlink(path)
            elif is_index(name):
                shutil.rmtree(path)
            else:
                os.rmdir(path)  # before a run is begun, there is nothing in it
    except OSError as error:
        raise refused(f"the work folder {folder} cannot be written ({error.strerror})") from error


def _is_hardly_begun(folder: str, names: list[str]) -> bool:
    """Return whether a plan was killed when it had made no more than its lock and the very first of its files."""
    paths = {name: os.path.join(folder, name) for name in names if not is_index(name)}
    if not paths.keys() <= {LOCK, *_FIRST}:
        return False
    lock = paths.pop(LOCK, None)
    return not any(map(os.path.getsize, paths.values())) and (lock is None or is_lock(lock))


def _is_of_plan(name: str, ours: bool) -> bool:
    """Return whether a plan, or one that was killed, may have left this in its work folder.

    :param ours: there is what every plan begins with
    """
    return is_index(name) or (ours and (name in PLANNED or is_temporary(name)))


def _is_within(path: str, outer: str) -> bool:
    return os.path.commonpath([path, outer]) == outer


class _Planning:
    """One plan as it is made."""

    def __init__(
        self,
        options: Options,
        folder: str,
        threads: int,
        wanted: Selection | None,
        tell: OnEvent,
        order: str,
        size: tuple[int, int],
        resources: ExitStack,
    ) -> None:
        self._options = options
        self._folder = folder
        self._threads = threads
        self._wanted = wanted
        self._tell = tell
        self._told = self._started = monotonic()
        self._resources = resources
        self.totals = _Totals()
        self.refusals = resources.enter_context(Refusals(folder))
        self._store = options.open_source()
        self._targets = Targets(options)
        self._names = Names(options)
        self._pool = resources.enter_context(ThreadPoolExecutor(threads, "pressmark-plan"))
        self._map: IdentifierIndex | None = None
        self._map_sha256 = ""
        self._fixed = _keeps_identifier(options)
        self._known = _Lines(os.path.join(folder, KNOWN))
        self._entries = _Lines(os.path.join(folder, ENTRIES))
        # Chunks are cut as entries are written, unless those are put in order first.
        self._size = size
        self._cutter = self._new_cutter() if order == "source" else None
        self._chunks: list[jobs.Chunk] = []
        resources.callback(self._known.close)
        resources.callback(self._entries.close)

    # --- what there is ------------------------------------------------------------------------------------------

    def read_map(self, given: IdentifierMap) -> None:
        """Take in which identifiers objects get."""
        self._map = self._resources.enter_context(IdentifierIndex(self._folder))
        read_map(given, self._map)
        # For catching up: what is changed later must not get its old identifier back.
        with closing(_Lines(os.path.join(self._folder, MAP))) as lines:
            for pair in self._map.items():
                lines.write(json.dumps(pair).encode() + b"\n")
        self._map_sha256 = lines.sha256.hexdigest()

    def check_map(self, listed: bool) -> None:
        """Say what the map has that is not in the source, once that was gone through.

        :param listed: it was gone through for the objects of a list only
        """
        assert self._map is not None
        # With a part of the source, the map may well be that of the whole.
        severity = WARNING if listed or self._wanted is not None else None
        for identifier, new in self._map.unasked():
            what = f"it would become {shown(new)}, but is not in the source; mend the map"
            self.refusals.add("map-unknown", [Side(identifier, "")], what, severity=severity)

    def go(self, ids: Identifiers | None, column: str | None, clashes: Clashes) -> None:
        """Go through the source, and write what is to be done."""
        items = self._all() if ids is None else self._listed(read_identifiers(ids, column))
        batch: list[StoreObject] = []
        for item in items:
            if isinstance(item, Row):
                self._leave(item)
            elif (row := self._improper(item)) is not None:
                if item.id is not None:
                    self._is_there(item.id)
                self._leave(row)
            else:
                batch.append(item)
            if len(batch) == _BATCH:
                self._take(batch, clashes)
                batch = []
        self._take(batch, clashes)
        if self._wanted is not None:
            for identifier in self._wanted.gone():
                self.refusals.add("gone", [Side(identifier, "")])
        self._say(last=True)

    def _is_there(self, identifier: str) -> None:
        """Take note of an object that is left out: it is in the source all the same."""
        if self._map is not None:
            self._map.ask([identifier])
        if self._wanted is not None:
            self._wanted.left_out(identifier)

    def _all(self) -> Iterator[StoreObject | Row]:
        """Give every object of the source."""
        hidden: list[Row] = []

        def stray(found: Problem) -> None:
            place = text(found.path)
            self.refusals.add("stray", [Side(None, place)], f"{found.kind}: {found.message}")
            if found.kind in _HIDING:
                hidden.append(Row("", "", place, "", "source_invalid", error_code=found.kind, error=found.message))

        for record in self._store.objects(threads=self._threads, on_problem=stray):
            while hidden:
                yield hidden.pop(0)
            yield record
        yield from hidden

    def _listed(self, identifiers: Iterator[str]) -> Iterator[StoreObject | Row]:
        """Give the objects of a list, each once."""
        listed = self._resources.enter_context(IdentifierIndex(self._folder))
        listed.fill((identifier, "") for identifier in identifiers)
        for identifier, _first, number, _same in listed.repeated():
            self.refusals.add("list-repeated", [Side(identifier, "")], f"it is number {number + 1} of the list, too")
        # Where nothing says at once where an object is, going through the source finds all of them.
        if self._store.layout is not None and self._store.kind != "bags":
            for identifier, _ in listed.items():
                yield looked_up(self._store, identifier)
            return
        batch: list[StoreObject] = []
        for item in chain(self._all(), [None]):
            if isinstance(item, StoreObject) and item.id is not None:
                batch.append(item)
            if batch and (item is None or len(batch) == _BATCH):
                wanted = listed.ask([one.id or "" for one in batch])
                yield from (one for one, value in zip(batch, wanted, strict=True) if value is not None)
                batch = []
        for identifier, _ in listed.unasked():
            yield missing(identifier, "the source has no object with this identifier")

    def _improper(self, record: StoreObject) -> Row | None:
        """Return the row of an object that is left out because of what is wrong with it."""
        wrong = [] if record.proper else [one for one in record.problems if one.severity == ERROR]
        wrong = [one for one in wrong if one.kind not in _ONLY_PLACED]
        if record.id is not None and (not wrong or self._options.improper == "take"):
            return None
        first = wrong[0] if wrong else next(iter(record.problems), None)
        kind, message = (first.kind, first.message) if first is not None else ("identifier-missing", "")
        message = message or "it has no identifier that can be read"
        if self._options.improper == "refuse":
            self.refusals.add("improper", [Side(record.id, record.path)], f"{kind}: {message}")
        identifier = record.id or ""
        return Row(identifier, identifier, record.path, "", "source_invalid", error_code=kind, error=message)

    def _leave(self, row: Row) -> None:
        """Write the row of what is not done."""
        side = Side(row.source_id or None, row.source)
        if row.status == "source_missing":
            self.totals.missing += 1
            self.refusals.add("missing", [side], row.error or "")
        else:
            self.totals.invalid += 1
            if self._options.improper != "refuse":
                self.refusals.add("improper", [side], f"{row.error_code}: {row.error}", severity=WARNING)
        self._known.write(row.line())

    # --- what is done with it -----------------------------------------------------------------------------------

    def _take(self, batch: list[StoreObject], clashes: Clashes) -> None:
        """Write the entries of some objects."""
        identifiers = [record.id or "" for record in batch]
        new = identifiers
        if self._map is not None:
            found = self._map.ask(identifiers)
            new = [old if one is None else one for old, one in zip(identifiers, found, strict=True)]
        asked = list(zip(batch, new, self._targets.places(new), strict=True))
        handfuls = [asked[start : start + _HANDFUL] for start in range(0, len(asked), _HANDFUL)]
        seen = [one for some in self._pool.map(self._look_at, handfuls) for one in some]
        if self._wanted is not None:
            keep = self._wanted.changed(identifiers, [one.size for one in seen])
            self.totals.unchanged += len(keep) - sum(keep)
            seen = list(compress(seen, keep))
        clashes.add([side for one in seen if (side := self._entry(one)) is not None])
        self._say()

    def _look_at(self, handful: Sequence[tuple[StoreObject, str, Place]]) -> list[_Seen]:
        """Measure objects and look at the names that they will have."""
        seen: list[_Seen] = []
        paths: list[list[str]] = []
        for record, identifier, place in handful:
            size, names = measure(self._store, record, self._options)
            whole, fault, below = None, self._refused(record, identifier, place, size, names), []
            if fault is None and place[0] is not None:
                try:
                    whole = self._targets.whole(identifier, place[0], names, record.encapsulation)
                    below = [whole, *(f"{whole}/{name}" for name in self._targets.files(names))]
                except IdentifierError as error:
                    fault = "refused-name", place[0], str(error)
            seen.append(_Seen(record, identifier, place[0], size, whole, fault))
            paths.append(below)
        faults = self._names.faults(paths)
        return [one if fault is None else one._replace(fault=fault) for one, fault in zip(seen, faults, strict=True)]

    def _refused(
        self, record: StoreObject, identifier: str, place: Place, size: Measure, names: Sequence[str]
    ) -> Fault | None:
        """Return why an object cannot be migrated, whatever it is called."""
        target, kind, why = place
        if target is None:
            return kind, "", why
        if self._fixed and identifier != record.id:
            what = f"it cannot become {shown(identifier)}: the object itself holds its identifier"
            return "identifier-fixed", target, what
        if self._options.to == "vitro" and size.files != 1 and size.fault is None:
            return "files-several", target, f"it has {size.files} files, and Vitro takes objects of one"
        if self._options.to == "vitro" and any("/" in name for name in names):
            return "files-several", target, "its file is in a directory, and Vitro takes objects of one file"
        return None

    def _entry(self, seen: _Seen) -> Side | None:
        """Write an object's entry, or refuse it; return it with the path that it has for itself."""
        record, size = seen.record, seen.size
        assert record.id is not None
        if size.fault is not None:
            self.refusals.add("unreadable", [Side(record.id, record.path, seen.target)], size.fault)
        if seen.fault is not None:
            kind, path, why = seen.fault
            self.refusals.add(kind, [Side(record.id, record.path, path or None)], why)
        if seen.target is None or seen.whole is None:
            return None
        line = Entry(
            *(seen.identifier, record.id, record.path, seen.target, record.encapsulation),
            *(size.files, size.bytes, size.changed),
        ).line()
        self._entries.write(line)
        if self._cutter is not None:
            self._cut(self._cutter.add(len(line), size.bytes, os.path.dirname(record.path)))
        totals = self.totals
        totals.objects += 1
        totals.files += size.files
        totals.bytes += size.bytes
        totals.blocks += size.blocks
        totals.directories += size.directories
        return Side(record.id, record.path, seen.whole)

    def _cut(self, chunk: jobs.Chunk | None) -> None:
        if chunk is not None:
            self._chunks.append(chunk)

    def _say(self, last: bool = False) -> None:
        now = monotonic()
        if last or now - self._told >= _EVERY:
            self._told = now
            self._tell(Progress("plan", self.totals.objects, self.totals.bytes))

    # --- the end ------------------------------------------------------------------------------------------------

    def weigh(self, mode: str, check: bool) -> None:
        """Compare what is needed with what the destination's file system has."""
        if mode == "rename":
            return
        totals = self.totals
        files, directories = (0, 1) if self._options.verbatim else _ADDED[self._options.to]
        added = files * totals.objects
        lack = lack_of_space(
            self._options.destination,
            (totals.blocks if mode == "copy" else 0) + added * _BLOCK,
            (0 if mode == "hardlink" else totals.files) + added,
            totals.directories + directories * totals.objects,
        )
        # Of what is there already, some may be what is to come.
        there = self._options.destination_is_there()
        for kind, what in lack:
            self.refusals.add(kind, message=what, severity=None if check and not there else WARNING)

    def finish(self, mode: str, before: str | None) -> Plan:
        """Write the plan."""
        self._entries.close()
        self._known.close()
        digest = self._entries.sha256.hexdigest()
        if self._cutter is None:
            cutter = self._new_cutter()
            digest = _sort_by_size(os.path.join(self._folder, ENTRIES), lambda *entry: self._cut(cutter.add(*entry)))
        else:
            cutter = self._cutter
        self._cut(cutter.rest())
        totals = self.totals
        plan = Plan(
            work=self._folder,
            options=self._options,
            objects=totals.objects,
            files=totals.files,
            bytes=totals.bytes,
            chunks=len(self._chunks),
            mode=mode,
            invalid=totals.invalid,
            missing=totals.missing,
            unchanged=totals.unchanged,
            warnings=dict(sorted(self.refusals.warnings.items())),
            sha256=digest,
            known_sha256=self._known.sha256.hexdigest(),
            map_sha256=self._map_sha256,
            seconds=round(monotonic() - self._started, 3),
            before=None if before is None else os.path.relpath(before, self._folder),
        )
        parameters = {**self._options.record(), "entries": digest}
        jobs.WorkFolder.create(self._folder, job_of(self._options), self._chunks, parameters)
        write_record(os.path.join(self._folder, PLAN), plan.record())
        return plan

    def _new_cutter(self) -> jobs.Cutter:
        return jobs.Cutter("objects", ENTRIES, *self._size)


def job_of(options: Options) -> Any:
    """Return the job that does what is planned."""
    from pressmark.migrate.job import Migrate

    return Migrate(options)


def write_record(path: str, record: Mapping[str, Any]) -> None:
    """Write a JSON object as a file that is there as a whole or not at all."""
    with open(path + ".new", "w", encoding="ascii") as file:
        json.dump(record, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    flush_directory(os.fsencode(os.path.dirname(path)))


def _keeps_identifier(options: Options) -> bool:
    """Return whether objects hold their identifiers and are taken as they are."""
    return options.verbatim and options.to in ("ocfl", "bags")


def _sort_by_size(path: str, on_entry: Callable[[int, int, int], object]) -> str:
    """Put the largest objects first, those of one size in their order; return the SHA-256 of the entries.

    :param on_entry: called with the length of each line, the object's bytes and its number
    """
    lines = _Lines(path + ".new")
    with closing(sqlite3.connect("", isolation_level=None)) as base, open(path, "rb") as entries:
        base.execute("CREATE TABLE entries (size INTEGER, at INTEGER PRIMARY KEY, length INTEGER)")
        base.execute("BEGIN")
        at = 0
        for line in entries:
            base.execute("INSERT INTO entries VALUES (?, ?, ?)", (Entry.parse(line).bytes, at, len(line)))
            at += len(line)
        sorted_ = base.execute("SELECT at, length, size FROM entries ORDER BY size DESC, at")
        for number, (start, length, size) in enumerate(sorted_):
            entries.seek(start)
            lines.write(entries.read(length))
            on_entry(length, size, number)
    lines.close()
    os.replace(path + ".new", path)
    return lines.sha256.hexdigest()


def _mode(options: Options, folder: str) -> str:
    """Return how files will come, as far as can be said before the first one."""
    if options.renames():
        return "rename"
    if options.copy_mode in ("auto", "reflink") and options.same_file_system():
        can = _can_clone(options, folder)
        return "reflink" if can or (can is None and options.copy_mode == "reflink") else "copy"
    return "copy" if options.copy_mode == "auto" else options.copy_mode


def _can_clone(options: Options, folder: str) -> bool | None:
    """Return whether the file system of the destination shares blocks between files.

    That is tried in the work folder; :data:`None` where it is on another one.
    """
    if os.stat(folder).st_dev != os.stat(existing(options.destination)).st_dev:
        return None
    with tempfile.TemporaryDirectory(prefix="identifiers-", suffix=".tmp", dir=folder) as inside:
        one, other = (os.path.join(os.fsencode(inside), name) for name in (b"one", b"other"))
        with open(one, "wb") as file:
            file.write(bytes(_BLOCK))
        try:
            return all(found.ok for found in copy_files([CopyJob(one, other)], ("xxh3-64",), mode="reflink"))
        except (BagError, OSError):
            return False
