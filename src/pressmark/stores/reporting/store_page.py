"""The report on a store as an HTML page. :mod:`pressmark.html` renders it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import floor
from time import gmtime, strftime
from typing import NamedTuple

from pressmark.buckets.address import is_address
from pressmark.errors import ReportError, quoted_path
from pressmark.fs.names import is_inside
from pressmark.html import check_page, embed_json, format_number, format_percent, render_page, write_page
from pressmark.stores.reporting.report_data import StoreReportData
from pressmark.stores.reporting.statistics import OTHER, Amount, most_frequent
from pressmark.summaries import format_bytes
from pressmark.version import __version__

__all__ = ["check_store_page", "store_page_text", "write_store_page"]

_NEEDS = ("jinja2",)
# Months with a row of their own; the curve has all.
_MONTHS = 24
_WIDTH, _HEIGHT = 600, 150
_NAMES = {"ocfl": "OCFL storage root", "pairtree": "Pairtree", "vitro": "Vitro store", "bags": "folder of bags"}
#: Where the dates of objects are from, in words.
_DATES = {
    "versions": "the dates of their versions",
    "bagging-date": "their Bagging-Date",
    "modified": "the modification times of their files",
    "unknown": "unknown",
}


class _Row(NamedTuple):
    """A row of a table with bars.

    :ivar share: the length of its bar, from 0 to 1
    :ivar total: the size of all rows up to this one
    """

    label: str
    amount: Amount
    share: float
    total: int = 0


def check_store_page(
    path: str | os.PathLike[str], store: str, state: str | bytes | os.PathLike[str] | None = None
) -> None:
    """Check that the page of a store can be created and written, before the store is read.

    :param store: its path or address
    :param state: the state of its audits, which the page must not replace
    :raises ReportError: a package is missing, the name is that of another format, or the file cannot be written, is in
        the store, or is the state
    """
    target = os.fspath(path)
    if not is_address(store) and is_inside(target, store):
        raise ReportError(target, f"inside the store {quoted_path(store)}; choose another file")
    check_page(target, _NEEDS, state)


def write_store_page(report: StoreReportData, path: str | os.PathLike[str]) -> None:
    """Write the page, replacing the file atomically.

    :raises ReportError: a package is missing, or the file cannot be written
    """
    check_store_page(path, report.root)
    write_page(os.fspath(path), store_page_text(report))


def store_page_text(report: StoreReportData) -> str:
    """Return the page; requires jinja2."""
    statistics = report.statistics
    kind, word, text = _verdict(report)
    growth, curve = _growth(statistics.months)
    formats = most_frequent(statistics.endings)
    most = max((one.bytes for one in formats.values()), default=0)
    context = {
        "report": report,
        "statistics": statistics,
        "kind": kind,
        "word": word,
        "text": text,
        "name": _NAMES[report.kind],
        "created": strftime("%Y-%m-%d %H:%M UTC", gmtime(report.created)),
        "growth": growth,
        "curve": curve,
        "ends": _ends(statistics.months),
        "unreadable": _counted(statistics.unreadable, "unreadable object"),
        "dates": [(count, _DATES[one]) for one, count in statistics.dates.most_common()],
        "formats": [_Row(_format_name(one), amount, _share(amount.bytes, most)) for one, amount in formats.items()],
        "sizes": [*_sizes(report)],
        "versions": [*_versions(report)],
        "coverage": [*_coverage(report)],
        "oldest": _day(report),
        "data": embed_json(report.record()),
        "version": __version__,
    }
    return render_page("pressmark.stores.reporting", "store.html", context, {"size": _size, "percent": _percent})


def _size(size: int) -> str:
    return format_bytes(size).replace(" ", "\u00a0")


def _counted(number: int, noun: str) -> str:
    return f"{format_number(number)} {noun}{'' if number == 1 else 's'}"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _verdict(report: StoreReportData) -> tuple[str, str, str]:
    """Return the kind of the verdict, its headline, and a sentence about how the store was checked."""
    damaged = 0 if report.audited is None else report.audited.damaged
    parts = []
    if report.errors:
        parts.append(f"{_counted(report.errors, 'error')} found")
    if damaged:
        parts.append(f"{_counted(damaged, 'object')} with errors when verified last")
    kind = "attention" if parts else "unfinished" if report.warnings else "good"
    if not parts:
        parts.append(f"{_counted(report.warnings, 'warning')}, no errors" if report.warnings else "No problems found")
    text = "The structure of each object was checked; no content was read."
    if report.audited is not None:
        text += " What is known of the content is from the audits."
    return kind, ", ".join(parts), text


def _growth(months: dict[str, Amount]) -> tuple[list[_Row], str]:
    """Return the rows of the last months, and the points of the curve of all."""
    known = sorted(month for month in months if month)
    earlier = known[:-_MONTHS]
    rows: list[tuple[str, Amount]] = []
    if earlier:
        amounts = [months[one] for one in earlier]
        rows.append((f"before {known[-_MONTHS]}", Amount(*map(sum, zip(*amounts, strict=True)))))
    rows += [(one, months[one]) for one in known[-_MONTHS:]]
    if "" in months:
        rows.append(("unknown", months[""]))
    most = max((months[one].bytes for one in known[-_MONTHS:]), default=0)
    found, total = [], 0
    for label, amount in rows:
        total += amount.bytes
        # A bar compares months.
        found.append(_Row(label, amount, _share(amount.bytes, most) if label in months else 0.0, total))
    return found, _curve(known, months)


def _curve(known: list[str], months: dict[str, Amount]) -> str:
    """Return the points of the area below the size of the store over time; empty for a single month."""
    if len(known) < 2:
        return ""
    at = [12 * int(month[:4]) + int(month[5:]) for month in known]
    whole = sum(months[month].bytes for month in known)
    points, total, y = [f"0,{_HEIGHT}"], 0, float(_HEIGHT)
    for number, month in zip(at, known, strict=True):
        # A month without growth is level: the size of a month is that at its end.
        x = _WIDTH * (number - at[0] + 1) / (at[-1] - at[0] + 1)
        points.append(f"{x - _WIDTH / (at[-1] - at[0] + 1):.1f},{y:.1f}")
        total += months[month].bytes
        y = _HEIGHT * (1 - _share(total, whole))
        points.append(f"{x:.1f},{y:.1f}")
    return " ".join([*points, f"{_WIDTH},{_HEIGHT}"])


def _ends(months: dict[str, Amount]) -> tuple[str, str]:
    """Return what is at the two ends of the curve."""
    known = {month: amount.bytes for month, amount in months.items() if month}
    return min(known, default=""), f"{max(known, default='')}: {_size(sum(known.values()))}"


def _format_name(ending: str) -> str:
    return {"": "no ending", OTHER: "all others"}.get(ending, f".{ending}")


def _sizes(report: StoreReportData) -> Iterator[tuple[_Row, Amount]]:
    """Yield the files and the objects of each size class."""
    statistics = report.statistics
    files_of, objects_of = statistics.file_sizes, statistics.object_sizes
    most = max((one.number for one in files_of.values()), default=0)
    for number, first, below in statistics.size_classes():
        if number == 0:
            label = "empty"
        elif below is None:
            label = f"{_size(first)} or more"
        else:
            label = f"below {_size(below)}" if number == 3 else f"{_size(first)} to {_size(below)}"
        amount = files_of.get(number, Amount())
        yield _Row(label, amount, _share(amount.number, most)), objects_of.get(number, Amount())


def _versions(report: StoreReportData) -> Iterator[_Row]:
    statistics = report.statistics
    most = max(statistics.versions.values(), default=0)
    for number, first, last in statistics.version_classes():
        label = f"{first}" if first == last else f"more than {first - 1}" if last is None else f"{first} to {last}"
        count = statistics.versions[number]
        yield _Row(label, Amount(count), _share(count, most))


def _coverage(report: StoreReportData) -> Iterator[tuple[str, str, int, float]]:
    """Yield the rows of the coverage: name, label, number of objects, and their share."""
    found = report.audited
    if found is None:
        return
    days = max(found.periods)
    rows = [(f"{one}", f"in the last {one} days", count) for one, count in found.periods.items()]
    rows += [
        ("earlier", f"more than {days} days ago", found.earlier),
        ("never", "never", found.never),
        ("damaged", "with errors, the last time", found.damaged),
    ]
    yield from ((name, label, count, _share(count, found.objects)) for name, label, count in rows)


def _percent(share: float) -> str:
    """Return a share as a percentage; 100 % and 0 % mean all and none."""
    if share in (0, 1):
        return f"{share:.0%}".replace("%", "\u00a0%")
    return f"{floor(10_000 * share) / 100:.2f}\u00a0%" if share > 0.99 else format_percent(share)


def _day(report: StoreReportData) -> str:
    oldest = None if report.audited is None else report.audited.oldest
    return "" if oldest is None else strftime("%Y-%m-%d", gmtime(oldest))
