"""Pages for people: one HTML file each, which asks for nothing else, whatever the texts in it hold.

A page can be read on a telephone, on paper and by a screen reader. No script runs in it, and its
Content-Security-Policy refuses every request.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from pressmark.errors import ReportError
from pressmark.fs.atomic import Replacement
from pressmark.fs.owners import resolved

__all__ = [
    "check_needs",
    "check_writable",
    "embedded",
    "number",
    "percent",
    "rendered",
    "rounded",
    "visible",
    "write_page",
]

_STYLE = "style.css"


def check_needs(path: str, packages: Sequence[str]) -> None:
    """Make sure that what a page is made with is installed.

    :raises ReportError: a package is not; the message says how to get it
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ReportError(path, f'it needs {package}: pip install "pressmark[report]"')


def check_writable(path: str) -> None:
    """Make sure, as far as that can be seen before, that a file can be written.

    :raises ReportError: it cannot
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise ReportError(path, "it is a directory; name a file")
    if not os.path.isdir(folder):
        raise ReportError(path, "its directory does not exist; make it, or name another file")
    # Nothing but an attempt tells: there are read-only file systems, and those who may write everywhere else.
    probe = Replacement(target)
    try:
        probe.open()
    except OSError as error:
        raise _refusal(path, error) from error
    finally:
        probe.abandon()


def write_page(path: str, text: str) -> None:
    """Write a page as a file, which is there as a whole or as it was before.

    :raises ReportError: it cannot be written
    """
    try:
        with Replacement(resolved(path), durable=False) as file:
            # A lone surrogate would have been made visible; if one slips through, the page still gets written.
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise _refusal(path, error) from error


def rendered(template: str, context: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]]) -> str:
    """Return a page.

    :param template: of jinja2; ``style`` in it is what all pages look like, and the filters ``visible``,
        ``number`` and ``percent`` are the functions of that name
    """
    jinja2: Any = importlib.import_module("jinja2")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )
    environment.filters |= {"visible": visible, "number": number, "percent": percent, **filters}
    markup: Any = importlib.import_module("markupsafe").Markup
    style = files("pressmark.html").joinpath(_STYLE).read_text(encoding="utf-8")
    text: str = environment.from_string(template).render(style=markup(style), **context)
    return text


def visible(text: str | None) -> str:
    """Return a text with everything escaped that is not printable, such as controls that turn the direction around."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text or "")


def number(value: float) -> str:
    """Return a number as people read it: with a comma every three digits, a small one with what is behind the point."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def rounded(value: float) -> str:
    """Return a large number in words, with three digits: ``1.14 billion``."""
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        # A thousand of a unit is one of the next.
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {word}"
    return number(value)


def percent(share: float) -> str:
    """Return a share in hundredths, a small one with what is behind the point."""
    return f"{100 * share:.2f}\u00a0%" if share < 0.1 else f"{100 * share:.0f}\u00a0%"


def embedded(record: Any) -> str:
    """Return a record as JSON that may stand in an element ``script``: it holds none of ``<``, ``>`` and ``&``."""
    text = json.dumps(record, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _refusal(path: str, error: OSError) -> ReportError:
    return ReportError(path, f"it cannot be written ({error.strerror or error}); name another file")
