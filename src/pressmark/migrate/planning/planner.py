"""Planning: the source is gone through once, and what is to be done written down, object by object.

Nothing is written to the destination: see :mod:`pressmark.migrate.planning.plan` for what is written. Nothing is held:
memory does not grow with the source, but for what its own walk keeps.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, compress
from time import monotonic
from typing import NamedTuple, Protocol

from pressmark import jobs
from pressmark.errors import IdentifierError, MigrationError, quoted
from pressmark.fs.atomic import new_file
from pressmark.fs.names import decode_fs
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.migrate.job import Migrate
from pressmark.migrate.options import Options
from pressmark.migrate.phases import OnEvent, Progress
from pressmark.migrate.planning.conflicts import (
    Collisions,
    ConflictMember,
    Fault,
    Names,
    PlanConflicts,
    folds,
    lack_of_space,
)
from pressmark.migrate.planning.copy_modes import mode_of
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.planning.id_map import IdentifierMap, read_map
from pressmark.migrate.planning.lookup import looked_up, missing
from pressmark.migrate.planning.measure import Measure, measure
from pressmark.migrate.planning.plan import ENTRIES, KNOWN, MAP, PLAN, Plan, write_record
from pressmark.migrate.planning.targets import Place, Targets
from pressmark.migrate.rows import Row
from pressmark.migrate.transfer.failures import status_of_problem
from pressmark.migrate.workdir import prepare
from pressmark.reports import ERROR, WARNING, Problem
from pressmark.stores import StoreObject
from pressmark.tabular.detection import Crlf
from pressmark.tabular.identifiers import Identifiers, ListError, check_list, check_map, read_identifiers
from pressmark.threads import resolve_threads

__all__ = ["Selection", "make_plan"]

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
        self._file = open(path, "wb", opener=new_file)  # noqa: SIM115  # closed in the end
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
    crlf: Crlf | None = None,
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
    :param crlf: of a list of lines: ``strip`` carriage returns before line feeds, or ``keep`` them
    :param new_ids: which identifiers objects get
    :param order: ``source``: as they lie there, or ``size``: the largest first
    :param check_space: refuse where the destination's file system has too little space or inodes
    :param threads: that look at objects; :data:`None` or 0 for as many as there are cores
    :param memory: bytes that places are sorted in; what is more goes to the disk
    :param chunk_objects: objects in a chunk
    :param chunk_bytes: bytes in a chunk
    :param wanted: leave objects out
    :param before: the work folder of the run that this one catches up with
    :param on_event: called with :class:`~pressmark.migrate.phases.Progress`
    :raises MigrationError: the plan is refused; its ``refused`` is the file that lists why
    :raises StoreError: the source cannot be read
    :raises JobError: the work folder cannot be used, or somebody else is at work in it
    """
    if order not in ("source", "size"):
        raise ValueError(f"order={order!r}: expected source or size")
    folder = os.path.abspath(os.fspath(work))
    try:
        check_list(ids, crlf)
        check_map(new_ids)
    except ListError as error:
        raise MigrationError(options.source, options.destination, str(error)) from None
    with ExitStack() as resources:
        prepare(options, folder, resources)
        mode = mode_of(options, folder)
        if options.copy_mode == "reflink" and mode != "reflink":
            what = "the destination's file system cannot clone files; take copy or auto"
            raise MigrationError(options.source, options.destination, what)
        report = on_event or (lambda _event: None)
        size = (chunk_objects, chunk_bytes)
        planning = _Planning(options, folder, resolve_threads(threads), wanted, report, order, size, resources)
        layout = options.destination_layout()
        if options.to == "ocfl" and layout is not None and layout.name.startswith("0011"):
            planning.conflicts.add("layout-0011")
        try:
            mapping = wanted.new_ids() if new_ids is None and wanted is not None else new_ids
            if mapping is not None:
                planning.read_map(mapping)
            with Collisions(folder, memory) as collisions:
                planning.go(None if ids is None else read_identifiers(ids, column, crlf), collisions)
                if new_ids is not None:  # what is gone of an earlier run's map is nothing to mend
                    planning.check_map(listed=ids is not None)
                collisions.refuse(planning.conflicts, folds(options))
        except ListError as error:
            raise MigrationError(options.source, options.destination, str(error)) from None
        planning.weigh(mode, check_space)
        if planning.conflicts.errors:
            reason = planning.conflicts.reason()
            raise MigrationError(options.source, options.destination, reason, planning.conflicts.path)
        return planning.finish(mode, before)


