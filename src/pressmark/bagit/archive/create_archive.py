"""Create a bag as an archive, in one read of the payload.

bagit.txt is the first member. The digests are computed while the payload is written, so the manifests follow it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from pressmark.bagit import bagit_txt
from pressmark.bagit.archive.digests import BLOCK
from pressmark.bagit.archive.new_archive import MEMBER, NewArchive, new_archive
from pressmark.bagit.archive.packed_files import PackTask, pack_files
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bagit_txt import Declaration, declaration_bytes
from pressmark.bagit.changes import Listener
from pressmark.bagit.changes.destination import refuse_in_bag
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import Sources
from pressmark.bagit.writing.tag_writer import Contents, TagWriter
from pressmark.bagit.writing.write import read_payload
from pressmark.buckets.address import is_address
from pressmark.fixity.hasher import OpenOptions
from pressmark.threads import resolve_threads

__all__ = ["create_archive"]


def create_archive(
    paths: Sequence[bytes],
    several: bool,
    destination: bytes,
    options: CreateOptions,
    nested: bool,
    timestamps: str | None,
    on_event: Listener,
) -> BagInfo:
    """Create a bag in an archive from the files at ``paths``, and return the content of bag-info.txt.

    :param several: keep the name of each of ``paths`` in the payload
    :param timestamps: see :func:`~pressmark.bagit.archive.pack.pack`
    :raises BagError: the archive cannot be created
    """
    count = resolve_threads(options.threads)
    dates = [value for label, value in options.info if label.lower() == "bagging-date"]
    dates.append(options.date.isoformat())
    with ExitStack() as stack:
        payload = stack.enter_context(Sources(paths, several, nested, options, on_event))
        payload.refuse_inside(destination)
        if not is_address(destination):
            refuse_in_bag(os.path.dirname(destination))
        archive = stack.enter_context(new_archive(destination, dates, timestamps, count, on_event))
        payload.examine(destination)
        archive.expect(payload.preflight.bytes + MEMBER * payload.preflight.files)

        os.mkdir(archive.tags)
        tags = TagWriter(options, archive.tags)
        how = OpenOptions(options.links == "follow", real=options.links != "follow")
        status = None if several else os.stat(paths[0])
        folder = status if status is not None and stat.S_ISDIR(status.st_mode) else None
        outcomes = pack_files(_members(payload, folder, archive, options), archive, how, on_event)
        contents = read_payload(payload, "pack", outcomes, tags, on_event)
        payload.check_unchanged()
        _add(archive, contents, {path for path, _where in options.tag_files})
        return tags.info()


def _members(
    payload: Sources, status: os.stat_result | None, archive: NewArchive, options: CreateOptions
) -> Iterator[tuple[bytes, PackTask]]:
    """Yield path in the payload and task of each file; add bagit.txt and directories.

    :param status: of the directory whose content is the payload
    """
    declaration = declaration_bytes(Declaration(options.version))
    archive.directory(b"")
    archive.file(bagit_txt.NAME, len(declaration), [declaration])
    archive.directory(PAYLOAD, status)
    for path, kind, source in payload.entries(bytes):
        if kind == "directory":
            archive.directory(BELOW_PAYLOAD + path, os.stat(source))
        else:
            yield path, PackTask(source, BELOW_PAYLOAD + path, options.algorithms)


def _add(archive: NewArchive, contents: Contents, copied: Container[bytes]) -> None:
    """Add the tag files, except bagit.txt.

    :param copied: those that keep their times; new ones have the same time as any others
    """
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
        with open(os.path.join(archive.tags, path), "rb") as file:
            status = os.fstat(file.fileno())
            blocks = iter(partial(file.read, BLOCK), b"")
            archive.file(path, status.st_size, blocks, status if path in copied else None)
