"""``pressmark verify``: files against a manifest of digests."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError, Failure, one_line
from pressmark.cli.common.files import open_sink, open_source, refuse_missing, refuse_unwritable
from pressmark.cli.common.object_storage import PATH_OR_ADDRESS, bucket_options
from pressmark.cli.common.options import (
    ONE_FILE_SYSTEM,
    digests_option,
    exclude_options,
    globs_to_exclude,
    interruption_message,
    json_option,
    ledger_counts,
    ledger_words,
    links_option,
    open_ledger,
    output_files,
    parse_algorithms,
    run_options,
)
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count
from pressmark.errors import quoted
from pressmark.fixity import FORMATS, ManifestCheck, Verdict, check_manifest
from pressmark.fixity.verification import MISSING, MISSPELLED, respelled
from pressmark.fs.gzipped import packed

if TYPE_CHECKING:
    from pressmark.fixity.bucket_files import DigestSource
    from pressmark.fixity.matching.manifest_update import ManifestUpdate, UpdateCounts

__all__ = ["verify_command"]

STATES = ("changed", "missing", "unreadable", "new", "moved", "duplicate")

HELP = """\
Verify all files in MANIFEST, and print those that do not match.

\b
Examples:
  (cd files; pressmark hash . -o ../SUMS); pressmark verify SUMS --root files
  pressmark hash files -o SHA512SUMS && pressmark verify SHA512SUMS

Each problem is a line on stdout: "changed", "missing", "unreadable", "new", "moved" or "duplicate", and the name of the
file. Unprintable characters are escaped; --json prints names exactly. Without problems, nothing is printed to stdout.
The last line on stderr counts the files; --quiet omits it if all are ok.
"""

DETAILS = """\
For a coreutils manifest, -a specifies the algorithm. Without -a, it is the one in the name of MANIFEST (SHA256SUMS,
manifest-md5.txt, scans.b3), or the usual one with digests of this length: md5, sha1, sha224, sha256, sha384 or sha512.
If MANIFEST has several algorithms, -a selects the digests to verify. If MANIFEST is "-", the command reads standard
input. An empty MANIFEST is an error, except with --root.

The names that "pressmark hash PATH" writes begin with PATH; for such names, DIR is the directory in which it ran. To
search only PATH for new files, run "pressmark hash ." in PATH.

In object storage, DIR is an address such as s3://bucket/prefix, and other keys below it are reported as new. Names in
MANIFEST that are addresses themselves, as "pressmark hash s3://bucket/prefix" writes them, need no --root. A key is
unreadable if it is archived, or with --digests=stored if the server keeps no digest of it. --ledger is not supported.

Moved files: with --root, if a file is missing, all new files are read. A missing file with the digests of a new one is
"moved", and both names are printed. Of several files with the same content, those with the same last name match first.
Another new file with the content of a file in MANIFEST is "duplicate". Empty files are moved only under their last
name, and are never duplicates. --read-new reads new files in any case, also if no file in MANIFEST is found. Missing
and moved files are printed after the others in MANIFEST.

--update: each moved, new or duplicate file gets a new line, in the format and the order of MANIFEST. All other lines
stay: changed, unreadable and missing files keep theirs, and are reported again the next time. MANIFEST is replaced when
the new one is complete. It must be a regular file, neither compressed nor UTF-16, and have digests of the same
algorithms for all files. With --json, differences that the new MANIFEST resolves are warnings.

--exclude: files in DIR with these names, and files in directories with these names, are not reported as new, but
listed on stderr. Files in MANIFEST are verified in any case.

