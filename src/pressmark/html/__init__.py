"""HTML reports: self-contained pages for screens, phones, print and screen readers.

A page runs no script, and its Content-Security-Policy blocks every request.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

from pressmark.errors import ReportError
from pressmark.fs.atomic import Replacement, is_stream, open_output

__all__ = [
    "check_packages",
    "check_page",
    "check_writable",
    "embed_json",
    "escape_unprintable",
    "format_large_number",
    "format_number",
    "format_percent",
    "render_page",
    "write_page",
]


def check_packages(path: str, packages: Sequence[str]) -> None:
    """Check that the packages for a report are installed.

    :raises ReportError: a package is missing; the message explains how to install it
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ReportError(path, f'{package} is not installed; run: pip install "pressmark[report]"')


def check_writable(path: str) -> None:
    """Check that a file can be written.

    :raises ReportError: the file cannot be written
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise ReportError(path, "is a directory; choose a file name")
    if is_stream(path):
        return
    if not os.path.isdir(folder):
        raise ReportError(path, "parent directory not found; create it or choose another file")
    # Only an attempt shows whether writing is possible: mode bits say nothing about root or a read-only file system.
    probe = Replacement(target)
    try:
        probe.open()
    except OSError as error:
        raise _write_error(path, error) from error
    finally:
        probe.abandon()


def check_page(path: str, packages: Sequence[str], source: str | bytes | os.PathLike[str] | None = None) -> None:
    """Check that a page can be created and written, before what it reports on begins.

    :param source: a file that is read for the page
    :raises ReportError: a package is missing, the name is that of another format, or the file cannot be written, or is
        the source
    """
    with suppress(OSError):
        if source is not None and os.path.samefile(path, source):
            raise ReportError(path, "input and report are the same file; choose another report")
    if os.path.splitext(path)[1].lower() not in ("", ".html", ".htm"):
        raise ReportError(path, "a report is HTML; choose a name that ends in .html")
    check_packages(path, packages)
    check_writable(path)


def write_page(path: str, text: str) -> None:
    """Write a page, replacing the file atomically.

    :raises ReportError: the file cannot be written
    """
    try:
        with open_output(path, durable=False) as file:
            # Surrogates are escaped by ``escape_unprintable``; one that was missed must not fail the report.
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise _write_error(path, error) from error


def render_page(
    package: str, template: str, context: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]]
) -> str:
    """Render a page.

    :param package: the package of the template
    :param template: a jinja2 template, which includes ``head.html`` after setting ``title``; it can use the filters
        ``visible``, ``number`` and ``percent``
    :param context: further variables
    :param filters: further filters
    """
    jinja2: Any = importlib.import_module("jinja2")
    how = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True, "auto_reload": False}
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, **how)
    environment.filters |= {
        "visible": escape_unprintable,
        "number": format_number,
        "percent": format_percent,
        **filters,
    }
    markup: Any = importlib.import_module("markupsafe").Markup
    texts = {name: _read("pressmark.html", name) for name in ("head.html", "style.css")}
    environment.loader = jinja2.DictLoader(texts)
    page = environment.from_string(_read(package, template))
    text: str = page.render(style=markup(texts["style.css"]), **context)
    return text


def _read(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def escape_unprintable(text: str | None) -> str:
    """Return a string with unprintable characters escaped, for example bidirectional controls."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text or "")


def format_number(value: float) -> str:
    """Return a number with thousands separators; small numbers keep up to two decimals."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def format_large_number(value: float) -> str:
    """Return a number with three significant digits: ``1.14 billion``."""
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        # 999.5 million rounds to 1 billion.
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {word}"
    return format_number(value)


def format_percent(share: float) -> str:
    """Return a share as a percentage; small ones with two decimals."""
    return f"{100 * share:.2f}\u00a0%" if share < 0.1 else f"{100 * share:.0f}\u00a0%"


def embed_json(record: Any) -> str:
    """Return a record as JSON that is safe inside a ``script`` element: without ``<``, ``>`` and ``&``."""
    text = json.dumps(record, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _write_error(path: str, error: OSError) -> ReportError:
    return ReportError(path, f"cannot be written ({error.strerror or error}); choose another file")
