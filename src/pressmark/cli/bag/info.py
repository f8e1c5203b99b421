"""``pressmark bag info``: show the metadata of a bag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from pressmark.bagit import Bag
from pressmark.bagit.bag_info import unfolded, value_lines
from pressmark.cli.common.console import one_line
from pressmark.cli.common.object_storage import PATH_OR_ADDRESS, bucket_options
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count

__all__ = ["info_command"]

HELP = """\
Print the version, algorithms and metadata of BAG, also of an archive.

\b
Examples:
  pressmark bag info bag.tar.gz --json
  pressmark bag info s3://bucket/bag

The metadata are the elements of bag-info.txt, in order. Nothing is checked; use "pressmark bag validate" for that.
"""

EPILOG = """\
Exit status: 0 success, 1 reading failed, 2 usage error, or BAG is not a bag.
"""


@click.command("info", cls=Command, help=HELP, epilog=EPILOG, short_help="Show the metadata of a bag.")
@click.argument("bag", metavar="BAG", type=PATH_OR_ADDRESS)
@bucket_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info_command(bag: bytes, as_json: bool) -> None:
    """Show the metadata of a bag."""
    opened = Bag.open(bag)
    about = describe(opened)
    with Output(False) as output:
        if as_json:
            output.record(about)
            return
        for line in _lines(about):
            output.line(line.encode("utf-8", "surrogateescape"))


def describe(bag: Bag) -> dict[str, Any]:
    """Return the metadata of a bag, as ``--json`` prints it."""
    oxum = bag.info.first("Payload-Oxum")
    return {
        "path": bag.path,
        "version": ".".join(map(str, bag.version)),
        "encoding": bag.encoding,
        "algorithms": list(bag.algorithms),
        "tag_algorithms": list(bag.tag_algorithms),
        "payload_oxum": None if oxum is None else unfolded(oxum),
        "fetch": len(bag.fetch),
        "elements": [{"label": label, "value": value} for label, value in bag.info.elements],
    }


def _lines(about: dict[str, Any]) -> Iterator[str]:
    rows = [
        ("BagIt version", about["version"]),
        ("tag files in", about["encoding"]),
        ("payload manifests", ", ".join(about["algorithms"]) or "none"),
        ("tag manifests", ", ".join(about["tag_algorithms"]) or "none"),
        ("payload", _payload(about["payload_oxum"])),
    ]
    if about["fetch"]:
        rows.append(("in fetch.txt", format_count(about["fetch"], "file")))
    width = max(len(label) for label, _ in rows) + 2
    for label, text in rows:
        yield f"{label:{width}}{one_line(text)}"
    if about["elements"]:
        yield ""
        for element in about["elements"]:
            first, *others = value_lines(element["value"])[::2]
            yield one_line(f"{element['label']}: {first}")
            yield from (one_line(f"  {line}") for line in others)


def _payload(oxum: str | None) -> str:
    if oxum is None:
        return "no Payload-Oxum in bag-info.txt"
    size, _, files = oxum.partition(".")
    if not (size.isascii() and size.isdigit() and files.isascii() and files.isdigit()):
        return oxum
    return f"{format_count(int(files), 'file')}, {format_bytes(int(size))} (Payload-Oxum {oxum})"
