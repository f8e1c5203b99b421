"""Lists of lines that commands read besides tables: opened, unpacked, and refused where they are something else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pressmark.cli.common.console import CallError
from pressmark.cli.common.files import open_source
from pressmark.cli.common.gzipped import unpacked
from pressmark.tabular.detection import Crlf, FormatError, ListStream, format_of, is_gzip, open_list

__all__ = ["checked", "open_lines"]


def checked(data: Any, format: str, null: bool, crlf: Crlf | None, json_lines: bool = True) -> ListStream:
    """Return the stream of a list, after its first bytes were examined.

    :param data: where the bytes come from, with the file's name
    :param json_lines: refuse lines that are JSON
    :raises CallError: it is not of this format, or needs ``--crlf``
    """
    try:
        return open_list(data, format, delimiter=b"\0" if null else b"\n", crlf=crlf, json_lines=json_lines)
    except FormatError as error:
        raise CallError(f"{data.name}: {error}") from None


@contextlib.contextmanager
def open_lines(path: str, null: bool, crlf: Crlf | None) -> Iterator[ListStream]:
    """Open a list of ``--from``: lines, which may be gzipped."""
    try:
        format = format_of(path)
    except FormatError as error:
        raise CallError(f"{path}: {error}") from None
    if format not in (None, "lines", "tsv"):
        raise CallError(f"{path}: its name is not that of a list of lines; save it as lines with a TAB in each")
    with open_source(path) as source:
        yield checked(unpacked(source, is_gzip(path)), "lines", null, crlf, json_lines=False)
