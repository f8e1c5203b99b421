"""The parameters of layouts: allowed values, spelling, and values on a command line."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pressmark.errors import LayoutConfigError, quoted, quoted_value

__all__ = [
    "LARGEST_INTEGER",
    "REQUIRED",
    "Boolean",
    "Check",
    "Choice",
    "Integer",
    "Text",
    "camel_case",
    "parameter",
    "unknown_key",
]

# Where a specification sets no upper limit: the largest integer of other tools (Java's int).
LARGEST_INTEGER = 2**31 - 1

#: The default of a required parameter.
REQUIRED = "<required>"


def camel_case(name: str) -> str:
    """Return the specification's spelling of a Python name: ``tupleSize`` for ``tuple_size``.

    The acronym in ``encodeUTF`` is the one exception.
    """
    head, *rest = name.split("_")
    return head + "".join("UTF" if word == "utf" else word.capitalize() for word in rest)


def unknown_key(key: str, known: Iterable[str]) -> LayoutConfigError:
    """Return the error for an unknown parameter."""
    import difflib

    known = list(known)
    close = difflib.get_close_matches(key, known, 1)
    if close:
        return LayoutConfigError(key, f"unknown parameter; did you mean {close[0]}?")
    allowed = f"known parameters: {', '.join(known)}" if known else "this layout has no parameters"
    return LayoutConfigError(key, f"unknown parameter; {allowed}")


class Check:
    """The check of a parameter's value: a call returns the value (hashable) or raises ``LayoutConfigError``."""

    #: The allowed values, for messages and ``pressmark layouts``.
    allowed: str = ""

    def __call__(self, key: str, value: Any) -> Any:
        raise NotImplementedError

    def from_text(self, key: str, text: str) -> Any:
        """Return the value of ``text`` on a command line, which is JSON unless a subclass reads it differently."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self.refusal(key, text) from None

    def to_json(self, value: Any) -> Any:
        """Return ``value`` as in a configuration file."""
        return value

    def refusal(self, key: str, value: object) -> LayoutConfigError:
        return LayoutConfigError(key, f"{quoted_value(value)} is not {self.allowed}")


class Integer(Check):
    """An integer from ``first`` to ``last``; not a boolean."""

    def __init__(self, first: int, last: int = LARGEST_INTEGER) -> None:
        self.first = first
        self.last = last
        self.allowed = f"an integer from {first} to {last}"

    def __call__(self, key: str, value: Any) -> int:
        if type(value) is not int or not self.first <= value <= self.last:
            raise self.refusal(key, value)
        return value


class Boolean(Check):
    """``true`` or ``false``."""

    allowed = "true or false"

    def __call__(self, key: str, value: Any) -> bool:
        if type(value) is not bool:
            raise self.refusal(key, value)
        return value


class Text(Check):
    """A string that UTF-8 can encode, without the characters in ``without``."""

    def __init__(self, *, empty: bool = True, without: Mapping[str, str] | None = None) -> None:
        self.empty = empty
        self.without = dict(without or {})
        self.allowed = "a string" if empty else "a string of at least one character"
        if self.without:
            self.allowed += f" without {', '.join(self.without.values())}"

    def __call__(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not (value or self.empty) or any(c in value for c in self.without):
            raise self.refusal(key, value)
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise LayoutConfigError(key, f"{quoted(value)} contains an unpaired surrogate") from None
        return value

    def from_text(self, key: str, text: str) -> str:
        """Return ``text``, or the value of a quoted JSON string."""
        if re.fullmatch(r'".*"', text, re.DOTALL):
            try:
                return str(json.loads(text))
            except ValueError:
                pass
        return text


class Choice(Text):
    """One of several words; case-sensitive."""

    def __init__(self, choices: Sequence[str]) -> None:
        super().__init__()
        self.choices = tuple(choices)
        self.allowed = f"one of {', '.join(choices)}"

    def __call__(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise self.refusal(key, value)
        return value


def parameter(check: Check, doc: str, default: Any = REQUIRED) -> Any:
    """Declare a field of a layout's dataclass.

    :param check: the check of its values
    :param doc: the meaning, for ``pressmark layouts`` and the documentation
    """
    return dataclasses.field(default=default, metadata={"check": check, "doc": doc})
