"""``pressmark bag create``: create a bag from files."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from pressmark.bagit import Bag, create, create_archive, create_from_lists, create_holey, make_bag
from pressmark.bagit.bag_info import read_oxum
from pressmark.bagit.paths import archive_ending
from pressmark.bagit.writing.options import CreateOptions, bagging_date
from pressmark.buckets.address import is_address
from pressmark.cli.bag.options import (
    STAGES,
    Listener,
    change_interrupted,
    fetch_base_option,
    info_options,
    parse_elements,
    parse_fetch_base,
    refuse_inside,
    timestamps_option,
)
from pressmark.cli.common.console import CallError, Failure, Interrupted, problem_text
from pressmark.cli.common.files import refuse_missing
from pressmark.cli.common.object_storage import PATH_OR_ADDRESS, bucket_options
from pressmark.cli.common.options import (
    ALGORITHM,
    LEDGER,
    ONE_FILE_SYSTEM,
    PROGRESS,
    READ,
    THREADS,
    exclude_options,
    globs_to_exclude,
    json_option,
    ledger_words,
    links_option,
    open_ledger,
    parse_algorithms,
)
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count, format_rate
from pressmark.errors import BagError
from pressmark.fixity.copying import MODES
from pressmark.fs.durable import is_readable
from pressmark.reports import ERROR, Problem, ProgressEvent

if TYPE_CHECKING:
    from pressmark.bagit.writing.in_place import NewBag
    from pressmark.fixity.ledger import Ledger

__all__ = ["create_command"]

# Small bags are reported together.
TOGETHER = 64
# The formats of --table.
TABLES = ("csv", "tsv", "jsonl", "parquet")
#: The endings of --archive.
ARCHIVES = ("tar", "tar.gz", "tar.zst", "zip")
COPIES = {"copy": "copied", "reflink": "cloned (reflink)", "hardlink": "hard-linked"}

HELP = """\
Create a bag from the files in SOURCE.

\b
Examples:
  pressmark bag create files -o bag
  pressmark bag create files --info "Source-Organization=Example University"

Without -o, each directory SOURCE becomes a bag: its content moves to SOURCE/data, and manifests and bag-info.txt are
added. A SOURCE that fails is reported, and the others are processed.

With -o, the bag is a copy in a new directory. Each file is read once, to copy it and to compute all its checksums. The
payload is the content of a single directory SOURCE; several SOURCEs keep their names. If DESTINATION ends with .tar,
.tar.gz, .tgz, .tar.zst, .tzst or .zip, the bag is written to an archive; see "pressmark bag pack --help". DESTINATION
may be an address in object storage: of an archive, or of the keys of a bag, bagit.txt last.

