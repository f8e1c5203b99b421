"""``pressmark store get``: copy an object's files out of a store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import click

from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError, Failure, cause
from pressmark.cli.common.options import THREADS, null_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.listed import Selection, selection_options
from pressmark.cli.store.options import (
    JSON,
    MODE,
    STORE,
    VERIFY,
    VERSION,
    StoreFormat,
    find_object,
    ocfl_root,
    store_options,
)
from pressmark.errors import BagError, IdentifierError, ObjectError, PressmarkError, quoted, quoted_path
from pressmark.fs.names import is_inside
from pressmark.reports import Problem, ProgressEvent
from pressmark.stores import Store, StoreObject
from pressmark.threads import resolve_threads

__all__ = ["get_command"]

# Objects that are copied from object storage at a time.
IN_A_BUCKET = 8

HELP = """\
Copy the files of an object to DESTINATION, or several objects into DIR.

\b
Examples:
  pressmark store get books ark:/13030/xt12t3 copy
  pressmark store get books --from identifiers.txt -o copies
"""

DETAILS = """\
\b
More examples:
  pressmark store get root ark:/13030/xt12t3 first --version v1
  pressmark store get root --match 'ark:/13030/*' -o copies --json

With -o, the name of each directory is the identifier, cleaned as in a Pairtree: ark+=13030=xt12t3. A directory in DIR
that exists is complete, and is kept: after an interrupt, run the same command again. Each object is a line on standard
output: identifier, TAB, and directory; with --json it is {"id": ..., "path": ..., "files": ...}, or {"id": ...,
"path": ..., "exists": true}. An object that is not found or cannot be copied is reported on standard error, and the
command continues with the next. IDENTIFIER can also be the path of an object in STORE.
"""

EPILOG = """\
DESTINATION is a new directory; in DIR, each object gets one. Each new directory is created atomically. For an OCFL
object, the command copies the files of its newest version, or of --version; for a bag, its payload; for a serialized
bag, the archive. It also creates empty directories.

Files of OCFL objects and bags are hashed while they are copied, and compared with the inventory or the manifests. If
one does not match, nothing is created. Where an OCFL inventory lists a second, intact content file, that one is copied.
Pairtrees and Vitro stores record no digests: their files are copied without verification.

