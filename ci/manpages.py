"""Manual pages of the commands, made from their help; ci/docs writes them."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

import click

from pressmark.cli.common.help_page import epilog, grouped_options
from pressmark.version import __version__

__all__ = ["manual_pages"]

DATE = "2026-11-23"  # a manual page needs one; it has no meaning
WIDTH = 78  # of lines of text
# Paragraphs with these beginnings have a section of their own.
SECTIONS = {"Examples:": "EXAMPLES", "More examples:": "EXAMPLES", "Exit status:": "EXIT STATUS"}


def manual_pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield file name and text of the page of a command and of each of its subcommands."""
    subcommands = []
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            subcommands.append((subcommand, click.Context(subcommand, info_name=name, parent=context)))
    yield file_name(context), page(command, context, [found for found, _ in subcommands])
    for subcommand, below in subcommands:
        yield from manual_pages(subcommand, below)


def file_name(context: click.Context) -> str:
    """Return the name of the page of a command."""
    return f"{page_name(context)}.1"


def page_name(context: click.Context) -> str:
    """Return the name that ``man`` finds the page by, such as pressmark-bag-create."""
    return context.command_path.replace(" ", "-")


def page(command: click.Command, context: click.Context, subcommands: list[click.Command]) -> str:
    """Return the page of one command."""
    sections: dict[str, list[str]] = {
        "NAME": filled(f"{page_name(context)} - {command.get_short_help_str(200).rstrip('.')}"),
        "SYNOPSIS": [f".B {escaped(context.command_path)}", escaped(" ".join(command.collect_usage_pieces(context)))],
        "DESCRIPTION": [],
        "EXAMPLES": [],
        "OPTIONS": list(options(command, context)),
        "COMMANDS": [],
        "NOTES": [],
        "EXIT STATUS": [],
    }
    for name, text in (("DESCRIPTION", command.help), ("NOTES", epilog(command, context))):
        for paragraph in inspect.cleandoc(text or "").split("\n\n"):
            start = paragraph.removeprefix("\b\n")
            section = next((SECTIONS[head] for head in SECTIONS if start.startswith(head)), name)
            lines = sections[section]
            if lines and section != "EXAMPLES":
                lines.append(".PP")
            lines += written(paragraph, section)
    for subcommand in subcommands:
        sections["COMMANDS"] += item(str(subcommand.name), subcommand.get_short_help_str(200))
    related = [context.parent] if context.parent else []
    related += [click.Context(one, info_name=one.name, parent=context) for one in subcommands]
    names = [f".BR {escaped(page_name(one))} (1)" for one in related]
    sections["SEE ALSO"] = [f"{line} ," for line in names[:-1]] + names[-1:]
    title = escaped(page_name(context).upper())
    lines = [
        '.\\" Generated from the code by ci/docs: do not edit.',
        f'.TH {title} 1 {DATE} "Pressmark {__version__}" "Pressmark"',
    ]
    for heading, content in sections.items():
        if content:
            lines += [f'.SH "{heading}"' if " " in heading else f".SH {heading}", *content]
    return "\n".join(lines) + "\n"


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the lines on the options of a command, in groups if it has several."""
    groups = grouped_options(command.get_params(context), context)
    for heading, records in groups.items():
        if len(groups) > 1:
            yield f'.SS "{heading}"'
        for term, text in records:
            yield from item(term, text)


def item(term: str, text: str) -> list[str]:
    """Return the lines of a term and its description."""
    return [".TP", f".B {escaped(term)}", *filled(text)]


def written(paragraph: str, section: str) -> list[str]:
    """Return the lines of a paragraph: filled, or as it is if it begins with a backspace, as in click."""
    if paragraph.startswith("\b\n"):
        lines = paragraph.splitlines()[1:]
        if section == "EXAMPLES":
            lines = lines[1:]
        return [".nf", *(escaped(line.removeprefix("  ")) for line in lines), ".fi"]
    return filled(paragraph.removeprefix("Exit status: "))


def filled(text: str) -> list[str]:
    """Return the lines of a text."""
    lines = textwrap.wrap(escaped(text), WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"\\&{line}" if line.startswith(".") else line for line in lines]


def escaped(text: str) -> str:
    """Return a line of text as roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return re.sub("[\"'^`~]", lambda found: ESCAPES[found[0]], text)


# Characters that roff replaces by typographic ones, or that have a meaning.
ESCAPES = {'"': "\\(dq", "'": "\\(aq", "^": "\\(ha", "`": "\\(ga", "~": "\\(ti"}
