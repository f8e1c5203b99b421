"""The page Performance of the site, and its pictures: the measured figures in benchmarks/record, nothing else."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
RECORDS = HERE.parent / "benchmarks" / "record"

# The size of a picture in pixels. A phone shows it at 5/6 of this, and its text with 11 pixels.
WIDTH = 420
ROW, HEAD, PAD = 32, 30, 12
TIMES = "\N{MULTIPLICATION SIGN}"


class Bar(NamedTuple):
    """A ratio: how many times as fast Pressmark is as another program."""

    label: str
    ratio: float


class Group(NamedTuple):
    """Bars from one record.

    :ivar source: the name of the file in benchmarks/record
    """

    title: str
    source: str
    bars: list[Bar]


class Rate(NamedTuple):
    """MB a second of wall time, and of processor time."""

    label: str
    wall: float
    processor: float


class Rates(NamedTuple):
    """The rates of programs with one algorithm, the fastest first.

    :ivar limit: that of the bytes from memory
    """

    algorithm: str
    limit: Rate
    programs: list[Rate]


class Curve(NamedTuple):
    """Points of a size and a cost."""

    label: str
    points: list[tuple[float, float]]


# Reading the records.


def tables(path: Path) -> list[tuple[str, list[dict[str, str]]]]:
    """Return the tables of a record in text: the headings above each, joined by ``/``, and its rows."""
    headings: dict[int, str] = {}
    found: list[tuple[str, list[dict[str, str]]]] = []
    names: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"(##+) (.+)", line):
            level = len(match[1])
            headings = {depth: text for depth, text in headings.items() if depth < level} | {level: match[2]}
        if not line.startswith("|"):
            names = []
            continue
        cells = [cell.strip().strip("*") for cell in line.strip("|").split("|")]
        if not names:
            names = cells
            found.append(("/".join(headings.values()), []))
        elif not re.fullmatch(r"[|\s:-]+", line):
            found[-1][1].append(dict(zip(names, cells, strict=True)))
    return found


def number(text: str) -> float:
    return float(text.replace(",", ""))


class Records:
    """The records, by the names of their files."""

    def __init__(self, folder: Path = RECORDS) -> None:
        self.texts = {path.name: tables(path) for path in sorted(folder.glob("*.md"))}
        found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
        # What "-m scale" and "-m peers" recorded; the last name if there are several.
        self.scale_name, self.peers_name = (
            max((name for name in found if name.endswith(f"-{mark}.json")), default="") for mark in ("scale", "peers")
        )
        self.scale: dict[str, Any] = found.get(self.scale_name, {"benchmarks": []})
        self.peers: dict[str, Any] = found.get(self.peers_name, {"benchmarks": []})
        self.json = {
            name: record for name, record in found.items() if not name.endswith(("-scale.json", "-peers.json"))
        }

    def of(self, heading: str, *columns: str) -> dict[str, list[dict[str, str]]]:
        """Return the rows below a heading that have the columns, by the file that they are in, the newest first."""
        found = {}
        for name, parts in sorted(self.texts.items(), reverse=True):
            rows = [row for head, rows in parts if re.search(heading, head) for row in rows if {*columns} <= {*row}]
            if rows:
                found[name] = rows
        return found

    def newest(self, heading: str, *columns: str) -> tuple[str, list[dict[str, str]]]:
        """Return the newest file that has the rows, and these."""
        return next(iter(self.of(heading, *columns).items()))

    def least(self, group: str) -> dict[str, float]:
        """Return the seconds of each case of a subject, and of its yardstick under the empty name."""
        [record] = self.json.values()
        members = [one for one in record["benchmarks"] if one["group"] == group]
        found = {one["name"].removeprefix("test_"): one["stats"]["min"] for one in members}
        found[""] = min(one["stats"]["min"] for one in members if "yardstick" in one["extra_info"])
        return found

    def ratio(self, group: str, case: str) -> float:
        """Return the ratio of the yardstick of a subject to one of its cases."""
        seconds = self.least(group)
        return seconds[""] / seconds[case]

    @property
    def latest(self) -> str:
        """The name of the record that ``pytest benchmarks --record`` wrote."""
        [name] = self.json
        return name


# What is drawn.


# Loops that follow the specification line by line.
PLAIN = {"document (a plain loop)": "a plain loop in Python", "document-go (a plain loop)": "a plain loop in Go"}


# The third word of the names of records.
MACHINES = {"amd": "AMD EPYC", "intel": "Intel Xeon"}


def mapping(records: Records) -> list[Group]:
    """Return how layouts map a list of identifiers beside other programs."""
    groups = []
    for name, found in records.texts.items():
        for head, rows in found:
            if head.startswith("Peers on the same identifiers/") and "peer" in rows[0]:
                bars = [
                    Bar(PLAIN.get(row["peer"], row["peer"]), number(row["time / ours"]))
                    for row in rows
                    if not row["peer"].startswith("Pressmark")
                ]
                title = re.sub(r"(-storage)?-layout|, .+", "", head.partition("/")[2])
                groups.append(Group(title + (", with encodeUTF" if "encode_utf" in head else ""), name, bars))
    return groups


def hashing(records: Records) -> list[Group]:
    """Return how files are hashed beside hashlib, and beside the program of the algorithm."""
    groups = []
    for size, title in (
        ("4 KiB", "Files of 4 KiB"),
        ("1 MiB", "Files of 1 MiB"),
        ("one of 128 MiB", "One file of 128 MiB"),
    ):
        bars = []
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b-512", "blake3", "xxh128", "sha512,sha256,md5"):
            if any(one["group"] == f"hash {size}, {name}" for one in records.json[records.latest]["benchmarks"]):
                case = f"hash[{size}-{name}-2]"
                bars.append(Bar(name.replace(",", ", "), records.ratio(f"hash {size}, {name}", case)))
        groups.append(Group(f"{title}, beside hashlib, blake3 or xxhash", records.latest, bars))
    name, _rows = records.newest("^objects/hash", "others", "ratio")
    bars = [
        Bar(
            f"{head.split('/hash ')[1].partition(':')[0]}: {row['others']}".replace(
                "one file, ", "one file of 2 GiB, "
            ).replace(", MiB", ""),
            number(row["ratio"]),
        )
        for head in dict.fromkeys(head for head, _rows in records.texts[name] if head.startswith("objects/hash "))
        for row in records.of(f"^{re.escape(head)}$", "others", "ratio")[name]
    ]
    groups.append(Group("The command, beside other commands", name, bars))
    return groups


def one_core(records: Records, size: str) -> list[Rates]:
    """Return how fast programs hash files of a size on one core, by algorithm."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in records.peers["benchmarks"]:
        if match := re.fullmatch(f"one core, hash {size}, (.+)", one["group"]):
            found.setdefault(match[1], []).append(one)
    groups = []
    for algorithm, members in found.items():
        [limit] = (rate(one) for one in members if "yardstick" in one["extra_info"])
        programs = [rate(one) for one in members if "yardstick" not in one["extra_info"]]
        groups.append(Rates(algorithm, limit, sorted(programs, key=lambda one: -one.processor)))
    return groups


