"""``pressmark bag create``: files become the payload of a bag."""

from __future__ import annotations

import contextlib
import os
import time

import click

from pressmark.bagit import Bag, create
from pressmark.bagit.bag_info import read_oxum
from pressmark.cli.bag.changes import Listener, interruption_message
from pressmark.cli.bag.elements import info_options, parse_elements
from pressmark.cli.bag.options import bag_errors, refuse_inside, refuse_missing
from pressmark.cli.common.console import CallError, Failure, Interrupted
from pressmark.cli.common.file_progress import FileProgress, format_bytes, format_count, format_rate
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.fixity_options import (
    ALGORITHM,
    LEDGER,
    PROGRESS,
    READ,
    THREADS,
    open_ledger,
    parse_algorithms,
)
from pressmark.cli.common.progress import progress_mode
from pressmark.errors import LedgerError
from pressmark.fixity.copying import MODES

__all__ = ["create_command"]

COPIES = {"copy": "copied", "reflink": "cloned (reflink)", "hardlink": "hard-linked"}

EPILOG = """\
Nothing is moved, copied or written before everything in SOURCE was looked at: named pipes, sockets and devices, names
that no manifest can hold, and names that differ only in Unicode normalization are refused, all of them listed. A bag
appears whole or not at all: however the command is ended, SOURCE is as it was, or the next run of the same command
finishes the bag. Empty directories stay on the disk, but no manifest can list them.

Exit status: 0 all well, 1 a file failed or writing did, 2 usage error (nothing was done), 130 interrupted.

\b
Examples:
  pressmark bag create files -o bag
  pressmark bag create files -o bag -a sha512,md5 --info "Source-Organization=Example University"
  pressmark bag create files one.txt two.txt -o bag --mode hardlink --tag-file readme.txt
  pressmark bag create files --info "Contact-Name=A. Archivist" --info-file bag-info-template.txt
"""


@click.command("create", epilog=EPILOG, short_help="Make a bag of files.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path(path_type=bytes))
@click.option(
    "--output",
    "-o",
    "destination",
    metavar="DESTINATION",
    type=click.Path(path_type=bytes),
    help="Make the bag in the new directory DESTINATION, and leave SOURCE alone. Default: SOURCE becomes the bag.",
)
@ALGORITHM
@info_options("Write the element LABEL with this VALUE into bag-info.txt; repeatable, also with the same")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="With -o: copy (the default); share the blocks on the disk until one of the two is written to, where the file"
    " system can (reflink); make hard links, which are one file under two names; or reflink where it goes and else"
    " copy (auto).",
)
@click.option(
    "--tag-file",
    "tag_files",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=bytes),
    help="Put a copy of FILE beside the payload, as a tag file of its name; repeatable.",
)
@click.option(
    "--links",
    type=click.Choice(["refuse", "follow"]),
    default="refuse",
    show_default=True,
    help="Refuse symbolic links, or take what they lead to.",
)
@click.option(
    "--nested",
    is_flag=True,
    help="Make a bag of SOURCE even if it is a bag itself, which then is the payload.",
)
@LEDGER
@THREADS
@READ
@PROGRESS
def create_command(
    sources: tuple[bytes, ...],
    destination: bytes | None,
    algorithms: tuple[str, ...],
    settings: tuple[str, ...],
    info_file: str | None,
    mode: str | None,
    tag_files: tuple[bytes, ...],
    links: str,
    nested: bool,
    ledger: str | None,
    threads: int,
    read: str,
    progress: bool | None,
) -> int:
    """Make the directory SOURCE a bag: what is in it moves to SOURCE/data, manifests and bag-info.txt come beside it.

    With -o the bag is made elsewhere, of a copy; each file is read once, for the copy and all its checksums. Of one
    directory SOURCE, the content becomes the payload. Of several SOURCE, files or directories, each lies in the payload
    under its own name.

    Without -a the checksums are SHA-512. Payload-Oxum is written by itself, and so are Bagging-Date, Bag-Size and
    Bag-Software-Agent where they are not given.
    """
    names = parse_algorithms(algorithms) or ("sha512",)
    elements = parse_elements(settings, info_file)
    if destination is None:
        if len(sources) > 1:
            raise CallError("several SOURCE need -o DESTINATION, the directory to make the bag in")
        if mode is not None:
            raise CallError("--mode goes with -o only: without it nothing is copied")
        refuse_inside(ledger, sources[0])
    elif ledger is not None:
        raise CallError("--ledger: it does not go with -o, for what is copied has to be read")
    refuse_missing(sources, directories=destination is None)
    refuse_missing(tag_files)
    with contextlib.ExitStack() as stack:
        journal = open_ledger(ledger, names, sources)
        if journal is not None:
            stack.enter_context(journal)
        sink = stack.enter_context(open_sink(None, None))
        reporter = stack.enter_context(FileProgress(progress_mode(progress, sink), None, transient=True))
        listener = Listener(reporter)
        begin = time.monotonic()
        try:
            with bag_errors():
                bag = create(
                    sources[0] if len(sources) == 1 else sources,
                    destination,
                    names,
                    elements,
                    mode=mode or "copy",
                    links=links,
                    tag_files=tag_files,
                    nested=nested,
                    threads=threads,
                    read=read,
                    ledger=journal,
                    on_event=listener,
                )
        except Failure:
            if not reporter.failed:
                raise
            # Each reason was listed; the error itself only has the first few.
            place = os.fsdecode(destination or sources[0])
            raise Failure(
                f"{place}: no bag was made: {format_count(reporter.failed, 'problem')}; nothing was changed"
            ) from None
        except LedgerError as error:
            raise Failure(str(error)) from None
        except KeyboardInterrupt:
            raise Interrupted(interruption_message(destination or sources[0], journal)) from None
        reporter.report(_report(bag, listener.mode, time.monotonic() - begin))
    return 0


def _report(bag: Bag, mode: str, seconds: float) -> str:
    octets, files = read_oxum(bag.info.get("Payload-Oxum") or "") or (0, 0)
    pieces = [format_count(files, "file"), format_bytes(octets), *format_rate(octets, seconds)]
    if mode in COPIES:
        pieces.append(COPIES[mode])
    return f"{os.fsdecode(bag.path)}: it is a bag now: {', '.join(pieces)}; {', '.join(bag.algorithms)}"