MANIFEST is parsed before any file is read; a malformed line stops the command. Its format is detected by the first
line: coreutils, BSD tags, or the JSON of "pressmark hash --format json". Lines may end with CR LF, and names may follow
one space or TAB. MANIFEST may be compressed by gzip, start with a byte-order mark, and with one be UTF-16. Blank lines,
comments (# or ;) and digests of algorithms other than those of -a are passed over; the last line counts them. Digests
in base64, lists signed with PGP and other formats are refused.
"""

EPILOG = """\
\b
More examples:
  cd files && sha512sum * | pressmark verify - --json
  (cd files; sha256sum *) > SUMS; pressmark verify SUMS --root files --json
  (cd files; md5sum *) > SUMS; pressmark verify SUMS --root files --update
  pressmark verify SHA512SUMS --root s3://books/files --digests=stored

Exit status: 0 all files match MANIFEST (or with --update the new one), and with --root no other files exist, 1 a file
does not match or cannot be read, 2 usage error or malformed MANIFEST, 130 interrupted.
"""

PAGE_OPTIONS = "--digests --threads --read --format --links --exclude-junk --endpoint --s3-profile --region"


@click.command(
    "verify",
    cls=Command,
    help=HELP,
    details=DETAILS,
    epilog=EPILOG,
    page_options=PAGE_OPTIONS,
    short_help="Check files against a manifest.",
)
@click.argument("manifest", metavar="MANIFEST", type=click.Path(readable=False, allow_dash=True))
@click.option(
    "--root",
    metavar="DIR",
    type=PATH_OR_ADDRESS,
    help="Names in MANIFEST are relative to DIR, and files in DIR but not in MANIFEST are reported as new. Default: the"
    " current directory, without a search for new files.",
)
@run_options
@digests_option(
    "With an address as DIR: read the content (the default); or use the digests that the server has stored, without"
    " reading the content. A file without them is unreadable."
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="Format of MANIFEST (default: detected by its first line).",
)
@links_option(
    ("follow", "skip", "refuse"),
    "Follow symbolic links; skip them in the search for new files; or report each file that is one, or whose name leads"
    " through one, as unreadable.",
)
@click.option(
    "--ignore-missing",
    is_flag=True,
    help="Do not report missing files, but count them. If no file exists, this is an error.",
)
@click.option(
    "--read-new/--no-read-new",
    default=None,
    help="Read new files, or do not, to find moved files and duplicates (default: if a file is missing, and without"
    " --ignore-missing).",
)
@click.option(
    "--update",
    "update_list",
    is_flag=True,
    help="Replace MANIFEST: record moved and new files. Other lines stay, also those of changed and missing files.",
)
@click.option("--drop-missing", is_flag=True, help="With --update, omit the lines of missing files.")
@click.option(
    "--output",
    "-o",
    "new_list",
    metavar="OUTPUT",
    type=click.Path(readable=False),
    help="With --update, write to the file OUTPUT, not to MANIFEST.",
)
@exclude_options
@ONE_FILE_SYSTEM
@json_option("problem")
@bucket_options
def verify_command(
    manifest: str,
    root: bytes | None,
    algorithms: tuple[str, ...],
    ledger: str | None,
    threads: int | None,
    read: str,
    progress: bool | None,
    digests: DigestSource | None,
    format_name: str | None,
    links: str,
    ignore_missing: bool,
    read_new: bool | None,
    update_list: bool,
    drop_missing: bool,
    new_list: str | None,
    exclude: tuple[str, ...],
    exclude_junk: bool,
    one_file_system: bool,
    as_json: bool,
) -> int:
    """Check files against a manifest."""
    _refuse_directory(manifest)
    in_storage = root is not None and is_address(root)
    if digests is not None and not in_storage:
        raise CallError("--digests: only with an address such as --root s3://bucket/prefix; omit the option")
    if root is not None and not in_storage:
        refuse_missing([root], directories=True)
    globs = globs_to_exclude(exclude, exclude_junk)
    target = (new_list or manifest) if update_list else None
    counts: Counter[str] = Counter()
    written: UpdateCounts | None = None
    first_missing = ""
    with (
        open_source(manifest) as source,
        check_manifest(
            cast(BinaryIO, source), root, algorithms=parse_algorithms(algorithms) or None, format=format_name
        ) as check,
    ):
        if not check.algorithms and root is None:
            # A truncated manifest must not be reported as verified.
            raise Failure(f"{check.name}: manifest is empty; nothing was verified")
        missing = None if root is None or as_json or read_new else check.first_missing()
        if missing is not None:
            raise Failure(_wrong_root(check, missing, root))
        # A ledger is for one set of algorithms.
        if ledger is not None and len(check.algorithms) != 1:
            raise CallError(f"--ledger: {check.name} has different algorithms for different files; omit --ledger")
        used = check.algorithms[0] if check.algorithms else ()
        leave_out = {(status.st_dev, status.st_ino) for status in (source.status,) if status}
        with (
            open_ledger(ledger, used, [os.fsencode(manifest), root or b""]) as journal,
            _updated(check, target, read_new, drop_missing) if target else nullcontext() as update,
            Output(
                progress,
                as_json=as_json,
                go_on=update_list,
                interrupted="interrupted" if in_storage else interruption_message(journal),
                stages={"new": "reading new files"},
                paths=None if in_storage else check.paths,
            ) as output,
        ):
            leave_out.update(output_files(target))
            if journal is not None:
                status = journal.status()
                leave_out.add((status.st_dev, status.st_ino))
            reporter = output.reporter

            excluded: list[str] = []

            def report_excluded() -> None:
                if as_json:
                    for path in excluded:
                        name = os.path.relpath(path, None if root is None else os.fsdecode(root))
                        verdict = Verdict(name, "excluded", kind="excluded", message="not searched")
                        output.record(_record(verdict, "warning"))
                    reporter.excluded += len(excluded)
                    excluded.clear()
                else:
                    reporter.report_excluded(excluded)

            is_told = False

            def report_doubt() -> None:
                nonlocal is_told
                if check.is_doubtful and not is_told:
                    is_told = True
                    others = " or ".join(check.other_algorithms)
                    reporter.report(
                        f"{check.name}: none of the first files matches; digests are interpreted as {used[0]};"
                        f" for {others} use -a"
                    )

            for verdict in check.verify(
                threads,
                output.progress,
                links=links,
                read=read,
                ledger=journal,
                leave_out=leave_out,
                exclude=globs,
                one_file_system=one_file_system,
                excluded=excluded,
                digests=digests or "read",
                read_new=update_list or (False if read_new is None and ignore_missing else read_new),
            ):
                report_excluded()
                report_doubt()
                is_ignored = ignore_missing and verdict.state == "missing" and verdict.kind != MISSPELLED
                counts["ignored" if is_ignored else verdict.state] += 1
                first_missing = first_missing or (verdict.path if verdict.state in ("missing", "moved") else "")
                is_resolved = update is not None and update.add(verdict)
                if not verdict.ok and not is_ignored:
                    output.errors += not is_resolved
                    if as_json:
                        output.record(_record(verdict, "warning" if is_resolved else "error"))
                    else:
                        output.data(_line(verdict))
            report_excluded()
            report_doubt()
            is_wrong = first_missing and not (counts["ok"] or counts["changed"] or counts["unreadable"])
            if is_wrong and (not counts["moved"] or check.fitting_root(first_missing) is not None):
                # With --ignore-missing, a wrong directory must not be reported as verified.
                output.errors = max(output.errors, 1)
                reporter.report(_wrong_root(check, first_missing, root))
            elif target and update is not None and (update.has_changes or new_list):
                output.flush()
                with open_sink(target, source if new_list else None) as sink, packed(sink, sink.name) as file:
                    written = update.write(file)
            summary = {state: counts[state] for state in ("ok", *STATES)}
            if ignore_missing:
                summary["ignored"] = counts["ignored"]
            if globs or one_file_system or reporter.excluded:
                summary["excluded"] = reporter.excluded
            if check.passed_over:
                summary["passed_over"] = check.passed_over
            changes = {"update": written and written._asdict()} if update_list else {}
            output.summary({**summary, **ledger_counts(journal), **changes})
    pieces = [f"{counts['ignored']:,} missing ignored"] if counts["ignored"] else []
    pieces += [f"{format_count(check.passed_over, 'line')} passed over"] if check.passed_over else []
    pieces += ledger_words(journal)
    if output.errors or any(counts[state] for state in STATES):
        found = [f"{counts[state]:,} {state}" for state in STATES if counts[state]]
        output.tell(", ".join([*found, f"{counts['ok']:,} ok", *pieces]))
    else:
        size = [] if journal else [format_bytes(reporter.done.bytes)]
        pieces += [f"{reporter.excluded:,} excluded"] if reporter.excluded else []
        output.tell(f"{check.name}: {', '.join([format_count(counts['ok'], 'file'), *size, *pieces])}: all ok")
    if written is not None:
        figures = ", ".join(f"{number:,} {what}" for what, number in written._asdict().items() if number)
        output.tell(f"{target}: {'written' if new_list else 'updated'}: {figures}")
    elif update_list and output.errors:
        output.tell(f"{target}: {'not written' if new_list else 'unchanged'}")
    return output.status


def _refuse_directory(manifest: str) -> None:
    """Refuse a directory, which has no digests of its own."""
    if os.path.isfile(os.path.join(manifest, "bagit.txt")):
        raise CallError(f"{manifest}: a bag, not a manifest; run pressmark bag validate {manifest}")
    if os.path.isdir(manifest):
        raise CallError(f"{manifest}: a directory, not a manifest; specify the manifest, and the directory with --root")


def _updated(check: ManifestCheck, target: str, read_new: bool | None, drop_missing: bool) -> ManifestUpdate:
    """Return the update of a list; refuse one that is not safe, or that cannot be written to ``target``."""
    from pressmark.fixity.matching.manifest_update import ManifestUpdate  # SQLite is only for updates

    if read_new is False:
        raise CallError("--no-read-new: not supported with --update, which adds new files; omit one of them")
    if target == "-":
        raise CallError("--update: MANIFEST and OUTPUT must be files, not -; specify files")
    directory, name = os.path.split(check.path)
    if re.fullmatch(r"(tag)?manifest-.+\.txt", name) and os.path.isfile(os.path.join(directory, "bagit.txt")):
        raise CallError(f"{check.path}: manifest of a bag; run pressmark bag update {shlex.quote(directory or '.')}")
    refuse_unwritable(target)
    return ManifestUpdate(check, drop_missing=drop_missing)


def _wrong_root(check: ManifestCheck, name: str, root: bytes | None) -> str:
    """Return what to do if no file was found: ``name`` is the first one."""
    other = respelled(name, root)
    if other is not None:
        what = f"{quoted(other)} exists, but not {quoted(name)}"
        return f"{check.name}: no file found; {what}; correct the names in the manifest"
    fitting = check.fitting_root(name)
    if fitting is None:
        use = "use --root DIR, the directory that contains the first part of these names"
    else:
        use = f"use --root {shlex.quote(fitting)}"
        if fitting == ".":
            use = f"omit --root, or {use} to report other files there as new"
    what = "the current directory" if root is None else f"--root {shlex.quote(os.fsdecode(root))}"
    return f"{check.name}: no file found; names such as {quoted(name)} are relative to {what}; {use}"


def _line(verdict: Verdict) -> bytes:
    text = f"{verdict.state}: {one_line(verdict.path)}"
    if verdict.same_as is not None:
        name = one_line(verdict.same_as)
        text += f" -> {name}" if verdict.state == "moved" else f": same content as {name}"
    elif verdict.kind not in (verdict.state, *MISSING):
        text += f": {verdict.message}"
    return text.encode() + b"\n"


def _record(verdict: Verdict, severity: str = "error") -> dict[str, Any]:
    return {
        "kind": verdict.kind if verdict.state == "unreadable" else verdict.state,
        "severity": severity,
        "path": verdict.path,
        "algorithm": verdict.algorithm,
        "expected": verdict.expected,
        "found": verdict.found,
        "message": verdict.message,
        "same_as": verdict.same_as,
    }
