"""Shared by the commands on bags: options, checks of arguments, and exit statuses."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from pressmark.bagit.bag_info import BagInfo
from pressmark.cli.common.console import CallError
from pressmark.cli.common.files import open_source
from pressmark.errors import quoted
from pressmark.fs.names import is_inside

__all__ = [
    "BAG",
    "JSON",
    "fetch_base_option",
    "info_options",
    "parse_elements",
    "parse_fetch_base",
    "refuse_inside",
]

Function = TypeVar("Function", bound=Callable[..., Any])

BAG = click.argument("bag", metavar="BAG", type=click.Path(path_type=bytes))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per problem, then a summary.")


def fetch_base_option(meaning: str, **more: Any) -> Callable[[Function], Function]:
    """Add ``--fetch-base``; :func:`parse_fetch_base` reads its value."""
    return click.option("--fetch-base", metavar="URL", help=meaning, **more)


def parse_fetch_base(url: str) -> str:
    """Return the URL below which files are, with a slash at its end."""
    from pressmark.bagit.fetch.fetch_txt import base_url  # few commands need it
    from pressmark.bagit.fetch.urls import redacted_url

    try:
        return base_url(url)
    except ValueError as error:
        raise CallError(f"--fetch-base {redacted_url(url)}: {error}") from None


def refuse_inside(ledger: str | None, directory: bytes) -> None:
    """Refuse a ledger inside the directory that is processed, where it would be an additional file."""
    if ledger is not None and is_inside(ledger, directory):
        raise CallError(f"--ledger {ledger}: file is inside {os.fsdecode(directory)}; choose a file outside of it")


# --- elements of bag-info.txt -----------------------------------------------------------------------------------------


def info_options(meaning: str) -> Callable[[Function], Function]:
    """Add ``--info``, described by ``meaning``, and ``--info-file``; :func:`parse_elements` reads their values."""

    def added(function: Function) -> Function:
        for decorator in (
            click.option(
                "--info-file",
                metavar="FILE",
                type=click.Path(readable=False, allow_dash=True),
                help='Read elements from FILE, in the format of bag-info.txt ("-": standard input); --info adds to'
                " them. Payload-Oxum is ignored, because it is computed.",
            ),
            click.option("--info", "settings", metavar="LABEL=VALUE", multiple=True, help=f"{meaning} LABEL."),
        ):
            function = decorator(function)
        return function

    return added


def parse_elements(settings: Sequence[str], file: str | None) -> list[tuple[str, str]]:
    """Return the elements in ``file``, followed by those in ``settings``, each ``label=value``."""
    elements = [] if file is None else _read(file)
    for setting in settings:
        label, equals, value = setting.partition("=")
        if not (label and equals):
            raise CallError(f"--info {quoted(setting)}: expected LABEL=VALUE")
        try:
            BagInfo([(label, value)])
        except ValueError as error:
            raise CallError(f"--info {quoted(setting)}: {error}") from None
        if _is_counted(label):
            raise CallError(f"--info {quoted(setting)}: Payload-Oxum is computed; omit it")
        elements.append((label, value))
    return elements


def _read(file: str) -> list[tuple[str, str]]:
    with open_source(file) as source:
        data = b"".join(iter(source.read, b""))
    info, problems = BagInfo.parse(data, name=os.fsencode(source.name))
    for problem in problems:
        if problem.severity == "error":
            raise CallError(f"{source.name}: {problem.message}")
    # The file can be the bag-info.txt of another bag, with its Payload-Oxum.
    return [(label, value) for label, value in info.elements if not _is_counted(label)]


def _is_counted(label: str) -> bool:
    return label.lower() == "payload-oxum"
