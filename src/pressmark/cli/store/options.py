"""What the commands on stores have in common: options, opening, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from pressmark import stores
from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.fixity_options import PROGRESS
from pressmark.errors import ObjectError, StoreError
from pressmark.fixity import Progress
from pressmark.layouts import Layout
from pressmark.stores import Store

__all__ = [
    "IDENTIFIERS",
    "JSON",
    "LAYOUT",
    "as_files",
    "layout_of",
    "opened",
    "store_endings",
    "store_options",
]

Function = TypeVar("Function", bound=Callable[..., Any])

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON: one object a line, and last a summary.")
LAYOUT = click.option(
    "--layout",
    metavar="NAME[:KEY=VALUE,...]",
    help="Place objects by this layout, whatever the store says: OCFL storage roots and folders of bags only."
    ' Parameters by their keys in the specification; "pressmark layouts NAME" lists them.',
)
IDENTIFIERS = click.option(
    "--identifiers",
    type=click.Choice(["external", "name", "layout"]),
    help="Folders of bags: take a bag's identifier from its External-Identifier (without one, from its directory's"
    " name), from the name, or from the layout.",
)
_KIND = click.option(
    "--kind",
    type=click.Choice(stores.KINDS),
    help="The kind of STORE, where its signs do not tell.",
)
_IGNORE = click.option(
    "--ignore",
    metavar="GLOB",
    multiple=True,
    help="Pass over what is called so anywhere in the store, such as .DS_Store; repeatable.",
)


def store_options(function: Function) -> Function:
    """Add STORE and the options that say how it is opened; :func:`opened` takes what they give."""
    for decorator in (
        PROGRESS,
        _IGNORE,
        IDENTIFIERS,
        LAYOUT,
        _KIND,
        click.argument("path", metavar="STORE", type=click.Path(path_type=bytes)),
    ):
        function = decorator(function)
    return function


def layout_of(text: str | None) -> Layout | None:
    """Return the layout that ``--layout`` names, with its parameters."""
    if text is None:
        return None
    from pressmark.cli.common.options import named_layout  # loads every layout

    return named_layout(text)


def opened(
    path: bytes,
    kind: str | None,
    layout: str | None,
    identifiers: str | None,
    ignore: tuple[str, ...] = (),
    *,
    undeclared: bool = False,
) -> Store:
    """Open the store of a call.

    :param ignore: what is passed over by operations on one object, which do not take that themselves
    :param undeclared: open what is OCFL by ``kind`` alone, and has no declaration
    """
    found = kind or stores.kind_of(path)
    options: dict[str, Any] = {}
    if layout is not None:
        if found not in ("ocfl", "bags"):
            raise CallError(f"--layout: a store of kind {found} has one layout")
        options["layout"] = layout_of(layout)
    if identifiers is not None:
        if found != "bags":
            raise CallError("--identifiers: for folders of bags only")
        options["identifiers"] = identifiers
    # An OCFL object is a directory with a declaration: nothing else in the root can be taken for it.
    if ignore and found != "ocfl":
        options["ignore"] = ignore
    if kind == "ocfl" and undeclared:
        options["undeclared"] = True
    return stores.open(path, found, **options)


@contextmanager
def store_endings() -> Iterator[None]:
    """Tell what could not be read or written from what the call got wrong."""
    try:
        yield
    except ObjectError as error:
        raise Failure(str(error)) from None
    except StoreError as error:
        # Where the operating system refused, it is the cause.
        raise (Failure if isinstance(error.__cause__, OSError) else CallError)(str(error)) from None


def as_files(event: object) -> object:
    """Return a store's progress as a reporter takes it."""
    return Progress(event.objects, 0, event.problems) if isinstance(event, stores.Progress) else event
