"""``pressmark verify``: files against a manifest of digests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, cast

import click

from pressmark.cli.common.console import CallError, Failure, Interrupted, one_line, say
from pressmark.cli.common.files import InputStream, discard_stdout, open_sink, open_source, refuse_missing
from pressmark.cli.common.options import (
    exclude_options,
    globs_to_exclude,
    interruption_message,
    ledger_counts,
    ledger_words,
    open_ledger,
    output_files,
    parse_algorithms,
    run_options,
)
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import Reporter, format_bytes, format_count, progress_mode
from pressmark.errors import AlgorithmError, ManifestError, quoted
from pressmark.fixity import ALGORITHMS, FORMATS, ManifestEntry, Verdict, detect_algorithm, read_manifest, verify
from pressmark.fixity.algorithms import algorithms_of_size
from pressmark.fixity.manifest_reader import manifest_format

__all__ = ["verify_command"]

SPOOL = 1 << 24  # a longer manifest from a pipe goes to a temporary file
STATES = ("changed", "missing", "unreadable", "new")

HELP = """\
Verify all files in MANIFEST, and print those that do not match.

\b
Examples:
  pressmark hash files -o SHA512SUMS && pressmark verify SHA512SUMS
  (cd files && sha256sum *) > SHA256SUMS; pressmark verify SHA256SUMS --root files --json

Each problem is a line on stdout: "changed", "missing", "unreadable" or "new", and the name of the file. Unprintable
characters are escaped; --json prints names exactly. Without problems, nothing is printed to stdout. The last line on
stderr counts the files; --quiet omits it if all are ok.

For a coreutils manifest, -a specifies the algorithm. Without -a, the command detects it from the length of the digests,
and from the content of the first files if several algorithms have digests of that length (for example sha256 and
blake3). For other formats, -a selects the digests to verify. If MANIFEST is "-", the command reads standard input. An
empty MANIFEST is an error, except with --root.
"""

EPILOG = """\
\b
More examples:
  cd files && sha512sum * | pressmark verify - --json

--exclude: files in DIR with these names, and files in directories with these names, are not reported as new, but
listed on stderr. Files in MANIFEST are verified in any case.

MANIFEST is parsed before any file is read; a malformed line stops the command. Its format is detected by the first
line: coreutils, BSD tags, or the JSON of "pressmark hash --format json".

