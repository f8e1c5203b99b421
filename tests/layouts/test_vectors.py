"""Every vector of ``tests/vectors``: the tables, examples and decided rules of the specifications."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pressmark import IdentifierError, LayoutConfigError, PathError
from pressmark.layouts import list_layouts
from support.implementations import Implementation
from support.outcomes import kernel_results
from support.samples import layout_of

VECTORS = Path(__file__).parents[1] / "vectors"
NAMES = [layout.name for layout in list_layouts()]


def vectors(name: str, *directions: str) -> list[dict[str, Any]]:
    """Return the vectors of a layout and some directions."""
    found = json.loads((VECTORS / f"{name}.json").read_text(encoding="ascii"))
    return [vector for vector in found if vector["direction"] in directions]


def given_as(value: str | dict[str, str]) -> str | bytes:
    """Return the input of a vector: text, or bytes that are not text."""
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def wanted_as(value: str | dict[str, str]) -> str:
    """Return the expected output of a vector, as text."""
    given = given_as(value)
    return given.decode("utf-8", "surrogateescape") if isinstance(given, bytes) else given


@pytest.mark.parametrize("name", NAMES)
def test_identifiers_have_the_paths_of_their_vectors(implementation: Implementation, name: str) -> None:
    """Identifiers have the paths or errors of the specification."""
    assert vectors(name, "map", "both")
    for vector in vectors(name, "map", "both"):
        layout = layout_of(vector["layout"], vector["config"])
        identifier = given_as(vector["identifier"])
        if "error" not in vector:
            assert layout.map_id(identifier) == wanted_as(vector["path"]), vector
            continue
        assert kernel_results(layout._mapping(), [identifier]) == [vector["error"]], vector
        with pytest.raises(IdentifierError) as raised:
            layout.map_id(identifier)
        assert raised.value.id == identifier, vector


@pytest.mark.parametrize("name", NAMES)
def test_paths_have_the_identifiers_of_their_vectors(implementation: Implementation, name: str) -> None:
    """Paths have the identifiers or errors of the specification."""
    for vector in vectors(name, "unmap", "both"):
        layout = layout_of(vector["layout"], vector["config"])
        path = given_as(vector["path"])
        if "error" not in vector:
            assert layout.unmap_path(path) == wanted_as(vector["identifier"]), vector
            continue
        assert kernel_results(layout._unmapping(), [path]) == [vector["error"]], vector
        with pytest.raises(PathError) as raised:
            layout.unmap_path(path)
        assert raised.value.path == path, vector


def test_configurations_are_refused_with_the_key_at_fault() -> None:
    """An invalid configuration is refused at construction with its key."""
    errors = json.loads((VECTORS / "config-errors.json").read_text(encoding="ascii"))
    assert len(errors) > 400
    for vector in errors:
        keys = [vector["key"]] if isinstance(vector["key"], str) else vector["key"]
        with pytest.raises(LayoutConfigError) as raised:
            layout_of(vector["layout"], vector["config"])
        assert raised.value.key in keys, vector
