"""``pressmark store update``: create a version of an OCFL object from a few changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from pressmark.cli.common.console import CallError, cause
from pressmark.cli.common.program import Command
from pressmark.cli.store.options import (
    CONTENT_CLASS,
    CREATED,
    IDENTIFIER,
    JSON,
    LINKS,
    MODE,
    STORE,
    Provenance,
    StoreFormat,
    Writers,
    content_class_option,
    creation_date,
    ocfl_root,
    provenance_options,
    store_options,
    writers_options,
)
from pressmark.cli.store.put import one_object, store_objects
from pressmark.errors import quoted
from pressmark.stores import OcflRoot, StoreObject
from pressmark.stores.selection import by_path

__all__ = ["update_command"]

Reading = TypeVar("Reading")
Value = TypeVar("Value")

HELP = """\
Add, replace, remove and rename files of the OCFL object IDENTIFIER.

\b
Examples:
  pressmark store update root ark:/13030/xt12t3 --add lily.jpg=cover.jpg
  pressmark store update root ark:/13030/xt12t3 --rename page1.tif=tif/1.tif

All changes are stored in one new version. All other files are kept.
"""

EPILOG = """\
\b
More examples:
  pressmark store update root ark:/13030/xt12t3 --remove mets.xml
  pressmark store update root ark:/13030/xt12t3 --add page2.tif --user Curator

Only added files are read. Content that already exists in a version of the object is not stored again: the stored file
is read and compared with its digest, and if it is damaged, the new content is stored, with a warning. If nothing
changes, no version is created. Adding a version is atomic. The output is the same as for "pressmark store put".

If FILE is a directory, all files in it are added below NAME; with a slash at the end (--add scans/), they are added
without the name of the directory. Names can contain "=", because FILE must exist and OLD must be a file
of the object. All files are renamed at once, so two files can exchange names.

Exit status: 0 success, 1 the object was not changed (the reason is on standard error), 2 usage error, 130 interrupted.
"""


@click.command("update", cls=Command, help=HELP, epilog=EPILOG, short_help="Add, remove and rename files of an object.")
@STORE
@IDENTIFIER
@click.option(
    "--add",
    "added",
    metavar="FILE[=NAME]|DIR/",
    multiple=True,
    help="Add FILE as NAME (default: the name of FILE), or replace the file NAME of the object; DIR/ adds the content"
    " of the directory DIR; repeatable.",
)
@click.option("--remove", "removed", metavar="NAME", multiple=True, help="Remove a file; repeatable.")
@click.option("--rename", "renamed", metavar="OLD=NEW", multiple=True, help="Rename a file; repeatable.")
@click.option("--no-dedup", is_flag=True, help="Store added content even if the object already contains it.")
@MODE
@CONTENT_CLASS
@writers_options
@LINKS
@provenance_options
@CREATED
@JSON
@store_options
def update_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str,
    added: tuple[str, ...],
    removed: tuple[str, ...],
    renamed: tuple[str, ...],
    no_dedup: bool,
    copy_mode: str,
    content_class: str | None,
    writers: Writers,
    links: str,
    provenance: Provenance,
    created: str | None,
    as_json: bool,
) -> int:
    """Add, remove and rename files of an object."""
    if not (added or removed or renamed):
        raise CallError("missing option; specify --add, --remove or --rename")
    add = _unique("--add", ((name, Path(file)) for text in added for name, file in _added(text)))

    def more(kind: str) -> dict[str, Any]:
        chosen = content_class_option(content_class, path, kind) | writers.options(path, kind)
        return provenance.options(kind) | chosen if kind == "ocfl" else chosen

    opened = store_format.open(path, more=more)
    opened.refuse_changes()
    store = ocfl_root(opened, "update", 'use "pressmark store put --replace"')
    rename = _unique("--rename", (_renamed(store, identifier, text) for text in renamed))

    date = creation_date(created, store.kind)

    def update() -> StoreObject:
        how: dict[str, Any] = {"dedup": not no_dedup, "copy_mode": copy_mode, "links": links, **date}
        change = partial(store.update, add=add, remove=removed, rename=rename, **how)
        return by_path(store, identifier, change)

    return store_objects(path, store, one_object(update), as_json=as_json, null=False, progress=progress)


def _readings(text: str) -> list[tuple[str, str]]:
    """Return all ways to split a text at an equals sign into two names."""
    splits = ((text[:index], text[index + 1 :]) for index, character in enumerate(text) if character == "=")
    return [(before, after) for before, after in splits if before and after]


def _added(text: str) -> list[tuple[str, str]]:
    """Return name and path of a file to add, or of each entry of a directory whose name ends with a slash."""
    if text.endswith("/") and os.path.isdir(text):
        try:
            names = sorted(os.listdir(text))
        except OSError as error:
            raise CallError(f"--add {quoted(text)}: {cause(error)}") from None
        if not names:
            raise CallError(f"--add {quoted(text)}: directory is empty; omit the option")
        return [(name, os.path.join(text, name)) for name in names]
    readings = [(name, file) for file, name in _readings(text)]
    readings.append((os.path.basename(os.path.abspath(text)), text))
    errors = []
    found = []
    for name, file in readings:
        try:
            os.stat(file)
            found.append((name, file))
        except OSError as error:
            errors.append(cause(error))
        except ValueError as error:  # a NUL in the name
            errors.append(str(error))
    if not found:
        raise CallError(f"--add {quoted(text)}: {errors[0]}")
    return [_only("--add", text, found, [file for _name, file in found])]


def _renamed(store: OcflRoot, identifier: str, text: str) -> tuple[str, str]:
    """Return old and new name of a file to rename."""
    readings = _readings(text)
    if not readings:
        raise CallError(f"--rename {quoted(text)}: expected OLD=NEW")
    if len(readings) > 1:
        names = by_path(store, identifier, store.get).digests
        readings = [(old, new) for old, new in readings if old in names] or readings[:1]
    return _only("--rename", text, readings, [old for old, _new in readings])


def _only(option: str, text: str, readings: list[Reading], files: Sequence[str | bytes]) -> Reading:
    if len(readings) > 1:
        what = f"{' and '.join(map(quoted, files))} exist; rename one of them"
        raise CallError(f"{option} {quoted(text)}: ambiguous, because {what}")
    return readings[0]


def _unique(option: str, pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in pairs:
        if name in found:
            raise CallError(f"{option}: {quoted(name)} is specified twice")
        found[name] = value
    return found
