"""The options that record in an OCFL version why and by whom it was made."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from pressmark.cli.common.console import CallError

__all__ = ["provenance_options", "user_of"]

Function = TypeVar("Function", bound=Callable[..., Any])


def provenance_options(to: str = "") -> Callable[[Function], Function]:
    """Return a decorator that adds ``--message``, ``--user`` and ``--user-address``.

    :param to: the start of each help text
    """

    def add(function: Function) -> Function:
        for option in (
            click.option(
                "--user-address",
                metavar="URI",
                help=f"{to}Address of the user, such as mailto:ann@example.org. Default:"
                " $PRESSMARK_USER_ADDRESS, with $PRESSMARK_USER.",
            ),
            click.option("--user", metavar="NAME", help=f"{to}User who makes the versions. Default: $PRESSMARK_USER."),
            click.option("--message", metavar="TEXT", help=f"{to}Message of the versions."),
        ):
            function = option(function)
        return function

    return add


def user_of(name: str | None = None, address: str | None = None) -> dict[str, str] | None:
    """Return the user of new versions, by the options or else by the environment; :data:`None` if neither names one.

    :param name: ``--user``; empty for no user
    :param address: ``--user-address``
    :raises CallError: an address without a name
    """
    if name is None and (name := os.environ.get("PRESSMARK_USER")):
        address = address or os.environ.get("PRESSMARK_USER_ADDRESS")
    if address and not name:
        raise CallError("--user-address requires --user")
    if not name:
        return None
    return {"name": name, "address": address} if address else {"name": name}
