"""Each rule on the options of a command refuses a call in one line, before anything is opened or written."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import click
import pytest

from pressmark.cli import main
from pressmark.cli.common.exclusions import RULES, Excludes, Requires, Rule

from .conftest import Call

EACH = [pytest.param(command, rule, id=f"{command} {rule.option}") for command in RULES for rule in RULES[command]]


def command_named(name: str) -> click.Command:
    command: click.Command = main
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, name
        command = found
    return command


def parameter_named(command: click.Command, name: str) -> click.Parameter:
    """Return an option by any of its names, or an argument by that of the help."""
    for parameter in command.params:
        is_argument = isinstance(parameter, click.Argument)
        if name in parameter.opts or (is_argument and (parameter.metavar or "").strip("[].") == name):
            return parameter
    raise AssertionError(f"{command.name} has no {name}")


def names_to_give(command: str, rule: Rule, option: str, other: str | None) -> list[str]:
    """Return the names of options that break this rule and no other one."""
    names = [option, *([other] if other else [])]
    for one in RULES[command]:
        if isinstance(one, Requires) and one is not rule and one.option in names:
            needed = one.others.split()
            names += [] if set(needed) & set(names) else needed[:1]
    return names


@pytest.mark.parametrize(("name", "rule"), EACH)
def test_each_rule(name: str, rule: Rule, tmp_path: Path, call: Call) -> None:
    command = command_named(name)
    for option, other in product(rule.option.split(), rule.others.split() if isinstance(rule, Excludes) else [None]):
        arguments: list[str] = []
        positional: list[str] = []
        given = names_to_give(name, rule, option, other)
        for one in given:
            parameter = parameter_named(command, one)
            if isinstance(parameter, click.Argument):
                positional.append("none")
            else:
                assert isinstance(parameter, click.Option)
                value = parameter.type.choices[0] if isinstance(parameter.type, click.Choice) else "1"
                arguments += [one] if parameter.is_flag else [one, value]
        required = [one for one in command.params if isinstance(one, click.Argument) and one.required]
        positional += ["none"] * len(required)
        needed = [one for one in command.params if isinstance(one, click.Option) and one.required]
        arguments += [text for one in needed for text in (one.opts[0], "1")]
        done = call(*name.split(), *arguments, *positional)
        expected = rule.broken({name for one in given for name in parameter_names(command, one)})
        assert expected is not None
        assert (done.exit_code, done.stderr) == (2, f"pressmark: {expected}\n")
        assert os.listdir(tmp_path) == []


def parameter_names(command: click.Command, name: str) -> list[str]:
    return [name, *parameter_named(command, name).opts]


def test_defaults_are_not_given(tmp_path: Path, call: Call) -> None:
    """Options that are not on the command line break no rule."""
    (tmp_path / "files").mkdir()
    assert call("bag", "create", "files", "-o", "bag").exit_code == 0
