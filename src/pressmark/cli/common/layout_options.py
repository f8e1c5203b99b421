"""The options of a layout, and of the format and the column of a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from pressmark.cli.common.console import CallError, cause, say
from pressmark.cli.common.options import CRLF, complete_layouts
from pressmark.errors import LayoutConfigError, LayoutConfigWarning, quoted
from pressmark.layouts import Layout, find_layout, find_with_settings, layout_from_config
from pressmark.tabular.formats import FORMATS

__all__ = [
    "NamedLayout",
    "chosen_layout",
    "column_named",
    "column_options",
    "layout_argument",
    "layout_option",
    "layout_options",
    "named_layout",
    "source_options",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class NamedLayout(NamedTuple):
    """A layout as ``NAME[:KEY=VALUE,...]`` names it.

    :ivar layout_class: the class of the name
    :ivar settings: each ``key=value``
    """

    layout_class: type[Layout]
    settings: Sequence[str] = ()

    @classmethod
    def parse(cls, text: str) -> NamedLayout:
        """Return the layout of ``NAME[:KEY=VALUE,...]``.

        :raises LayoutConfigError: no layout has this name
        """
        return cls(*find_with_settings(text))


def layout_argument(metavar: str, required: bool) -> Callable[[Function], Function]:
    """Add an argument ``layout``, whose value is a :class:`NamedLayout`."""

    def found(context: click.Context, _parameter: click.Parameter, text: str | None) -> NamedLayout | None:
        return None if text is None or context.resilient_parsing else NamedLayout.parse(text)

    return click.argument("layout", metavar=metavar, required=required, callback=found, shell_complete=complete_layouts)


def layout_options(function: Function) -> Function:
    """Add LAYOUT, ``--set`` and ``--config`` to a command; pass their values to :func:`chosen_layout`."""
    for decorator in (
        click.option(
            "--config",
            metavar="CONFIG",
            type=click.Path(readable=False),
            help="Read the parameters from CONFIG, the config.json of the OCFL extension LAYOUT; --set overrides them.",
        ),
        click.option(
            "--set",
            "settings",
            metavar="KEY=VALUE",
            multiple=True,
            help="Set a parameter of the layout, by its key in the specification; repeatable. VALUE is JSON;"
            ' strings may be unquoted. "pressmark layouts LAYOUT" lists the keys.',
        ),
        layout_argument("LAYOUT", required=True),
    ):
        function = decorator(function)
    return function


def chosen_layout(
    named: NamedLayout, settings: Sequence[str], config: str | None, how: str = "use --set {}=VALUE"
) -> Layout:
    """Return the layout with the parameters of the file ``config``, overridden by its own and those of ``settings``.

    :param how: how to set a parameter, for the message about a required one
    """
    layout_class = named.layout_class
    for setting in settings:
        if setting.find("=") < 1:
            raise CallError(f"--set {quoted(setting)}: expected KEY=VALUE")
    overrides = layout_class.read_settings((*named.settings, *settings))
    if config is None:
        for parameter in layout_class.parameters():
            if parameter.required and parameter.name not in overrides:
                reason = f"required by {layout_class.name}: {parameter.check.allowed}; {how.format(parameter.key)}"
                raise LayoutConfigError(parameter.key, reason)
        return layout_class(**overrides)
    return _configured(layout_class, config, overrides)


def named_layout(text: str) -> Layout:
    """Return the layout of ``NAME[:KEY=VALUE,...]``."""
    return chosen_layout(NamedLayout.parse(text), (), None, f"write {text.partition(':')[0]}:{{}}=VALUE")


def layout_option(text: str, option: str = "--layout") -> Layout:
    """Return the layout of an option; an error quotes the option."""
    try:
        return named_layout(text)
    except LayoutConfigError as error:
        reason = error.reason if error.key == "layout" else str(error)
        raise CallError(f"{option} {quoted(text)}: {reason}") from None


def _configured(layout_class: type[Layout], config: str, overrides: Mapping[str, Any]) -> Layout:
    """Return the layout with the parameters of the file ``config``, overridden by ``overrides``, in snake_case."""
    mapping = _read_config(config)
    _refuse_other_layout(layout_class, mapping, config)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LayoutConfigWarning)
        try:
            layout = layout_from_config(mapping, **overrides)
        except LayoutConfigError as error:
            if error.key in {parameter.key for parameter in layout_class.parameters() if parameter.name in overrides}:
                raise
            raise CallError(_with_file_name(str(error), config)) from None
    for warning in caught:
        say(f"warning: {_with_file_name(str(warning.message), config)}")
    return layout


def _read_config(config: str) -> dict[str, Any]:
    import json  # few runs read a configuration

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


def _with_file_name(text: str, config: str) -> str:
    """Return a message of :func:`layout_from_config` with the name of the file."""
    return f"{config}: {text.removeprefix('config: ')}"


# --- the format of a file ---------------------------------------------------------------------------------------------


def column_named(text: str | None) -> str | int | None:
    """Return the value of ``--column``: digits are a number."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


def column_options(function: Function) -> Function:
    """Add ``--column``, ``--format``, ``--header`` and ``--as`` to a command."""
    as_option = click.option(
        "--as",
        "as_name",
        metavar="NAME",
        help='Name of the new column. Default: "path" (unmap: "identifier").',
    )
    return source_options(as_option(function))


def source_options(function: Function) -> Function:
    """Add the options for the format of FILE and the column of its items."""
    for decorator in (
        CRLF,
        click.option(
            "--delimiter",
            metavar="CHARACTER",
            help="Field separator of CSV, for example ';', or '\\t' for TAB. Default: a comma.",
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="The first row of CSV and TSV contains column names, or contains data. Required if --column is a"
            " number.",
        ),
        click.option(
            "--format",
            "format_name",
            type=click.Choice(list(FORMATS)),
            help="Format of FILE. Default: by its suffix (.txt, .csv, .tsv, .tab, .jsonl, .ndjson, .parquet, .pq; .gz"
            " may follow), lines for other names.",
        ),
        click.option(
            "--column",
            metavar="NAME|NUMBER",
            help="Read FILE as a table, and use this column: a name, or a number from 1 (digits are always"
            " interpreted as a number); for JSON lines, a key.",
        ),
    ):
        function = decorator(function)
    return function
