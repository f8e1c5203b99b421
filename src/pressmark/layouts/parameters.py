"""The parameters of a layout: what each may be, how it is spelled, and how a command line gives it."""

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

# Where a specification sets no upper limit: what the integers of other tools hold (Java's int, for one).
LARGEST_INTEGER = 2**31 - 1

#: The default of a parameter that has none.
REQUIRED = "<required>"


def camel_case(name: str) -> str:
    """Return the specification's spelling of a Python name: ``tuple_size`` is ``tupleSize``.

    The one exception is the acronym in ``encodeUTF``.
    """
    head, *rest = name.split("_")
    return head + "".join("UTF" if word == "utf" else word.capitalize() for word in rest)


def unknown_key(key: str, known: Iterable[str]) -> LayoutConfigError:
    """Return the error for a parameter that the layout does not have."""
    # Imported where it is used: few runs meet an unknown parameter.
    import difflib

    known = list(known)
    close = difflib.get_close_matches(key, known, 1)
    if close:
        return LayoutConfigError(key, f"unknown parameter; did you mean {close[0]}?")
    allowed = f"it takes {', '.join(known)}" if known else "it takes none"
    return LayoutConfigError(key, f"unknown parameter of this layout; {allowed}")


class Check:
    """What a parameter may be: called with a value, returns it (hashable) or raises ``LayoutConfigError``."""

    #: Words for what is allowed, as messages and ``pressmark layouts`` show them.
    allowed: str = ""

    def __call__(self, key: str, value: Any) -> Any:
        raise NotImplementedError

    def from_text(self, key: str, text: str) -> Any:
        """Return the value that ``text`` means on a command line; JSON unless a subclass knows better."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self.refusal(key, text) from None

    def to_json(self, value: Any) -> Any:
        """Return ``value`` as a configuration file holds it."""
        return value

    def refusal(self, key: str, value: object) -> LayoutConfigError:
        return LayoutConfigError(key, f"{quoted_value(value)} is not {self.allowed}")


class Integer(Check):
    """An integer from ``first`` to ``last``; a boolean is none."""

    def __init__(self, first: int, last: int = LARGEST_INTEGER) -> None:
        self.first = first
        self.last = last
        self.allowed = f"an integer from {first} to {last}"

    def __call__(self, key: str, value: Any) -> int:
        if type(value) is not int or not self.first <= value <= self.last:
            raise self.refusal(key, value)
        return value


class Boolean(Check):
    """``true`` or ``false``, nothing that merely behaves like one."""

    allowed = "true or false"

    def __call__(self, key: str, value: Any) -> bool:
        if type(value) is not bool:
            raise self.refusal(key, value)
        return value


class Text(Check):
    """A string that can be written as UTF-8, perhaps without some characters."""

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
            raise LayoutConfigError(key, f"{quoted(value)} holds a lone surrogate, which UTF-8 cannot write") from None
        return value

    def from_text(self, key: str, text: str) -> str:
        """Return ``text`` as it is, or what it stands for where it is a JSON string in its quotes."""
        if re.fullmatch(r'".*"', text, re.DOTALL):
            try:
                return str(json.loads(text))
            except ValueError:
                pass
        return text


class Choice(Text):
    """One of a few words; case counts."""

    def __init__(self, choices: Sequence[str]) -> None:
        super().__init__()
        self.choices = tuple(choices)
        self.allowed = f"one of {', '.join(choices)}"

    def __call__(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise self.refusal(key, value)
        return value


def parameter(check: Check, doc: str, default: Any = REQUIRED) -> Any:
    """Declare a field of a layout's dataclass: its check, its meaning, its default."""
    return dataclasses.field(default=default, metadata={"check": check, "doc": doc})
