"""What the ``store`` commands share: options, opening, error handling, and output of objects."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from pressmark import stores
from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError
from pressmark.cli.common.object_storage import PATH_OR_ADDRESS, bucket_options
from pressmark.cli.common.options import (
    PROGRESS,
    check_globs,
    complete_layouts,
    gathered,
    json_option,
    links_option,
    null_option,
)
from pressmark.cli.common.output import Output
from pressmark.errors import quoted
from pressmark.layouts import Layout
from pressmark.stores import Store, StoreObject
from pressmark.stores.registry import detect_kind, store_class
from pressmark.stores.selection import by_path

if TYPE_CHECKING:
    from pressmark.stores import OcflRoot, StoredObject
    from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = [
    "CONTENT_CLASS",
    "CREATED",
    "IDENTIFIER",
    "IDENTIFIERS",
    "IGNORE",
    "JSON",
    "LAYOUT",
    "LINKS",
    "MODE",
    "NULL",
    "STORE",
    "VERIFY",
    "VERSION",
    "Provenance",
    "StoreFormat",
    "Writers",
    "changes_text",
    "check_version",
    "content_class_option",
    "creation_date",
    "find_object",
    "layout_of",
    "missing_provenance",
    "mutable_head_text",
    "ocfl_root",
    "provenance_options",
    "store_options",
    "write_object",
    "writers_options",
]

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

JSON = json_option("line")
LINKS = links_option(("refuse", "follow"), "Refuse symbolic links in source directories, or copy their targets.")
MODE = click.option(
    "--copy-mode",
    type=click.Choice(["auto", "copy", "reflink"]),
    default="auto",
    show_default=True,
    help="Copy, share disk blocks (reflink), or reflink where possible and copy otherwise (auto).",
)
NULL = null_option("End items with NUL instead of a line feed.")
STORE = click.argument("path", metavar="STORE", type=PATH_OR_ADDRESS)
IDENTIFIER = click.argument("identifier", metavar="IDENTIFIER")


LAYOUT = click.option(
    "--layout",
    metavar="NAME[:KEY=VALUE,...]",
    shell_complete=complete_layouts,
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
IGNORE = click.option(
    "--ignore",
    metavar="GLOB",
    multiple=True,
    callback=check_globs,
    help="Ignore files and directories with matching names, such as .DS_Store; repeatable.",
)


def store_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for STORE; the command gets those for opening it as ``store_format``."""
    function = gathered("store_format", StoreFormat)(function)
    for option in (PROGRESS, IGNORE, IDENTIFIERS, LAYOUT, _KIND):
        function = option(function)
    return bucket_options(function)


def layout_of(text: str | None) -> Layout | None:
    """Return the layout that ``--layout`` names, with its parameters."""
    if text is None:
        return None
    from pressmark.cli.common.layout_options import layout_option

    return layout_option(text)


class StoreFormat(NamedTuple):
    """The options of a call for opening a store.

    :ivar kind: of ``--kind``
    :ivar layout: of ``--layout``
    :ivar identifiers: of ``--identifiers``
    """

    kind: str | None = None
    layout: str | None = None
    identifiers: str | None = None

    def open(self, path: bytes, *call: Any, **how: Any) -> Store:
        """Open a store; the parameters are those of :meth:`opening`."""
        kind, options = self.opening(path, *call, **how)
        store: Store = store_class(kind)(path, **options)
        return store

    def opening(
        self,
        path: bytes,
        ignore: tuple[str, ...] = (),
        *,
        undeclared: bool = False,
        keyword: str | None = "kind",
        more: Callable[[str], Mapping[str, Any]] = lambda _kind: {},
    ) -> tuple[str, dict[str, Any]]:
        """Return the kind of a store, and the options for opening it.

        :param ignore: globs of names that commands on a single object ignore
        :param undeclared: open an OCFL storage root without its declaration, if its kind is given
        :param keyword: the option for the kind, for errors; :data:`None` if the command has none
        :param more: returns more options for a kind of store
        """
        found = self.kind or detect_kind(path, keyword)
        options: dict[str, Any] = {**more(found)}
        if self.layout is not None:
            if found not in ("ocfl", "bags"):
                raise CallError(f"--layout: the layout of a store of kind {found} is fixed; omit the option")
            options["layout"] = layout_of(self.layout)
        if self.identifiers is not None:
            if found != "bags":
                raise CallError("--identifiers: only for folders of bags; omit the option")
            options["identifiers"] = self.identifiers
        # Operations on one object of an OCFL root ignore nothing: its declaration marks it.
        if ignore and found != "ocfl":
            options["ignore"] = ignore
        if self.kind == "ocfl" and undeclared:
            options["undeclared"] = True
        return found, options

    def job_arguments(self, path: bytes, *call: Any, **how: Any) -> dict[str, Any]:
        """Return the arguments of a job for a store; the parameters are those of :meth:`opening`."""
        kind, options = self.opening(path, *call, **how)
        layout = options.pop("layout", None)
        config = None if layout is None else layout.config()
        return {"root": os.fsdecode(path), "kind": kind, "layout": config, "options": options}


