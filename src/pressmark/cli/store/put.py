"""``pressmark store put``: files become objects."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from pressmark.cli.common.console import CallError, Failure, Interrupted, cause, say
from pressmark.cli.common.crlf_option import CRLF_OPTION
from pressmark.cli.common.file_progress import FileProgress, format_count
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.progress import progress_mode
from pressmark.cli.store.options import JSON, opened, store_endings, store_options
from pressmark.cli.store.output import Objects
from pressmark.errors import IdentifierError, ObjectError, quoted
from pressmark.fixity import Progress
from pressmark.stores import Source

if TYPE_CHECKING:
    from pressmark.tabular.detection import Crlf

__all__ = ["put_command"]

EPILOG = """\
An object appears whole or not at all, however the command is ended. Each that was stored is a line on standard output:
identifier, TAB, and the path in STORE; with --json as "pressmark store ls" lists it. Each that was not is named on
standard error, and the others are stored all the same. So is what STORE has no place for, such as empty directories
in an OCFL storage root: a warning.

Exit status: 0 all were stored, 1 one was not, 2 usage error (nothing was done), 130 interrupted.

\b
Examples:
  pressmark store put books ark:/13030/xt12t3 scans
  pressmark store put uploads http://vivo.example.edu/individual/n3156 lily.jpg --replace
  pressmark store put root --from objects.tsv
"""


@click.command("put", epilog=EPILOG, short_help="Store objects.")
@store_options
@click.argument("identifier", metavar="[IDENTIFIER", required=False)
@click.argument("sources", metavar="SOURCE...]", nargs=-1, type=click.Path(path_type=bytes))
@click.option(
    "--from",
    "listed",
    metavar="FILE",
    type=click.Path(readable=False),
    help='Store the objects that FILE lists, "-" for standard input: identifier, TAB and source, one object a line.',
)
@click.option("--null", "-0", is_flag=True, help="Items of FILE, and of the output, end with NUL, not a line feed.")
@CRLF_OPTION
@click.option("--replace", is_flag=True, help="Put it in the place of the object that is there, if one is.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "copy", "reflink", "hardlink"]),
    default="auto",
    show_default=True,
    help="Copy; share the blocks on the disk (reflink); make hard links; or reflink where it goes and else copy"
    " (auto).",
)
@click.option(
    "--links",
    type=click.Choice(["refuse", "follow"]),
    default="refuse",
    show_default=True,
    help="Refuse symbolic links in SOURCE, or take what they lead to.",
)
@JSON
def put_command(
    path: bytes,
    kind: str | None,
    layout: str | None,
    identifiers: str | None,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str | None,
    sources: tuple[bytes, ...],
    listed: str | None,
    null: bool,
    crlf: Crlf | None,
    replace: bool,
    mode: str,
    links: str,
    as_json: bool,
) -> int:
    """Store an object under IDENTIFIER: the file SOURCE, or what is in the directory SOURCE, or several of them.

    Of several SOURCE, each lies in the object under its own name. Or store all objects that --from lists.
    """
    if (identifier is None) == (listed is None):
        raise CallError("give IDENTIFIER and SOURCE, or --from FILE")
    if crlf is not None and listed is None:
        raise CallError("--crlf goes with --from only")
    if identifier is not None:
        if not sources:
            raise CallError("give SOURCE, a file or directory")
        _refuse_missing(sources)
    stored = failed = warned = 0
    with store_endings():
        store = opened(path, kind, layout, identifiers, ignore)
        with open_sink(None, None) as sink:
            reporter = FileProgress(progress_mode(progress, sink), None, transient=True, noun="object")
            objects = Objects(sink, reporter, as_json, null, go_on=True, done="stored")
            items: Iterable[tuple[str | bytes, Source | Failure]] = [(identifier or "", _source(sources))]
            if listed is not None:
                from pressmark.cli.store.listed import listed_sources

                items = listed_sources(listed, null, crlf)
            with reporter:
                try:
                    for one, source in items:
                        if isinstance(source, Failure):
                            failed += 1
                            reporter.fail(source.message)
                            continue
                        try:
                            record = store.put(one, source, replace=replace, mode=mode, links=links)  # type: ignore[arg-type]
                        except (ObjectError, IdentifierError) as error:
                            failed += 1
                            reporter.fail(str(error))
                            continue
                        stored += 1
                        objects.write(record)
                        for found in record.problems:
                            warned += 1
                            reporter.report(
                                f"{quoted(record.id or '')}: {found.severity} {found.kind}: {found.message}"
                            )
                        reporter.on_event(Progress(stored, 0, failed))
                except KeyboardInterrupt:
                    objects.flush()
                    raise Interrupted(f"interrupted after {format_count(stored, 'object')}") from None
                if as_json:
                    counts = {"stored": stored, "failed": failed, "warnings": warned}
                    objects.write_json({"summary": {"ok": not failed, **counts}})
                objects.flush()
    if warned:
        say(f"{os.fsdecode(path)}: {format_count(stored, 'object')} stored, {format_count(warned, 'warning')}")
    return Failure.exit_code if failed or objects.unwritten else 0


def _refuse_missing(sources: tuple[bytes, ...]) -> None:
    for source in sources:
        try:
            os.stat(source)
        except OSError as error:
            raise CallError(f"{os.fsdecode(source)}: {cause(error)}") from None


def _source(sources: tuple[bytes, ...]) -> Source:
    if len(sources) == 1:
        return sources[0]
    named: dict[str, bytes] = {}
    for source in sources:
        name = os.fsdecode(os.path.basename(os.path.abspath(source)))
        if name in named:
            raise CallError(f"two SOURCE are called {name}; put them into a directory")
        named[name] = source
    return named
