"""The figures of a report, drawn by matplotlib: one image for each layout, with the same scales for all layouts.

A text beside each image gives its numbers.
"""

from __future__ import annotations

import base64
import importlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pressmark.compare.result import ComparisonData, LayoutResult
from pressmark.html import format_number

__all__ = ["LENGTH_LINES", "Picture", "Series", "pictures"]

#: Common length limits: a file name; a path on Windows; on Azure and S3; on Linux.
LENGTH_LINES = (255, 260, 1024, 4096)

# In inches, so that text has about the page's font size when images are side by side.
_SIZE = (4.2, 2.8)


class Picture(NamedTuple):
    """The image of one layout.

    :ivar name: the name of the layout
    :ivar text: the numbers of the image, in words
    :ivar source: the SVG image as a data URL; empty if no identifier has a path
    """

    name: str
    text: str
    source: str


class Series(NamedTuple):
    """A figure: one image for each layout.

    :ivar id: the anchor
    :ivar title: the heading
    :ivar text: the content of the images, and how to read them
    :ivar pictures: the images
    """

    id: str
    title: str
    text: str
    pictures: tuple[Picture, ...]


def pictures(comparison: ComparisonData) -> list[Series]:
    """Draw all figures; requires matplotlib."""
    if not any(one.mapped for one in comparison.layouts):
        return []
    with _default_style():
        return [make(comparison) for make in (_levels, _fan_out, _lengths)]


# --- the three figures ------------------------------------------------------------------------------------------------


def _levels(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    deepest = max(len(one.directories.levels) for one in layouts)
    most = max(max(one.directories.levels, default=1) for one in layouts)

    def draw(axes: Any, one: LayoutResult) -> None:
        levels = one.directories.levels
        axes.bar(range(1, len(levels) + 1), levels)
        axes.set_yscale("log")
        axes.set_xlim(0.4, max(deepest, 3) + 0.6)
        axes.set_ylim(0.7, most * 2)
        axes.xaxis.get_major_locator().set_params(integer=True)
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
        _drawn(layouts, draw, text),
    )


def _fan_out(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    limit = comparison.directory_limit
    widest = max(limit or 0, 16, *(one.fan_out.max for one in layouts))
    most = max((count for one in layouts for _, _, count in one.fan_out.histogram), default=1)

    def draw(axes: Any, one: LayoutResult) -> None:
        for first, last, count in one.fan_out.histogram:
            axes.bar(first, count, width=0.9 * (last + 1 - first), align="edge", color="C0")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(0.8, widest * 2)
        axes.set_ylim(0.7, most * 2)
        if limit is not None:
            axes.axvline(limit, color="C3", linestyle="--")
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
    words += " The line is your limit." if limit is not None else " A limit is shown if you compare with one."
    return Series("fan-out", "Entries in directories", words, _drawn(layouts, draw, text))


def _lengths(comparison: ComparisonData) -> Series:
    layouts = comparison.layouts
    least = min(one.lengths.path_bytes.min for one in layouts if one.mapped)
    differ = any(one.lengths.path_bytes.histogram != one.lengths.path_units.histogram for one in layouts)

    def draw(axes: Any, one: LayoutResult) -> None:
        for distribution, label, style in (
            (one.lengths.path_bytes, "bytes", "-"),
            (one.lengths.path_units, "UTF-16 units", "--"),
        ):
            if distribution is one.lengths.path_bytes or differ:
                points = distribution.ecdf()
                lengths = [points[0][0], *(length for length, _ in points), max(8192, points[-1][0])]
                axes.step(lengths, [0.0, *(share for _, share in points), 1.0], style, where="post", label=label)
        if differ:
            axes.legend(loc="lower right")
        axes.set_xscale("log")
        axes.set_xlim(max(1, least * 0.8), 8192)
        for length in LENGTH_LINES:
            axes.axvline(length, color="0.6", linestyle=":")
        axes.set_xlabel("path length")
        axes.set_ylabel("share of paths")

    def text(one: LayoutResult) -> str:
        lengths = one.lengths.path_bytes
        over = [f"{format_number(lengths.above(line))} over {line}" for line in LENGTH_LINES if lengths.above(line)]
        words = (
            f"Path lengths: {format_number(lengths.min)} to {format_number(lengths.max)} bytes, mean {lengths.mean:.1f}"
        )
        return f"{words}; {', '.join(over)}." if over else f"{words}; none over {LENGTH_LINES[0]}."

    return Series(
        "lengths",
        "Path lengths",
        "The share of paths up to each length, relative to the root of the store and without file names; both add to"
        " the length. The lines mark 255 bytes (a file name), 260 (Windows), 1024 (S3, Azure) and 4096 (Linux).",
        _drawn(layouts, draw, text),
    )


# --- drawing ----------------------------------------------------------------------------------------------------------


@contextmanager
def _default_style() -> Iterator[None]:
    """Draw in matplotlib's own style, ignoring the user's settings."""
    matplotlib: Any = importlib.import_module("matplotlib")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # Text as text; and the same bytes for the same figure.
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "pressmark"})
        yield


def _drawn(
    layouts: Sequence[LayoutResult], draw: Callable[[Any, LayoutResult], None], text: Callable[[LayoutResult], str]
) -> tuple[Picture, ...]:
    figures: Any = importlib.import_module("matplotlib.figure")
    ticker: Any = importlib.import_module("matplotlib.ticker")
    made = []
    for one in layouts:
        if not one.mapped:
            made.append(Picture(one.name, "No identifier has a path under this layout.", ""))
            continue
        figure = figures.Figure(figsize=_SIZE)
        # Fixed margins: a layout computed for each image takes longer than drawing it.
        axes = figure.subplots(gridspec_kw={"left": 0.17, "right": 0.97, "bottom": 0.18, "top": 0.95})
        draw(axes, one)
        axes.minorticks_off()
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_formatter(ticker.EngFormatter())  # 10 k: quicker than a power of ten
        image = io.BytesIO()
        figure.savefig(image, format="svg", metadata={"Date": None})
        source = "data:image/svg+xml;base64," + base64.b64encode(image.getvalue()).decode()
        made.append(Picture(one.name, text(one), source))
    return tuple(made)
