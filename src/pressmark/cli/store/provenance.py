"""Message and user of new versions: the options, and the variables of the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from pressmark.cli.common.console import CallError
from pressmark.errors import quoted
from pressmark.stores import Store

if TYPE_CHECKING:
    from pressmark.stores import OcflRoot

__all__ = ["Provenance", "missing_provenance", "provenance_options"]

Function = TypeVar("Function", bound=Callable[..., Any])

USER, ADDRESS = "PRESSMARK_USER", "PRESSMARK_USER_ADDRESS"


def provenance_options(function: Function) -> Function:
    """Add the options of :class:`Provenance`."""
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


class Provenance(NamedTuple):
    """The message and the user of the versions that a call creates.

    :ivar message: of ``--message``
    :ivar user: of ``--user``
    :ivar address: of ``--user-address``
    """

    message: str | None
    user: str | None
    address: str | None

    def options(self, kind: str) -> dict[str, Any]:
        """Return the options for opening a store of a kind.

        The environment variables apply to OCFL only. The address in the environment belongs to the user in the
        environment.
        """
        if kind != "ocfl":
            for option, value in (("--message", self.message), ("--user", self.user), ("--user-address", self.address)):
                if value is not None:
                    raise CallError(f"{option}: a store of kind {kind} does not record it; omit the option")
            return {}
        user, user_source = self.user, "--user"
        address, address_source = self.address, "--user-address"
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
