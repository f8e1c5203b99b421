"""What the command says on stderr: single lines that begin with its name, and failures that end it."""

from __future__ import annotations

import contextlib
import sys

import click

__all__ = ["PROGRAM", "CallError", "Failure", "Interrupted", "cause", "one_line", "say", "say_lines"]

PROGRAM = "pressmark"


class Failure(click.ClickException):
    """The end of a command because an item failed, or reading or writing did: one line for stderr."""

    exit_code = 1


class CallError(Failure):
    """The call itself was wrong."""

    exit_code = 2


class Interrupted(Failure):
    """Ctrl-C was pressed."""

    exit_code = 130  # as shells count it: 128 and the number of SIGINT


def cause(error: OSError) -> str:
    """Return why the operating system refused, without number and file name."""
    return error.strerror or str(error)


def one_line(text: str) -> str:
    """Return ``text`` with everything escaped that is not printable, such as line feeds in file names."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def say(text: str) -> None:
    """Write ``text`` to stderr as one line behind the program's name."""
    say_lines([text])


def say_lines(texts: list[str]) -> None:
    """Write each of ``texts`` as :func:`say` does, all at once."""
    # Without stderr, or with a reader that left, there is nobody to tell; the data must not suffer from that.
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write("".join(f"{PROGRAM}: {one_line(text)}\n" for text in texts))
            sys.stderr.flush()
