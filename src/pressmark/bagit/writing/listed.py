"""Create a bag whose payload is listed in fetch.txt, from lists of URLs and of checksums: no payload file is read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import BinaryIO

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Listener, refusing
from pressmark.bagit.changes.destination import checked_destination
from pressmark.bagit.fetch.fetch_txt import FetchEntry, fetch_line, read_fetch
from pressmark.bagit.manifest import read_manifest as read_bag_manifest
from pressmark.bagit.manifest_format import official_name, split_manifest_name
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD, canonical, normal_key
from pressmark.bagit.problems import problem
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import Preflight
from pressmark.bagit.writing.tag_writer import TagWriter
from pressmark.bagit.writing.write import add_tag_files, publish_new
from pressmark.errors import BagError, ManifestError, quoted_path
from pressmark.fixity.algorithms import algorithm_names
from pressmark.fixity.manifest_reader import read_manifest
from pressmark.option_names import option
from pressmark.paths.folding import folded
from pressmark.reports import ERROR, Problem, ProgressEvent

__all__ = ["create_from_lists"]

# Other algorithms have digests of the same lengths; these are usual in bags.
_USUAL = ("md5", "sha1", "sha256", "sha512")

# Digests by official name of the algorithm, by path.
_Checksums = dict[bytes, dict[str, str]]


def create_from_lists(
    fetch: bytes, manifests: Sequence[bytes], destination: bytes, options: CreateOptions, on_event: Listener
) -> None:
    """Create a bag at ``destination`` whose payload files are all listed in fetch.txt.

    :param fetch: a file in the format of fetch.txt
    :param manifests: lists of checksums, each of exactly the files in ``fetch``
    :param options: its algorithms are those of ``manifests``; none to detect them
    :raises AlgorithmError: an algorithm is not available
    :raises BagError: the bag cannot be created
    """

    def write(new: bytes) -> BagInfo:
        on_event(ProgressEvent("examine"))
        preflight = Preflight(options, on_event)
        entries = _read_entries(fetch, preflight)
        preflight.raise_if_refused(fetch)
        checksums = _read_checksums(manifests, options.algorithms, entries, preflight)
        preflight.raise_if_refused(fetch)
        return _write(new, entries, checksums, options, on_event)

    source, *lists = (os.fsdecode(os.path.abspath(path)) for path in (fetch, *manifests))
    publish_new(checked_destination(destination), options.request(fetch=source, manifests=lists), write, on_event)


def _write(
    new: bytes,
    entries: Sequence[FetchEntry],
    checksums: _Checksums,
    options: CreateOptions,
    on_event: Listener,
) -> BagInfo:
    """Write the whole bag at the path ``new``, and return the content of bag-info.txt."""
    os.makedirs(os.path.join(new, PAYLOAD))
    lengths = [entry.length for entry in entries]
    nbytes = None if None in lengths else sum(filter(None, lengths))
    on_event(ProgressEvent("tag", of_items=len(entries), of_bytes=nbytes))
    options = options._replace(algorithms=algorithm_names(checksums[entries[0].path]))
    with closing(TagWriter(options, new)) as tags:
        for entry in entries:
            tags.add_to_fetch(fetch_line(entry))
            tags.add(entry.path.removeprefix(BELOW_PAYLOAD), checksums[entry.path])
        contents = tags.finish(nbytes, len(entries))
    add_tag_files(new, contents)
    return tags.info()


# --- the list of files --------------------------------------------------------------------------------------------


def _read_entries(fetch: bytes, preflight: Preflight) -> list[FetchEntry]:
    """Return the entries of a fetch file; refuse those that no bag can contain.

    :raises BagError: it cannot be read, or is empty
    """
    entries: list[FetchEntry] = []
    with refusing(fetch), open(fetch, "rb") as file:
        for found in read_fetch(file, name=fetch):
            if isinstance(found, Problem):
                _take(found, preflight)
            else:
                entries.append(found)
    if not entries and not preflight.refused:
        raise BagError(fetch, "lists no file; expected lines with a URL, a length or '-', and a path data/...")
    _check_names(entries, preflight)
    return entries


def _take(found: Problem, preflight: Preflight) -> None:
    (preflight.refuse if found.severity == ERROR else preflight.warn)(found)


def _check_names(entries: Sequence[FetchEntry], preflight: Preflight) -> None:
    """Refuse paths that are listed twice, or that cannot exist together; warn of paths that differ only in case."""
    first: dict[bytes, FetchEntry] = {}
    caseless: set[bytes] = set()
    for entry in entries:
        before = first.setdefault(normal_key(entry.path), entry)
        caseless_key = folded(entry.path)
        if before is not entry:
            kind = "path-duplicate" if before.path == entry.path else "name-clash"
            message = f"lines {before.line} and {entry.line} list the same path; keep one of them"
            preflight.refuse(problem(kind, entry.path, message))
        elif caseless_key in caseless:
            message = "another name differs only in case; some file systems keep only one of them"
            preflight.warn(problem("name-clash", entry.path, message))
        caseless.add(caseless_key)
    for entry in entries:
        above = normal_key(entry.path)
        while above := above.rpartition(b"/")[0]:
            if above in first:
                message = f"line {entry.line} lists a file below this file; correct one of the paths"
                preflight.refuse(problem("name-clash", first[above].path, message))


# --- the lists of checksums ---------------------------------------------------------------------------------------


def _read_checksums(
    manifests: Sequence[bytes], algorithms: Sequence[str], entries: Sequence[FetchEntry], preflight: Preflight
) -> _Checksums:
    """Return the checksums of all files; refuse files that are not in every list, and in ``entries``.

    :param algorithms: as given; none to detect them
    :raises BagError: a list cannot be read, or its algorithm is unknown or repeated
    """
    checksums: _Checksums = {entry.path: {} for entry in entries}
    sources: dict[str, bytes] = {}  # the list of each algorithm
    for number, path in enumerate(manifests):
        # As many algorithms as lists are in the same order.
        wanted = algorithms[number : number + 1] if len(algorithms) == len(manifests) else algorithms
        listed = _read_list(path, wanted, preflight)
        names = list(dict.fromkeys(name for digests in listed.values() for name in digests))
        if not names:
            raise BagError(path, f"contains no checksum{' of ' if wanted else ''}{', '.join(wanted)}")
        for name in names:
            if name in sources:
                raise BagError(path, f"contains {name} checksums, as does {quoted_path(sources[name])}; omit one")
            sources[name] = path
        _compare(path, listed, names, checksums, preflight)
    if lacking := [name for name in algorithms if name not in sources]:
        raise BagError(manifests[0], f"no checksums of {', '.join(lacking)}; add a list of them, or omit the algorithm")
    return checksums


def _compare(
    path: bytes, listed: _Checksums, names: Sequence[str], checksums: _Checksums, preflight: Preflight
) -> None:
    """Add the checksums of a list to those of the files; refuse files that are only in one of them."""
    shown = os.fsdecode(path)
    # In lists, names may lack data/. As a list must have all files, only one reading can fit all names.
    readings = (b"",) if split_manifest_name(os.path.basename(path)) else (b"", BELOW_PAYLOAD)
    above = max(readings, key=lambda above: sum(above + name in checksums for name in listed))
    for file, digests in checksums.items():
        found = listed.get(file if not above else file.removeprefix(BELOW_PAYLOAD), {})
        digests.update(found)
        if lacking := [name for name in names if name not in found]:
            preflight.refuse(problem("fetch-unlisted", file, f"no {', '.join(lacking)} checksum in {shown}; add it"))
    for name in listed:
        if above + name not in checksums:
            message = f"listed in {shown}, but not among the files to fetch; correct the lists"
            preflight.refuse(problem("file-missing", name, message))


def _read_list(path: bytes, wanted: Sequence[str], preflight: Preflight) -> _Checksums:
    """Return the checksums of a list, by names as they are in it.

    :param wanted: its algorithms, as given; none to detect them
    :raises BagError: it cannot be read, or its algorithm is unknown
    """
    listed: _Checksums = {}
    with refusing(path), open(path, "rb") as file:
        for name, digests in _entries_of(file, path, wanted, preflight):
            before = listed.setdefault(name, {})
            if before.keys() & digests.keys():
                message = f"listed twice in {quoted_path(path)}; keep one of the lines"
                preflight.refuse(problem("path-duplicate", name, message))
            before.update(digests)
    return listed


def _name_it() -> str:
    return f"specify its algorithm ({option('algorithms')})"


def _entries_of(
    file: BinaryIO, path: bytes, wanted: Sequence[str], preflight: Preflight
) -> Iterator[tuple[bytes, dict[str, str]]]:
    name = os.path.basename(path)
    of_bag = split_manifest_name(name)
    if of_bag is not None:
        algorithm = wanted[0] if len(wanted) == 1 else official_name(of_bag[1])
        if algorithm is None:
            raise BagError(path, f"unknown algorithm in its name; {_name_it()}")
        for found in read_bag_manifest(file, path, algorithm):
            if isinstance(found, Problem):
                _take(found, preflight)
            else:
                yield found.path, {algorithm: found.digest}
        return
    try:
        entries = read_manifest(file, os.fsdecode(path), wanted or None)
        for entry in entries:
            if entries.is_guessed and not set(_USUAL).issuperset(entry.digests):
                digits = len(next(iter(entry.digests.values())))
                raise BagError(path, f"cannot tell the algorithm of {digits} hex digits; {_name_it()}")
            yield canonical(os.fsencode(entry.path))[0], entry.digests
    except ManifestError as error:
        raise BagError(path, f"line {error.line}: {error.reason}") from None