class _Planning:
    """One plan as it is made."""

    def __init__(
        self,
        options: Options,
        folder: str,
        threads: int,
        wanted: Selection | None,
        on_event: OnEvent,
        order: str,
        size: tuple[int, int],
        resources: ExitStack,
    ) -> None:
        self._options = options
        self._folder = folder
        self._threads = threads
        self._wanted = wanted
        self._on_event = on_event
        self._reported = self._started = monotonic()
        self._resources = resources
        self.totals = _Totals()
        self.conflicts = resources.enter_context(PlanConflicts(folder))
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
        self._builder = self._new_builder() if order == "source" else None
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
            what = f"it would become {quoted(new)}, but is not in the source; mend the map"
            self.conflicts.add("map-unknown", [ConflictMember(identifier, "")], what, severity=severity)

    def go(self, ids: Iterator[str] | None, collisions: Collisions) -> None:
        """Go through the source, and write what is to be done."""
        items = self._all() if ids is None else self._listed(ids)
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
                self._take(batch, collisions)
                batch = []
        self._take(batch, collisions)
        if self._wanted is not None:
            for identifier in self._wanted.gone():
                self.conflicts.add("gone", [ConflictMember(identifier, "")])
        self._report(last=True)

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
            place = decode_fs(found.path)
            self.conflicts.add("stray", [ConflictMember(None, place)], f"{found.kind}: {found.message}")
            if found.kind in _HIDING:
                status = status_of_problem(found.kind)
                hidden.append(Row("", "", place, "", status, error_code=found.kind, error=found.message))

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
            self.conflicts.add(
                "list-repeated", [ConflictMember(identifier, "")], f"it is number {number + 1} of the list, too"
            )
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
            self.conflicts.add("improper", [ConflictMember(record.id, record.path)], f"{kind}: {message}")
        identifier = record.id or ""
        return Row(identifier, identifier, record.path, "", status_of_problem(kind), error_code=kind, error=message)

    def _leave(self, row: Row) -> None:
        """Write the row of what is not done."""
        member = ConflictMember(row.source_id or None, row.source)
        if row.status == "source_missing":
            self.totals.missing += 1
            self.conflicts.add("missing", [member], row.error or "")
        else:
            self.totals.invalid += 1
            if self._options.improper != "refuse":
                self.conflicts.add("improper", [member], f"{row.error_code}: {row.error}", severity=WARNING)
        self._known.write(row.line())

    # --- what is done with it -----------------------------------------------------------------------------------

    def _take(self, batch: list[StoreObject], collisions: Collisions) -> None:
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
        collisions.add([member for one in seen if (member := self._entry(one)) is not None])
        self._report()

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
            what = f"it cannot become {quoted(identifier)}: the object itself holds its identifier"
            return "identifier-fixed", target, what
        if self._options.to == "vitro" and size.files != 1 and size.fault is None:
            return "files-several", target, f"it has {size.files} files, and Vitro takes objects of one"
        if self._options.to == "vitro" and any("/" in name for name in names):
            return "files-several", target, "its file is in a directory, and Vitro takes objects of one file"
        fault = self._targets.fault_of(names)
        return None if fault is None else (fault[0], f"{target}/{fault[1]}", fault[2])

    def _entry(self, seen: _Seen) -> ConflictMember | None:
        """Write an object's entry, or refuse it; return it with the path that it has for itself."""
        record, size = seen.record, seen.size
        assert record.id is not None
        if size.fault is not None:
            self.conflicts.add("unreadable", [ConflictMember(record.id, record.path, seen.target)], size.fault)
        if size.left_out is not None:
            self.conflicts.add("left-out", [ConflictMember(record.id, record.path, seen.target)], size.left_out)
        if seen.fault is not None:
            kind, path, why = seen.fault
            self.conflicts.add(kind, [ConflictMember(record.id, record.path, path or None)], why)
        if seen.target is None or seen.whole is None:
            return None
        line = Entry(
            *(seen.identifier, record.id, record.path, seen.target, record.encapsulation),
            *(size.files, size.bytes, size.changed),
        ).line()
        self._entries.write(line)
        if self._builder is not None:
            self._cut(self._builder.add(len(line), size.bytes, os.path.dirname(record.path)))
        totals = self.totals
        totals.objects += 1
        totals.files += size.files
        totals.bytes += size.bytes
        totals.blocks += size.blocks
        totals.directories += size.directories
        return ConflictMember(record.id, record.path, seen.whole)

    def _cut(self, chunk: jobs.Chunk | None) -> None:
        if chunk is not None:
            self._chunks.append(chunk)

    def _report(self, last: bool = False) -> None:
        now = monotonic()
        if last or now - self._reported >= _EVERY:
            self._reported = now
            self._on_event(Progress("plan", self.totals.objects, self.totals.bytes))

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
            self.conflicts.add(kind, message=what, severity=None if check and not there else WARNING)

    def finish(self, mode: str, before: str | None) -> Plan:
        """Write the plan."""
        self._entries.close()
        self._known.close()
        digest = self._entries.sha256.hexdigest()
        if self._builder is None:
            builder = self._new_builder()
            digest = _sort_by_size(os.path.join(self._folder, ENTRIES), lambda *entry: self._cut(builder.add(*entry)))
        else:
            builder = self._builder
        self._cut(builder.rest())
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
            warnings=dict(sorted(self.conflicts.warnings.items())),
            sha256=digest,
            known_sha256=self._known.sha256.hexdigest(),
            map_sha256=self._map_sha256,
            seconds=round(monotonic() - self._started, 3),
            before=None if before is None else os.path.relpath(before, self._folder),
        )
        parameters = {**self._options.record(), "entries": digest}
        jobs.WorkFolder.create(self._folder, Migrate(self._options), self._chunks, parameters)
        write_record(os.path.join(self._folder, PLAN), plan.record())
        return plan

    def _new_builder(self) -> jobs.ChunkBuilder:
        return jobs.ChunkBuilder("objects", ENTRIES, *self._size)


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
