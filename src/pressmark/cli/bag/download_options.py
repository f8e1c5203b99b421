"""The options of the commands that download: which servers are allowed, and how patient the requests are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from pressmark.cli.common.files import refuse_missing

__all__ = ["download_options", "refuse_missing_certificates"]

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--allow-http", is_flag=True, help="Also allow unencrypted downloads (http:). Default: https: only."),
    click.option(
        "--allow-host",
        "allow_hosts",
        metavar="HOST",
        multiple=True,
        help="Allow HOST even if its address is private; repeatable.",
    ),
    click.option("--allow-private", is_flag=True, help="Allow hosts with private addresses, including this machine."),
    click.option(
        "--certificates",
        metavar="FILE",
        type=click.Path(readable=False),
        help="Trust the certificates in FILE instead of the system's.",
    ),
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
        show_default=True,
        help="Seconds without data after which a connection fails.",
    ),
    click.option(
        "--retries",
        metavar="N",
        type=click.IntRange(min=0),
        default=4,
        show_default=True,
        help="Retry a request up to N times if the connection fails or the server is busy.",
    ),
    click.option(
        "--threads",
        metavar="N",
        type=click.IntRange(min=1),
        default=4,
        show_default=True,
        help="Download N files at a time.",
    ),
)


def download_options(function: Function) -> Function:
    """Add the options to a command, which receives them as arguments of :func:`pressmark.bagit.complete`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def refuse_missing_certificates(download: Mapping[str, Any]) -> None:
    """Refuse a file of certificates that does not exist, before anything is done."""
    certificates = download["certificates"]
    refuse_missing([os.fsencode(certificates)] if certificates else [])
