"""The report of a comparison: one page that says what it found, in words, pictures and tables, with all of its data."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from typing import Any

from pressmark.compare.report.verdict import SYSTEMS, Statement, Verdict, faults, verdict
from pressmark.compare.result import KINDS, ComparisonData, LayoutResult
from pressmark.html import check_needs, check_writable, embedded, rendered, write_page
from pressmark.version import __version__

__all__ = ["SYSTEMS", "Statement", "Verdict", "check_report", "faults", "page_text", "verdict", "write_report"]

_TEMPLATE = "page.html"
_NEEDS = ("matplotlib", "jinja2")

#: The kinds of clashes, in words.
CLASHES = {
    "equal": "The same path",
    "case": "The same path where case is not told apart",
    "normalization": "The same path where forms of characters (NFC, NFD) are not told apart",
    "inside": "One object within another",
}


def check_report(path: str | os.PathLike[str]) -> None:
    """Make sure, before the work, that a report can be made and written.

    :raises ReportError: a package is missing, or the file cannot be written
    """
    target = os.fspath(path)
    check_needs(target, _NEEDS)
    check_writable(target)


def write_report(comparison: ComparisonData, path: str | os.PathLike[str]) -> None:
    """Write the page; the file is there as a whole or as it was before.

    :raises ReportError: a package is missing, or the file cannot be written
    """
    target = os.fspath(path)
    check_report(target)
    write_page(target, page_text(comparison))


def page_text(comparison: ComparisonData) -> str:
    """Return the page; matplotlib and jinja2 must be there."""
    # Here and not above: it is of use only with matplotlib.
    from pressmark.compare.report.figures import pictures

    template = files("pressmark.compare.report").joinpath(_TEMPLATE).read_text(encoding="utf-8")
    context: dict[str, Any] = {
        "comparison": comparison,
        "layouts": comparison.layouts,
        "verdict": verdict(comparison),
        "series": pictures(comparison),
        "faults": [faults(one, comparison.duplicates) for one in comparison.layouts],
        "profiles": [one for one in SYSTEMS if one != "unix" and comparison.profile in ("all", one)],
        "systems": SYSTEMS,
        "kinds": KINDS,
        "clashes": CLASHES,
        "data": embedded(comparison.record()),
        "version": __version__,
    }
    return rendered(template, context, {"settings": _settings, "duration": _duration})


def _settings(layout: LayoutResult) -> str:
    """Return the parameters of a layout in one line."""
    pairs = ((key, value) for key, value in layout.config.items() if key != "extensionName")
    return ", ".join(f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in pairs)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
