"""The figures of a report: SVG elements, one panel for each layout, with the same scales in all panels.

They are drawn by matplotlib. Colours are replaced by CSS variables of the page, for dark mode and print. Each figure
has a title and a description for screen readers.
"""

from __future__ import annotations

import importlib
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, NamedTuple

from pressmark.compare.report.verdict import STRUCTURES
from pressmark.compare.result import ComparisonData, LayoutResult
from pressmark.html import escape_unprintable, format_large_number, format_number, format_percent

__all__ = ["LENGTH_LINES", "Picture", "Series", "pictures"]

#: Common length limits: a file name; a path on Windows; on Azure and S3; on Linux.
LENGTH_LINES = (255, 260, 1024, 4096)

# Panel size in inches, so that text has the page's font size when panels are side by side.
_PANEL = (3.5, 2.3)
_FONT = 9
# Colours for matplotlib, and the CSS variables that replace them.
_COLOURS = {
    "#1d2127": "var(--text)",
    "#545b66": "var(--soft)",
    "#d3d8de": "var(--line)",
    "#c3c9d1": "var(--others)",
    "#0b57a4": "var(--first)",
    "#b8621b": "var(--second)",
    "#4d8f63": "var(--third)",
    "#93300d": "var(--limit)",
    "#fefefe": "var(--back)",
}
_TEXT, _SOFT, _LINE, _OTHERS, _FIRST, _SECOND, _THIRD, _LIMIT, _BACK = _COLOURS


class Picture(NamedTuple):
    """One panel.

    :ivar name: the name of the layout
    :ivar text: a description of the panel
    :ivar svg: the SVG element; empty if no identifier has a path
    """

    name: str
    text: str
    svg: str


class Series(NamedTuple):
    """A figure: one panel for each layout.

    :ivar id: the anchor
    :ivar title: the heading
    :ivar text: the content of the panels, and how to read them
    :ivar key: the legend: pairs of a CSS variable and its meaning
    :ivar panels: the panels
    """

    id: str
    title: str
    text: str
    key: tuple[tuple[str, str], ...]
    panels: tuple[Picture, ...]


def pictures(comparison: ComparisonData) -> list[Series]:
    """Draw all figures; requires matplotlib."""
    if not any(one.mapped for one in comparison.layouts):
        return []
    with _drawing():
        return [make(comparison) for make in (_levels, _fan_out, _first_segments, _lengths, _inodes, _growth)]


# --- the six figures --------------------------------------------------------------------------------------------------


