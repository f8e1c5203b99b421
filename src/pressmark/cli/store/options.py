"""Options, opening and error handling that the ``store`` commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from pressmark import stores
from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.files import check_globs
from pressmark.cli.common.progress import PROGRESS
from pressmark.errors import IdentifierError, ObjectError, StoreError, quoted
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.layouts import Layout
from pressmark.stores import Store, StoreObject

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pressmark.stores import OcflRoot, StoredObject

__all__ = [
    "IDENTIFIER",
    "IDENTIFIERS",
    "JSON",
    "LAYOUT",
    "LINKS",
    "MODE",
    "NULL",
    "STORE",
    "VERIFY",
    "VERSION",
    "by_path",
    "check_version",
    "command_errors",
    "complete_layout",
    "find_object",
    "layout_of",
    "ocfl_root",
    "open_store",
    "store_options",
]

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, then a summary.")
LINKS = click.option(
    "--links",
    type=click.Choice(["refuse", "follow"]),
    default="refuse",
    show_default=True,
    help="Refuse symbolic links in source directories, or copy their targets.",
)
MODE = click.option(
    "--mode",
    type=click.Choice(["auto", "copy", "reflink"]),
    default="auto",
    show_default=True,
    help="Copy, share disk blocks (reflink), or reflink where possible and copy otherwise (auto).",
)
NULL = click.option("--null", "-0", is_flag=True, help="End items with NUL instead of a line feed.")
STORE = click.argument("path", metavar="STORE", type=click.Path(path_type=bytes))
IDENTIFIER = click.argument("identifier", metavar="IDENTIFIER")


def complete_layout(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    """Complete the name of a layout in the shell."""
    from pressmark.cli.common.options import complete_layouts  # loads every layout

    return complete_layouts(context, parameter, start)


LAYOUT = click.option(
    "--layout",
    metavar="NAME[:KEY=VALUE,...]",
    shell_complete=complete_layout,
    help="Use this layout instead of the store's own (OCFL storage roots and folders of bags)."
    ' "pressmark layouts NAME" lists its keys.',
)
IDENTIFIERS = click.option(
    "--identifiers",
    type=click.Choice(["external", "name", "layout"]),
    help="Source of identifiers in a folder of bags: the External-Identifier of each bag (if missing, the name of its"
    " directory), the name of its directory, or its path under the layout.",
)


def check_version(context: click.Context, _parameter: click.Parameter, version: str | None) -> str | None:
    """Return the version of a call, after checking that it is the name or number of one."""
    if version is not None and not context.resilient_parsing and re.fullmatch("v?[0-9]+", version) is None:
        raise CallError(f"{quoted(version)} is not a version; specify one such as v2")
    return version


VERSION = click.option(
    "--version",
    metavar="VERSION",
    callback=check_version,
    help="Version of an OCFL object, such as v2 (default: the newest).",
)
VERIFY = click.option(
    "--verify/--no-verify",
    default=True,
    help="Compare content with its recorded digest, or read it without verification (default: verify).",
)
_KIND = click.option(
    "--kind",
    type=click.Choice(stores.KINDS),
    help="Kind of STORE (default: detected).",
)
_IGNORE = click.option(
    "--ignore",
    metavar="GLOB",
    multiple=True,
    callback=check_globs,
    help="Ignore files and directories with matching names, such as .DS_Store; repeatable.",
)


def store_options(function: Function) -> Function:
    """Add the options for opening STORE; :func:`open_store` takes their values."""
    for option in (PROGRESS, _IGNORE, IDENTIFIERS, LAYOUT, _KIND):
        function = option(function)
    return function


def layout_of(text: str | None) -> Layout | None:
    """Return the layout that ``--layout`` names, with its parameters."""
    if text is None:
        return None
    from pressmark.cli.common.options import layout_option  # loads every layout

    return layout_option(text)


def open_store(
    path: bytes,
    kind: str | None,
    layout: str | None,
    identifiers: str | None,
    ignore: tuple[str, ...] = (),
    *,
    undeclared: bool = False,
    more: Callable[[str], Mapping[str, Any]] = lambda _kind: {},
) -> Store:
    """Open the store of a call.

    :param ignore: globs of names that commands on a single object ignore
    :param undeclared: open an OCFL storage root without its declaration, if ``kind`` is given
    :param more: returns more options for a kind of store
    """
    found = kind or stores.kind_of(path)
    options: dict[str, Any] = {**more(found)}
    if layout is not None:
        if found not in ("ocfl", "bags"):
            raise CallError(f"--layout: the layout of a store of kind {found} is fixed; omit the option")
        options["layout"] = layout_of(layout)
    if identifiers is not None:
        if found != "bags":
            raise CallError("--identifiers: only for folders of bags; omit the option")
        options["identifiers"] = identifiers
    # Operations on one object of an OCFL root ignore nothing: its declaration marks it.
    if ignore and found != "ocfl":
        options["ignore"] = ignore
    if kind == "ocfl" and undeclared:
        options["undeclared"] = True
    return stores.open(path, found, **options)


def ocfl_root(store: Store, what: str, instead: str) -> OcflRoot:
    """Return a store that is an OCFL storage root.

    :param what: the command or option that requires one
    :param instead: what to do with other kinds of stores
    """
    if store.kind != "ocfl":
        raise CallError(f"{what}: a store of kind {store.kind} has no versions; {instead}")
    return cast("OcflRoot", store)


def by_path(store: Store, identifier: str | bytes, act: Callable[[Any], Result]) -> Result:
    """Call a function with an identifier; if no object has it, with the record of the object at this path.

    :param act: called with the identifier, then with the record
    """
    try:
        return act(identifier)
    except (IdentifierError, ObjectError) as error:
        # A layout may map a path to itself, where the object with another identifier is.
        if isinstance(error, ObjectError) and error.kind not in ("missing", "collision"):
            raise
        record = store.at(decode_fs(encode_fs(identifier)))
        if record is None:
            raise
    return act(record)


def find_object(store: Store, identifier: str, version: str | None = None) -> StoredObject:
    """Return an object, by its identifier or its path, or the version of it that ``--version`` names."""
    if version is not None:
        root = ocfl_root(store, "--version", "omit the option")
        return by_path(root, identifier, lambda one: root.get(one, version))
    return by_path(store, identifier, lambda one: (store.locate if isinstance(one, StoreObject) else store.get)(one))


@contextmanager
def command_errors() -> Iterator[None]:
    """End the command with status 1 where reading or writing failed, and with status 2 for a usage error."""
    try:
        yield
    except ObjectError as error:
        raise Failure(str(error)) from None
    except StoreError as error:
        # An error of the operating system is the cause.
        raise (Failure if isinstance(error.__cause__, OSError) else CallError)(str(error)) from None
