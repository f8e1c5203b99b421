"""Create many bags from a table: each row has a source, and the elements of bag-info.txt of its bag.

The table is read twice. The first time, the names of the bags are checked, before anything is created.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from pressmark.bagit.bag import Bag, create, create_archive
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Event, Listener
from pressmark.bagit.changes.destination import refuse_in_bag
from pressmark.bagit.paths import archive_ending
from pressmark.bagit.profile import Profile
from pressmark.bagit.walk import SeenNames
from pressmark.bagit.writing.options import Elements, Path, checked_elements
from pressmark.bagit.writing.profile_options import add_elements
from pressmark.buckets.address import is_address
from pressmark.errors import BagError, FormatError, PressmarkError, TableError, is_store_wide, quoted, quoted_path
from pressmark.fs.durable import exists
from pressmark.option_names import option
from pressmark.paths.folding import folded
from pressmark.progress_event import EventListener, Progress
from pressmark.reports import Problem, ProgressEvent
from pressmark.tabular.records import TableRow, read_records
from pressmark.threads import Threads, require_use, resolve_threads

__all__ = ["ARCHIVES", "TableBag", "create_from_table"]

#: The endings of archives.
ARCHIVES = ("tar", "tar.gz", "tar.zst", "zip")
# Problems of a row that are kept.
KEPT = 1000
# Bags that are created at the same time, at most: each has open files.
TOGETHER = 16


class TableBag(NamedTuple):
    """The result of a row of a table.

    :ivar row: the number of its line, in Parquet of the row, from 1
    :ivar source: the path in the row; empty if there is none
    :ivar path: the path or address of the bag; empty if the row is malformed
    :ivar status: ``created``; ``exists``: an earlier run has created it; or ``failed``
    :ivar bag: the bag, unless the row has failed
    :ivar error: why it has failed
    :ivar problems: warnings and errors about the files of the source, the first 1,000
    """

    row: int
    source: str
    path: str
    status: str
    bag: Bag | None = None
    error: PressmarkError | None = None
    problems: Sequence[Problem] = ()


class _Task(NamedTuple):
    """A row that is well-formed.

    :ivar number: see :class:`TableBag`
    :ivar elements: of the row
    """

    number: int
    source: str
    path: str
    elements: list[tuple[str, str]]


def create_from_table(
    table: str | os.PathLike[str],
    destination: Path,
    info: Elements | None = None,
    *,
    column: str = "path",
    name_column: str | None = None,
    archive: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    algorithms: Sequence[str] | str | None = None,
    copy_mode: str = "copy",
    links: str = "refuse",
    tag_files: Mapping[str, Path] | Sequence[Path] = (),
    profile: Profile | None = None,
    nested: bool = False,
    exclude: Sequence[str] | str = (),
    one_file_system: bool = False,
    date: datetime.date | None = None,
    timestamps: str | None = None,
    threads: int | None = None,
    read: str = "parallel",
    progress: Progress | None = None,
) -> Iterator[TableBag]:
    """Create a bag for each row of a table; yield the result of each row, in order.

    A row that fails does not affect the others. A bag that an earlier call has created is not created again, so the
    same call continues an interrupted one.

    :param table: a file of CSV, TSV, JSON lines or Parquet, compressed if its name ends in ``.gz``
    :param destination: the directory of the bags, which is created if missing, or an address
    :param info: elements of bag-info.txt of all bags; those of the row follow
    :param column: the column of the source: a directory, whose content is the payload, or a file. All other columns are
        elements of bag-info.txt, repeated if the column is; an empty cell is none
    :param name_column: the column of the names of the bags; :data:`None` for the names of the sources
    :param archive: ``tar``, ``tar.gz``, ``tar.zst`` or ``zip``: create archives with this ending
    :param format: ``csv``, ``tsv``, ``jsonl`` or ``parquet``; :data:`None` for that of the name
    :param delimiter: the separator of CSV, by default a comma
    :param timestamps: of archives, as for :func:`pack`
    :param threads: number of bags that are created at the same time; :data:`None` for one per core
    :param progress: counts the files of all bags
    :raises TableError: the table cannot be read, lacks a column, or two rows have the same name of a bag; nothing was
        created
    :raises StoreError: the server of the destination no longer answers; bags that are complete stay

    The other parameters are those of :func:`create`.
    """
    if archive is not None and archive not in ARCHIVES:
        raise ValueError(f"archive={archive!r}: expected {', '.join(ARCHIVES)}")
    if profile is not None and profile.serialization == "required" and archive is None:
        raise BagError(profile.source, f"the profile requires serialized bags; choose a format ({option('archive')})")
    shared = checked_elements(info)
    path, base = os.fspath(table), os.fsdecode(destination)
    wanted = [column] if name_column is None else [column, name_column]
    ending = "" if archive is None else f".{archive}"

    def rows() -> Iterator[_Task | TableBag]:
        for row in read_records(path, wanted, format=format, delimiter=delimiter):
            yield _task(row, path, base, column, name_column, ending)

    tasks = _check_names(rows(), path)
    if not is_address(base):
        refuse_in_bag(os.fsencode(base))
        try:
            os.makedirs(base, exist_ok=True)
        except OSError as error:
            raise BagError(base, f"cannot create this directory: {error.strerror}") from error
    count = min(resolve_threads(threads), TOGETHER)
    inside = max(1, resolve_threads(threads) // max(1, min(tasks, count)))
    how = {"copy_mode": copy_mode} if archive is None else {"timestamps": timestamps}
    make: partial[Bag] = partial(create if archive is None else create_archive, **how)
    make = partial(
        make,
        algorithms=algorithms,
        links=links,
        tag_files=tag_files,
        profile=profile,
        nested=nested,
        exclude=exclude,
        one_file_system=one_file_system,
        date=date,
        threads=inside,
        read=read,
    )
    return _create_all(rows(), partial(_create, make=make, shared=shared), count, progress)


def _task(row: TableRow, table: str, base: str, column: str, name_column: str | None, ending: str) -> _Task | TableBag:
    """Return what to do for a row, or why it has failed."""
    cells = dict(reversed(row.cells))  # of repeated columns the first
    source = cells.get(column, "")

    def failed(reason: str) -> TableBag:
        return TableBag(row.number, source, "", "failed", error=TableError(table, reason, row.number))

    if row.fault:
        return failed(row.fault)
    if not source:
        return failed(f"column {quoted(column)} is empty; add the path of a file or directory")
    name = os.path.basename(os.path.abspath(source)) if name_column is None else cells.get(name_column, "")
    if reason := _why_no_name(name):
        how = "" if name_column is not None else f"; choose a column of names ({option('name_column')})"
        return failed(f"name of the bag {quoted(name)}: {reason}{how}")
    elements = [cell for cell in row.cells if cell[0] != column]
    try:
        checked_elements(elements)
    except ValueError as error:
        return failed(str(error))
    return _Task(row.number, source, os.path.join(base, name + ending), elements)


def _why_no_name(name: str) -> str | None:
    """Return why a bag cannot have a name; :data:`None` if it can."""
    if name in ("", ".", ".."):
        return "not the name of a file" if name else "empty"
    if "/" in name or os.sep in name or "\0" in name:
        return "contains a slash or NUL"
    if name.startswith(".pressmark-"):
        return "reserved"
    if (ending := archive_ending(os.fsencode(name))) is not None:
        return f"the ending {quoted_path(ending)} is that of an archive; use {option('archive')} to create archives"
    return None


def _check_names(rows: Iterator[_Task | TableBag], table: str) -> int:
    """Return the number of bags.

    :raises FormatError: two have the same name
    """
    seen = SeenNames()
    count = 0
    for row in rows:
        if isinstance(row, _Task):
            count += 1
            name = os.path.basename(row.path)
            if not seen.add(folded(os.fsencode(name))):
                what = f"an earlier row has the same name for its bag, {quoted(name)} (ignoring case)"
                raise FormatError(table, f"{what}; choose a column of names ({option('name_column')})", row.number)
    return count


def _create_all(
    rows: Iterator[_Task | TableBag],
    create_one: partial[TableBag],
    count: int,
    progress: Progress | None,
) -> Iterator[TableBag]:
    """Create the bags, several at the same time, and yield the result of each row."""
    total = _Total()
    on_event: Callable[[ProgressEvent], object] = (lambda _event: None) if progress is None else progress

    def run(row: _Task | TableBag) -> TableBag:
        return row if isinstance(row, TableBag) else create_one(row, listener=total.listener(row.number))

    with Threads(count, "pressmark-table") as pool:
        results = pool.map(run, rows, on_wait=lambda: on_event(total.event()))
        with closing(results):  # type: ignore[type-var]
            for result in results:
                total.end(result.row)
                on_event(total.event())
                yield result


class _Total:
    """The progress of all bags, which run on several threads."""

    def __init__(self) -> None:
        self._done = ProgressEvent()
        self._running: dict[int, ProgressEvent] = {}

    def listener(self, row: int) -> Listener:
        """Return what receives the progress of a row."""

        def hear(event: Event) -> None:
            require_use()  # an interrupt ends the run
            if isinstance(event, ProgressEvent) and event.items:
                self._running[row] = event

        return hear

    def end(self, row: int) -> None:
        """Count what a row has read."""
        if (last := self._running.pop(row, None)) is not None:
            self._done = self._done.plus(last.items, last.bytes)

    def event(self) -> ProgressEvent:
        """Return the progress."""
        running = list(self._running.values())
        return self._done.plus(sum(one.items for one in running), sum(one.bytes for one in running))


def _create(task: _Task, make: partial[Bag], shared: list[tuple[str, str]], listener: Listener) -> TableBag:
    """Create the bag of a row, unless it exists."""
    problems: list[Problem] = []

    def hear(event: Event) -> None:
        listener(event)
        if isinstance(event, Problem) and len(problems) < KEPT:
            problems.append(event)

    elements = [*shared, *task.elements]
    try:
        there = _existing(task.path, elements)
        if there is not None:
            return TableBag(task.number, task.source, task.path, "exists", there)
        bag = make(task.source, task.path, elements, progress=EventListener(hear))
    except (PressmarkError, OSError, ValueError) as error:
        if is_store_wide(error):
            raise
        known = error if isinstance(error, PressmarkError) else BagError(task.source, str(error))
        if isinstance(known, BagError) and add_elements() in known.reason:
            # The elements of a bag are the cells of its row.
            advice = f"fill the column of each in row {task.number}, or add the column"
            known = BagError(known.path, known.reason.replace(add_elements(), advice))
        return TableBag(task.number, task.source, task.path, "failed", error=known, problems=problems)
    return TableBag(task.number, task.source, task.path, "created", bag, problems=problems)


def _existing(path: str, elements: list[tuple[str, str]]) -> Bag | None:
    """Return the bag that an earlier run has created; :data:`None` if there is none.

    :raises BagError: there is something else, or the bag of another row
    """
    if is_address(path):
        try:
            bag = Bag.open(path)
        except BagError:
            return None  # creating it reports any other error
    elif not exists(os.fsencode(path)):
        return None
    else:
        try:
            bag = Bag.open(path)
        except BagError as error:
            raise BagError(path, f"destination already exists, and cannot be read as a bag: {error.reason}") from None
    wanted = BagInfo(elements)
    if any(bag.info.all(label)[: len(wanted.all(label))] != wanted.all(label) for label in wanted):
        advice = "move it elsewhere, or change them with pressmark bag update"
        raise BagError(path, f"a bag with other elements in bag-info.txt exists; {advice}")
    return bag