def _levels(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    deepest = max((len(one.directories.levels) for one in layouts), default=1)
    most = max((max(one.directories.levels, default=1) for one in layouts), default=1)

    def draw(axes: Any, one: LayoutResult) -> None:
        levels = one.directories.levels
        axes.bar(range(1, len(levels) + 1), levels, width=0.7, color=_FIRST)
        _logarithmic(axes, "y")
        axes.set_ylim(0.7, most * 4)
        axes.set_xlim(0.4, max(deepest, 3) + 0.6)
        step = 1 if deepest <= 12 else 2 if deepest <= 24 else math.ceil(deepest / 10)
        axes.set_xticks(range(1, max(deepest, 3) + 1, step))
        if deepest <= 6:
            for level, count in enumerate(levels, 1):
                axes.annotate(
                    format_number(count),
                    (level, count),
                    (0, 2),
                    textcoords="offset points",
                    ha="center",
                    color=_TEXT,
                    fontsize=8,
                )
        axes.set_xlabel("level below the root")
        axes.set_ylabel("directories")

    def text(one: LayoutResult) -> str:
        levels = one.directories.levels
        if len(levels) <= 6:
            each = ", ".join(f"level {level}: {format_number(count)}" for level, count in enumerate(levels, 1))
        else:
            each = f"most at level {levels.index(max(levels)) + 1}: {format_number(max(levels))}; {len(levels)} levels"
        return (
            f"{format_number(one.directories.total)} directories, {one.directories.per_object:.2f} per object; {each}."
        )

    return Series(
        "levels",
        "Directories per level",
        "The number of directories at each depth. Many levels make every walk and every new object slower.",
        (),
        _panels("levels", "Directories per level", layouts, draw, text),
    )


def _fan_out(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    limit = comparison.directory_limit
    widest = max([one.fan_out.max for one in layouts] + [limit or 0, 16])
    most = max((count for one in layouts for _, _, count in one.fan_out.histogram), default=1)

    def draw(axes: Any, one: LayoutResult) -> None:
        for first, last, count in one.fan_out.histogram:
            if count:
                low, high = math.log2(first), math.log2(last + 1)
                middle, width = 2 ** ((low + high) / 2), (2**high - 2**low) * 0.85
                axes.bar(middle, count, width=width, color=_FIRST)
        _logarithmic(axes, "x")
        _logarithmic(axes, "y")
        axes.set_xlim(0.8, widest * 2)
        axes.set_ylim(0.7, most * 3)
        if limit is not None:
            _line(axes, limit, f"limit {format_number(limit)}")
        axes.set_xlabel("entries in a directory")
        axes.set_ylabel("directories")

    def text(one: LayoutResult) -> str:
        fan_out = one.fan_out
        count, median = format_number(fan_out.directories), format_number(fan_out.p50)
        words = f"Entries per directory, for {count} directories: median {median}"
        words += f", 99th percentile {format_number(fan_out.p99)}, maximum {format_number(fan_out.max)}"
        if limit is None:
            return f"{words}."
        over = fan_out.over_limit
        return f"{words}; {format_number(over)} exceed{'s' if over == 1 else ''} your limit."

    words = "The number of directories by their number of subdirectories. Both axes are logarithmic."
    words += " The line is your limit." if limit is not None else " Use --directory-limit to show a limit."
    return Series(
        "fan-out",
        "Entries in directories",
        words,
        (),
        _panels("fan-out", "Entries in directories", layouts, draw, text),
    )


def _first_segments(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts

    def draw(axes: Any, one: LayoutResult) -> None:
        axes.plot([0, 1], [0, 1], color=_OTHERS, linewidth=1, linestyle="--")
        axes.plot(*zip(*one.first_segments.shares(), strict=True), color=_FIRST, linewidth=1.8)
        axes.set_xlim(0, 1.09)  # with room for the last label
        axes.set_ylim(0, 1.03)
        axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.set_xlabel("share of top-level directories, fullest first")
        axes.set_ylabel("share of paths")

    def text(one: LayoutResult) -> str:
        first = one.first_segments
        if first.directories <= 1:
            return "All paths are in one top-level directory." if first.directories else "There are no directories."
        words = f"{format_number(first.directories)} top-level directories; the fullest contains"
        words += f" {format_number(first.max)} path{'' if first.max == 1 else 's'} ({format_percent(first.max_share)})"
        return f"{words}, and {format_number(first.half)} contain{'s' if first.half == 1 else ''} half of all paths."

    return Series(
        "first-segments",
        "Top-level directories",
        "The distribution of paths over the directories directly below the root, which are often used to divide a"
        " store among disks, servers and workers. The dashed line is an even distribution; the further a line is"
        " above it, the more paths are in a few directories.",
        (("--first", "this layout"), ("--others", "even distribution (dashed)")),
        _panels("first-segments", "Top-level directories", layouts, draw, text),
    )


def _lengths(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    least = min((one.lengths.path_bytes.min for one in layouts if one.mapped), default=1)
    differ = any(one.lengths.path_bytes.histogram != one.lengths.path_units.histogram for one in layouts)

    def draw(axes: Any, one: LayoutResult) -> None:
        for distribution, colour, style in (
            (one.lengths.path_units, _SECOND, "--"),
            (one.lengths.path_bytes, _FIRST, "-"),
        ):
            points = distribution.ecdf()
            if points and (distribution is one.lengths.path_bytes or differ):
                lengths = [points[0][0], *(length for length, _ in points), max(8192, points[-1][0])]
                shares = [0.0, *(share for _, share in points), 1.0]
                axes.step(lengths, shares, where="post", color=colour, linestyle=style, linewidth=1.6)
        _logarithmic(axes, "x")
        axes.set_xlim(max(1, least * 0.8), 8192)
        axes.set_ylim(0, 1.03)
        axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        for length in LENGTH_LINES:
            # 255 and 260 are too close for separate labels.
            label = {255: "255, 260", 260: ""}.get(length, str(length))
            _line(axes, length, label, at=0.04, colour=_SOFT)
        axes.set_xlabel("path length")
        axes.set_ylabel("share of paths")

    def text(one: LayoutResult) -> str:
        lengths = one.lengths.path_bytes
        over = [f"{format_number(lengths.above(line))} over {line}" for line in LENGTH_LINES if lengths.above(line)]
        words = (
            f"Path lengths: {format_number(lengths.min)} to {format_number(lengths.max)} bytes, mean {lengths.mean:.1f}"
        )
        return f"{words}; {', '.join(over)}." if over else f"{words}; none over {LENGTH_LINES[0]}."

    key = (("--first", "bytes"), ("--second", "UTF-16 code units (dashed)")) if differ else ()
    return Series(
        "lengths",
        "Path lengths",
        "The share of paths up to each length, relative to the root of the store and without file names; both add to"
        " the length. The lines mark 255 bytes (a file name), 260 (Windows), 1024 (S3, Azure) and 4096 (Linux).",
        key,
        _panels("lengths", "Path lengths", layouts, draw, text),
    )


_PARTS = (
    ("--first", _FIRST, "interim directories"),
    ("--second", _SECOND, "directories of the object"),
    ("--third", _THIRD, "files"),
)


def _inodes(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    most = max([one.costs.inodes_per_object for one in layouts] + [1.0])

    def parts(one: LayoutResult) -> tuple[float, float, int]:
        return one.costs.interim_per_object, one.costs.own_per_object, one.costs.object_files

    def draw(axes: Any, one: LayoutResult) -> None:
        left = 0.0
        for (_, colour, _), width in zip(_PARTS, parts(one), strict=True):
            axes.barh(0, width, left=left, color=colour, height=0.6)
            left += width
        axes.annotate(f"{left:.2f}", (left, 0), (4, 0), textcoords="offset points", va="center", color=_TEXT)
        axes.set_xlim(0, most * 1.18)
        axes.set_ylim(-0.5, 0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("inodes per object")

    def text(one: LayoutResult) -> str:
        costs = one.costs
        words = ", ".join(f"{share:.2f} {name}" for share, (_, _, name) in zip(parts(one), _PARTS, strict=True))
        return f"{costs.inodes_per_object:.2f} inodes per object: {words}. Total: {format_number(costs.inodes)}."

    costs = layouts[0].costs
    files = f"{format_number(costs.files_per_object)} content file{'' if costs.files_per_object == 1 else 's'}"
    structures = sorted({STRUCTURES[one.costs.structure] for one in layouts})
    kinds = " or ".join(structures)
    if any(one.costs.structure == "ocfl" for one in layouts):
        files += f" ({format_number(costs.versions)} version{'' if costs.versions == 1 else 's'} of an OCFL object)"
    return Series(
        "inodes",
        "Inodes per object",
        f"The inodes of an object: its share of the directories above it, its own directories, and its files, for"
        f" {kinds} objects with {files}. Each directory also uses 4 KiB on most file systems.",
        tuple((colour, name) for colour, _, name in _PARTS),
        _panels("inodes", "Inodes per object", layouts, draw, text, (_PANEL[0], 1.0), 0.1),
    )


def _growth(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    points = {
        one.name: [(objects, total / objects) for objects, _, total in one.growth.points if objects > 0 and total > 0]
        for one in layouts
    }
    drawn = [one for one in layouts if points[one.name]]
    highest = max(
        [share for some in points.values() for _, share in some] + [one.directories.per_object for one in drawn],
        default=1,
    )
    here = max(1, comparison.identifiers)
    last = max([objects for some in points.values() for objects, _ in some] + [here])
    first = min([objects for some in points.values() for objects, _ in some] + [here])

    def draw(axes: Any, one: LayoutResult) -> None:
        for other in drawn:
            if other is not one:
                axes.plot(*zip(*points[other.name], strict=True), color=_OTHERS, linewidth=1)
        axes.plot(*zip(*points[one.name], strict=True), color=_FIRST, linewidth=2)
        _logarithmic(axes, "x")
        axes.set_xlim(first * 0.7, last * 1.6)
        axes.set_ylim(0, highest * 1.15)
        if one.mapped and one.directories.total:
            where = (one.mapped, one.directories.per_object)
            axes.plot(*where, marker="o", markersize=5, color=_SECOND)
            # Put the label below the curve if there is room.
            below = one.directories.per_object > highest / 4
            axes.annotate(
                "you are here",
                where,
                (0, -7 if below else 7),
                textcoords="offset points",
                color=_SECOND,
                fontsize=8.5,
                ha="center" if one.mapped > first * 20 else "left",
                va="top" if below else "bottom",
                bbox={"facecolor": _BACK, "edgecolor": "none", "pad": 0.5, "alpha": 0.85},
            )
        axes.set_xlabel("objects")
        axes.set_ylabel("directories per object")

    def text(one: LayoutResult) -> str:
        growth = one.growth
        predictions = [
            f"{format_large_number(total)} for {format_large_number(objects)} objects"
            for objects, _, total in growth.points
            if objects in _REPORTED
        ]
        words = f"Directories: {'; '.join(predictions)}." if predictions else "No prediction."
        if growth.error is not None:
            words += f" Largest error for held-out samples: {format_percent(growth.error)}."
        return words

    return Series(
        "growth",
        "Growth",
        "The predicted number of directories per object as the store grows with similar identifiers. Predictions follow"
        " from the layout, or from a model fitted to samples of your identifiers; their error was measured on"
        " held-out samples.",
        (("--first", "this layout"), ("--others", "the other layouts"), ("--second", "you are here")),
        _panels("growth", "Growth", drawn, draw, text),
    )


_REPORTED = (10**6, 10**9, 10**12)


# --- drawing ----------------------------------------------------------------------------------------------------------


@contextmanager
def _drawing() -> Iterator[None]:
    """Set matplotlib up for a web page, ignoring the user's settings."""
    matplotlib: Any = importlib.import_module("matplotlib")
    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": "pressmark",
        "font.size": _FONT,
        "font.family": "sans-serif",
        "text.color": _TEXT,
        "axes.edgecolor": _SOFT,
        "axes.labelcolor": _TEXT,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": _LINE,
        "grid.linewidth": 0.5,
        "xtick.color": _SOFT,
        "ytick.color": _SOFT,
        "xtick.labelcolor": _TEXT,
        "ytick.labelcolor": _TEXT,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def _panels(
    id: str,
    title: str,
    layouts: Sequence[LayoutResult],
    draw: Callable[[Any, LayoutResult], None],
    text: Callable[[LayoutResult], str],
    size: tuple[float, float] = _PANEL,
    left: float = 0.8,
) -> tuple[Picture, ...]:
    figures: Any = importlib.import_module("matplotlib.figure")
    panels = []
    for index, one in enumerate(layouts):
        if not one.mapped:
            panels.append(Picture(one.name, "No identifier has a path under this layout.", ""))
            continue
        figure = figures.Figure(figsize=size)
        # Fixed margins in inches keep panels aligned, and save computing a tight layout for each.
        width, height = size
        axes = figure.add_axes((left / width, 0.46 / height, 1 - (left + 0.08) / width, 1 - 0.56 / height))
        draw(axes, one)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True)
        words = text(one)
        svg = _element(written.getvalue(), f"{id}-{index}", f"{title}: {escape_unprintable(one.name)}", words)
        panels.append(Picture(one.name, words, svg))
    return tuple(panels)


def _logarithmic(axes: Any, which: str) -> None:
    """Make an axis logarithmic, with labels such as 10 k instead of powers of ten."""
    ticker: Any = importlib.import_module("matplotlib.ticker")
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_locator(ticker.NullLocator())


def _short(value: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {letter}"
    return f"{value:g}"


def _line(axes: Any, where: float, label: str, at: float = 0.97, colour: str = _LIMIT) -> None:
    """Draw a vertical line with a label."""
    axes.axvline(where, color=colour, linewidth=1, linestyle=(0, (4, 2)))
    if label:
        axes.annotate(
            label,
            (where, at),
            (-2, 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top" if at > 0.5 else "bottom",
            color=colour,
            fontsize=8,
        )


_PREAMBLE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_ID = re.compile(r'\s+id="([^"]*)"')
_REFERENCE = re.compile(r'(url\(#|xlink:href="#)([^)"]+)')
_OPENING = re.compile(r"<svg\b[^>]*?(viewBox=\"[^\"]*\")[^>]*>")
_FONTS = re.compile(r"font(-family)?: ?(\d[\d.]*px )?('[^']*', )*[^;\"]*sans-serif[^;\"]*")
_COLOUR = re.compile("|".join(_COLOURS))


def _element(svg: str, id: str, title: str, text: str) -> str:
    """Return matplotlib's output as an element of the page, with a title, the page's colours, and unique ids."""
    svg = _COMMENT.sub("", _METADATA.sub("", _PREAMBLE.sub("", svg)))
    wanted = {match[2] for match in _REFERENCE.finditer(svg)}
    svg = _ID.sub(lambda match: f' id="{id}-{match[1]}"' if match[1] in wanted else "", svg)
    svg = _REFERENCE.sub(lambda match: f"{match[1].replace('xlink:', '')}{id}-{match[2]}", svg)
    svg = _COLOUR.sub(lambda match: _COLOURS[match[0]], svg)
    svg = _FONTS.sub(lambda match: f"font{match[1] or ''}: {match[2] or ''}system-ui, sans-serif", svg)
    opening = f'<svg \\1 role="img" aria-labelledby="{id}-title {id}-text" focusable="false">'
    named = f'<title id="{id}-title">{escape(title)}</title><desc id="{id}-text">{escape(text)}</desc>'
    head, body = _OPENING.sub(opening, svg, count=1).split(">", 1)
    return f"{head}>{named}{body.strip()}"
