"""Planning: one pass over the source, which records the path of each object.

Nothing is written to the destination; :mod:`pressmark.migrate.workdir` lists the files of a plan. Memory use does not
depend on the size of the source, except for the walk.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pressmark import jobs
from pressmark.buckets.address import is_address
from pressmark.buckets.requests import REQUESTS
from pressmark.errors import IdentifierError, MigrationError, StoreError, quoted, quoted_path
from pressmark.fs.atomic import OutputFile
from pressmark.jobs.chunks import FILES, Chunk, ChunkBuilder
from pressmark.jobs.workdir import work_errors
from pressmark.migrate.entry import Entry
from pressmark.migrate.job import Migrate, OnEvent
from pressmark.migrate.options import Options, complete_options, layout_config, make_options, version_name
from pressmark.migrate.planning.conflicts import (
    ConflictMember,
    NameRules,
    ObjectConflict,
    PlanConflicts,
    add_paths,
)
from pressmark.migrate.planning.plan import Plan, write_record
from pressmark.migrate.planning.source import Measure, SourceObjects, measure
from pressmark.migrate.planning.targets import TargetPath, Targets, lack_of_space, mode_of, request_count
from pressmark.migrate.workdir import ENTRIES, KNOWN, MAP, PLAN, prepare, state, work_folder
from pressmark.option_names import option
from pressmark.paths import PathIndex
from pressmark.progress_event import Progress
from pressmark.reports import WARNING, ProgressEvent
from pressmark.stores import StoreObject
from pressmark.threads import Threads, require_use, resolve_threads

if TYPE_CHECKING:
    from pressmark.layouts import Layout
    from pressmark.migrate.id_index import IdentifierIndex
    from pressmark.migrate.planning.lists import IdentifierMap
    from pressmark.migrate.planning.previous_runs import PreviousRuns
    from pressmark.tabular.identifiers import Identifiers

__all__ = ["catch_up", "make_plan", "plan"]

_EVERY = 0.5  # seconds between two events
# Objects that are planned together, and that one thread examines together.
_BATCH, _GROUP = 1024, 128
_BLOCK = 4096
_MEMORY = 64 << 20  # bytes for sorting paths; the rest is sorted on disk
# Files and directories that the destination adds to each object.
_ADDED = {"ocfl": (5, 3), "bags": (4, 2), "pairtree": (0, 2), "vitro": (0, 1)}


def plan(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    to: str,
    layout: Layout | str | None = None,
    source_kind: str | None = None,
    source_layout: Layout | str | None = None,
    source_options: Mapping[str, object] | None = None,
    destination_options: Mapping[str, object] | None = None,
    copy_mode: str = "auto",
    verify: str = "copy",
    move: bool = False,
    replace: bool = False,
    profile: str = "unix",
    links: str = "refuse",
    algorithms: Iterable[str] = ("sha512",),
    improper: str = "skip",
    drop_empty_directories: bool = False,
    version: str | int | None = None,
    work: str | os.PathLike[str] | None = None,
    ids: Identifiers | None = None,
    column: str | None = None,
    crlf: Literal["strip", "keep"] | None = None,
    new_ids: IdentifierMap | None = None,
    check_space: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan the path of each object of the source; nothing is written to the destination.

    :param source: the directory of a store, or an address in object storage, such as ``s3://bucket/prefix``
    :param destination: a directory that is empty or does not exist, or a store of the kind ``to`` and the same layout.
        The run creates it; missing directories above it are created by the plan, whose work folder is next to it. An
        OCFL storage root may be in object storage; then the work folder is in the current directory
    :param to: the kind of the destination: ``pairtree``, ``vitro``, ``ocfl`` or ``bags``
    :param layout: a layout or its name: required for an OCFL storage root, optional for a folder of bags;
        :func:`pressmark.layout_from_config` returns the layout of a configuration
    :param source_kind: the kind of the source, if it cannot be detected
    :param source_layout: a layout or its name, if the source does not declare it
    :param source_options: options for opening the source, by their names in Python, such as ``ignore``
    :param destination_options: options for creating and opening the destination: ``prefix``, ``namespaces``,
        ``identifiers``, ``content_paths``, ``user``, ``message``, …
    :param copy_mode: how files are transferred: one of :data:`COPY_MODES`
    :param verify: what is compared with the digests of the source: one of :data:`VERIFICATIONS`
    :param move: remove sources after verification
    :param replace: replace existing objects with different content
    :param profile: the naming rules of the target system, see :mod:`pressmark.paths`
    :param links: symbolic links in objects: one of :data:`LINKS`
    :param algorithms: digest algorithms of new bags
    :param improper: what happens to invalid objects of the source: one of :data:`IMPROPER`
    :param drop_empty_directories: with ``move``, remove sources with empty directories, which the destination does not
        support
    :param version: the version of OCFL objects to migrate to other kinds of stores, such as ``v2``; :data:`None` for
        the newest of each
    :param work: the work folder; :data:`None` for :func:`work_folder`
    :param ids: identifiers of the objects to migrate: a file (lines, CSV, JSON lines, Parquet) or any iterable;
        :data:`None` for all
    :param column: the column of the file with the identifiers
    :param crlf: for a list of lines: ``strip`` carriage returns before line feeds and a byte-order mark, or ``keep``
        them as part of identifiers; :data:`None` refuses a list with either
    :param new_ids: new identifiers of objects: a file of two columns, a mapping or pairs
    :param check_space: refuse the plan if the destination's file system has too little space or too few inodes
    :param threads: number of threads that examine objects; :data:`None` for one per core
    :param progress: objects and bytes that were read; its only stage is ``plan``
    :raises MigrationError: the plan is refused; ``refused`` is the file that lists the conflicts
    :raises StoreError: the source is not a store, or cannot be read
    :raises JobError: the work folder cannot be used, or another process uses it
    :raises LayoutConfigError: a layout is invalid
    """
    if work is not None and is_address(os.fspath(work)):
        raise StoreError(os.fspath(work), "the work folder cannot be in object storage; use a local path")
    options = make_options(
        source,
        destination,
        to=to,
        layout=layout,
        source_kind=source_kind,
        source_layout=source_layout,
        source_options=source_options,
        destination_options=destination_options,
        copy_mode=copy_mode,
        verify=verify,
        move=move,
        replace=replace,
        profile=profile,
        links=links,
        algorithms=algorithms,
        improper=improper,
        drop_empty_directories=drop_empty_directories,
        version=version,
    )
    return make_plan(
        options,
        work_folder(destination) if work is None else work,
        ids=ids,
        column=column,
        crlf=crlf,
        new_ids=new_ids,
        check_space=check_space,
        threads=threads,
        progress=progress,
    )


