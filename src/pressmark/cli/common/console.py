"""Messages on stderr, and the exceptions that end a command."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import click

from pressmark import _kernels
from pressmark.errors import escaped, quoted

if TYPE_CHECKING:
    from pressmark.reports import Problem

__all__ = [
    "PROGRAM",
    "CallError",
    "Failure",
    "Interrupted",
    "cause",
    "one_line",
    "problem_text",
    "remedy_text",
    "say",
    "say_lines",
    "say_not_compiled",
    "write_lines",
]

PROGRAM = "pressmark"

#: Receives the lines to stderr instead, while progress is displayed there.
redirect: Callable[[list[str]], object] | None = None


class Failure(click.ClickException):
    """The end of a command with one line on stderr, because an item failed or a file cannot be read or written."""

    exit_code = 1


class CallError(Failure):
    """A usage error."""

    exit_code = 2


class Interrupted(Failure):
    """The end of a command by Ctrl-C."""

    exit_code = 130  # as in shells: 128 + SIGINT


def cause(error: OSError) -> str:
    """Return the message of an error, without number and file name."""
    return error.strerror or str(error)


def one_line(text: str) -> str:
    """Return ``text`` with unprintable characters escaped, such as line feeds in file names."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else escaped(character) for character in text)


def problem_text(problem: Problem, bag: bytes = b"") -> str:
    """Return a problem as one line: severity, kind, path, message and identifier. ``bag`` is prepended to the path."""
    path = os.path.join(os.fsdecode(bag), problem.path) if problem.path else os.fsdecode(bag)
    pieces = [problem.severity, problem.kind, *([path] if path else []), problem.message]
    text = ": ".join(map(one_line, pieces))
    return text if problem.id is None else f"{text}; object {quoted(problem.id)}"


def remedy_text(kind: str, errors: Collection[str], remedy: str, page: str) -> str:
    """Return the remedy for a kind of problem, in plain text; it names the page with the other kinds, if there are any.

    :param errors: all kinds of errors that were found
    """
    more = f"; the documentation lists the other kinds ({page})" if set(errors) - {kind} else ""
    # A cause, such as a damaged manifest, may have no problem of its kind.
    named = f"{kind}: " if kind in errors else ""
    return named + remedy.replace("`", '"') + more


def say(text: str) -> None:
    """Write ``text`` to stderr as one line, after the name of the program."""
    say_lines([text])


def say_lines(texts: list[str]) -> None:
    """Write several lines to stderr: see :func:`say`."""
    (write_lines if redirect is None else redirect)(texts)


def write_lines(texts: list[str]) -> None:
    """Write several lines to stderr at once, also while progress is displayed there."""
    # A missing or closed stderr must not affect the data.
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None and texts:
            sys.stderr.write("".join(f"{PROGRAM}: {one_line(text)}\n" for text in texts))
            sys.stderr.flush()


@functools.cache
def say_not_compiled() -> None:
    """Report on a terminal, once, that no native implementation is installed."""
    chosen = os.environ.get("PRESSMARK_IMPLEMENTATION") == "pure"
    if _kernels.active.NAME == "pure" and not chosen and sys.stderr is not None and sys.stderr.isatty():
        say(
            "the pure implementation is running, which is slower; for the native one, install a C compiler and Python's"
            " headers, then reinstall Pressmark with PRESSMARK_BUILD=native"
        )
