"""``pressmark store ls``: list the objects of a store, or the files of an object."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import click

from pressmark.cli.common.console import CallError, Failure, problem_text
from pressmark.cli.common.options import THREADS, null_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.listed import Selection, selection_options
from pressmark.cli.store.options import (
    JSON,
    STORE,
    VERSION,
    StoreFormat,
    find_object,
    mutable_head_text,
    store_options,
    write_object,
)
from pressmark.errors import quoted
from pressmark.reports import Problem, ProgressEvent, counts_of
from pressmark.stores import Store

if TYPE_CHECKING:
    from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = ["ls_command"]

TELL_EVERY = 10_000  # objects

HELP = """\
List the objects in STORE, or the files of the object IDENTIFIER.

\b
Examples:
  pressmark store ls books
  pressmark store ls books --json --ignore .DS_Store
"""

DETAILS = """\
\b
More examples:
  pressmark store ls books ark:/13030/xt12t3
  pressmark store ls root ark:/13030/xt12t3 --version v1
  pressmark store ls books --from identifiers.txt
  pressmark store ls books --match 'ark:/13030/*'

A layout finds the objects of --from without a walk, in the order of FILE; a line can also be the path of an object in
STORE. An object that is not found is reported on standard error. --match walks all directories.
"""

EPILOG = """\
Each object is a line on standard output: identifier, TAB, and the path in STORE. With --json it is
{"id": ..., "path": ..., "proper": ..., "encapsulation": ..., "problems": [...]}; a file or directory outside of all
objects is a line {"kind": ..., "severity": ..., "path": ...}; the last line is {"summary": {...}}. A listed object may
have problems: "pressmark store check" lists them. The order does not depend on the file system.

With IDENTIFIER, each line is the name of a file; for an OCFL object, its logical path, TAB, and its digest. With --json
it is {"name": ..., "algorithm": ..., "digest": ...}. "pressmark store cat" accepts these names.

Exit status: 0 success, 1 a name cannot be read or contains a line break, a directory cannot be read, or the object was
not found; 2 usage error, 130 interrupted.
"""


# Options that few calls need.
PAGE_OPTIONS = "--identifiers --crlf --endpoint --s3-profile --region"


@click.command(
    "ls",
    cls=Command,
    help=HELP,
    details=DETAILS,
    page_options=PAGE_OPTIONS,
    epilog=EPILOG,
    short_help="List objects or their files.",
)
@STORE
@click.argument("ids", metavar="[IDENTIFIER]", nargs=-1)
@selection_options("List")
@VERSION
@null_option("Items of FILE and of the output end with NUL instead of a line feed.")
@JSON
@THREADS
@store_options
def ls_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    selection: Selection,
    version: str | None,
    as_json: bool,
    threads: int | None,
) -> int:
    """List all objects, or all files of one."""
    if len(selection.ids) > 1:
        raise CallError("several IDENTIFIERs; specify one to list its files, or list the objects with --from")
    if selection.ids:
        store = store_format.open(path, ignore)
        with Output(progress, as_json=as_json, null=selection.null, data=True) as output:
            count = _list_files(output, store, selection.ids[0], version)
        output.tell(f"{quoted(selection.ids[0])}: {count}")
        return output.status
    if version is not None:
        raise CallError("--version: only with IDENTIFIER; specify an object")
    counts = {"objects": 0, "proper": 0}
    tally: Counter[tuple[str, str]] = Counter()  # of kinds and severities
    outside = 0
    store = store_format.open(path)
    selected = selection.arguments(lambda: store)
    shown: dict[str, Any] = {"as_json": as_json, "null": selection.null, "data": True, "count": selection.count()}
    with Output(progress, "object", **shown) as output:
        failed = 0

        problems: list[Problem] = []

        def report_problems() -> None:
            nonlocal failed, outside
            outside += len(problems)
            for problem in problems:
                tally[problem.kind, problem.severity] += 1
                failed += problem.kind == "unreadable" or "ids" in selected
                if as_json:
                    output.record(problem.record())
                elif problem.severity == "error":
                    output.reporter.report(problem_text(problem))
            problems.clear()

        for record in store.objects(**selected, threads=threads, ignore=ignore, problems=problems):
            report_problems()
            counts["objects"] += 1
            counts["proper"] += record.proper
            failed += record.id is None and as_json
            tally.update((problem.kind, problem.severity) for problem in record.problems)
            write_object(output, record)
            if counts["objects"] % TELL_EVERY == 0:
                output.reporter.on_event(ProgressEvent(items=counts["objects"]))
        report_problems()
        summary = {**counts_of(tally), **counts}
        is_ok = not summary["errors"] and counts["objects"] == counts["proper"] and not failed
        output.summary({"ok": is_ok, **summary})
    improper = counts["objects"] - counts["proper"]
    text = f"{os.fsdecode(path)}: {format_count(counts['objects'], 'object')}"
    if improper:
        text += f", {improper:,} improper"
    if staged := sum(count for (kind, _severity), count in tally.items() if kind == "mutable-head"):
        text += f", {staged:,} with a mutable HEAD"
    if outside:
        text += (
            f", {outside:,} not found"
            if "ids" in selected
            else f", {format_count(outside, 'problem')} outside of objects"
        )
    if improper or (outside and not selected):
        text += '; run "pressmark store check" for details'
    output.tell(text, failed=bool(failed))
    return Failure.exit_code if failed or output.status else 0


def _list_files(output: Output, store: Store, identifier: str, version: str | None) -> str:
    """List all files of an object, and return their number in words."""
    stored = find_object(store, identifier, version)
    name, algorithm, digests, note = None, None, {}, ""
    if store.kind == "ocfl":
        ocfl = cast("OcflObject", stored)
        name, algorithm, digests = ocfl.version, ocfl.inventory.get("digestAlgorithm"), ocfl.digests
        note = mutable_head_text(ocfl)
    count = 0
    for file, _path in stored.files():
        count += 1
        digest = digests.get(file)
        if output.as_json:
            output.record({"name": file, "algorithm": algorithm, "digest": digest})
        else:
            output.row(file, file, *([] if digest is None else [digest]))
    output.summary({"ok": True, "version": name, "files": count})
    return f"{f'version {name}: ' if name else ''}{format_count(count, 'file')}{note}"
