"""Options for elements of bag-info.txt."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from pressmark.bagit.bag_info import BagInfo
from pressmark.cli.common.console import CallError
from pressmark.cli.common.files import open_source
from pressmark.errors import quoted

__all__ = ["info_options", "parse_elements"]

Function = TypeVar("Function", bound=Callable[..., Any])


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
    return [(label, value) for label, value in info.elements if value and not _is_counted(label)]


def _is_counted(label: str) -> bool:
    return label.lower() == "payload-oxum"
