"""``pressmark store repair``: mend what can be mended without losing a byte."""

from __future__ import annotations

import json
import os

import click

from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import Failure, Interrupted, one_line, say
from pressmark.cli.common.file_progress import FileProgress
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.progress import progress_mode
from pressmark.cli.store.check import verdict
from pressmark.cli.store.options import JSON, as_files, opened, store_endings, store_options
from pressmark.stores import Changed

__all__ = ["repair_command"]

EPILOG = """\
Each thing that is done is a line on standard output: the action, the path in STORE, and names where there is more to
say; with --json {"action": ..., "path": ..., "names": [...]}. What remains to be mended by others follows, as from
"pressmark store check".

\b
  encapsulate   Pairtree: everything of an object is moved into one directory, obj
  finish        a change that was interrupted is finished
  move          Vitro: an object that a namespace hides is moved to where Vitro looks for it
  prune         empty directories are removed
  remove        what killed runs have left is removed
  rename        Vitro: a file gets the name that Vitro looks for
  write         OCFL: a file of the root's own that says what is known otherwise is written

Identifiers stay, and every byte. Done twice, it changes nothing. An interrupted repair is finished by the next.

Exit status: 0 no error remains, 1 one does, 2 usage error, 130 interrupted.

\b
Examples:
  pressmark store repair books --dry-run
  pressmark store repair books
"""


@click.command("repair", epilog=EPILOG, short_help="Mend what can be mended.")
@store_options
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@JSON
def repair_command(
    path: bytes,
    kind: str | None,
    layout: str | None,
    identifiers: str | None,
    ignore: tuple[str, ...],
    progress: bool | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Mend in STORE what has one answer and costs no byte, and list what remains."""
    done = 0
    with store_endings():
        store = opened(path, kind, layout, identifiers)
        with open_sink(None, None) as sink:
            problems = Problems(sink, as_json, go_on=True)
            reporter = FileProgress(progress_mode(progress, sink), None, problems.flush, transient=True, noun="object")

            def told(event: object) -> None:
                nonlocal done
                if not isinstance(event, Changed):
                    reporter.on_event(as_files(event))
                    return
                done += 1
                names = [os.fsdecode(name) for name in event.names]
                place = os.fsdecode(event.path)
                if as_json:
                    line = json.dumps({"action": event.action, "path": place, "names": names})
                else:
                    line = one_line(": ".join([event.action, place, *([", ".join(names)] if names else [])]))
                problems.write_line(line.encode())

            try:
                with reporter:
                    report = store.repair(dry_run=dry_run, on_event=told, ignore=ignore)
            except KeyboardInterrupt:
                problems.flush()
                raise Interrupted("interrupted; the same call goes on") from None
            for problem in report.problems:
                problems.write(problem)
            problems.summarize(report, dry_run=dry_run)
            problems.flush()
    what = "would be done" if dry_run else "done"
    say(f"{os.fsdecode(path)}: {done:,} {what}; remains: {verdict(report)}")
    return 0 if report.ok else Failure.exit_code
