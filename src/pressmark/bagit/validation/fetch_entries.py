"""The entries of fetch.txt (section 2.2.3), checked against the payload manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pressmark.bagit.bag_directory import BaseDirectory, open_tag_file
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.fetch.fetch_txt import FetchEntry, read_fetch
from pressmark.bagit.manifest import PATH_LIMIT
from pressmark.bagit.manifest_index import Listing, path_index
from pressmark.bagit.paths import FETCH_TXT
from pressmark.bagit.problems import problem
from pressmark.reports import WARNING, Problem

__all__ = ["FetchEntries"]


class FetchEntries:
    """The files that fetch.txt lists, and their lengths."""

    def __init__(self) -> None:
        # For each path the length plus 1 instead of an offset; 0 if fetch.txt leaves the length open.
        self._lengths = path_index()

    def __contains__(self, path: bytes) -> bool:
        return bool(self._lengths.find(path))

    def length(self, path: bytes) -> int | None:
        """Return the length of a file in bytes; :data:`None` if fetch.txt does not state it."""
        found = self._lengths.find(path)
        number: int = self._lengths.line(found[-1]) if found else 0
        return number - 1 if number else None

    def read(
        self,
        base: BaseDirectory,
        bag: BagTags,
        payload: Listing,
        lacking: Callable[[Mapping[str, str]], str | None],
        lenient: bool,
    ) -> Iterator[Problem]:
        """Read fetch.txt, and yield its problems.

        :param payload: the files that the payload manifests list
        :param lacking: returns which manifests lack a file that is listed with these checksums; :data:`None` if it is
            listed in enough of them
        :param lenient: report blank and malformed lines as warnings
        """
        for found in _lines(base, bag, lenient):
            if isinstance(found, Problem):
                yield found
                continue
            if found.path in self:
                # The specification does not forbid this, but does not specify which URL and length apply.
                message = f"fetch.txt, line {found.line}: duplicate entry"
                path = found.path[:PATH_LIMIT]
                yield problem("path-duplicate", path, message, severity=WARNING, section="2.2.3")
            self._lengths.add(found.path, 0 if found.length is None else found.length + 1, False)
            listed = payload.find(found.path)
            if lacking(listed) is not None:
                for again in payload.find_rest(found.path, listed, mark=False):
                    listed.update(again.digests)
            if (reason := lacking(listed)) is not None:
                message = f"fetch.txt, line {found.line}: {reason}"
                yield problem("fetch-unlisted", found.path[:PATH_LIMIT], message)


def _lines(base: BaseDirectory, bag: BagTags, lenient: bool) -> Iterator[FetchEntry | Problem]:
    problems: list[Problem] = []
    file = open_tag_file(base, FETCH_TXT, problems)
    try:
        if file is not None:
            with file:
                yield from read_fetch(file, bag.encoding, bag.version, lenient=lenient)
    except OSError as error:
        problems.append(problem("file-unreadable", FETCH_TXT, error.strerror or str(error)))
    yield from problems
