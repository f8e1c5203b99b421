"""The repair of section 2: all names of one object are moved to one directory. The names are moved one by one to a
directory with a reserved name, which is finally renamed. After an interruption, each name is in one of the two
directories, and a second call continues.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from pressmark.fs.durable import flush_directory, walk
from pressmark.fs.moves import rename_new
from pressmark.fs.trees import DirectoryEntry
from pressmark.stores.pairtree.walk import OBJECT, REPAIRING

__all__ = ["encapsulate", "unmovable"]


def encapsulate(directory: bytes, members: Sequence[DirectoryEntry]) -> None:
    """Move ``members`` of ``directory`` to ``obj`` there; a member called ``obj`` is moved as well.

    The caller holds the lock.

    :raises OSError: a name cannot be moved; a second call continues
    """
    target = os.path.join(directory, REPAIRING)
    if os.path.islink(target) or not os.path.isdir(target):
        os.mkdir(target)
    # All names of the object, including those moved by an interrupted call.
    together = {entry.name for entry in members} | set(os.listdir(target))
    for entry in members:
        old, new = os.path.join(directory, entry.name), os.path.join(target, entry.name)
        if entry.is_link:
            # A relative link must be adjusted to one level below.
            link = _from_below(os.readlink(old), together)
            if not (os.path.islink(new) and os.readlink(new) == link):
                os.symlink(link, new)
            os.unlink(old)
        else:
            rename_new(old, new)
    flush_directory(target)
    rename_new(target, os.path.join(directory, OBJECT))
    flush_directory(directory)


def _from_below(link: bytes, together: Collection[bytes]) -> bytes:
    """Return the text of a link moved one level down together with the names ``together``."""
    if os.path.isabs(link) or os.path.normpath(link).split(b"/")[0] in together:
        return link
    return b"../" + link


def unmovable(directory: bytes, members: Sequence[DirectoryEntry]) -> list[bytes]:
    """Return the symbolic links deep in an object, relative to ``directory``, whose targets would change."""
    together = {entry.name for entry in members}
    moved = os.path.join(directory, REPAIRING)
    if os.path.isdir(moved):
        together.update(os.listdir(moved))
    broken = []
    for entry in members:
        if entry.is_link or entry.kind != "directory":
            continue
        for above, directories, files in walk(os.path.join(directory, entry.name)):
            for name in directories + files:
                path = os.path.join(above, name)
                if not os.path.islink(path):
                    continue
                link = os.readlink(path)
                leads_to = os.path.normpath(os.path.join(os.path.relpath(above, directory), link))
                if not os.path.isabs(link) and leads_to.split(b"/")[0] not in together:
                    broken.append(os.path.relpath(path, directory))
    return sorted(broken)
