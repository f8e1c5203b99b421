"""``pressmark store ls``: list the objects of a store."""

from __future__ import annotations

import os
from typing import Any

import click

from pressmark.cli.bag.options import problem_text
from pressmark.cli.common.console import Failure, Interrupted, say
from pressmark.cli.common.file_progress import FileProgress, format_count
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.fixity_options import THREADS
from pressmark.cli.common.progress import progress_mode
from pressmark.cli.store.options import JSON, STORE, command_errors, open_store, store_options
from pressmark.cli.store.output import Objects
from pressmark.fixity import Progress
from pressmark.reports import Problem, Report

__all__ = ["ls_command"]

TELL_EVERY = 10_000  # objects

HELP = """\
List every object in STORE, in an order that does not depend on the file system.

\b
Examples:
  pressmark store ls books
  pressmark store ls books --json --ignore .DS_Store
"""

EPILOG = """\
Each object is a line on standard output: identifier, TAB, and the path in STORE. With --json it is
{"id": ..., "path": ..., "proper": ..., "encapsulation": ..., "problems": [...]}; a file or directory outside of all
objects is a line {"kind": ..., "severity": ..., "path": ...}; the last line is {"summary": {...}}. A listed object may
have problems: "pressmark store check" lists them.

Exit status: 0 success, 1 an identifier cannot be read or contains a line break, or a directory cannot be
read; 2 usage error, 130 interrupted.
"""


@click.command("ls", help=HELP, epilog=EPILOG, short_help="List the objects of a store.")
@STORE
@click.option("--null", "-0", is_flag=True, help="End items with NUL instead of a line feed.")
@JSON
@THREADS
@store_options
def ls_command(
    path: bytes,
    kind: str | None,
    layout: str | None,
    identifiers: str | None,
    ignore: tuple[str, ...],
    progress: bool | None,
    null: bool,
    as_json: bool,
    threads: int,
) -> int:
    """List all objects."""
    counts = {"objects": 0, "proper": 0}
    beside = Report()
    with command_errors():
        store = open_store(path, kind, layout, identifiers)
        with open_sink(None, None) as sink:
            reporter = FileProgress(progress_mode(progress, sink), None, transient=True, noun="object")
            objects = Objects(sink, reporter, as_json, null)
            failed = 0

            def found(problem: Problem) -> None:
                nonlocal failed
                beside.add([problem._replace(message="")])
                failed += problem.kind == "unreadable"
                if as_json:
                    objects.write_json(problem.record())
                elif problem.severity == "error":
                    reporter.report(problem_text(problem))

            with reporter:
                try:
                    for record in store.objects(threads=threads or None, on_problem=found, ignore=ignore):
                        counts["objects"] += 1
                        counts["proper"] += record.proper
                        failed += record.id is None and as_json
                        objects.write(record)
                        if counts["objects"] % TELL_EVERY == 0:
                            reporter.on_event(Progress(counts["objects"], 0, 0))
                except KeyboardInterrupt:
                    objects.flush()
                    raise Interrupted("interrupted") from None
                if as_json:
                    summary: dict[str, Any] = {**beside.summary(), **counts}
                    summary["ok"] = beside.ok and counts["objects"] == counts["proper"] and not failed
                    objects.write_json({"summary": summary})
                objects.flush()
    failed += objects.unwritten
    improper = counts["objects"] - counts["proper"]
    text = f"{os.fsdecode(path)}: {format_count(counts['objects'], 'object')}"
    if improper:
        text += f", {improper:,} not proper"
    if beside.problems:
        text += f", {format_count(len(beside.problems), 'problem')} outside of objects"
    if improper or beside.problems:
        text += '; run "pressmark store check" for details'
    say(text)
    return Failure.exit_code if failed else 0
