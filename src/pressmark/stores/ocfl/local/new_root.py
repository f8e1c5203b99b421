"""A new storage root on a local disk."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pressmark.errors import StoreError, quoted
from pressmark.fs.atomic import replace_file
from pressmark.fs.durable import flush_trees
from pressmark.fs.steps import write_new
from pressmark.fs.trees import scan
from pressmark.layouts import list_layouts
from pressmark.stores.ocfl.declarations import CONFIG, EXTENSIONS, LAYOUT, NEW, UNFINISHED

__all__ = ["create_root"]


def create_root(root: bytes, files: Mapping[bytes, bytes | None], name: bytes, data: bytes) -> None:
    """Create a storage root; see :meth:`pressmark.stores.ocfl.storage.Storage.create`."""
    try:
        os.makedirs(root)
    except FileExistsError:
        _clear_unfinished(root)
    part = os.path.join(root, NEW)
    write_new(root, {path: content for path, content in files.items() if path != LAYOUT})
    replace_file(os.path.join(root, LAYOUT), files[LAYOUT] or b"", part=part)
    flush_trees(root)
    replace_file(os.path.join(root, name), data, part=part)


def _clear_unfinished(root: bytes) -> None:
    """Remove the files of an interrupted creation, which has no declaration yet.

    :raises StoreError: the directory contains something else
    """
    try:
        entries = scan(root, follow=False)
    except NotADirectoryError:
        raise StoreError(root, "not a directory; specify a directory that is empty or does not exist") from None
    folders = []
    if any(entry.name == EXTENSIONS and entry.kind == "directory" for entry in entries):
        folders = [os.path.join(EXTENSIONS, entry.name) for entry in scan(os.path.join(root, EXTENSIONS), follow=False)]
    known = {os.fsencode(one.name) for one in list_layouts()} if folders else set()
    configs = [os.path.join(folder, CONFIG) for folder in folders if os.path.basename(folder) in known]
    foreign = [entry.name for entry in entries if entry.name not in UNFINISHED]
    foreign += [folder for folder in folders if os.path.join(folder, CONFIG) not in configs]
    if foreign:
        raise StoreError(root, f"the directory contains {quoted(foreign[0])}; specify an empty or new directory")
    for name in (*configs, LAYOUT, NEW):
        if os.path.lexists(os.path.join(root, name)):
            os.unlink(os.path.join(root, name))
    for name in (*folders, EXTENSIONS):
        if os.path.isdir(os.path.join(root, name)):
            os.rmdir(os.path.join(root, name))
