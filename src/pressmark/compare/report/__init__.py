"""The HTML report of a comparison: one page with a verdict, tables, figures and all data."""

from __future__ import annotations

import json
import os
from typing import Any

from pressmark.compare.report.verdict import (
    STORES,
    STRUCTURES,
    SYSTEMS,
    Group,
    Recommendation,
    Statement,
    Verdict,
    find_defects,
    judge,
    safety_of,
)
from pressmark.compare.result import KINDS, ComparisonData, LayoutResult
from pressmark.html import check_page, embed_json, format_large_number, render_page, write_page
from pressmark.version import __version__

__all__ = [
    "STORES",
    "SYSTEMS",
    "Group",
    "Recommendation",
    "Statement",
    "Verdict",
    "check_report",
    "find_defects",
    "judge",
    "page_text",
    "safety_of",
    "write_report",
]

_NEEDS = ("matplotlib", "jinja2")

#: Headings for the kinds of collisions.
COLLISIONS = {
    "equal": "The same path",
    "case": "The same path if case is ignored",
    "normalization": "The same path if Unicode normalization (NFC, NFD) is ignored",
    "inside": "One object inside another",
}
#: Descriptions of the models of growth.
MODELS = {"exact": "no interim directories", "hashed": "closed form", "count": "as many per object as now"}
#: The numbers of objects for which growth is reported.
REPORTED = (10**6, 10**9, 10**12)


def check_report(path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None) -> None:
    """Check that a report can be created and written, before the comparison starts.

    :param source: the file of identifiers, which the report must not replace
    :raises ReportError: a package is missing, the name is that of another format, or the file cannot be written
    """
    check_page(os.fspath(path), _NEEDS, source)


def write_report(comparison: ComparisonData, path: str | os.PathLike[str]) -> None:
    """Write the report, replacing the file atomically.

    :raises ReportError: a package is missing, or the file cannot be written
    """
    target = os.fspath(path)
    check_report(target)
    write_page(target, page_text(comparison))


def page_text(comparison: ComparisonData) -> str:
    """Return the report as HTML; requires matplotlib and jinja2."""
    # The figures need matplotlib.
    from pressmark.compare.report.figures import pictures

    context: dict[str, Any] = {
        "comparison": comparison,
        "layouts": comparison.layouts,
        "verdict": judge(comparison),
        "series": pictures(comparison),
        "safety": [safety_of(one, comparison) for one in comparison.layouts],
        "profiles": [one for one in SYSTEMS if one != "unix" and comparison.profile in ("all", one)],
        "growth": [{objects: total for objects, _, total in one.growth.points} for one in comparison.layouts],
        "models": MODELS,
        "reported": REPORTED,
        "stores": STORES,
        "structures": STRUCTURES,
        "systems": SYSTEMS,
        "kinds": KINDS,
        "collisions": COLLISIONS,
        "data": embed_json(comparison.record()),
        "version": __version__,
    }
    filters: dict[str, Any] = {"settings": _settings, "duration": _duration, "large": format_large_number}
    return render_page("pressmark.compare.report", "page.html", context, filters)


def _settings(layout: LayoutResult) -> str:
    """Return the parameters of a layout on one line."""
    pairs = ((key, value) for key, value in layout.config.items() if key != "extensionName")
    return ", ".join(f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in pairs)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
