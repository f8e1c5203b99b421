"""The drawn pictures: what the page on performance shows is recorded, and phones show text that can be read."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .pages import DOCS, ROOT, name_of

PICTURES = sorted(DOCS.rglob("*.svg"))
# The width of a picture on a phone of 390 pixels, and the smallest text that one reads there.
PHONE, SMALLEST = 358, 10


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_text_on_a_phone(picture: Path) -> None:
    """The smallest text of each picture has ten pixels on a phone, and no text is cut."""
    text = picture.read_text(encoding="utf-8")
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', text)[1])
    sizes = [float(size) for size in re.findall(r"(?:font-size=\"|font(?:-size)?: (?:bold )?)(\d+)", text)]
    assert sizes
    assert min(sizes) * min(1, PHONE / width) >= SMALLEST
    assert [place for place in re.findall(r'<text x="([\d.-]+)"', text) if not 0 <= float(place) <= width] == []


@pytest.fixture
def performance() -> ModuleType:
    """The module that writes the page."""
    path = ROOT / "ci" / "performance.py"
    if not path.exists() or not (ROOT / "benchmarks" / "record").exists():
        pytest.skip("the tests stand apart from the records")
    spec = importlib.util.spec_from_file_location("performance", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["performance"] = module  # dataclasses and named tuples look their module up
    spec.loader.exec_module(module)
    return module


RECORD = """\
# 2026-01-01

## objects

### hash 4 KiB, sha512: 200,000

|           |     s | a second |
|---|---:|---:|
| pressmark | 0.758 |  263,860 |

|  others   |  ours     |    ratio |
|---|---|---:|
| sha512sum | pressmark | **2.40** |

## next

| a | b |
|---|---|
| 1 | 2 |
"""


def test_tables_of_a_record(performance: ModuleType, tmp_path: Path) -> None:
    """A table is found with all headings above it."""
    (tmp_path / "record.md").write_text(RECORD)
    assert performance.tables(tmp_path / "record.md") == [
        ("objects/hash 4 KiB, sha512: 200,000", [{"": "pressmark", "s": "0.758", "a second": "263,860"}]),
        ("objects/hash 4 KiB, sha512: 200,000", [{"others": "sha512sum", "ours": "pressmark", "ratio": "2.40"}]),
        ("next", [{"a": "1", "b": "2"}]),
    ]


def test_every_ratio_is_recorded(performance: ModuleType) -> None:
    """Every ratio in a picture is one in a record, or the quotient of two times of one subject."""
    records = performance.Records()
    recorded = {
        performance.ratio_text(float(cell))
        for found in records.texts.values()
        for _heading, rows in found
        for row in rows
        for cell in row.values()
        if re.fullmatch(r"\d+\.\d+", cell)
    }
    for record in records.json.values():
        recorded |= {performance.ratio_text(float(row[-1])) for row in performance.figures(record) if row[-1]}
    drawn = [
        ratio
        for name, picture in performance.pictures(records).items()
        for ratio in re.findall(
            rf">([\d.]+){performance.TIMES}</text>", re.sub(r'<text[^>]*class="dim".*', "", picture)
        )
    ]
    assert len(drawn) > 50
    assert [ratio for ratio in drawn if ratio not in recorded] == []


def test_every_rate_is_recorded(performance: ModuleType) -> None:
    """A picture of one core has the rate of each case in the record, and one line at the limit."""
    records = performance.Records()
    pictures = performance.pictures(records)
    for name, (size, _files) in performance.ONE_CORE.items():
        seconds = [
            (one["extra_info"]["MB/s"] * one["stats"]["min"], one["extra_info"]["processor s"])
            for one in records.peers["benchmarks"]
            if one["group"].startswith(f"one core, hash {size}, ")
        ]
        drawn = re.findall(r">(?:.+: limit )?([\d,]+) MB/s</text>", pictures[f"one-core-{name}"])
        assert len(drawn) > 20
        assert sorted(drawn) == sorted(f"{amount / processor:,.0f}" for amount, processor in seconds)
        assert pictures[f"one-core-{name}"].count('<line class="one"') == 1


def test_rates_beside_the_limit(performance: ModuleType) -> None:
    """Bars are shares of the limit of their algorithm; one that is faster ends right of the line."""
    rate, rates = performance.Rate, performance.Rates
    slow = rates("md5", rate("from memory", 1, 4000), [rate("pressmark hash", 1, 1000), rate("other", 1, 2000)])
    fast = rates("xxh128", rate("from memory", 1, 100), [rate("other", 1, 200)])
    picture = performance.rates_chart("2 files", [slow, fast])
    widths = [float(width) for width in re.findall(r'<rect class="(?:fast|other)" .*? width="([\d.]+)"', picture)]
    [line] = re.findall(r'<line class="one" x1="([\d.]+)"', picture)
    limit = float(line) - performance.PAD - 4
    assert [round(width / limit, 2) for width in widths] == [0.25, 0.5, 2.0]
