"""``pressmark store compare``: compare two stores."""

from __future__ import annotations

import os

import click

from pressmark import stores
from pressmark.cli.common.console import Failure
from pressmark.cli.common.object_storage import PATH_OR_ADDRESS, bucket_options
from pressmark.cli.common.options import PROGRESS, THREADS
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.options import IDENTIFIERS, IGNORE, JSON, STORE, StoreFormat
from pressmark.errors import quoted

__all__ = ["compare_command"]

HELP = """\
List the objects and files that differ between STORE and OTHER.

\b
Examples:
  pressmark store compare root backup
  pressmark store compare books s3://books/root --digests

The stores can be of different kinds. Objects are compared by their identifiers.
"""

EPILOG = """\
\b
More examples:
  pressmark store compare root backup --json > differences.jsonl

Each difference is a line on standard output, with TABs: only-here (in STORE), only-there (in OTHER) or different; the
identifier of the object; and the name of the file, if the object is in both stores. With --json it is {"kind": ...,
"id": ..., "file": ..., "reason": ...}, and the last line is {"summary": {...}}.

Files are compared by the digests that both stores have recorded, in inventories and manifests: no content is read.
Where there is no common digest, as in a Pairtree, only sizes are compared, unless --digests is given. Of OCFL objects,
the newest versions are compared; of bags, the payload, or all files if the other object is a copy of the bag.

Exit status: 0 no difference, 1 differences found or objects unreadable, 2 usage error, 130 interrupted.
"""


@click.command("compare", cls=Command, help=HELP, epilog=EPILOG, short_help="Compare two stores.")
@STORE
@click.argument("other", metavar="OTHER", type=PATH_OR_ADDRESS)
@click.option("--digests", is_flag=True, help="Read all files, and compare their content.")
@JSON
@THREADS
@PROGRESS
@IGNORE
@IDENTIFIERS
@bucket_options
def compare_command(
    path: bytes,
    other: bytes,
    digests: bool,
    as_json: bool,
    threads: int | None,
    progress: bool | None,
    ignore: tuple[str, ...],
    identifiers: str | None,
) -> int:
    """Compare two stores."""
    here, there = (StoreFormat(identifiers=identifiers).open(one, keyword=None) for one in (path, other))
    interrupted = "interrupted; run the same command again"
    with Output(progress, "object", as_json=as_json, data=True, interrupted=interrupted) as output:
        comparison = stores.compare(
            here, there, digests=digests, ignore=ignore, threads=threads, progress=output.progress
        )
        for found in comparison:
            if found.kind == "unreadable":
                output.reporter.fail(f"{quoted(found.id)}: {found.reason}")
            if as_json:
                output.record(found.record())
            elif found.kind != "unreadable":
                output.row(found.id, found.kind, found.id, *([] if found.file is None else [found.file]))
        counts = comparison.counts
        output.summary({"ok": comparison.ok, **counts})
    names = os.fsdecode(path), os.fsdecode(other)
    texts = {
        "different": "different",
        "only_here": f"only in {names[0]}",
        "only_there": f"only in {names[1]}",
        "unreadable": "unreadable",
    }
    parts = [f"{counts[name]:,} {text}" for name, text in texts.items() if counts[name]]
    text = ", ".join([f"{format_count(counts['equal'], 'object')} equal", *parts])
    if counts["digests"] and not digests:
        text += "; content was not read"
    if counts["sizes"]:
        text += f"; {format_count(counts['sizes'], 'file')} compared by size only: --digests reads the content"
    output.tell(f"{' and '.join(names)}: {text}", failed=not comparison.ok)
    return output.status if comparison.ok else Failure.exit_code