The default checksum is SHA-512. Payload-Oxum is always computed; Bagging-Date, Bag-Size and Bag-Software-Agent are
added unless you specify them.
"""

EPILOG = """\
\b
More examples:
  pressmark bag create files -o bag.tar.gz
  pressmark bag create files -o s3://bucket/bag
  pressmark bag create files -o bag -a sha512,md5
  pressmark bag create files one.txt two.txt -o bag --copy-mode hardlink
  pressmark bag create files -o bag --tag-file readme.txt
  pressmark bag create files --info-file bag-info-template.txt
  pressmark bag create files --profile profile.json --info Contact-Name=Ann
  pressmark bag create files -o bag --exclude "*.tmp" --exclude-junk
  pressmark bag create files -o bag --fetch-base https://example.org/files/
  pressmark bag create --table items.csv -o bags --profile profile.json
  pressmark bag create --fetch files.txt --manifest SHA512SUMS -o bag
  pressmark bag create objects/*

SOURCE is checked before any file is moved, copied or written. Named pipes, sockets and devices, names that manifests
cannot list, and names that differ only in Unicode normalization are refused, and all of them are listed. Creating a bag
is atomic: after an interruption, either SOURCE is unchanged, or running the same command again completes the bag. Empty
directories are kept on disk, but manifests cannot list them.

--exclude: GLOB matches the names of files and directories below SOURCE, not paths, and is case-sensitive. A directory
is left out with everything in it. Each one is listed. Without -o, it would stay in the bag: SOURCE is refused, unless
--delete-excluded deletes it as part of the atomic change.

--profile: elements that the profile requires and that are missing are all named before anything is written. Elements
with a single allowed value, and BagIt-Profile-Identifier, are added. Without -a, the checksums are those that the
profile requires. A required tag file in a directory, such as DPN/registry.txt, is added there with --tag-file
registry.txt. The version of the bag is 1.0, or the latest one that the profile accepts.

--fetch-base: for files that a server will have. The URL of a file is URL, with a slash at its end, and the path of the
file below data/. All bytes of the path except slashes and A-Z a-z 0-9 - . _ ~ are percent-encoded (RFC 3986):
"data/50% of a.tif" becomes URL/50%25%20of%20a.tif.

--table: the first row of CSV and TSV has the names of the columns. A bag has the name of its source, or that in
--name-column; two rows with the same name are refused before anything is created. All columns except --column are
elements; an empty cell adds none, and repeated columns add repeated elements. Each bag is a line on stdout with TABs:
row, "created" or "exists", number of files, bytes, and path. A row that fails is a line on stderr with its number, and
the others are created. Running the same command again creates the bags that are missing. With --threads N, N bags are
created at the same time.

--fetch: for files that a server has and that are not here. Each line of FILE, which has the format of fetch.txt, is a
URL, a length in bytes or "-", and a path data/PATH. Each --manifest lists exactly these files: manifest-NAME.txt of a
bag, or a list of "pressmark hash" or sha512sum, whose names are data/PATH or PATH. Its algorithm is that of -a (one for
each list in order), of its name (manifest-md5.txt, SHA512SUMS) or of its lines, or else md5, sha1, sha256 or sha512 by
the length of its checksums. Payload-Oxum is omitted if a length is "-".

Exit status: 0 success, 1 a file could not be read or written, or one of several bags was not created, 2 usage error, or
the only SOURCE, or a list, was refused before anything was written, 130 interrupted.
"""


def check_delimiter(context: click.Context, _parameter: click.Parameter, delimiter: str | None) -> str | None:
    """Return the separator of a table, after checking that it can be one."""
    if delimiter is not None and not context.resilient_parsing:
        from pressmark.tabular.delimited import dialect_of  # few bags are in a table

        try:
            dialect_of("csv", delimiter)
        except ValueError as error:
            raise CallError(f"--{error}") from None
    return delimiter


@click.command("create", cls=Command, help=HELP, epilog=EPILOG, short_help="Create a bag from files.")
# One of several unreadable SOURCEs is a failure, not a usage error: the other bags are created.
@click.argument("sources", metavar="SOURCE...", nargs=-1, type=click.Path(readable=False, path_type=bytes))
@click.option(
    "--output",
    "-o",
    "destination",
    metavar="DESTINATION",
    type=PATH_OR_ADDRESS,
    help="Create the bag in the new directory or archive DESTINATION; SOURCE is not changed. Default: SOURCE becomes"
    " the bag.",
)
@ALGORITHM
@info_options("Add the element LABEL with the value VALUE to bag-info.txt; repeatable, also with the same")
@click.option(
    "--copy-mode",
    type=click.Choice(MODES),
    help="With -o: copy files (the default); share disk blocks, if the file system supports it (reflink); create hard"
    " links (hardlink); or reflink if possible and copy otherwise (auto).",
)
@click.option(
    "--tag-file",
    "tag_files",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=bytes),
    help="Add a copy of FILE as a tag file with the same name; repeatable.",
)
@click.option(
    "--profile",
    metavar="PROFILE",
    type=click.Path(readable=False),
    help="Create a bag that conforms to the BagIt Profile in the file PROFILE.",
)
@click.option(
    "--table",
    metavar="TABLE",
    type=click.Path(readable=False, dir_okay=False),
    help="With -o, instead of SOURCE: create a bag for each row of the file TABLE (CSV, TSV, JSON lines or Parquet) in"
    " the directory DESTINATION. A column has the paths of the sources; the others are elements of bag-info.txt.",
)
@click.option("--column", metavar="NAME", help="The column of TABLE with the paths. Default: path.")
@click.option(
    "--name-column",
    metavar="NAME",
    help="The column of TABLE with the names of the bags. Default: the names of the sources.",
)
@click.option("--archive", type=click.Choice(ARCHIVES), help="With --table: create archives with this ending.")
@timestamps_option("Times and permission bits in an archive:")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(TABLES),
    help="Format of TABLE. Default: by its ending.",
)
@click.option(
    "--delimiter", metavar="CHARACTER", callback=check_delimiter, help="Field separator of CSV. Default: a comma."
)
@json_option("bag, or row of TABLE")
@links_option(("refuse", "follow"), "Refuse symbolic links, or include their targets.")
@fetch_base_option(
    "With -o: do not copy the files, but list them in fetch.txt, with URLs below URL. The server is not contacted."
)
@click.option(
    "--fetch",
    metavar="FILE",
    type=click.Path(path_type=bytes, readable=False, dir_okay=False),
    help="With -o and --manifest, instead of SOURCE: list the files of FILE in fetch.txt. None is read or downloaded.",
)
@click.option(
    "--manifest",
    "manifests",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=bytes, readable=False, dir_okay=False),
    help="With --fetch: the checksums of the files; repeatable, one for each algorithm.",
)
@exclude_options
@ONE_FILE_SYSTEM
@click.option(
    "--delete-excluded",
    is_flag=True,
    help="Without -o: delete the files that --exclude and --exclude-junk leave out. Default: refuse them.",
)
@click.option(
    "--nested",
    is_flag=True,
    help="Create the bag even if SOURCE is a bag, which becomes the payload.",
)
@LEDGER
@THREADS
@READ
@PROGRESS
@bucket_options
def create_command(
    sources: tuple[bytes, ...],
    destination: bytes | None,
    algorithms: tuple[str, ...],
    settings: tuple[str, ...],
    info_file: str | None,
    copy_mode: str | None,
    tag_files: tuple[bytes, ...],
    profile: str | None,
    table: str | None,
    column: str | None,
    name_column: str | None,
    archive: str | None,
    timestamps: str | None,
    format_name: str | None,
    delimiter: str | None,
    as_json: bool,
    links: str,
    fetch_base: str | None,
    fetch: bytes | None,
    manifests: tuple[bytes, ...],
    exclude: tuple[str, ...],
    exclude_junk: bool,
    one_file_system: bool,
    delete_excluded: bool,
    nested: bool,
    ledger: str | None,
    threads: int | None,
    read: str,
    progress: bool | None,
) -> int:
    """Create a bag from files."""
    names = parse_algorithms(algorithms) or ("sha512",)
    chosen = None
    if profile is not None:
        # Few bags have a profile.
        from pressmark.bagit import Profile
        from pressmark.bagit.writing.profile_options import fit_profile, profile_algorithms

        chosen = Profile.load(profile)
        if not algorithms:
            names = profile_algorithms(chosen)
    elements = parse_elements(settings, info_file)
    globs = globs_to_exclude(exclude, exclude_junk)
    if destination is not None and is_address(destination):
        for option, value in (("--fetch", fetch), ("--fetch-base", fetch_base)):
            if value is not None:
                raise CallError(f"{option}: not supported in object storage; choose a local directory with -o")
    if fetch is not None:
        if destination is not None and archive_ending(destination) is not None:
            raise CallError("--fetch requires -o DIRECTORY; an archive would contain no file")
        refuse_missing((fetch, *manifests))
        _refuse_unreadable((fetch, *manifests))
    elif table is None and not sources:
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    if fetch_base is not None:
        fetch_base = parse_fetch_base(fetch_base)
        if destination is not None and archive_ending(destination) is not None:
            raise CallError("--fetch-base requires -o DIRECTORY")
    if destination is None:
        if ledger is not None and len(sources) > 1:
            raise CallError("--ledger: not supported with several bags; create each bag with its own ledger")
        refuse_inside(ledger, sources[0])
    elif copy_mode is not None and archive_ending(destination) is not None:
        raise CallError("--copy-mode: not supported with an archive; choose a directory with -o, or omit --copy-mode")
    if timestamps is not None and archive is None and archive_ending(destination or b"") is None:
        raise CallError("--timestamps requires an archive; a bag in a directory keeps the times of the files")
    if table is not None:
        assert destination is not None  # a table of exclusions requires it
        if archive_ending(destination) is not None:
            raise CallError("--table requires -o DIRECTORY; use --archive to create archives")
        refuse_missing((os.fsencode(table), *tag_files))
        from pressmark.cli.bag.create_table import create_rows  # few bags are in a table

        return create_rows(
            table,
            destination,
            progress,
            as_json,
            info=elements,
            column=column or "path",
            name_column=name_column,
            archive=archive,
            format=format_name,
            delimiter=delimiter,
            algorithms=names,
            copy_mode=copy_mode or "copy",
            links=links,
            tag_files=tag_files,
            profile=chosen,
            nested=nested,
            exclude=globs,
            one_file_system=one_file_system,
            date=bagging_date(),
            timestamps=timestamps,
            threads=threads,
            read=read,
        )
    advice = "; use -o DESTINATION to create a bag from files"
    refuse_missing(sources, directories=destination is None, advice=advice)
    refuse_missing(tag_files)
    if destination is not None or len(sources) == 1:
        _refuse_unreadable(sources)
    changed = destination or (sources[0] if sources else b"")
    with (
        open_ledger(ledger, names, sources) as journal,
        Output(
            progress,
            as_json=as_json,
            go_on=True,
            stages=STAGES,
            interrupted=lambda: change_interrupted(changed, journal),
        ) as output,
    ):
        rules: dict[str, Any] = {
            **{"algorithms": names, "info": elements, "links": links, "tag_files": tag_files},
            **{"threads": threads, "read": read, "date": bagging_date(), "exclude": globs},
        }
        how = {**rules, "profile": chosen}
        elsewhere = {**how, "nested": nested, "one_file_system": one_file_system}
        given: bytes | Sequence[bytes] = sources[0] if len(sources) == 1 else sources
        make: Callable[..., Bag]
        if fetch is not None:
            assert destination is not None  # a table of exclusions requires it
            make = functools.partial(
                create_from_lists,
                fetch,
                manifests,
                destination,
                elements,
                algorithms=names if algorithms else None,
                tag_files=tag_files,
                date=rules["date"],
            )
        elif destination is None:
            make = functools.partial(make_bag, nested=nested, delete_excluded=delete_excluded, ledger=journal, **how)
        elif fetch_base is not None:
            make = functools.partial(create_holey, given, destination, fetch_base, **elsewhere)
        elif archive_ending(destination) is not None:
            make = functools.partial(create_archive, given, destination, timestamps=timestamps, **elsewhere)
        else:
            make = functools.partial(create, given, destination, copy_mode=copy_mode or "copy", **elsewhere)
        several = destination is None and len(sources) > 1
        if several:
            from pressmark.bagit.writing.in_place import create_together  # not for a single bag elsewhere

            options = CreateOptions.from_arguments(**rules, delete_excluded=delete_excluded)
            if chosen is not None:
                options = fit_profile(options, chosen, None)
            failed = _create_each(sources, make, create_together(sources, options, nested), output)
        else:
            failed = 0
            if destination is None:
                make = functools.partial(make, sources[0])
            _create_one(sources, destination, make, output, journal, (fetch_base or fetch) is not None)
        created = len(sources) - failed if several else 1
        output.summary({"ok": not failed, "created": created, "failed": failed})
    if several:
        output.tell(f"{format_count(created, 'bag')} created; {failed:,} failed")
    return Failure.exit_code if failed else 0


def _refuse_unreadable(sources: Sequence[bytes]) -> None:
    """Refuse files and directories that this process may not read, before anything is done."""
    for path in sources:
        # Reading "." of a directory needs permission to enter it, too.
        if not is_readable(os.path.join(path, b".") if os.path.isdir(path) else path):
            raise CallError(f"{os.fsdecode(path)}: {os.strerror(errno.EACCES)}")


def _create_one(
    sources: Sequence[bytes],
    destination: bytes | None,
    make: Callable[..., Bag],
    output: Output,
    journal: Ledger | None,
    is_holey: bool,
) -> None:
    directory = sources[0] if len(sources) == 1 and os.path.isdir(sources[0]) else b""
    reporter = output.reporter
    listener = Listener(reporter, directory=directory)
    begin = time.monotonic()
    try:
        bag = make(progress=listener)
    except BagError:
        if not reporter.failed:
            raise
        # All problems were printed; the error contains only the first few.
        end = Failure if listener.wrote else CallError
        raise end(_refusal(destination or sources[0], reporter.failed)) from None
    size, files = read_oxum(bag.info.first("Payload-Oxum") or "") or (None, len(bag.fetch))
    _record(output, bag.path, files=files, bytes=size)
    # Files in a ledger, or on a server, were not read.
    output.tell(_report(bag, listener, None if journal or not sources else begin, is_holey, journal))


def _create_each(
    sources: Sequence[bytes], make: Callable[..., Bag], small: Generator[NewBag | None], output: Output
) -> int:
    """Create a bag of each directory in place, and return the number of failures.

    :param small: the bags of small directories, which are created together; :data:`None` for any other directory
    """
    failed = 0
    done = ProgressEvent()
    reporter = output.reporter
    with contextlib.closing(small):
        for number, source in enumerate(sources):
            try:
                new = next(small)
            except KeyboardInterrupt:
                advice = "run the same command again to create the others"
                raise Interrupted(f"interrupted; the bags that were started are complete; {advice}") from None
            problems: list[Problem] = [] if new is None else new.problems
            begin = time.monotonic()
            report: Callable[[str], object] = output.tell
            try:
                if new is None:
                    reporter.flush()
                    listener = Listener(reporter, problems.append)
                    bag = make(source, progress=listener)
                    result = _report(bag, listener, begin)
                    size, files = read_oxum(bag.info.first("Payload-Oxum") or "") or (None, 0)
                    _record(output, source, files=files, bytes=size)
                else:
                    done = done.plus(new.files, new.bytes)
                    if number % TOGETHER == 0:
                        reporter.on_event(done)
                    result = _summary(source, new.files, new.bytes, new.algorithms)
                    _record(output, source, files=new.files, bytes=new.bytes)
            except BagError as error:
                failed += 1
                _record(output, source, "failed", message=error.reason)
                errors = sum(problem.severity == ERROR for problem in problems)
                result, report = _refusal(source, errors) if errors else str(error), reporter.fail
            except KeyboardInterrupt:
                raise Interrupted(f"{os.fsdecode(source)}: {change_interrupted(source, None)}") from None
            for problem in problems:
                reporter.report(problem_text(problem, source))
            report(result)
    return failed


def _record(output: Output, path: str | bytes, status: str = "created", **more: object) -> None:
    """With ``--json``, write the result of a bag."""
    if output.as_json:
        output.record({"status": status, "path": os.fsdecode(path), **more})


def _refusal(path: bytes, count: int) -> str:
    return f"{os.fsdecode(path)}: no bag was created: {format_count(count, 'problem')}; nothing was changed"


def _report(
    bag: Bag, listener: Listener, begin: float | None, is_holey: bool = False, journal: Ledger | None = None
) -> str:
    oxum = read_oxum(bag.info.first("Payload-Oxum") or "")
    size, files = oxum or (None, len(bag.fetch))
    more = [] if begin is None else format_rate(size or 0, time.monotonic() - begin)
    if size is None:
        more.append("without Payload-Oxum, because lengths are unknown")
    if listener.mode in COPIES:
        more.append(COPIES[listener.mode])
    if is_holey:
        more.append("listed in fetch.txt")
    if listener.excluded:
        more.append(f"{listener.excluded:,} excluded")
    more += ledger_words(journal)
    return _summary(os.fsencode(bag.path), files, size, bag.algorithms, more)


def _summary(path: bytes, files: int, size: int | None, algorithms: Iterable[str], more: Iterable[str] = ()) -> str:
    pieces = [format_count(files, "file"), *([] if size is None else [format_bytes(size)]), *more]
    return f"{os.fsdecode(path)}: bag created: {', '.join(pieces)}; {', '.join(algorithms)}"