def rate(one: dict[str, Any]) -> Rate:
    facts = one["extra_info"]
    wall = facts["MB/s"]
    return Rate(facts["program"], wall, wall * one["stats"]["min"] / facts["processor s"])


def bags(records: Records) -> list[Group]:
    """Return how bags are created and validated beside bagit-python, cp, tar and gzip."""
    name, rows = records.newest("^bags$", "/ ours")
    small = [
        Bar(row["operation"].replace("each", "in Python").replace("command", "command: bag"), number(row["/ ours"]))
        for row in rows
        if row["tool"].startswith("bagit")
    ]
    large = []
    for source, found in records.of("^BagIt, line by line", "measured").items():
        bars = [
            Bar(
                "{}, {} files of {} bytes".format(row["operation"], *row["files"].split(" of ")),
                number(row["measured"]),
            )
            for row in found
            if row["of"] == "time"
        ]
        large.append(Group(f"A large bag, beside bagit-python, {MACHINES[source.split('-')[3]]}", source, bars))
    copies = [
        Bar("create elsewhere: cp -r", records.ratio("bag create large, elsewhere", "create_large[elsewhere]")),
        Bar("pack as tar: tar", records.ratio("bag pack large, tar", "pack[tar]")),
        Bar("pack as tar.gz: tar and gzip", records.ratio("bag pack large, tar.gz", "pack[tar.gz]")),
    ]
    return [
        Group("2,000 small bags, beside bagit-python", name, small),
        *large,
        Group("A large bag, beside programs that copy", records.latest, copies),
    ]


