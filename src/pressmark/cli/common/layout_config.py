"""``--config``: the parameters of a layout from the ``config.json`` of an OCFL extension."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

from pressmark.cli.common.console import CallError, cause, say
from pressmark.errors import LayoutConfigError, LayoutConfigWarning
from pressmark.layouts import Layout, find_layout, layout_from_config

__all__ = ["configured_layout"]


def configured_layout(layout_class: type[Layout], config: str, overrides: Mapping[str, Any]) -> Layout:
    """Return the layout with the parameters of the file ``config``, overridden by ``overrides``, in snake_case."""
    mapping = _read_config(config)
    _refuse_other_layout(layout_class, mapping, config)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LayoutConfigWarning)
        try:
            made = layout_from_config(mapping, **overrides)
        except LayoutConfigError as error:
            if error.key in {parameter.key for parameter in layout_class.parameters() if parameter.name in overrides}:
                raise
            raise CallError(_placed(str(error), config)) from None
    for warning in caught:
        say(f"warning: {_placed(str(warning.message), config)}")
    return made


def _read_config(config: str) -> dict[str, Any]:
    # Read once: CONFIG may be a pipe, and its extensionName is checked before anything else.
    try:
        with open(config, "rb") as file:
            content = file.read()
    except OSError as error:
        raise CallError(f"{config}: {cause(error)}") from None
    try:
        mapping = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CallError(f"{config}: not JSON: {error}") from None
    if not isinstance(mapping, dict):
        raise CallError(f"{config}: not a JSON object; specify the config.json of an OCFL extension")
    return mapping


def _refuse_other_layout(expected: type[Layout], mapping: dict[str, Any], config: str) -> None:
    name = mapping.get("extensionName")
    # layout_from_config refuses a missing name.
    if isinstance(name, str):
        try:
            found = find_layout(name)
        except LayoutConfigError as error:
            raise CallError(f"{config}: extensionName: {error.reason}") from None
        if found.name != expected.name:
            raise CallError(
                f"{config}: configuration of {found.name}, not of {expected.name}; use {found.name} as LAYOUT"
            )


def _placed(text: str, config: str) -> str:
    """Return a message of :func:`layout_from_config` with the name of the file."""
    return f"{config}: {text.removeprefix('config: ')}"
