"""The options of ``pressmark migrate``, and what they become."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from pressmark import migrate, stores
from pressmark.cli.common.console import CallError
from pressmark.cli.common.crlf_option import CRLF_OPTION
from pressmark.cli.common.fixity_options import PROGRESS, parse_algorithms
from pressmark.cli.common.worker_options import worker_options
from pressmark.cli.store.options import layout_of
from pressmark.paths import PROFILES

__all__ = ["asked_for", "given_options", "migrate_options", "refuse_mixed"]

Function = TypeVar("Function", bound=Callable[..., Any])

# Options of the call that go to the library under the same name.
_SAME = (
    *("source_kind", "copy_mode", "verify", "move", "drop_empty_directories", "replace"),
    *("profile", "links", "improper"),
)
# Options of the destination, and the kind of store that has each.
_OF_DESTINATION = {"prefix": "pairtree", "namespaces": "vitro", "identifiers": "bags", "content_paths": "ocfl"}
_LAYOUT = "NAME[:KEY=VALUE,...]"


def migrate_options(function: Function) -> Function:
    """Add SOURCE, DESTINATION and all options."""
    for decorator in reversed((*_WHERE, *_WHAT, *_HOW, *_RUN, *_REPORT)):
        function = decorator(function)
    return function


_WHERE = (
    click.argument("source", metavar="SOURCE", type=click.Path()),
    click.argument("destination", metavar="DESTINATION", type=click.Path()),
    click.option("--to", type=click.Choice(stores.KINDS), help="Make the objects objects of this kind of store."),
    click.option(
        "--layout",
        metavar=_LAYOUT,
        help="Place them by this layout: OCFL storage roots, which need one, and folders of bags, which can have one."
        ' "pressmark layouts" lists the layouts, "pressmark layouts NAME" the keys.',
    ),
    click.option("--prefix", metavar="PREFIX", help="To a Pairtree: what every identifier begins with."),
    click.option(
        "--namespace",
        "namespaces",
        metavar="NAMESPACE",
        multiple=True,
        help="To a Vitro store: a beginning of identifiers that one letter stands for; repeatable.",
    ),
    click.option(
        "--identifiers",
        type=click.Choice(["external", "name", "layout"]),
        help="To a folder of bags: where a bag's identifier is to be found afterwards. Default: external, its"
        " External-Identifier.",
    ),
    click.option(
        "--content-paths",
        metavar=_LAYOUT,
        help="To an OCFL storage root: name the files inside of objects by this layout, such as 0011. Default: as they"
        " are called.",
    ),
    click.option(
        "--algorithm",
        "-a",
        "algorithms",
        metavar="NAME[,NAME]...",
        multiple=True,
        help="To a folder of bags: the digest algorithms of the bags. Default: sha512.",
    ),
    click.option("--source-kind", type=click.Choice(stores.KINDS), help="Kind of SOURCE, if it cannot be detected."),
    click.option(
        "--source-layout",
        metavar=_LAYOUT,
        help="The layout that places the objects of SOURCE, where that does not say it: OCFL storage roots and folders"
        " of bags.",
    ),
)
_WHAT = (
    click.option(
        "--ids",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Migrate only the objects whose identifiers are in FILE: lines (or ended by NUL), .csv, .tsv, .jsonl,"
        " .parquet, the text ones also .gz.",
    ),
    click.option(
        "--column",
        metavar="NAME",
        help="The column of --ids with the identifiers. Default: source_id, id or identifier.",
    ),
    CRLF_OPTION,
    click.option(
        "--map",
        "new_ids",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Give objects other identifiers: FILE has an old and a new one a line, with a TAB between, or as CSV.",
    ),
    click.option(
        "--improper",
        type=click.Choice(migrate.IMPROPER),
        help="Objects of SOURCE that are not as its specification says: skip them and report them, take them where"
        " they can be read, or refuse to start. Default: skip.",
    ),
    click.option(
        "--links",
        type=click.Choice(migrate.LINKS),
        help="Symbolic links in objects: refuse the object, or follow them. Default: refuse.",
    ),
    click.option(
        "--profile",
        type=click.Choice(tuple(PROFILES)),
        help="Refuse names and lengths that these systems do not allow. Default: unix.",
    ),
    click.option(
        "--check-space/--no-check-space",
        default=True,
        help="Refuse where the file system of DESTINATION has too little space or inodes; --no-check-space only warns.",
    ),
    click.option(
        "--order",
        type=click.Choice(["source", "size"]),
        default="source",
        show_default=True,
        help="Order of migration: as stored in SOURCE, or the largest objects first.",
    ),
)
_HOW = (
    click.option(
        "--copy-mode",
        type=click.Choice(migrate.COPY_MODES),
        help="How files get there. rename moves whole objects within one file system (with --move, and only where the"
        " kind stays the same), reflink shares blocks, hardlink files (never into OCFL). auto, the default, takes the"
        " quickest that is safe and says which one it was.",
    ),
    click.option(
        "--verify",
        type=click.Choice(migrate.VERIFICATIONS),
        help="none; copy, the default: hash while copying and compare with what is known; reread: and read everything"
        " again in DESTINATION.",
    ),
    click.option(
        "--move",
        is_flag=True,
        help="Remove verified objects from SOURCE when all objects are done.",
    ),
    click.option(
        "--drop-empty-directories",
        is_flag=True,
        help="With --move: remove objects from SOURCE although their empty directories have no place in DESTINATION"
        " (OCFL and Vitro). Without it such objects stay in SOURCE.",
    ),
    click.option(
        "--replace",
        is_flag=True,
        help="Replace objects that are in DESTINATION already and different; in an OCFL storage root, by a"
        " new version.",
    ),
)
_RUN = (
    click.option("--dry-run", is_flag=True, help="Only plan: report what would be done, and what is refused."),
    click.option("--resume", is_flag=True, help="Continue an unfinished run; objects that are done are skipped."),
    click.option(
        "--catch-up",
        is_flag=True,
        help="After a finished run: migrate objects added to SOURCE, or changed there, since.",
    ),
    click.option(
        "--verify-again",
        is_flag=True,
        help="After a finished run: read all migrated objects in DESTINATION again, and compare them.",
    ),
    worker_options,
    click.option(
        "--work",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Keep the plan, the receipts and the rows in DIR. Default: DESTINATION.migration. Where a run in it is"
        " finished, the next one is in DIR-2, and so on.",
    ),
    click.option(
        "--max-errors",
        metavar="N",
        type=click.IntRange(min=0),
        help="Stop when more than N objects failed. Default: no limit.",
    ),
)
_REPORT = (
    click.option(
        "--report",
        "reports",
        metavar="FILE",
        multiple=True,
        type=click.Path(),
        help="In the end, write FILE: a page for people (.html), or all rows (.csv, .jsonl, both also .gz, .parquet);"
        " repeatable.",
    ),
    click.option("--all", "everything", is_flag=True, help="List all objects, not only those that are not done."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON: one object a line, and last a summary."),
    PROGRESS,
)


def given_options(context: click.Context, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said on the command line of what the library calls options, and nothing that was not."""

    def said(name: str) -> bool:
        return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE

    given = {name: call[name] for name in _SAME if said(name)}
    if said("algorithms"):
        given["algorithms"] = parse_algorithms(call["algorithms"])
    for name in ("layout", "source_layout"):
        layout = layout_of(call[name])
        if layout is not None:
            given[name] = layout.config()
    content_paths = layout_of(call["content_paths"])
    values = {
        **{name: call[name] for name in ("prefix", "identifiers") if call[name] is not None},
        **({"namespaces": list(call["namespaces"])} if call["namespaces"] else {}),
        **({"content_paths": content_paths.config()} if content_paths is not None else {}),
    }
    if values:
        given["destination_options"] = values
    return given


def refuse_mixed(to: str, given: Mapping[str, Any]) -> None:
    """Refuse options that are for another kind of store.

    :raises CallError: one is
    """
    for name in given.get("destination_options", ()):
        if _OF_DESTINATION[name] != to:
            option = {"namespaces": "namespace", "content_paths": "content-paths"}.get(name, name)
            raise CallError(f"--{option}: with --to {_OF_DESTINATION[name]} only")
    if "algorithms" in given and to != "bags":
        raise CallError("--algorithm: with --to bags only")


def asked_for(
    options: migrate.Options, source: str, destination: str, to: str | None, given: Mapping[str, Any]
) -> migrate.Options:
    """Return the options of a run that is gone on with, as this call has them: the same where it says nothing."""
    changed = dict(given)
    if to is not None:
        changed["to"] = to
    return replace(options, source=os.path.abspath(source), destination=os.path.abspath(destination), **changed)