def stores(records: Records) -> list[Group]:
    """Return how stores are read and written beside programs of their kinds, and beside ``cp -r``."""
    name, checks = comparisons(records, "^objects/check --digests")
    _name, lists = comparisons(records, "^objects/ls:")
    _name, puts = comparisons(records, "^objects/put --from")
    walked, walks = records.newest("^Walking a Pairtree", "times ours")
    reading = [
        *(Bar(f"check an OCFL root: {row['others']}", number(row["ratio"])) for row in checks),
        *(Bar(f"list an OCFL root: {row['others']}", number(row["ratio"])) for row in lists),
    ]
    walking = [
        Bar(f"list a Pairtree: {row['']}", number(row["times ours"]))
        for row in walks
        if not row[""].startswith("pressmark")
    ]
    writing = [Bar(f"{row['ours'].removeprefix('pressmark, ')}: {row['others']}", number(row["ratio"])) for row in puts]
    return [
        Group("Reading 50,000 objects", name, reading),
        Group("Reading 200,000 objects", walked, walking),
        Group("Storing 50,000 objects, beside cp -r", name, writing),
    ]


def comparisons(records: Records, heading: str) -> tuple[str, list[dict[str, str]]]:
    """Return the rows of a table of ratios that compare another program, and the file that they are in."""
    name, rows = records.newest(heading, "others", "ratio")
    return name, [row for row in rows if not row["others"].startswith("pressmark")]


def migration(records: Records) -> list[Group]:
    """Return how migrations, which read, copy and verify, compare to ``cp -r`` and ``sha512sum``."""
    small, rows = records.newest("^Migration beside cp", "times cp + sha512sum")
    large, files = comparisons(records, "^objects/files of 1 MiB")
    whole = [Bar(row[""], number(row["times cp + sha512sum"])) for row in rows if row["wanted"]]
    copies = [
        Bar(row["ours"].replace("pressmark migrate to", "Pairtree to"), number(row["ratio"]))
        for row in files
        if row["others"] == "cp -r and sha512sum"
    ]
    few = [
        Bar(f"Pairtree to {target}, {place}", records.ratio(group, f"migrate[pairtree to {target}-{place}]"))
        for target in ("ocfl", "bags")
        for place in ("memory", "disk")
        for group in [f"migrate pairtree to {target}, in {place}"]
    ]
    some = [
        Bar(
            f"Pairtree to {target}",
            records.ratio(f"migrate pairtree to {target}, files of 1 MiB", f"large_files[pairtree to {target}]"),
        )
        for target in ("ocfl", "bags")
    ]
    return [
        Group("89,067 objects of two small files", small, whole),
        Group("300 objects of two small files", records.latest, few),
        Group("30 objects of three files of 1 MiB", records.latest, some),
        Group("900 files of 1 MiB", large, copies),
    ]


def growth_of_mapping(records: Records) -> tuple[str, list[Curve]]:
    """Return nanoseconds an identifier for each number of identifiers."""
    curves = []
    for layout in ("pairtree", "0003"):
        points = [
            (count, 1e9 * one["stats"]["min"] / count)
            for one in records.scale["benchmarks"]
            if one["group"] == f"map {layout} by the million"
            for count in [float(re.search(r"(\d+)\]$", one["name"])[1])]
        ]
        curves.append(Curve(layout, sorted(points)))
    return records.scale_name, curves