Exit status: 0 all files match MANIFEST (and with --root, no other files exist), 1 a file does not match or cannot be
read, 2 usage error or malformed MANIFEST, 130 interrupted.
"""


@click.command("verify", cls=Command, help=HELP, epilog=EPILOG, short_help="Check files against a manifest.")
@click.argument("manifest", metavar="MANIFEST", type=click.Path(readable=False, allow_dash=True))
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=bytes),
    help="Names in MANIFEST are relative to DIR, and files in DIR but not in MANIFEST are reported as new. The names"
    ' that "pressmark hash PATH" writes begin with PATH; for such names, DIR is the directory in which it ran.'
    " Default: the current directory, without a search for new files.",
)
@run_options
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="Format of MANIFEST (default: detected by its first line).",
)
@click.option(
    "--links",
    type=click.Choice(["follow", "refuse"]),
    default="follow",
    show_default=True,
    help="Follow symbolic links, or report each file that is one, or whose name leads through one, as unreadable.",
)
@exclude_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per problem, then a summary.")
def verify_command(
    manifest: str,
    root: bytes | None,
    algorithms: tuple[str, ...],
    ledger: str | None,
    threads: int,
    read: str,
    progress: bool | None,
    format_name: str | None,
    links: str,
    exclude: tuple[str, ...],
    exclude_junk: bool,
    as_json: bool,
) -> int:
    """Check files against a manifest."""
    _refuse_directory(manifest)
    if root is not None:
        refuse_missing([root], directories=True)
    globs = globs_to_exclude(exclude, exclude_junk)
    wanted = parse_algorithms(algorithms) or None
    counts: Counter[str] = Counter()
    first_missing = b""
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(open_source(manifest))
        file = _rewindable(source, stack)

        def entries() -> Iterator[ManifestEntry]:
            return read_manifest(file, source.name, wanted, format_name)

        used = _checked(entries())
        if not used and root is None:
            # A truncated manifest must not be reported as verified.
            raise Failure(f"{source.name}: manifest is empty; nothing was verified")
        if wanted is None and used:
            wanted = _detected(file, source.name, format_name, used[0], root, links)
            used = used if wanted is None else [wanted]
        if root is not None and not as_json and used:
            file.seek(0)
            missing = _first_if_none_exists(entries(), root)
            if missing:
                raise Failure(_wrong_root(missing, manifest, root))
        file.seek(0)
        roots = [os.fsencode(manifest), root or b""]
        # A ledger is for one set of algorithms.
        if ledger is not None and len(used) != 1:
            raise CallError(f"--ledger: {source.name} has different algorithms for different files; omit --ledger")
        journal = stack.enter_context(open_ledger(ledger, used[0] if used else (), roots))
        leave_out = {(status.st_dev, status.st_ino) for status in (source.status,) if status}
        leave_out.update(output_files())
        if journal is not None:
            status = journal.status()
            leave_out.add((status.st_dev, status.st_ino))
        sink = stack.enter_context(open_sink(None, None))
        again = _ManifestPaths(manifest, wanted, format_name, root)
        reporter = stack.enter_context(Reporter(progress_mode(progress, sink), paths=again.paths))

        def on_excluded(path: str | bytes) -> None:
            if as_json:
                reporter.excluded += 1
                name = os.path.relpath(os.fsencode(path), root)
                sink.write(_json_line(Verdict(name, "excluded", kind="excluded", message="not searched"), "warning"))
            else:
                reporter.on_excluded(path)

        try:
            for verdict in verify(
                entries(),
                root,
                threads,
                reporter.on_event,
                links=links,
                read=read,
                ledger=journal,
                leave_out=leave_out,
                exclude=globs,
                on_excluded=on_excluded,
            ):
                counts[verdict.state] += 1
                first_missing = first_missing or (verdict.path if verdict.state == "missing" else b"")
                if not verdict.ok:
                    sink.write(_json_line(verdict) if as_json else _line(verdict))
            summary = {state: counts[state] for state in ("ok", *STATES)}
            if globs:
                summary["excluded"] = reporter.excluded
            if as_json:
                sink.write(json.dumps({"summary": {**summary, **ledger_counts(journal)}}).encode() + b"\n")
            sink.flush()
        except BrokenPipeError:
            discard_stdout()
            return Failure.exit_code if _failed(counts) else 0
        except KeyboardInterrupt:
            raise Interrupted(interruption_message(journal)) from None
    if counts["missing"] and not (counts["ok"] or counts["changed"] or counts["unreadable"]):
        say(_wrong_root(first_missing, manifest, root))
    if _failed(counts):
        found = ", ".join(f"{counts[state]:,} {state}" for state in STATES if counts[state])
        say(", ".join([found, f"{counts['ok']:,} ok", *ledger_words(journal)]))
        return Failure.exit_code
    if progress is not False:
        pieces = [format_count(counts["ok"], "file")]
        pieces += ledger_words(journal) if journal else [format_bytes(reporter.done.bytes)]
        pieces += [f"{reporter.excluded:,} excluded"] if reporter.excluded else []
        say(f"{source.name}: {', '.join(pieces)}: all ok")
    return 0


def _refuse_directory(manifest: str) -> None:
    """Refuse a directory, which has no digests of its own."""
    if os.path.isfile(os.path.join(manifest, "bagit.txt")):
        raise CallError(f"{manifest}: a bag, not a manifest; run pressmark bag validate {manifest}")
    if os.path.isdir(manifest):
        raise CallError(f"{manifest}: a directory, not a manifest; specify the manifest, and the directory with --root")


def _first_if_none_exists(entries: Iterator[ManifestEntry], root: bytes) -> bytes:
    """Return the first name if no file of the manifest exists in ``root``; otherwise an empty name."""
    first = b""
    for entry in entries:
        first = first or entry.path
        try:
            os.lstat(os.path.join(root, entry.path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError):
            pass  # it may exist, and verifying reports the error
        return b""
    return first


def _wrong_root(name: bytes, manifest: str, root: bytes | None) -> str:
    """Return what to do if no file was found: ``name`` is the first one."""
    here = os.path.realpath(root or b".")
    for fitting in (b".", os.path.dirname(os.fsencode(manifest)), os.path.dirname(root or b"")):
        if fitting and os.path.realpath(fitting) != here and os.path.lexists(os.path.join(fitting, name)):
            use = "omit --root" if fitting == b"." else f"use --root {os.fsdecode(fitting)}"
            break
    else:
        use = "use --root DIR, the directory that contains the first part of these names"
    what = "the current directory" if root is None else f"--root {os.fsdecode(root)}"
    return f"{manifest}: no file found; names such as {quoted(name)} are relative to {what}; {use}"


def _detected(
    file: BinaryIO, name: str, format_name: str | None, used: tuple[str, ...], root: bytes | None, links: str
) -> tuple[str, ...] | None:
    """Return the algorithm of a coreutils manifest, by the content of its first files.

    :param used: the algorithm by the length of the digests, which is used if no file decides
    """
    file.seek(0)
    if (format_name or manifest_format(file, name)) != "coreutils":
        return None
    file.seek(0)
    found = detect_algorithm(read_manifest(file, name, used, "coreutils"), root, links=links)
    if found is None:
        others = [one for one in algorithms_of_size(ALGORITHMS[used[0]].size) if one != used[0]]
        say(
            f"{name}: none of the first files matches; digests are interpreted as {used[0]}; for"
            f" {' or '.join(others)} use -a"
        )
        return used
    if found != used[0]:
        say(f"{name}: digests are {found}, according to the content of the first files; -a {found} skips this check")
    return (found,)


def _failed(counts: Counter[str]) -> bool:
    return any(counts[state] for state in STATES)


def _rewindable(source: InputStream, stack: contextlib.ExitStack) -> BinaryIO:
    """Return the manifest as a seekable file."""
    if source.size is not None and source.name != "<stdin>":
        return source.file
    spool = stack.enter_context(tempfile.SpooledTemporaryFile(SPOOL))  # noqa: SIM115 - the stack closes it
    shutil.copyfileobj(cast(BinaryIO, source), spool)
    spool.seek(0)
    return cast(BinaryIO, spool)


def _checked(entries: Iterator[ManifestEntry]) -> list[tuple[str, ...]]:
    """Parse the whole manifest, and return the different sets of algorithms of its entries."""
    found: dict[tuple[str, ...], None] = {}
    try:
        for entry in entries:
            found[tuple(entry.digests)] = None
    except (ManifestError, AlgorithmError) as error:
        raise CallError(str(error)) from None
    return list(found)


class _ManifestPaths:
    """The paths in the manifest, read again for the estimate of progress."""

    def __init__(
        self, manifest: str, wanted: tuple[str, ...] | None, format_name: str | None, root: bytes | None
    ) -> None:
        self._manifest = manifest
        self._wanted = wanted
        self._format = format_name
        self._root = root or b""

    def paths(self) -> Iterator[bytes]:
        """Yield the paths; stdin cannot be read again."""
        if self._manifest == "-":
            raise OSError("stdin cannot be read again")
        with open(self._manifest, "rb") as file:
            for entry in read_manifest(file, self._manifest, self._wanted, self._format):
                yield os.path.join(self._root, entry.path)


def _line(verdict: Verdict) -> bytes:
    text = f"{verdict.state}: {one_line(os.fsdecode(verdict.path))}"
    if verdict.state == "unreadable":
        text += f": {verdict.message}"
    return text.encode() + b"\n"


def _json_line(verdict: Verdict, severity: str = "error") -> bytes:
    problem = {
        "kind": verdict.kind if verdict.state == "unreadable" else verdict.state,
        "severity": severity,
        "path": os.fsdecode(verdict.path),
        "algorithm": verdict.algorithm,
        "expected": verdict.expected,
        "found": verdict.found,
        "message": verdict.message,
    }
    return json.dumps(problem).encode() + b"\n"
