"""Every vector of ``tests/vectors``: the tables, examples and decided rules of the specifications, one by one."""

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


def vectors(*directions: str) -> list[Any]:
    """Return the vectors of some directions as parameters, named by layout and section."""
    return [
        pytest.param(vector, id=f"{vector['layout'].partition('-')[0]}, {vector['section']}")
        for layout in list_layouts()
        for vector in json.loads((VECTORS / f"{layout.name}.json").read_text(encoding="ascii"))
        if vector["direction"] in directions
    ]


def config_errors() -> list[Any]:
    """Return the configurations to be refused as parameters, named by layout, section and configuration."""
    return [
        pytest.param(vector, id=f"{vector['layout'].partition('-')[0]}, {vector['section']}, {vector['config']}")
        for vector in json.loads((VECTORS / "config-errors.json").read_text(encoding="ascii"))
    ]


def given_as(value: str | dict[str, str]) -> str | bytes:
    """Return what a vector gives to a layout: text, or octets that are not text."""
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def wanted_as(value: str | dict[str, str]) -> str:
    """Return what a vector wants from a layout, which answers with text."""
    given = given_as(value)
    return given.decode("utf-8", "surrogateescape") if isinstance(given, bytes) else given


@pytest.mark.parametrize("vector", vectors("map", "both"))
def test_an_identifier_has_the_path_of_its_vector(implementation: Implementation, vector: dict[str, Any]) -> None:
    """Identifiers map to the paths, or fail for the reasons, that the specification gives."""
    layout = layout_of(vector["layout"], vector["config"])
    identifier = given_as(vector["identifier"])
    if "error" not in vector:
        assert layout.map_id(identifier) == wanted_as(vector["path"])
        return
    assert kernel_results(layout._mapping(), [identifier]) == [vector["error"]]
    with pytest.raises(IdentifierError) as raised:
        layout.map_id(identifier)
    assert raised.value.identifier == identifier


@pytest.mark.parametrize("vector", vectors("unmap", "both"))
def test_a_path_has_the_identifier_of_its_vector(implementation: Implementation, vector: dict[str, Any]) -> None:
    """Paths map back to the identifiers, or fail for the reasons, that the specification gives."""
    layout = layout_of(vector["layout"], vector["config"])
    path = given_as(vector["path"])
    if "error" not in vector:
        assert layout.unmap_path(path) == wanted_as(vector["identifier"])
        return
    assert kernel_results(layout._unmapping(), [path]) == [vector["error"]]
    with pytest.raises(PathError) as raised:
        layout.unmap_path(path)
    assert raised.value.path == path


@pytest.mark.parametrize("vector", config_errors())
def test_a_configuration_is_refused_with_the_key_at_fault(vector: dict[str, Any]) -> None:
    """A configuration that the specification forbids is refused at construction, and the error names its key."""
    keys = [vector["key"]] if isinstance(vector["key"], str) else vector["key"]
    with pytest.raises(LayoutConfigError) as raised:
        layout_of(vector["layout"], vector["config"])
    assert raised.value.key in keys
