"""Create a bag whose payload files are listed in fetch.txt: the sources are read, and not copied."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from pressmark.bagit.changes import Listener
from pressmark.bagit.creation.options import CreateOptions
from pressmark.bagit.creation.preflight import Preflight
from pressmark.bagit.creation.sources import Source, source_entries
from pressmark.bagit.fetch.fetch_txt import FetchEntry, fetch_line, url_below
from pressmark.bagit.paths import BELOW_PAYLOAD
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_tasks

__all__ = ["read_for_fetch"]


def read_for_fetch(
    sources: Sequence[Source],
    options: CreateOptions,
    base: str,
    preflight: Preflight,
    write: Callable[[bytes], object],
    on_event: Listener,
) -> Generator[tuple[bytes, Outcome]]:
    """Hash all files, and write the lines of fetch.txt; yield path in the payload and outcome of each file.

    :param base: a result of :func:`~pressmark.bagit.fetch.fetch_txt.base_url`
    :param write: called with each line
    """
    tasks = ((path, source) for path, kind, source in source_entries(sources, preflight) if kind == "file")
    for path, outcome in hash_tasks(
        tasks, options.algorithms, options.threads, on_event, links=options.links, read=options.read
    ):
        if outcome.ok:
            inside = BELOW_PAYLOAD + path
            write(fetch_line(FetchEntry(url_below(base, inside), outcome.size, inside)))
        yield path, outcome
