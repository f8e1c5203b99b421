"""``pressmark store put``: store files as objects."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.files import refuse_missing
from pressmark.cli.common.options import (
    CRLF,
    ONE_FILE_SYSTEM,
    exclude_options,
    globs_to_exclude,
    job_options,
    null_option,
)
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.options import (
    CONTENT_CLASS,
    CREATED,
    JSON,
    LINKS,
    STORE,
    Provenance,
    StoreFormat,
    Writers,
    changes_text,
    content_class_option,
    creation_date,
    missing_provenance,
    provenance_options,
    store_options,
    write_object,
    writers_options,
)
from pressmark.errors import IdentifierError, ObjectError, quoted
from pressmark.reports import ProgressEvent
from pressmark.stores import ObjectSource, Store, StoreObject

if TYPE_CHECKING:
    from pressmark.cli.common.progress import Reporter
    from pressmark.cli.common.workers import Workers
    from pressmark.jobs.chunks import Chunk
    from pressmark.tabular.formats import Crlf

__all__ = ["Report", "one_object", "put_command", "store_objects"]

#: Reports the record or the error of an object.
Report = Callable[[StoreObject | Exception], object]

HELP = """\
Store files as the object IDENTIFIER, or all objects listed with --from.

\b
Examples:
  pressmark store put books ark:/13030/xt12t3 scans
  pressmark store put root --from objects.tsv

SOURCE is a file, or a directory whose content is stored. Several SOURCEs keep their names in the object.
"""

EPILOG = """\
\b
More examples:
  pressmark store put uploads http://vivo.example.edu/individual/n31 lily.jpg
  pressmark store put root ark:/13030/xt12t3 scans --replace --message Rescan
  pressmark store put root --from objects.tsv --exclude "*.tmp" --exclude-junk

Storing an object is atomic, even if the command is killed. Each stored object is a line on standard output: identifier,
TAB, and path in STORE; with --json, as "pressmark store ls" lists it. With --from, objects are stored in batches, and
listed when their batch is on disk. Before the command waits for more lines, it stores all objects that it has read. A
failed object is reported on standard error, and the command continues with the next. Content that STORE does not
support, such as empty directories in an OCFL storage root, is reported as a warning.

An object that STORE already contains with the same files is read, compared and listed ("exists_same" with --json), and
is no failure: after an interrupt, run the same command again. An object with other files is not changed, unless
--replace is given. With --replace, an OCFL object keeps its versions, and the command reports the number of files that
were added, removed, renamed and changed; if nothing changes, no version is created.

--workers stores the objects of a list in several processes, and lists them, in the order of FILE, when all are stored.
Of several lines with one identifier, the first is stored, and the others fail. --work makes the run resumable.

--exclude: GLOB matches the names of files and directories below SOURCE, not paths, and is case-sensitive. A directory
is left out with everything in it. Each one is a warning.

