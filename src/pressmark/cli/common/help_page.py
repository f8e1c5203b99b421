"""Help: the options of a command in groups with headings, and the command that another word probably means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import click

__all__ = ["HEADINGS", "OTHER", "grouped_options", "similar_command", "write_options"]

OTHER = "Other"
# An option has the same meaning in all commands, and therefore the same heading.
HEADINGS = {
    "Store and layout": "to kind layout set config identifiers prefix namespace content-paths source-kind"
    " source-layout",
    "Input and output": "from ids map root column format header delimiter crlf null as both on-error output report all"
    " json",
    "Selection": "version links ignore ignore-missing exclude exclude-junk delete-excluded nested improper",
    "Digests and checks": "algorithm level digests profile lenient verify verify-again check-space",
    "Content and metadata": "add-algorithm drop-algorithm info info-file remove-info tag-file accept rewrite"
    " metadata-only add remove rename no-dedup replace mode copy-mode move drop-empty-directories message user"
    " user-address",
    "Measurement": "files-per-object versions directory-limit probe",
    "Download": "fetch-base fetch manifest allow-http allow-host allow-private certificates maximum timeout retries",
    "Performance": "threads read workers dask",
    "Run and resume": "dry-run ledger work resume catch-up max-errors temporary progress",
}
_HEADING = {f"--{option}": heading for heading, options in HEADINGS.items() for option in options.split()}
_WIDEST = 30  # a longer option has its description below it

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


def grouped_options(parameters: Iterable[click.Parameter], context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return names and help of the options among ``parameters``, by the heading of their group."""
    groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*HEADINGS, OTHER)}
    for parameter in parameters:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            names = (_HEADING[name] for name in parameter.opts if name in _HEADING)
            groups[next(names, OTHER)].append(record)
    return {heading: records for heading, records in groups.items() if records}


def write_options(
    parameters: Iterable[click.Parameter], context: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write the options among ``parameters``, each below the heading of its group."""
    groups = grouped_options(parameters, context)
    longest = max(len(term) for records in groups.values() for term, _ in records)
    for heading, records in groups.items():
        with formatter.section(heading):
            # All groups have columns of the same width.
            formatter.write_dl([(term.ljust(min(longest, _WIDEST)), text) for term, text in records])


def similar_command(word: str, group: str, commands: Iterable[str]) -> str:
    """Return the command that ``word`` probably means, with its group; empty if none is similar.

    :param group: path of the group, such as ``pressmark bag``
    """
    _, _, group = group.partition(" ")
    known = _WORDS.get(group, {})
    meant = known.get(word) or next(iter(difflib.get_close_matches(word, [*commands, *known], 1)), "")
    return " ".join(filter(None, (group, known.get(meant, meant)))) if meant else ""
