"""Create a bag as an archive, in one read of the payload.

bagit.txt is the first member. The digests are computed while the payload is written, so the manifests follow it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from pressmark.bagit import bagit_txt
from pressmark.bagit.archive.new_archive import MEMBER, NewArchive, modification_time, new_archive
from pressmark.bagit.archive.packed_files import PackTask, pack_files
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bagit_txt import Declaration, declaration_bytes
from pressmark.bagit.changes import Listener
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import Sources
from pressmark.bagit.writing.tag_writer import Contents, TagWriter
from pressmark.bagit.writing.write import read_payload
from pressmark.fixity.hasher import OpenOptions
from pressmark.threads import resolve_threads

__all__ = ["create_archive"]


def create_archive(
    paths: Sequence[bytes],
    several: bool,
    destination: bytes,
    options: CreateOptions,
    nested: bool,
    on_event: Listener,
) -> BagInfo:
    """Create a bag in an archive from the files at ``paths``, and return the content of bag-info.txt.

    :param several: keep the name of each of ``paths`` in the payload
    :raises BagError: the archive cannot be created
    """
    count = resolve_threads(options.threads)
    dates = [value for label, value in options.info if label.lower() == "bagging-date"]
    time = modification_time([*dates, options.date.isoformat()])
    with ExitStack() as stack:
        payload = stack.enter_context(Sources(paths, several, nested, options, on_event))
        payload.refuse_inside(destination)
        archive = stack.enter_context(new_archive(destination, time, count, on_event))
        payload.examine(destination)
        archive.expect(payload.preflight.bytes + MEMBER * payload.preflight.files)

        os.mkdir(archive.tags)
        tags = TagWriter(options, archive.tags)
        how = OpenOptions(options.links == "follow", real=options.links != "follow")
        outcomes = pack_files(_members(payload, archive, options), archive, how, on_event)
        contents = read_payload(payload, "pack", outcomes, tags, on_event)
        payload.check_unchanged()
        _add(archive, contents)
        return tags.info()


def _members(payload: Sources, archive: NewArchive, options: CreateOptions) -> Iterator[tuple[bytes, PackTask]]:
    """Yield path in the payload and task of each file; add bagit.txt and directories."""
    declaration = declaration_bytes(Declaration(options.version))
    archive.directory(b"")
    archive.file(bagit_txt.NAME, len(declaration), [declaration])
    archive.directory(PAYLOAD)
    for path, kind, source in payload.entries(bytes):
        if kind == "directory":
            archive.directory(BELOW_PAYLOAD + path)
        else:
            yield path, PackTask(source, BELOW_PAYLOAD + path, options.algorithms)


def _add(archive: NewArchive, contents: Contents) -> None:
    """Add the tag files, except bagit.txt."""
    added = set()
    for path in sorted(contents.keys() - {bagit_txt.NAME}, key=lambda path: path.split(b"/")):
        parts = path.split(b"/")
        for above in (b"/".join(parts[:depth]) for depth in range(1, len(parts))):
            if above not in added:
                archive.directory(above)
                added.add(above)
        data = contents[path]
        if data is not None:
            archive.file(path, len(data), [data])
            continue
        task = PackTask(os.path.join(archive.tags, path), path, ())
        for _path, outcome in pack_files([(path, task)], archive, OpenOptions(), lambda _event: None):
            if outcome.kind is not None:
                raise OSError(0, outcome.message, task.source)