def ocfl_root(store: Store, what: str, instead: str) -> OcflRoot:
    """Return a store that is an OCFL storage root.

    :param what: the command or option that requires one
    :param instead: what to do with other kinds of stores
    """
    if store.kind != "ocfl":
        raise CallError(f"{what}: a store of kind {store.kind} has no versions; {instead}")
    return cast("OcflRoot", store)


def find_object(store: Store, identifier: str, version: str | None = None) -> StoredObject:
    """Return an object, by its identifier or its path, or the version of it that ``--version`` names."""
    if version is not None:
        root = ocfl_root(store, "--version", "omit the option")
        return by_path(root, identifier, lambda one: root.get(one, version))
    return by_path(store, identifier, lambda one: (store.locate if isinstance(one, StoreObject) else store.get)(one))


def changes_text(counts: Mapping[str, int]) -> str:
    """Return the number of files that were added, removed, changed and so on."""
    found = [f"{count:,} {kind}" for kind, count in counts.items() if count and kind != "unchanged"]
    return ", ".join([*(found or ["no changes"]), f"{counts['unchanged']:,} unchanged"])


def mutable_head_text(stored: OcflObject) -> str:
    """Return a note about changes that a listing does not contain; empty without any."""
    note = "; without the staged changes of its mutable HEAD: only ocfl-java commits them"
    return note if stored.has_mutable_head() else ""


# --- output -----------------------------------------------------------------------------------------------------------


def write_object(output: Output, found: StoreObject, done: str = "") -> None:
    """Write one object: identifier, TAB and path.

    :param done: what was done to the object, for the message about one that does not fit on a line
    """
    if output.as_json:
        output.record(found.record())
    elif found.id is None:
        output.reporter.fail(f"{quoted(found.path)}: identifier cannot be read")
    else:
        output.row(found.id, found.id, found.path, done=done)


# --- the user of a version --------------------------------------------------------------------------------------------

USER, ADDRESS = "PRESSMARK_USER", "PRESSMARK_USER_ADDRESS"


def provenance_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of :class:`Provenance`, which the command gets as ``provenance``."""
    function = gathered("provenance", Provenance)(function)
    for option in (
        click.option(
            "--user-address",
            metavar="URI",
            help=f"Address of the user, such as mailto:NAME@EXAMPLE.ORG or an ORCID iD (default: {ADDRESS}).",
        ),
        click.option("--user", metavar="NAME", help=f"User who creates the version (OCFL; default: {USER})."),
        click.option("--message", metavar="TEXT", help="Message of the version (OCFL)."),
    ):
        function = option(function)
    return function


CONTENT_CLASS = click.option(
    "--content-class",
    metavar="CLASS",
    help="In object storage: storage class of new content, such as GLACIER_IR or DEEP_ARCHIVE (default: that of the"
    " bucket). Inventories, sidecars and declarations keep the default.",
)


def content_class_option(name: str | None, path: bytes, kind: str) -> dict[str, str]:
    """Return the option of a store for ``--content-class``.

    :raises CallError: the store is not an OCFL storage root in object storage
    """
    if name is None:
        return {}
    if kind != "ocfl" or not is_address(path):
        raise CallError("--content-class: only for an OCFL storage root in object storage; omit the option")
    return {"content_class": name}


def writers_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for servers that ignore conditions, which the command gets as ``writers``."""
    function = gathered("writers", Writers)(function)
    for name, what in (
        ("--single-writer", "only this run writes to STORE."),
        (
            "--claims",
            "claim each object during its change. Safe if only Pressmark writes to STORE, with this option.",
        ),
    ):
        text = f"In object storage whose server ignores conditions: {what}"
        function = click.option(name, is_flag=True, help=text)(function)
    return function


