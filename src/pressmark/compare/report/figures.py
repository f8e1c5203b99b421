"""The pictures of a comparison: SVG to stand in a page, one panel a layout, with the same scales in all panels.

matplotlib draws them; colours become those of the page, so that they suit a dark screen and paper. Each has a title and
a description for those who do not see it.
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
from pressmark.html import number, percent, rounded, visible

__all__ = ["LENGTH_LINES", "Picture", "Series", "pictures"]

#: Lengths of paths at which one system or another ends: a name; Windows; Azure and S3; Linux.
LENGTH_LINES = (255, 260, 1024, 4096)

# The size of a panel in inches: so wide that text has the size of the page's where panels stand side by side.
_PANEL = (3.5, 2.3)
_FONT = 9
# What matplotlib is told, and what the page calls it.
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

    :ivar name: of the layout; empty where the panel is of all
    :ivar text: what can be seen in it, in words
    :ivar svg: the element
    """

    name: str
    text: str
    svg: str


class Series(NamedTuple):
    """The panels of one kind.

    :ivar id: to link to
    :ivar title: a heading
    :ivar text: what the panels show and how they are read
    :ivar key: pairs of a colour of the page and what it stands for
    :ivar panels: themselves
    """

    id: str
    title: str
    text: str
    key: tuple[tuple[str, str], ...]
    panels: tuple[Picture, ...]


def pictures(comparison: ComparisonData) -> list[Series]:
    """Draw all panels; matplotlib must be there."""
    if not any(one.mapped for one in comparison.layouts):
        return []
    with _drawing():
        return [make(comparison) for make in (_levels, _fan_out, _first_segments, _lengths, _inodes, _growth)]


