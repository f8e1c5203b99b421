"""Help: the options of a command in groups with headings, and the command that another word probably means."""

from __future__ import annotations

import difflib
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any

import click

__all__ = [
    "HEADINGS",
    "OTHER",
    "epilog",
    "grouped_options",
    "is_page",
    "page_context",
    "similar_command",
    "write_options",
    "write_text",
]

OTHER = "Other"
# An option has the same meaning in all commands, and therefore the same heading.
HEADINGS = {
    "Store and layout": "to kind layout set config identifiers prefix namespace content-paths source-kind"
    " source-layout",
    "Input and output": "from table ids map root column name-column archive format header delimiter crlf null as both"
    " on-error update drop-missing output report all json",
    "Selection": "match version links ignore ignore-missing read-new exclude exclude-junk delete-excluded"
    " delete-tag-files nested improper one-file-system",
    "Digests and checks": "algorithm level digests digests-from profile lenient verify verify-again check-space",
    "Content and metadata": "add-algorithm drop-algorithm info info-file remove-info tag-file accept rewrite"
    " metadata-only add remove rename no-dedup replace copy-mode content-class timestamps move drop-empty-directories"
    " message created user user-address",
    "Measurement": "files-per-object versions directory-limit probe",
    "Download": "fetch-base fetch manifest header-from netrc allow-http allow-host allow-private allow-bucket"
    " certificates maximum timeout retries",
    "Object storage": "endpoint s3-profile region claims single-writer",
    "Performance": "threads read workers dask",
    "Run and resume": "state older-than for max-bytes max-objects dry-run alone ledger work resume catch-up max-errors"
    " temporary progress",
}
_HEADING = {f"--{option}": heading for heading, options in HEADINGS.items() for option in options.split()}
_PAGE = "pressmark.page"
_WIDEST = 22  # a longer option has its description below it

# The commands that words of other programs mean, by group. A word that several commands could mean is not among them.
_WORDS = {
    "": {
        "cat": "store cat",
        "check": "store check",
        "checksum": "hash",
        "complete": "bag complete",
        "copy": "migrate",
        "create": "bag create",
        "declare": "store declare",
        "digest": "hash",
        "get": "store get",
        "init": "store init",
        "list": "store ls",
        "log": "store log",
        "ls": "store ls",
        "put": "store put",
        "repair": "store repair",
        "rm": "store rm",
        "validate": "bag validate",
    },
    "bag": {
        "check": "validate",
        "fetch": "complete",
        "init": "create",
        "make": "create",
        "new": "create",
        "show": "info",
        "verify": "validate",
    },
    "store": {
        "add": "put",
        "create": "init",
        "delete": "rm",
        "history": "log",
        "list": "ls",
        "new": "init",
        "remove": "rm",
        "show": "cat",
        "validate": "check",
        "verify": "check",
    },
}


def grouped_parameters(parameters: Iterable[click.Parameter]) -> list[click.Option]:
    """Return the options among ``parameters`` in the order of their groups."""
    options = [one for one in parameters if isinstance(one, click.Option)]
    return sorted(options, key=lambda one: [*HEADINGS, OTHER].index(_heading(one)))


def _heading(option: click.Option) -> str:
    return next((_HEADING[name] for name in option.opts if name in _HEADING), OTHER)


def grouped_options(parameters: Iterable[click.Parameter], context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return names and help of the options among ``parameters``, by the heading of their group."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for option in grouped_parameters(parameters):
        record = option.get_help_record(context)
        if record is not None:
            groups.setdefault(_heading(option), []).append(record)
    return groups


def write_options(
    parameters: Iterable[click.Parameter], context: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write the options among ``parameters``, each below the heading of its group."""
    groups = grouped_options(parameters, context)
    longest = max(len(term) for records in groups.values() for term, _ in records)
    for heading, records in groups.items():
        with formatter.section(heading):
            # All groups have columns of the same width.
            formatter.write_dl([(term.ljust(min(longest, _WIDEST)), text) for term, text in records], _WIDEST)


def page_context(command: click.Command, **attributes: Any) -> click.Context:
    """Return a context in which help is that of the page of a command, and of the pages of its subcommands."""
    context = click.Context(command, **attributes)
    context.meta[_PAGE] = True
    return context


def is_page(context: click.Context) -> bool:
    """Return whether help is written for the page of a command, with everything that ``--help`` leaves out."""
    return _PAGE in context.meta


def epilog(command: click.Command, context: click.Context) -> str:
    """Return the paragraphs below the options; on the terminal, the last one names what only the page describes."""
    text = inspect.cleandoc(command.epilog or "")
    details: str = getattr(command, "details", "")
    names: frozenset[str] = getattr(command, "page_options", frozenset())
    if is_page(context):
        return f"{inspect.cleandoc(details)}\n\n{text}".strip()
    if not details and not names:
        return text
    page = f'"man {context.command_path.replace(" ", "-")}" and the page "Commands" of the documentation'
    # In the order of the page.
    options = [name for one in grouped_parameters(command.get_params(context)) for name in one.opts if name in names]
    more = f", and these options: {', '.join(options)}" if options else ""
    return f"{text}\n\nSee {page} for details{more}."


def write_text(text: str, formatter: click.HelpFormatter) -> None:
    """Write paragraphs with the indentation of an epilog; lines do not break inside an option."""
    formatter.write_paragraph()
    with formatter.indentation():
        width = formatter.width - formatter.current_indent
        for number, paragraph in enumerate(text.split("\n\n")):
            if number:
                formatter.write_paragraph()
            if not paragraph.startswith("\b"):
                lines = textwrap.fill(" ".join(paragraph.split()), width, break_on_hyphens=False)
                paragraph = f"\b\n{lines}"
            formatter.write_text(paragraph)


def similar_command(word: str, group: str, commands: Iterable[str]) -> str:
    """Return the command that ``word`` probably means, with its group; empty if none is similar.

    :param group: path of the group, such as ``pressmark bag``
    """
    _, _, group = group.partition(" ")
    known = _WORDS.get(group, {})
    meant = known.get(word) or next(iter(difflib.get_close_matches(word, [*commands, *known], 1)), "")
    return " ".join(filter(None, (group, known.get(meant, meant)))) if meant else ""
