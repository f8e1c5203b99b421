"""``pressmark layouts``: the list, one layout, and both as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import pressmark
from pressmark.layouts import Layout, list_layouts
from pressmark.layouts.base import CLASSES, Boolean, parameter
from support.samples import KNOWN

from .conftest import Call


def test_the_list_has_every_layout(call: Call) -> None:
    """One row per layout, with alias, name, reversibility and summary."""
    result = call("layouts")
    _, *rows = result.stdout.splitlines()
    assert result.exit_code == 0
    assert len(rows) == len(list_layouts())
    for row, layout in zip(rows, list_layouts(), strict=True):
        assert row.startswith(layout.alias or "    ")
        assert f" {layout.name} " in row
        assert f"  {layout.reversibility}  " in row
        assert row.endswith(f"  {layout.summary}")


@pytest.mark.parametrize("layout", list_layouts(), ids=lambda layout: layout.name)
def test_one_layout_is_described_in_full(call: Call, layout: type[Layout]) -> None:
    """The specification and every parameter of a layout, by either name."""
    result = call("layouts", layout.name)
    words = " ".join(result.stdout.split())
    assert result.exit_code == 0
    assert call("layouts", layout.alias or layout.name).stdout == result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if layout.url not in line)
    for text in (layout.summary, layout.specification, layout.url, f"reversible {layout.reversibility}"):
        assert text in words
    for one in layout.parameters():
        for text in (one.key, one.doc, one.check.allowed):
            assert text in words
        assert not one.required or "default required" in words


def test_json(call: Call) -> None:
    """One object per line; only one with a NAME."""
    lines = call("layouts", "--json").stdout.splitlines()
    objects = [json.loads(line) for line in lines]
    assert [one["name"] for one in objects] == [layout.name for layout in list_layouts()]
    number = list_layouts().index(pressmark.FlatOmitPrefix)
    assert call("layouts", "--json", "0006").stdout.splitlines() == [lines[number]]
    assert objects[number]["parameters"] == [
        {
            "key": "delimiter",
            "required": True,
            "default": None,
            "allowed": "a string of at least one character",
            "meaning": pressmark.FlatOmitPrefix.parameters()[0].doc,
        }
    ]


def test_unknown_name(call: Call) -> None:
    """An unknown name is one line and exit status 2."""
    result = call("layouts", "nope")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr.startswith("pressmark: unknown layout 'nope'; known layouts: pairtree")


@pytest.fixture
def eleventh() -> Iterator[type[Layout]]:
    """A layout defined only here."""

    @dataclasses.dataclass(frozen=True)
    class Whole(Layout):
        name = "9999-whole-layout"
        summary = "the whole identifier"
        specification = "Whole Layout"
        url = "https://example.org/9999"
        reversibility = "always"

        strict: bool = parameter(Boolean(), "nothing", False)

        def _map_kernel(self, kernels: ModuleType) -> Any:
            return kernels.DirectMap()

        _unmap_kernel = _map_kernel

    yield Whole
    del CLASSES[Whole.name]


def test_a_layout_is_defined_in_one_place(call: Call, eleventh: type[Layout]) -> None:
    """A named subclass is found by the library and every command, with its alias and parameters."""
    assert list_layouts()[-1] is eleventh
    assert pressmark.layout("9999", strict=True) == eleventh(strict=True)
    assert pressmark.layout_from_config(eleventh(strict=True).config()) == eleventh(strict=True)
    assert call("layouts").stdout.splitlines()[-1].split()[:3] == ["9999", eleventh.name, "always"]
    assert json.loads(call("layouts", "--json").stdout.splitlines()[-1])["url"] == eleventh.url
    assert call("layouts", "9999").stdout.startswith("9999-whole-layout\n  alias          9999\n")
    assert call("map", "9999", "--set", "strict=true", stdin=b"a/b\n").stdout == "a/b\n"
    assert call("unmap", eleventh.name, stdin=b"a/b\n").stdout == "a/b\n"
    assert call("map", "nope").stderr.endswith(f"known layouts: {KNOWN}, 9999\n")
    assert call("compare", "-", "--layout", "9999", "--json", stdin=b"a/b\n").exit_code == 0
