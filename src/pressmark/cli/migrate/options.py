"""The options of ``pressmark migrate``, and the library's options made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from pressmark import migrate, stores
from pressmark.buckets.address import absolute
from pressmark.cli.common.console import CallError
from pressmark.cli.common.layout_options import layout_option
from pressmark.cli.common.object_storage import STORE_OR_ADDRESS, bucket_options
from pressmark.cli.common.options import (
    CRLF,
    PROGRESS,
    WholeNumber,
    check_globs,
    complete_algorithms,
    complete_layouts,
    json_option,
    parse_algorithms,
    worker_options,
)
from pressmark.cli.store.options import provenance_options
from pressmark.migrate.options import version_name
from pressmark.option_names import option
from pressmark.paths import PROFILES

__all__ = ["check_destination_options", "given_options", "migrate_options", "options_of_call"]

Function = TypeVar("Function", bound=Callable[..., Any])

# Options of the call with the same name in the library.
_SAME = (
    *("source_kind", "copy_mode", "verify", "move", "drop_empty_directories", "replace"),
    *("profile", "links", "improper"),
)
# Options of the destination, and the kind of store of each.
_OF_DESTINATION = {
    **{"prefix": "pairtree", "namespaces": "vitro", "identifiers": "bags", "content_paths": "ocfl"},
    **{"claims": "ocfl", "single_writer": "ocfl"},
}
_LAYOUT = "NAME[:KEY=VALUE,...]"


def migrate_options(function: Function) -> Function:
    """Add SOURCE, DESTINATION and all options."""
    for decorator in reversed((*_WHERE, *_WHAT, *_HOW, *_RUN, *_REPORT)):
        function = decorator(function)
    return function


_WHERE = (
    click.argument("source", metavar="SOURCE", type=STORE_OR_ADDRESS),
    # Its absence is reported by the command, which knows what is wanted.
    click.argument("destination", metavar="DESTINATION", type=STORE_OR_ADDRESS, required=False),
    click.option("--to", type=click.Choice(stores.KINDS), help="The kind of DESTINATION."),
    click.option(
        "--layout",
        metavar=_LAYOUT,
        shell_complete=complete_layouts,
        help="Layout of DESTINATION: required for an OCFL storage root, optional for a folder of bags."
        ' "pressmark layouts" lists the layouts, "pressmark layouts NAME" the keys.',
    ),
    click.option("--prefix", metavar="PREFIX", help="To a Pairtree: prefix of all identifiers."),
    click.option(
        "--namespace",
        "namespaces",
        metavar="NAMESPACE",
        multiple=True,
        help="To a Vitro store: namespace that one letter abbreviates; repeatable.",
    ),
    click.option(
        "--identifiers",
        type=click.Choice(["external", "name", "layout"]),
        help="To a folder of bags: source of a bag's identifier: its External-Identifier (external, the default),"
        " its directory name or the layout.",
    ),
    click.option(
        "--content-paths",
        metavar=_LAYOUT,
        shell_complete=complete_layouts,
        help="To an OCFL storage root: layout for the paths of files inside objects, such as 0011. Default: their"
        " names in SOURCE.",
    ),
    click.option(
        "--claims",
        is_flag=True,
        help="To object storage whose server ignores conditions: claim each object during its change. Safe if only"
        " Pressmark writes to DESTINATION, with this option.",
    ),
    click.option(
        "--single-writer",
        is_flag=True,
        help="To object storage whose server ignores conditions: only this run writes to DESTINATION.",
    ),
    click.option(
        "--algorithm",
        "-a",
        "algorithms",
        metavar="NAME[,NAME]...",
        multiple=True,
        shell_complete=complete_algorithms,
        help="To a folder of bags: digest algorithms of the manifests. Default: sha512.",
    ),
    provenance_options,
    click.option("--source-kind", type=click.Choice(stores.KINDS), help="Kind of SOURCE, if it cannot be detected."),
    click.option(
        "--source-layout",
        metavar=_LAYOUT,
        shell_complete=complete_layouts,
        help="Layout of SOURCE, if SOURCE does not declare it: OCFL storage roots and folders of bags.",
    ),
)
_WHAT = (
    click.option(
        "--ids",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Migrate only the objects whose identifiers are in FILE: lines (or NUL-terminated), .csv, .tsv, .jsonl"
        " or .parquet; text formats can be gzipped (.gz).",
    ),
    click.option(
        "--column",
        metavar="NAME",
        help="Column of the --ids file that contains the identifiers. Default: source_id, id or identifier.",
    ),
    CRLF,
    click.option(
        "--version",
        metavar="vN",
        help="From an OCFL storage root to another kind of store: the version of each object to migrate; objects"
        " without it are reported. Default: the newest version.",
    ),
    click.option(
        "--map",
        "new_ids",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Change identifiers: each line of FILE has an old and a new one, separated by a TAB, or as CSV.",
    ),
    click.option(
        "--improper",
        type=click.Choice(migrate.IMPROPER),
        help="Invalid objects of SOURCE: skip and report them, migrate those that can be read (take), or refuse the"
        " plan. Default: skip.",
    ),
    click.option(
        "--ignore",
        metavar="GLOB",
        multiple=True,
        callback=check_globs,
        help="Ignore files and directories of SOURCE with matching names outside of objects, such as .DS_Store;"
        " repeatable. They stay in SOURCE, also with --move. Not for OCFL storage roots.",
    ),
    click.option(
        "--links",
        type=click.Choice(migrate.LINKS),
        help="Symbolic links in objects: refuse the object, or follow the links. Default: refuse.",
    ),
    click.option(
        "--profile",
        type=click.Choice(tuple(PROFILES)),
        help="Refuse names and path lengths that this system, or any system (all), does not allow. Default: unix.",
    ),
    click.option(
        "--check-space/--no-check-space",
        default=True,
        help="Refuse the plan if the file system of DESTINATION lacks space or inodes; --no-check-space only warns.",
    ),
)
_HOW = (
    click.option(
        "--copy-mode",
        type=click.Choice(migrate.COPY_MODES),
        help="How to transfer files: copy; reflink (share disk blocks); hardlink (not to OCFL); rename (move whole"
        " objects; requires --move, one file system and stores of the same kind); or auto, the fastest safe mode."
        " Default: auto.",
    ),
    click.option(
        "--verify",
        type=click.Choice(migrate.VERIFICATIONS),
        help="none: do not verify; copy: hash files while copying, and compare with recorded digests; reread: also read"
        " all files again in DESTINATION; stored: also compare the digests that the server of DESTINATION keeps."
        " Default: copy.",
    ),
    click.option(
        "--move",
        is_flag=True,
        help="Remove verified objects from SOURCE after all objects are processed.",
    ),
    click.option(
        "--drop-empty-directories",
        is_flag=True,
        help="With --move: also remove objects with empty directories, which OCFL and Vitro cannot store. Without this"
        " option, such objects stay in SOURCE.",
    ),
    click.option(
        "--replace",
        is_flag=True,
        help="Replace existing objects with different content; in an OCFL storage root, with a new version.",
    ),
)
_RUN = (
    click.option("--dry-run", is_flag=True, help="Plan only; report objects and conflicts."),
    click.option(
        "--resume",
        is_flag=True,
        help="Continue an interrupted run. Options and lists that differ from those of the run are refused; omitted"
        " ones stay as they are.",
    ),
    click.option(
        "--catch-up",
        is_flag=True,
        help="After a finished run: migrate the objects that were added to SOURCE or changed since then.",
    ),
    click.option(
        "--verify-again",
        is_flag=True,
        help="Read all objects of a finished run again.",
    ),
    worker_options,
    bucket_options,
    click.option(
        "--work",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Directory for the plan, receipts and rows. Default: DESTINATION.migration; if DESTINATION is an address,"
        " in the current directory. After a finished run, the next one uses DIR-2, and so on.",
    ),
    click.option(
        "--max-errors",
        metavar="N",
        type=WholeNumber(min=0),
        help="Stop the run if more than N objects fail. Default: no limit.",
    ),
)
_REPORT = (
    click.option(
        "--report",
        "reports",
        metavar="FILE",
        multiple=True,
        type=click.Path(),
        help="Write a report: a page (.html), or all rows (.csv, .jsonl, .csv.gz, .jsonl.gz, .parquet); repeatable.",
    ),
    click.option("--all", "everything", is_flag=True, help="List all objects, including the migrated ones."),
    json_option("line"),
    PROGRESS,
)


def given_options(context: click.Context, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the library that the command line names."""

    def is_given(name: str) -> bool:
        return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE

    options = {name: call[name] for name in _SAME if is_given(name)}
    if call["version"] is not None:
        try:
            options["version"] = version_name(call["version"])
        except ValueError as error:
            raise CallError(f"--{error}") from None
    if is_given("algorithms"):
        options["algorithms"] = parse_algorithms(call["algorithms"])
    for name in ("layout", "source_layout"):
        if call[name] is not None:
            options[name] = layout_option(call[name], option(name))
    values = {name: call[name] for name in ("prefix", "identifiers") if call[name] is not None}
    values |= {name: True for name in ("claims", "single_writer") if call[name]}
    if call["namespaces"]:
        values["namespaces"] = list(call["namespaces"])
    if call["content_paths"] is not None:
        values["content_paths"] = layout_option(call["content_paths"], "--content-paths").config()
    if values:
        options["destination_options"] = values
    if call["ignore"]:
        options["source_options"] = {"ignore": list(call["ignore"])}
    return options


def check_destination_options(to: str, options: Mapping[str, Any]) -> None:
    """Refuse options for another kind of destination.

    :raises CallError: an option does not fit
    """
    for name in options.get("destination_options", ()):
        if _OF_DESTINATION[name] != to:
            raise CallError(f"{option(name)} requires --to {_OF_DESTINATION[name]}")
    if "algorithms" in options and to != "bags":
        raise CallError("--algorithm requires --to bags")


def options_of_call(
    options: migrate.Options, source: str, destination: str, to: str | None, named: Mapping[str, Any]
) -> migrate.Options:
    """Return the options of an earlier run, overridden by the options of this call."""
    changed = dict(named)
    for name in ("layout", "source_layout"):
        if name in named:
            changed[name] = named[name].config()
    for name in ("source_options", "destination_options"):
        if name in named:
            changed[name] = {**getattr(options, name), **named[name]}
    if to is not None:
        changed["to"] = to
    return replace(options, source=absolute(source), destination=absolute(destination), **changed)