# --- the six kinds ---------------------------------------------------------------------------------------------------


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
                    number(count),
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
            each = ", ".join(f"level {level}: {number(count)}" for level, count in enumerate(levels, 1))
        else:
            each = f"the most at level {levels.index(max(levels)) + 1}: {number(max(levels))}; {len(levels)} levels"
        return f"{number(one.directories.total)} directories, {one.directories.per_object:.2f} an object; {each}."

    return Series(
        "levels",
        "Directories per level",
        "How many directories there are at each depth. Directories that hold many others are reached in one step;"
        " long rows of levels make every walk and every new object slower.",
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
            _line(axes, limit, f"limit {number(limit)}")
        axes.set_xlabel("entries of a directory")
        axes.set_ylabel("directories")

    def text(one: LayoutResult) -> str:
        fan_out = one.fan_out
        words = f"Half of {number(fan_out.directories)} directories have at most {number(fan_out.p50)}"
        words += f" entr{'y' if fan_out.p50 == 1 else 'ies'}, 99\u00a0% at most {number(fan_out.p99)}, the largest"
        words += f" has {number(fan_out.max)}"
        if limit is None:
            return f"{words}."
        over = fan_out.over_limit
        return f"{words}; {number(over)} {'is' if over == 1 else 'are'} over your limit."

    words = "How many directories have how many directories in them, both axes logarithmic."
    words += " The line is your limit." if limit is not None else " Give a limit with --directory-limit to see it here."
    return Series(
        "fan-out",
        "Entries of directories",
        words,
        (),
        _panels("fan-out", "Entries of directories", layouts, draw, text),
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
        axes.set_xlabel("share of first directories, the fullest first")
        axes.set_ylabel("share of paths")

    def text(one: LayoutResult) -> str:
        first = one.first_segments
        if first.directories <= 1:
            return "All paths begin with the same directory." if first.directories else "There is no directory."
        words = f"{number(first.directories)} directories are directly below the root; the fullest holds"
        words += f" {number(first.max)} path{'' if first.max == 1 else 's'} ({percent(first.max_share)})"
        return f"{words}, and {number(first.half)} hold{'s' if first.half == 1 else ''} half of all paths."

    return Series(
        "first-segments",
        "First directories",
        "How evenly paths are spread over the directories directly below the root, by which people divide a store"
        " between disks, servers and workers. On the dashed line all hold the same; the further above it, the more is"
        " in a few of them.",
        (("--first", "this layout"), ("--others", "evenly spread, dashed")),
        _panels("first-segments", "First directories", layouts, draw, text),
    )


def _lengths(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    least = min((one.lengths.path_octets.min for one in layouts if one.mapped), default=1)
    differ = any(one.lengths.path_octets.histogram != one.lengths.path_units.histogram for one in layouts)

    def draw(axes: Any, one: LayoutResult) -> None:
        for distribution, colour, style in (
            (one.lengths.path_units, _SECOND, "--"),
            (one.lengths.path_octets, _FIRST, "-"),
        ):
            points = distribution.ecdf()
            if points and (distribution is one.lengths.path_octets or differ):
                lengths = [points[0][0], *(length for length, _ in points), max(8192, points[-1][0])]
                shares = [0.0, *(share for _, share in points), 1.0]
                axes.step(lengths, shares, where="post", color=colour, linestyle=style, linewidth=1.6)
        _logarithmic(axes, "x")
        axes.set_xlim(max(1, least * 0.8), 8192)
        axes.set_ylim(0, 1.03)
        axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        for length in LENGTH_LINES:
            # Two of them are too near each other for a label each.
            label = {255: "255, 260", 260: ""}.get(length, str(length))
            _line(axes, length, label, at=0.04, colour=_SOFT)
        axes.set_xlabel("length of a path")
        axes.set_ylabel("share of paths")

    def text(one: LayoutResult) -> str:
        octets = one.lengths.path_octets
        over = [f"{number(octets.above(line))} over {line}" for line in LENGTH_LINES if octets.above(line)]
        words = f"Paths have {number(octets.min)} to {number(octets.max)} octets, {octets.mean:.1f} on average"
        return f"{words}; {', '.join(over)}." if over else f"{words}; none is longer than {LENGTH_LINES[0]}."

    key = (("--first", "octets"), ("--second", "UTF-16 units, dashed")) if differ else ()
    return Series(
        "lengths",
        "Lengths of paths",
        "Which share of paths is at most so long, below the root of the store and without the names of files: both come"
        " on top. The lines are at 255 octets (a name), 260 (Windows), 1024 (S3, Azure) and 4096 (Linux).",
        key,
        _panels("lengths", "Lengths of paths", layouts, draw, text),
    )


_PARTS = (
    ("--first", _FIRST, "interim directories"),
    ("--second", _SECOND, "the object's own directories"),
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
        axes.set_xlabel("inodes an object")

    def text(one: LayoutResult) -> str:
        costs = one.costs
        words = ", ".join(f"{share:.2f} {name}" for share, (_, _, name) in zip(parts(one), _PARTS, strict=True))
        return f"{costs.inodes_per_object:.2f} inodes an object: {words}. {number(costs.inodes)} in all."

    costs = layouts[0].costs
    files = f"{number(costs.files_per_object)} file{'' if costs.files_per_object == 1 else 's'} of content"
    structures = sorted({STRUCTURES[one.costs.structure] for one in layouts})
    of = f"{' or '.join(structures)}, whichever the layout is for" if len(structures) > 1 else structures[0]
    if any(one.costs.structure == "ocfl" for one in layouts):
        files += f" ({number(costs.versions)} version{'' if costs.versions == 1 else 's'} in OCFL)"
    return Series(
        "inodes",
        "Inodes an object",
        f"What each object takes of a file system: its share of the directories above it, its own, and its files. The"
        f" objects are of {of}, with {files}. Each directory also takes 4 KiB on most file systems.",
        tuple((colour, name) for colour, _, name in _PARTS),
        _panels("inodes", "Inodes an object", layouts, draw, text, (_PANEL[0], 1.0), 0.1),
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
            # Below the curve where there is room.
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
        axes.set_ylabel("directories an object")

    def text(one: LayoutResult) -> str:
        growth = one.growth
        told = [
            f"{rounded(total)} at {rounded(objects)} objects" for objects, _, total in growth.points if objects in _TOLD
        ]
        words = f"Directories: {'; '.join(told)}." if told else "Directories are not predicted."
        if growth.error is not None:
            words += f" The prediction was {percent(growth.error)} off at most for what was held out."
        return words

    return Series(
        "growth",
        "Growth",
        "How many directories each object will need when there are more objects of the same kind; the other layouts in"
        " grey. Predictions follow from the layout, or from samples of your identifiers; how far off they are was"
        " measured on identifiers that were held out.",
        (("--first", "this layout"), ("--others", "the others"), ("--second", "you are here")),
        _panels("growth", "Growth", drawn, draw, text),
    )


_TOLD = (10**6, 10**9, 10**12)


# --- drawing ----------------------------------------------------------------------------------------------------------


@contextmanager
def _drawing() -> Iterator[None]:
    """Have matplotlib draw for a page, whatever the user's own settings are."""
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
        # The same margins for all, in inches: panels stand below each other, and are not measured anew each.
        width, height = size
        axes = figure.add_axes((left / width, 0.46 / height, 1 - (left + 0.08) / width, 1 - 0.56 / height))
        draw(axes, one)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True)
        words = text(one)
        svg = _element(written.getvalue(), f"{id}-{index}", f"{title}: {visible(one.name)}", words)
        panels.append(Picture(one.name, words, svg))
    return tuple(panels)


def _logarithmic(axes: Any, which: str) -> None:
    """Make an axis logarithmic, with labels that people read: matplotlib would set powers of ten."""
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
    """Draw a line across, with its label beside it."""
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
    """Return what matplotlib wrote as an element of a page: named, in the page's colours, with no id but its own."""
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