Exit status: 0 success, 1 object not found, content is damaged, or reading or writing failed; 2 usage error,
130 interrupted.
"""


# Options that few calls need.
PAGE_OPTIONS = "--identifiers --null --crlf --threads --endpoint --s3-profile --region"


@click.command(
    "get",
    cls=Command,
    help=HELP,
    details=DETAILS,
    page_options=PAGE_OPTIONS,
    epilog=EPILOG,
    short_help="Copy the files of objects.",
)
@STORE
@click.argument("identifier", metavar="[IDENTIFIER...", required=False)
@click.argument("words", metavar="[DESTINATION]]", nargs=-1, type=click.Path(path_type=bytes))
@selection_options("Copy")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=bytes),
    help="Copy each object into a directory of its own in DIR, which is created if necessary.",
)
@null_option("Items of FILE and of the output end with NUL instead of a line feed.")
@VERSION
@MODE
@VERIFY
@JSON
@THREADS
@store_options
def get_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str | None,
    words: tuple[bytes, ...],
    selection: Selection,
    output: bytes | None,
    version: str | None,
    copy_mode: str,
    verify: bool,
    as_json: bool,
    threads: int | None,
) -> int:
    """Copy the files of objects."""
    opened = partial(store_format.open, path, ignore)
    if output is not None:
        ids = () if identifier is None else (identifier, *map(os.fsdecode, words))
        selection = replace(selection, ids=ids)
        how: dict[str, Any] = {
            "version": version,
            "copy_mode": copy_mode,
            "verify": verify,
            "threads": threads,
            "ignore": ignore,
        }
        return _get_many(opened, selection, output, progress=progress, as_json=as_json, **how)
    if identifier is None or len(words) != 1:
        raise CallError("specify IDENTIFIER and DESTINATION, or any number of IDENTIFIERs and -o DIR")
    return _get_one(opened, identifier, words[0], version, copy_mode, verify, progress, as_json)


def _get_one(
    opened: Callable[[], Store],
    identifier: str,
    destination: bytes,
    version: str | None,
    copy_mode: str,
    verify: bool,
    progress: bool | None,
    as_json: bool,
) -> int:
    """Copy the files of an object."""
    if os.path.lexists(destination):
        raise CallError(f"{os.fsdecode(destination)}: already exists; choose another name")
    store = opened()
    _refuse_inside(destination, store)
    interrupted = "interrupted; nothing was created"
    with Output(progress, as_json=as_json, go_on=True, interrupted=interrupted) as output:
        try:
            found = find_object(store, identifier, version)
            _refuse_identifier(destination, store, identifier)
            files, empty = found.copy_to(destination, copy_mode=copy_mode, verify=verify)
        except (PressmarkError, OSError) as error:
            if as_json and isinstance(error, ObjectError):
                output.record({"kind": error.kind, "severity": "error", "message": error.reason})
            output.summary({"ok": False, "files": 0, "empty_directories": 0})
            if isinstance(error, PressmarkError) and not isinstance(error, BagError):
                raise
            if isinstance(error, BlockingIOError):
                raise Failure(f"{quoted(destination)}: in use by another run; wait for it to finish") from None
            why = str(error) if isinstance(error, BagError) else f"{quoted(destination)}: {cause(error)}"
            parent = os.path.dirname(destination.rstrip(b"/")) or b"."
            if isinstance(error, FileNotFoundError) and not os.path.isdir(parent):
                what = f"DESTINATION is in {quoted_path(parent)}, which does not exist"
                why = f"{quoted_path(destination)}: {what}; create it, or specify -o DIR for several objects"
            raise Failure(why) from None
        for name in files if as_json else ():
            output.record({"name": name})
        output.summary({"ok": True, "files": len(files), "empty_directories": len(empty)})
    more = f", {len(empty):,} empty director{'y' if len(empty) == 1 else 'ies'}" if empty else ""
    name = quoted(found.id) if version is None else f"{quoted(found.id)}, version v{version.removeprefix('v')}"
    output.tell(f"{os.fsdecode(destination)}: {format_count(len(files), 'file')}{more} of {name}")
    return 0


def _refuse_identifier(destination: bytes, store: Store, identifier: str) -> None:
    """Refuse a DESTINATION that is the identifier of another object, as when -o was forgotten."""
    if os.fsdecode(destination) == identifier:
        return
    with contextlib.suppress(IdentifierError, ObjectError):
        store.find(destination)
        what = "an identifier in the store; specify -o DIR for several objects, or another DESTINATION, such as"
        raise CallError(f"{quoted_path(destination)}: {what} {quoted_path(b'./' + os.path.basename(destination))}")


def _refuse_inside(destination: bytes, store: Store) -> None:
    if is_inside(destination, store.root):
        what = "inside the store; choose a directory outside"
        raise CallError(f"{os.fsdecode(destination)}: {what}")


def _get_many(
    opened: Callable[[], Store],
    selection: Selection,
    directory: bytes,
    *,
    version: str | None,
    copy_mode: str,
    verify: bool,
    threads: int | None,
    ignore: tuple[str, ...],
    progress: bool | None,
    as_json: bool,
) -> int:
    """Copy objects into directories of their own."""
    from pressmark.stores.directories.copied_objects import copy_objects

    selected = selection.arguments(lambda: store)
    if not selected:
        raise CallError("missing argument; specify IDENTIFIER, --from or --match")
    store = opened()
    _refuse_inside(directory, store)
    locate: Any = store.locate
    if version is not None:
        locate = partial(ocfl_root(store, "--version", "omit the option").locate, version=version)
    copied = existing = failed = 0

    def interrupted() -> str:
        return f"interrupted after {format_count(copied, 'object')}; run the same command again to copy the others"

    shown: dict[str, Any] = {"as_json": as_json, "null": selection.null, "count": selection.count()}
    with Output(progress, "object", go_on=True, interrupted=interrupted, **shown) as output:

        def records() -> Iterator[StoreObject]:
            nonlocal failed
            problems: list[Problem] = []
            for record in chain(store.objects(**selected, ignore=ignore, problems=problems), [None]):
                for found in problems:
                    failed += 1
                    output.reporter.fail(f"{quoted(found.path)}: {found.message}")
                    if as_json:
                        output.record(found.record())
                problems.clear()
                if record is not None:
                    yield record

        try:
            os.makedirs(directory, exist_ok=True)
        except OSError as error:
            raise Failure(f"{quoted(directory)}: {cause(error)}") from None
        at_a_time = resolve_threads(threads) if threads or not is_address(store.root) else IN_A_BUCKET
        results = copy_objects(
            store.root, records(), locate, directory, copy_mode=copy_mode, verify=verify, threads=at_a_time
        )
        for one in results:
            id = one.record.id or ""
            if one.error is not None:
                failed += 1
                output.reporter.fail(str(one.error))
                if as_json:
                    kind = getattr(one.error, "kind", "")
                    output.record({"kind": kind, "severity": "error", "id": id, "message": str(one.error)})
            else:
                copied += one.files is not None
                existing += one.files is None
                if as_json:
                    more = {"exists": True} if one.files is None else {"files": one.files}
                    output.record({"id": id, "path": one.path, **more})
                else:
                    output.row(id, id, one.path, done="copied")
            output.reporter.on_event(ProgressEvent(items=copied + existing + failed, failed=failed))
        output.summary({"ok": not output.status, "copied": copied, "existing": existing, "failed": failed})
    pieces = [f"{format_count(copied, 'object')} copied"]
    pieces += [f"{existing:,} existed"] if existing else []
    pieces += [f"{failed:,} failed"] if failed else []
    output.tell(f"{os.fsdecode(directory)}: {', '.join(pieces)}")
    return output.status