def catch_up(
    before: Plan | str | os.PathLike[str],
    *,
    layout: Layout | str | None = None,
    source_kind: str | None = None,
    source_layout: Layout | str | None = None,
    source_options: Mapping[str, object] | None = None,
    destination_options: Mapping[str, object] | None = None,
    copy_mode: str | None = None,
    verify: str | None = None,
    move: bool | None = None,
    replace: bool = True,
    profile: str | None = None,
    links: str | None = None,
    algorithms: Iterable[str] | None = None,
    improper: str | None = None,
    drop_empty_directories: bool | None = None,
    version: str | int | None = None,
    work: str | os.PathLike[str] | None = None,
    new_ids: IdentifierMap | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan the migration of all changes in the source since a finished run.

    If the run caught up with earlier runs, these are included. Objects that are no longer in the source are warnings of
    the kind ``gone``; the destination keeps them.

    :param before: the plan or the work folder of the run
    :param work: the new work folder; :data:`None` for :func:`work_folder`
    :param new_ids: as for :func:`plan`; :data:`None` for the map of that run, if it had one
    :param threads: as for :func:`plan`
    :param progress: as for :func:`plan`
    :param source_options: these options replace those of that run, and the others stay; likewise
        ``destination_options``
    :param move: as for :func:`plan`, with all other options; :data:`None` for the option of that run
    :raises MigrationError: the plan is refused, the run is not finished, its map is damaged, or the work folder of an
        earlier run is missing
    :raises JobError: rows or entries of a run are damaged, or the work folder cannot be used
    """
    from pressmark.migrate.id_index import IdentifierIndex  # few plans continue a run
    from pressmark.migrate.planning.previous_runs import PreviousRuns

    first = Plan.of(before)
    folder = work_folder(first.options.destination) if work is None else os.path.abspath(os.fspath(work))
    if state(first.work) != "finished":
        what = f"the run in {quoted_path(first.work)} is not finished; resume it first"
        raise MigrationError(first.options.source, first.options.destination, what)
    # Options that are not given stay.
    given: dict[str, Any] = {
        "layout": layout_config(layout),
        "source_kind": source_kind,
        "source_layout": layout_config(source_layout),
        "source_options": _merged(first.options.source_options, source_options),
        "destination_options": _merged(first.options.destination_options, destination_options),
        "copy_mode": copy_mode,
        "verify": verify,
        "move": move,
        "replace": replace,
        "profile": profile,
        "links": links,
        "algorithms": None if algorithms is None else tuple(algorithms),
        "improper": improper,
        "drop_empty_directories": drop_empty_directories,
        "version": None if version is None else version_name(version),
    }
    given = {name: value for name, value in given.items() if value is not None}
    options = complete_options(dataclasses.replace(first.options, **given))
    with work_errors(first.work), work_errors(folder), IdentifierIndex(first.work) as index:
        return make_plan(
            options,
            folder,
            new_ids=new_ids,
            threads=threads,
            selection=PreviousRuns(first, index, options.version),
            progress=progress,
        )


def _merged(before: Mapping[str, object], now: Mapping[str, object] | None) -> Mapping[str, object] | None:
    return None if now is None else {**before, **now}


def make_plan(
    options: Options,
    work: str | os.PathLike[str],
    *,
    ids: Identifiers | None = None,
    column: str | None = None,
    crlf: Literal["strip", "keep"] | None = None,
    new_ids: IdentifierMap | None = None,
    check_space: bool = True,
    threads: int | None = None,
    chunk_objects: int = FILES,
    selection: PreviousRuns | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Write a plan, or refuse it: see :func:`plan` for parameters and errors.

    :param work: the work folder; a plan in it whose run has not started is replaced
    :param chunk_objects: objects in a chunk
    :param selection: the objects that the runs before a catch-up have migrated
    """
    folder = os.path.abspath(os.fspath(work))
    has_lists = not (ids is None and new_ids is None and selection is None)
    with work_errors(folder), ExitStack() as resources:
        if has_lists:
            from pressmark.migrate.planning import lists  # most plans have none

            resources.enter_context(lists.list_errors(options))
            lists.check_lists(ids, crlf, new_ids)
        prepare(options, folder, resources)
        mode = mode_of(options, folder)
        if options.copy_mode == "reflink" and mode != "reflink":
            what = f"the destination's file system cannot clone files; use {option('copy_mode', 'auto')}"
            raise MigrationError(options.source, options.destination, what)
        planning = _Planning(options, folder, resolve_threads(threads), chunk_objects, resources)
        planning.selection = selection
        planning.on_event = progress or planning.on_event
        mapping = selection.plan.new_ids() if new_ids is None and selection is not None else new_ids
        if mapping is not None:
            planning.read_map(mapping)
        with PathIndex(Path(folder), memory=_MEMORY) as paths:
            listed = None if ids is None else lists.HashedIdentifiers(ids, column, crlf)
            planning.plan_objects(None if listed is None else iter(listed), paths)
            planning.ids_sha256 = "" if listed is None else listed.sha256
            if new_ids is not None:  # identifiers of an earlier run's map may be gone
                planning.check_map(listed=ids is not None)
            planning.conflicts.add_collisions(paths, planning.names.ignores_case)
        planning.check_space(mode, check_space)
        if planning.conflicts.errors:
            conflicts = planning.conflicts
            raise MigrationError(options.source, options.destination, conflicts.reason(), conflicts.path)
        return planning.finish(mode)


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


class _Examined(NamedTuple):
    """An object that was measured and checked.

    :ivar own_path: the path that it has for itself in the destination
    :ivar conflict: kind, path and reason of its conflict
    """

    record: StoreObject
    identifier: str
    target: str | None
    size: Measure
    own_path: str | None
    conflict: ObjectConflict | None


class _Planning:
    """The plan while it is written."""

    def __init__(
        self,
        options: Options,
        folder: str,
        threads: int,
        chunk_objects: int,
        resources: ExitStack,
    ) -> None:
        self.selection: PreviousRuns | None = None
        self.on_event: OnEvent = lambda _event: None
        self.totals = _Totals()
        self.conflicts = PlanConflicts(folder, resources)
        self._options = options
        self._folder = folder
        self._reported = self._started = monotonic()
        self._resources = resources
        self._store = options.open_source()
        self._source = SourceObjects(options, self._store, folder, threads, self.conflicts, resources)
        self._targets = Targets(options)
        self.names = NameRules(options)
        count = max(threads, REQUESTS) if self._store.bucket is not None else threads
        self._pool = resources.enter_context(Threads(count, "pressmark-plan"))
        self._map: IdentifierIndex | None = None
        self._map_sha256 = ""
        self.ids_sha256 = ""
        # Objects that contain their identifiers and are stored as they are.
        self._fixed = options.verbatim and options.to in ("ocfl", "bags")
        self._known = resources.enter_context(OutputFile(os.path.join(folder, KNOWN)))
        self._entries = resources.enter_context(OutputFile(os.path.join(folder, ENTRIES)))
        # Chunks are cut as entries are written.
        self._builder = ChunkBuilder("objects", ENTRIES, chunk_objects, workers=threads)
        self._chunks: list[Chunk] = []
        layout = options.destination_layout()
        if options.to == "ocfl" and layout is not None and layout.alias == "0011":
            self.conflicts.add("layout-0011")

    # --- the source -----------------------------------------------------------------------------------------------

    def read_map(self, identifier_map: IdentifierMap) -> None:
        """Read the map of new identifiers."""
        from pressmark.migrate.id_index import IdentifierIndex  # most plans have no map
        from pressmark.migrate.planning.lists import map_lines, read_map

        self._map = self._resources.enter_context(IdentifierIndex(self._folder))
        read_map(identifier_map, self._map)
        # A catch-up gives changed objects the same new identifiers.
        with OutputFile(os.path.join(self._folder, MAP)) as lines:
            for line in map_lines(self._map):
                lines.write(line)
        self._map_sha256 = lines.sha256

    def check_map(self, listed: bool) -> None:
        """Report identifiers of the map that are not in the source.

        :param listed: only the objects of a list were planned
        """
        assert self._map is not None
        # The map of the whole source is no mistake for a part of it.
        severity = WARNING if listed or self.selection is not None else None
        for identifier, new in self._map.unused():
            what = f"mapped to {quoted(new)}, but not in the source; correct the map"
            self.conflicts.add("map-unknown", [ConflictMember(identifier, "")], what, severity=severity)

    def plan_objects(self, ids: Iterator[str] | None, paths: PathIndex) -> None:
        """Write the entries of all objects, or of those of a list."""
        batch: list[StoreObject] = []
        for item in self._source.all() if ids is None else self._source.listed(ids):
            if isinstance(item, Entry):
                self._leave_out(item)
            elif (row := self._source.invalid_row(item)) is not None:
                if item.id is not None:
                    self._record_present(item.id)
                self._leave_out(row)
            else:
                batch.append(item)
            if len(batch) == _BATCH:
                self._plan_batch(batch, paths)
                batch = []
        self._plan_batch(batch, paths)
        if self.selection is not None:
            for identifier in self.selection.gone():
                self.conflicts.add("gone", [ConflictMember(identifier, "")])
        self._report(last=True)

    def _record_present(self, identifier: str) -> None:
        """Record that an object that is left out is in the source."""
        if self._map is not None:
            self._map.find([identifier])
        if self.selection is not None:
            self.selection.left_out(identifier)

    def _leave_out(self, row: Entry) -> None:
        """Write the row of an object that is left out."""
        if row.status == "source_missing":
            self.totals.missing += 1
        else:
            self.totals.invalid += 1
        self._source.warn_left_out(row)
        self._known.write(row.line())

    # --- the destination ------------------------------------------------------------------------------------------

    def _plan_batch(self, batch: list[StoreObject], paths: PathIndex) -> None:
        """Write the entries of some objects."""
        identifiers = [record.id or "" for record in batch]
        new = identifiers
        if self._map is not None:
            found = self._map.find(identifiers)
            new = [old if one is None else one for old, one in zip(identifiers, found, strict=True)]
        asked = list(zip(batch, new, self._targets.paths(new), strict=True))
        groups = [asked[start : start + _GROUP] for start in range(0, len(asked), _GROUP)]
        examined = [one for some in self._pool.map(self._examine, groups) for one in some]
        if self.selection is not None:
            keep = self.selection.changed(identifiers, [one.size for one in examined])
            self.totals.unchanged += len(keep) - sum(keep)
            examined = list(compress(examined, keep))
        add_paths(paths, [member for one in examined if (member := self._write_entry(one)) is not None])
        self._report()

    def _examine(self, group: Sequence[tuple[StoreObject, str, TargetPath]]) -> list[_Examined]:
        """Measure objects, and check the names that they get."""
        examined: list[_Examined] = []
        paths: list[list[str]] = []
        measured = measure(self._store, [record for record, _identifier, _target_path in group], self._options)
        for (record, identifier, target_path), (size, names) in zip(group, measured, strict=True):
            require_use()
            own_path, conflict, below = None, self._conflict_of(record, identifier, target_path, size, names), []
            if conflict is None and target_path[0] is not None:
                try:
                    own_path = self._targets.own_path(identifier, target_path[0], names, record.encapsulation)
                    below = [own_path, *[f"{own_path}/{name}" for name in self._targets.files(names)]]
                except IdentifierError as error:
                    conflict = "refused-name", target_path[0], str(error)
            examined.append(_Examined(record, identifier, target_path[0], size, own_path, conflict))
            paths.append(below)
        found = self.names.conflicts_of(paths)
        return [
            one if conflict is None else one._replace(conflict=conflict)
            for one, conflict in zip(examined, found, strict=True)
        ]

    def _conflict_of(
        self, record: StoreObject, identifier: str, target_path: TargetPath, size: Measure, names: Sequence[str]
    ) -> ObjectConflict | None:
        """Return why an object cannot be migrated, apart from the rules for its names."""
        target, kind, why = target_path
        if target is None:
            return kind, "", why
        if self._fixed and identifier != record.id:
            what = f"cannot be changed to {quoted(identifier)}: the object contains its identifier"
            return "identifier-fixed", target, what
        if self._options.to == "vitro" and size.files != 1 and size.unreadable is None:
            return "files-several", target, f"the object has {size.files} files, but a Vitro object is a single file"
        if self._options.to == "vitro" and any("/" in name for name in names):
            return "files-several", target, "the file is in a directory, but a Vitro object is a single file"
        conflict = self._targets.conflict_of(names)
        return None if conflict is None else (conflict[0], f"{target}/{conflict[1]}", conflict[2])

    def _write_entry(self, examined: _Examined) -> ConflictMember | None:
        """Write an object's entry, or add its conflict; return it with the path that it has for itself."""
        record, size = examined.record, examined.size
        assert record.id is not None
        if size.missing is not None:
            self._leave_out(
                Entry(
                    *(examined.identifier, record.id, record.path, "", "source_missing"),
                    error_code="version-missing",
                    error=size.missing,
                )
            )
            return None
        for kind, why in (("unreadable", size.unreadable), ("left-out", size.left_out)):
            if why is not None:
                self.conflicts.add(kind, [ConflictMember(record.id, record.path, examined.target)], why)
        if examined.conflict is not None:
            kind, path, why = examined.conflict
            self.conflicts.add(kind, [ConflictMember(record.id, record.path, path or None)], why)
        if examined.target is None or examined.own_path is None:
            return None
        line = Entry(
            *(examined.identifier, record.id, record.path, examined.target),
            files=size.files,
            bytes=size.bytes,
            entries=size.entries,
            encapsulation=record.encapsulation,
        ).line()
        self._entries.write(line)
        self._add_chunk(self._builder.add(len(line), size.bytes, record.path.rpartition("/")[0]))
        totals = self.totals
        totals.objects += 1
        totals.files += size.files
        totals.bytes += size.bytes
        totals.blocks += size.blocks
        totals.directories += size.directories
        return ConflictMember(record.id, record.path, examined.own_path)

    def _add_chunk(self, chunk: Chunk | None) -> None:
        if chunk is not None:
            self._chunks.append(chunk)

    def _report(self, last: bool = False) -> None:
        now = monotonic()
        if last or now - self._reported >= _EVERY:
            self._reported = now
            self.on_event(ProgressEvent("plan", items=self.totals.objects, bytes=self.totals.bytes))

    # --- the end --------------------------------------------------------------------------------------------------

    def check_space(self, mode: str, check: bool) -> None:
        """Compare the space and inodes that the plan needs with those of the destination's file system."""
        if mode == "rename" or self._options.is_to_bucket:
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
        # An existing destination may contain some of the objects already.
        there = self._options.destination_is_there()
        for kind, what in lack:
            self.conflicts.add(kind, message=what, severity=None if check and not there else WARNING)

    def finish(self, mode: str) -> Plan:
        """Write the summary of the plan, and the chunks."""
        self._entries.commit()
        self._known.commit()
        digest = self._entries.sha256
        self._add_chunk(self._builder.rest())
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
            known_sha256=self._known.sha256,
            map_sha256=self._map_sha256,
            ids_sha256=self.ids_sha256,
            seconds=round(monotonic() - self._started, 3),
            requests=request_count(self._options, totals.objects, totals.files),
            before=None if self.selection is None else os.path.relpath(self.selection.plan.work, self._folder),
        )
        parameters = {**self._options.record(), "entries": digest}
        jobs.WorkFolder.create(self._folder, Migrate(self._options), self._chunks, parameters)
        write_record(os.path.join(self._folder, PLAN), plan.record())
        return plan