Exit status: 0 all objects stored, 1 some failed, 2 usage error (nothing was done), 130 interrupted.
"""


@click.command("put", cls=Command, help=HELP, epilog=EPILOG, short_help="Store objects in a store.")
@STORE
@click.argument("identifier", metavar="[IDENTIFIER", required=False)
@click.argument("sources", metavar="SOURCE...]", nargs=-1, type=click.Path(path_type=bytes))
@click.option(
    "--from",
    "listed",
    metavar="FILE",
    type=click.Path(readable=False),
    help='Store the objects listed in FILE ("-" for standard input), one per line: identifier, TAB, source.',
)
@null_option("Items of FILE and of the output end with NUL instead of a line feed.")
@CRLF
@click.option("--replace", is_flag=True, help="Replace an existing object; an OCFL object gets a new version.")
@click.option(
    "--copy-mode",
    type=click.Choice(["auto", "copy", "reflink", "hardlink"]),
    default="auto",
    show_default=True,
    help="Copy, share disk blocks (reflink), create hard links, or reflink where possible and copy otherwise (auto).",
)
@CONTENT_CLASS
@writers_options
@LINKS
@exclude_options
@ONE_FILE_SYSTEM
@provenance_options
@CREATED
@JSON
@store_options
@job_options
def put_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str | None,
    sources: tuple[bytes, ...],
    listed: str | None,
    null: bool,
    crlf: Crlf | None,
    replace: bool,
    copy_mode: str,
    content_class: str | None,
    writers: Writers,
    links: str,
    exclude: tuple[str, ...],
    exclude_junk: bool,
    one_file_system: bool,
    provenance: Provenance,
    created: str | None,
    as_json: bool,
    workers: Workers | None,
) -> int:
    """Store objects."""
    if (identifier is None) == (listed is None):
        raise CallError("missing argument; specify IDENTIFIER and SOURCE, or --from FILE")
    if identifier is not None:
        if not sources:
            raise CallError("missing argument; specify SOURCE, a file or directory")
        refuse_missing(sources)
    how: dict[str, Any] = {"replace": replace, "copy_mode": copy_mode, "links": links, "compare": True}
    how |= {"exclude": globs_to_exclude(exclude, exclude_junk), "one_file_system": one_file_system}

    def more(kind: str) -> dict[str, Any]:
        chosen = content_class_option(content_class, path, kind) | writers.options(path, kind)
        return provenance.options(kind) | chosen

    store = store_format.open(path, ignore, more=more)
    count = by_workers = None
    if listed is None:
        source = _source(sources)
        how |= creation_date(created, store.kind)

        def put() -> StoreObject:
            return store.put(identifier or "", source, **how)

        run = one_object(put)
    else:
        from pressmark.cli.common.item_lists import count_lines
        from pressmark.cli.store.listed import store_listed

        run = partial(store_listed, store, listed, null, crlf, **how)
        count = count_lines(listed, null, crlf)
        if workers is not None:
            opened = store_format.job_arguments(path, ignore, more=more)
            by_workers = partial(_stored_by_workers, workers, {**opened, "how": how}, listed, null, crlf)
    is_counted = listed is not None
    shown: dict[str, Any] = {"as_json": as_json, "null": null, "progress": progress}
    return store_objects(path, store, run, **shown, is_counted=is_counted, count=count, by_workers=by_workers)


def _stored_by_workers(
    workers: Workers, job: Mapping[str, Any], listed: str, null: bool, crlf: Crlf | None, reporter: Reporter
) -> Iterator[StoreObject | Exception]:
    """Store the objects of a list, and yield the record or the error of each once all are stored.

    :param job: the arguments of :class:`~pressmark.stores.PutObjects`
    """
    from pressmark.cli.common.item_lists import open_lines
    from pressmark.cli.store.listed import listed_objects
    from pressmark.stores.job import PutObjects

    put = PutObjects(**job)

    def plan(folder: str) -> Iterator[Chunk]:
        with open_lines(listed, null, crlf) as source:
            yield from put.plan(folder, filter(None, listed_objects(source, null)))

    kept = "stored objects remain; run the same command again to store the others"
    for found in put.results(workers.run(put, plan, [listed], None, reporter, kept)):
        yield Failure(found) if isinstance(found, str) else found


def one_object(store_it: Callable[[], StoreObject]) -> Callable[[Report], object]:
    """Return a function for :func:`store_objects` that stores one object."""

    def run(report: Report) -> None:
        try:
            record = store_it()
        except (ObjectError, IdentifierError) as error:
            report(error)
        else:
            report(record)

    return run


def store_objects(
    path: bytes,
    store: Store,
    run: Callable[[Report], object],
    *,
    as_json: bool,
    null: bool,
    progress: bool | None,
    is_counted: bool = False,
    count: Callable[[], Iterable[int]] | None = None,
    restored: str = "",
    by_workers: Callable[[Reporter], Iterable[StoreObject | Exception]] | None = None,
) -> int:
    """Store objects, report each, and return the exit status.

    :param path: the store, as specified
    :param run: stores the objects, and passes the record or the error of each to its argument
    :param is_counted: end with the number of objects
    :param count: yields the number of objects in each part of a list, for the progress
    :param restored: what of an object comes back: a version, or files of one
    :param by_workers: does this instead of ``run``: stores the objects, with their progress, and yields the records and
        errors
    """
    stored = same = failed = warned = recorded = 0
    changed: list[StoreObject] = []  # the last one
    changes = Counter[str]()

    def interrupted() -> str:
        what = f"interrupted after {format_count(stored + same, 'object')}"
        return f"{what}; run the same command again to store the others"

    how: dict[str, Any] = {"as_json": as_json, "null": null, "count": count}
    with Output(progress, "object", go_on=True, interrupted=interrupted, **how) as output:

        def note() -> None:
            if by_workers is None:
                output.reporter.on_event(ProgressEvent(items=stored + same + failed, failed=failed))

        def report(record: StoreObject | Exception) -> None:
            nonlocal stored, same, failed, warned, recorded, changed
            if isinstance(record, Exception):
                failed += 1
                output.reporter.fail(str(record))
                note()
                return
            stored += not record.exists_same
            same += record.exists_same
            write_object(output, record, "stored")
            recorded += _is_new(record)
            if record.changes is not None:
                changes.update({"objects": 1, **record.changes})
                changed = [record]
            for found in record.problems:
                warned += 1
                output.reporter.report(f"{quoted(record.id or '')}: {found.severity} {found.kind}: {found.message}")
            note()

        if by_workers is None:
            run(report)
        else:
            for found in by_workers(output.reporter):
                report(found)
        counts = {"stored": stored, "failed": failed, "warnings": warned}
        if same:
            counts["exists_same"] = same
        output.summary({"ok": not failed, **counts})
    replaced = changes.pop("objects", 0)
    if replaced > 1:
        output.tell(f"{os.fsdecode(path)}: {format_count(replaced, 'object')} replaced: {changes_text(changes)}")
    for record in changed if replaced == 1 else ():
        output.tell(_change_line(record, restored))
    if same:
        what = "exists" if same == 1 else "exist"
        text = f"{format_count(same, 'object')} {what} with the same content; not stored again"
        output.tell(f"{os.fsdecode(path)}: {text}")
    missing = missing_provenance(store)
    if recorded and missing:
        output.tell(f"{os.fsdecode(path)}: {missing}")
    # The lines above have counted objects that were replaced, or are the same.
    has_counts = stored + failed == replaced and bool(same or replaced)
    if warned or (is_counted and not has_counts):
        pieces = [f"{format_count(stored, 'object')} stored"]
        pieces += [f"{failed:,} failed"] if failed else []
        pieces += [format_count(warned, "warning")] if warned else []
        output.tell(f"{os.fsdecode(path)}: {', '.join(pieces)}")
    return output.status


def _is_new(record: StoreObject) -> bool:
    """Return whether an object or a version was written."""
    if record.exists_same:
        return False
    return record.changes is None or any(count for kind, count in record.changes.items() if kind != "unchanged")


def _change_line(record: StoreObject, restored: str) -> str:
    """Return what a change did to an object."""
    counts = record.changes or {}
    if _is_new(record):
        what = f"{restored} restored: " if restored else ""
        return f"{quoted(record.id or '')}: version {record.version}: {what}{changes_text(counts)}"
    unread = "; content was not read" if restored else ""
    return f"{quoted(record.id or '')}: {changes_text(counts)}; {record.version} remains the newest version{unread}"


def _source(sources: tuple[bytes, ...]) -> ObjectSource:
    if len(sources) == 1:
        return os.fsdecode(sources[0])
    named: dict[str, Path] = {}
    for source in sources:
        name = os.fsdecode(os.path.basename(os.path.abspath(source)))
        if name in named:
            raise CallError(f"two SOURCEs have the name {name}; rename one of them")
        named[name] = Path(os.fsdecode(source))
    return named