class Writers(NamedTuple):
    """The options of a call for servers that ignore conditions.

    :ivar claims: of ``--claims``
    :ivar single_writer: of ``--single-writer``
    """

    claims: bool
    single_writer: bool

    def options(self, path: bytes, kind: str) -> dict[str, bool]:
        """Return the options for opening or creating a store.

        :raises CallError: the store is not an OCFL storage root in object storage, or both are given
        """
        if not any(self):
            return {}
        if all(self):
            raise CallError("--claims: excludes --single-writer; omit one of them")
        name = "claims" if self.claims else "single_writer"
        if kind != "ocfl" or not is_address(path):
            used = f"--{name.replace('_', '-')}"
            raise CallError(f"{used}: only for an OCFL storage root in object storage; omit the option")
        return {name: True}


CREATED = click.option(
    "--created",
    metavar="TIME",
    help="Date and time of the version (OCFL), such as 2024-05-31T12:00:00Z. Default: now.",
)


def creation_date(created: str | None, kind: str) -> dict[str, str]:
    """Return the option of a store for ``--created``.

    :raises CallError: a store of this kind does not record it, or it is not an RFC 3339 date and time
    """
    if created is None:
        return {}
    if kind != "ocfl":
        raise CallError(f"--created: a store of kind {kind} does not record it; omit the option")
    # Imported here: few calls have a date.
    from pressmark.stores.ocfl.inventory_rules import is_date_time

    if not is_date_time(created):
        raise CallError(f"--created {quoted(created)}: not an RFC 3339 date and time, such as 2024-05-31T12:00:00Z")
    return {"created": created}


class Provenance(NamedTuple):
    """The message and the user of the versions that a call creates.

    :ivar message: of ``--message``
    :ivar user: of ``--user``
    :ivar user_address: of ``--user-address``
    """

    message: str | None
    user: str | None
    user_address: str | None

    def options(self, kind: str) -> dict[str, Any]:
        """Return the options for opening a store of a kind.

        The environment variables apply to OCFL only. The address in the environment belongs to the user in the
        environment.
        """
        if kind != "ocfl":
            for option, value in zip(("--message", "--user", "--user-address"), self, strict=True):
                if value is not None:
                    raise CallError(f"{option}: a store of kind {kind} does not record it; omit the option")
            return {}
        user, user_source = self.user, "--user"
        address, address_source = self.user_address, "--user-address"
        if user is None:
            user, user_source = os.environ.get(USER) or None, USER
            if address is None:
                address, address_source = os.environ.get(ADDRESS) or None, ADDRESS
        for name, value in (("--message", self.message), (user_source, user), (address_source, address)):
            if value is not None:
                _check_text(name, value)
        found: dict[str, Any] = {} if self.message is None else {"message": self.message}
        if user is not None:
            found["user"] = {"name": user} if address is None else {"name": user, "address": address}
        if address is not None:
            if user is None:
                raise CallError(f"{address_source}: no user given; specify --user, or set {USER}")
            _check_uri(address_source, address)
        return found


def missing_provenance(store: Store) -> str | None:
    """Return a warning about metadata that new versions in a store will not record; :data:`None` if nothing is
    missing."""
    if store.kind != "ocfl":
        return None
    user = cast("OcflRoot", store).user
    if user is None:
        return f"no user is recorded (W007); specify --user and --user-address, or set {USER} and {ADDRESS}"
    if "address" not in user:
        return f"no address of the user is recorded (W008); specify --user-address, or set {USER} and {ADDRESS}"
    return None


def _check_text(source: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise CallError(f"{source}: not UTF-8, which an OCFL inventory requires") from None
    if not value and source != "--message":
        raise CallError(f"{source}: the value is empty")


def _check_uri(source: str, address: str) -> None:
    from pressmark.stores.ocfl.inventory_rules import is_uri  # not needed without an address

    if not is_uri(address):
        example = f"mailto:{address}" if is_uri(f"mailto:{address}") and "@" in address else "mailto:NAME@EXAMPLE.ORG"
        raise CallError(f"{source} {quoted(address)}: not a URI; use {example}")