def growth_of_hashing(records: Records) -> tuple[str, list[Curve]]:
    """Return processor seconds a GiB for each number of GiB."""
    name, rows = records.newest("^Fixity as the work grows", "CPU s / GiB")
    curves = []
    for files, label in (("1,000", "1,000 files, xxh128"), ("1", "one file, xxh128")):
        points = [(number(row["GiB"]), number(row["CPU s / GiB"])) for row in rows if row["files"] == files]
        curves.append(Curve(label, points))
    return name, curves


# Drawing.


def svg(title: str, height: float, parts: Iterable[str]) -> str:
    """Return a picture that is light or dark as the page around it."""
    shown = f'width="{WIDTH * 1.2:.0f}" height="{height * 1.2:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {shown} viewBox="0 0 {WIDTH} {height:.0f}">'
    style = (HERE / "performance.css").read_text(encoding="utf-8")
    body = [f'<rect class="page" width="{WIDTH}" height="{height:.0f}" rx="6"/>', *parts]
    return (
        "\n".join([head, f"<title>{html.escape(title)}</title>", f"<style>\n{style}</style>", *body, "</svg>"]) + "\n"
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    ends = f' text-anchor="{anchor}"' if anchor != "start" else ""
    classes = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{classes}{ends}>{html.escape(words, quote=False)}</text>'


def ratio_text(ratio: float) -> str:
    """Return a ratio with three digits at most."""
    return f"{ratio:.0f}" if ratio >= 99.5 else f"{ratio:.1f}" if ratio >= 9.95 else f"{ratio:.2f}"


def drawn_rows(groups: list[tuple[str, list[tuple[str, float, float, str, str]]]], least: float) -> Iterator[str]:
    """Yield the bars of groups below their titles: label, begin, end, class and value of each.

    :param least: the position that no value is left of
    """
    y = PAD + 20
    for title, bars in groups:
        yield text(PAD, y + 20, title, "head")
        y += HEAD
        for label, begin, end, kind, value in bars:
            yield text(PAD, y + 11, label)
            shape = f'x="{begin:.1f}" y="{y + 16:.0f}" width="{max(end - begin, 1):.1f}" height="11"'
            yield f'<rect class="{kind}" {shape}/>'
            yield text(max(end, least) + 5, y + 26, value)
            y += ROW


def chart(title: str, groups: list[Group]) -> str:
    """Return a picture of ratios on a logarithmic scale: right of the line, Pressmark is faster."""
    ratios = [bar.ratio for group in groups for bar in group.bars]
    low = min(math.floor(math.log10(min(ratios)) * 2) / 2, -0.5)
    high = max(math.ceil(math.log10(max(ratios)) * 2) / 2, 0.5)
    left, right = PAD + 4, WIDTH - PAD - 44

    def at(value: float) -> float:
        return left + (right - left) * (math.log10(value) - low) / (high - low)

    y = float(PAD + 14)
    one = at(1)
    parts: list[str] = []
    parts += [text(max(one - 8, 66), y, "◂ slower", "dim", "end"), text(one + 8, y, "Pressmark is faster ▸", "dim")]
    bottom = PAD + 20 + sum(HEAD + ROW * len(group.bars) for group in groups) + 4
    for value in (0.01, 0.1, 10, 100, 1000):
        if low <= math.log10(value) <= high:
            parts.append(
                f'<line class="grid" x1="{at(value):.1f}" x2="{at(value):.1f}" y1="{PAD + 20}" y2="{bottom}"/>'
            )
            parts.append(text(at(value), bottom + 16, f"{value:g}{TIMES}", "dim", "middle"))
    parts.append(f'<line class="one" x1="{one:.1f}" x2="{one:.1f}" y1="{PAD + 20}" y2="{bottom}"/>')
    parts.append(text(one, bottom + 16, f"1{TIMES}", "dim", "middle"))

    def drawn(bar: Bar) -> tuple[str, float, float, str, str]:
        begin, end = sorted((one, at(bar.ratio)))
        return bar.label, begin, end, "fast" if bar.ratio >= 1 else "slow", ratio_text(bar.ratio) + TIMES

    parts += drawn_rows([(group.title, list(map(drawn, group.bars))) for group in groups], one)
    return svg(title, bottom + 26, parts)


def rates_chart(files: str, groups: list[Rates]) -> str:
    """Return a picture of rates, as shares of the limit, which is a line across."""
    left, right = PAD + 4, WIDTH - PAD - 80
    most = max([1.0, *(one.processor / group.limit.processor for group in groups for one in group.programs)])
    limit = left + (right - left) / most

    def drawn(one: Rate, most: float) -> tuple[str, float, float, str, str]:
        kind = "fast" if one.label.lower().startswith("pressmark") else "other"
        return one.label, left, left + (limit - left) * one.processor / most, kind, f"{one.processor:,.0f} MB/s"

    rows = [
        (f"{name}: limit {most.processor:,.0f} MB/s", [drawn(one, most.processor) for one in programs])
        for name, most, programs in groups
    ]
    bottom = PAD + 24 + sum(HEAD + ROW * len(bars) for _title, bars in rows)
    heads = (text(PAD, PAD + 14, files), text(limit, PAD + 14, "limit", "dim", "middle"))
    line = f'<line class="one" x1="{limit:.1f}" x2="{limit:.1f}" y1="{PAD + 20}" y2="{bottom}"/>'
    return svg(f"Rates of hashing {files} on one core", bottom + 10, [*heads, line, *drawn_rows(rows, left)])


def growth(title: str, sizes: list[tuple[float, str]], unit: str, curves: list[Curve]) -> str:
    """Return a picture of costs: sizes on a logarithmic scale, costs from zero."""
    left, right, top, bottom = PAD + 16.0, WIDTH - PAD - 24.0, PAD + 26.0 * len(curves) + 40, 330.0
    first, last = math.log10(sizes[0][0]), math.log10(sizes[-1][0])
    highest = max(cost for curve in curves for _size, cost in curve.points) * 1.15

    def x(size: float) -> float:
        return left + (right - left) * (math.log10(size) - first) / (last - first)

    def y(cost: float) -> float:
        return bottom - (bottom - top) * cost / highest

    parts = [text(PAD, PAD + 14, unit, "head")]
    for size, label in sizes:
        parts.append(f'<line class="grid" x1="{x(size):.1f}" x2="{x(size):.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(text(x(size), bottom + 18, label, "dim", "middle"))
    parts.append(f'<line class="one" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    for row, (curve, kind) in enumerate(zip(curves, ("first", "second"), strict=True)):
        level = PAD + 36 + 24 * row
        parts.append(f'<rect class="{kind}" x="{PAD}" y="{level - 9}" width="14" height="9"/>')
        parts.append(text(PAD + 22, level, curve.label))
        places = [(x(size), y(cost), cost) for size, cost in curve.points]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b, _cost in places)
        parts.append(f'<polyline class="{kind} none" points="{line}"/>')
        # The labels of the two curves are above the upper and below the lower one.
        other = curves[1 - row]
        for index, (a, b, cost) in enumerate(places):
            above = cost >= other.points[index][1]
            parts.append(f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>')
            parts.append(text(a, b - 9 if above else b + 19, f"{cost:.3g}", "", "middle"))
    return svg(title, bottom + 32, parts)


TITLES = {
    "mapping": ("Mapping a list of identifiers: time of other programs / time of Pressmark", mapping),
    "hashing": ("Hashing: time of other programs / time of Pressmark", hashing),
    "bags": ("Bags: time of other programs / time of Pressmark", bags),
    "stores": ("Stores: time of other programs / time of Pressmark", stores),
    "migration": ("Migration: time of cp -r and sha512sum / time of Pressmark", migration),
}
ONE_CORE = {"4-kib": ("4 KiB", "20,000 files of 4 KiB"), "1-mib": ("1 MiB", "300 files of 1 MiB")}
MILLIONS = [(1e5, "100,000"), (1e6, "1 million"), (1e7, "10 million"), (1e8, "100 million")]
GIBIBYTES = [(1.0, "1 GiB"), (16.0, "16 GiB"), (256.0, "256 GiB"), (1024.0, "1 TiB")]


def pictures(records: Records) -> dict[str, str]:
    """Return the pictures of the page by their names."""
    found = {name: chart(title, draw(records)) for name, (title, draw) in TITLES.items()}
    for name, (size, files) in ONE_CORE.items():
        found[f"one-core-{name}"] = rates_chart(files, one_core(records, size))
    found["growth-mapping"] = growth(
        "Nanoseconds an identifier", MILLIONS, "Nanoseconds an identifier", growth_of_mapping(records)[1]
    )
    found["growth-hashing"] = growth(
        "Processor seconds a GiB", GIBIBYTES, "Processor seconds a GiB", growth_of_hashing(records)[1]
    )
    return found


def page(records: Records, table: Callable[[tuple[str, ...], list[tuple[str, ...]]], str]) -> str:
    """Return the page."""
    values: dict[str, str] = {}
    for name, (title, draw) in TITLES.items():
        values[name] = title
        values[f"{name}_sources"] = named(group.source for group in draw(records))
    for name, find in (("mapping", growth_of_mapping), ("hashing", growth_of_hashing)):
        values[f"growth_{name}_source"] = named([find(records)[0]])
    facts = records.peers["machine_info"]
    values["one_core_source"] = f"{facts['processor']}; Pressmark {facts['pressmark']}. {named([records.peers_name])}"
    values["one_core_figures"] = table(
        ("files", "algorithm", "program", "MB/s of processor time", "of wall time"),
        [
            (size, group.algorithm, one.label, f"{one.processor:,.0f}", f"{one.wall:,.0f}")
            for size, _files in ONE_CORE.values()
            for group in one_core(records, size)
            for one in (group.limit, *group.programs)
        ],
    )
    _name, rows = records.newest("^Fixity as the work grows", "CPU s / GiB")
    values["memory"] = f"{max(number(row['max RSS MB']) for row in rows):.0f}"
    values["csv"] = next(row["MB"] for row in records.newest("^objects/map csv", "", "MB")[1] if row[""] == "pressmark")
    parts = [(HERE / "performance.md").read_text(encoding="utf-8").format(**values)]
    for record in records.json.values():
        facts = record["machine_info"]
        parts.append(
            f"The newest record, of {facts['processor']}; {facts['system']}; Pressmark {facts['pressmark']}. A ratio"
            " is the time of the yardstick, such as hashlib or `cp -r`, divided by the time of the case. `pure` is"
            " the implementation in Python.\n"
        )
        rows = figures(record)
        parts.append(f'<details markdown="1">\n<summary>{len(rows)} cases</summary>\n')
        parts.append(table(("subject", "case", "time", "rate", "ratio to the yardstick"), rows) + "\n\n</details>\n")
    return "\n".join(parts)


def named(sources: Iterable[str]) -> str:
    """Return the sentence that names records."""
    names = [f"`{name}`" for name in dict.fromkeys(sources)]
    return f"Record{'s' if len(names) > 1 else ''}: {', '.join(names)}."


def duration(seconds: float) -> str:
    """Return a time in a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def figures(record: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each case of a record: subject, case, time, rate, ratio to the yardstick."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in record["benchmarks"]:
        groups.setdefault(one["group"], []).append(one)
    rows = []
    for group, members in sorted(groups.items()):
        least = {one["name"]: one["stats"]["min"] for one in members}
        yardsticks = [least[one["name"]] for one in members if "yardstick" in one["extra_info"]]
        for one in members:
            seconds = least[one["name"]]
            rate = next((f"{value:,.0f} {name}" for name, value in one["extra_info"].items() if "/s" in name), "")
            ratio = f"{min(yardsticks) / seconds:.2f}" if yardsticks else ""
            rows.append((group, f"`{one['name'].removeprefix('test_')}`", duration(seconds), rate, ratio))
    return rows
