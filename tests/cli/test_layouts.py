"""``pressmark layouts``: the list, one layout, and both as JSON."""

from __future__ import annotations

import json

import pytest

from pressmark.layouts import REGISTRY

from .conftest import Call


def test_the_list_has_every_layout(call: Call) -> None:
    """One row a layout, with what the registry says of it."""
    result = call("layouts")
    _, *rows = result.stdout.splitlines()
    assert result.exit_code == 0
    assert len(rows) == len(REGISTRY)
    for row, entry in zip(rows, REGISTRY.values(), strict=True):
        assert row.startswith(entry.alias or "    ")
        assert f" {entry.name} " in row
        assert f"  {entry.reversible}  " in row
        assert row.endswith(f"  {entry.summary}")


@pytest.mark.parametrize("name", list(REGISTRY))
def test_one_layout_is_told_in_full(call: Call, name: str) -> None:
    """Specification and every parameter, by either name."""
    entry = REGISTRY[name]
    result = call("layouts", name)
    words = " ".join(result.stdout.split())
    assert result.exit_code == 0
    assert call("layouts", entry.alias or name).stdout == result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    for text in (entry.summary, entry.cls.specification, f"reversible {entry.reversible}"):
        assert text in words
    for parameter in entry.parameters():
        for text in (parameter.key, parameter.doc, parameter.check.allowed):
            assert text in words
        assert not parameter.required or "default required" in words


def test_json(call: Call) -> None:
    """One object a line, alone for a NAME."""
    lines = call("layouts", "--json").stdout.splitlines()
    objects = [json.loads(line) for line in lines]
    assert [one["name"] for one in objects] == list(REGISTRY)
    assert call("layouts", "--json", "0006").stdout.splitlines() == [lines[list(REGISTRY).index(objects[5]["name"])]]
    assert objects[5]["parameters"] == [
        {
            "key": "delimiter",
            "required": True,
            "default": None,
            "allowed": "a string of at least one character",
            "meaning": REGISTRY[objects[5]["name"]].parameters()[0].doc,
        }
    ]


def test_unknown_name(call: Call) -> None:
    """One line, exit status 2."""
    result = call("layouts", "nope")
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr.startswith("pressmark: unknown layout 'nope'; known are pairtree")
