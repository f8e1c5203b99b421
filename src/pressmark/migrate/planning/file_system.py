"""The file system of the destination: whether it clones files, and whether it has enough space."""

from __future__ import annotations

import os
import tempfile

from pressmark.errors import BagError
from pressmark.fixity.copying import copy_files
from pressmark.migrate.options import Options, nearest_existing
from pressmark.migrate.workdir import SCRATCH

__all__ = ["lack_of_space", "mode_of"]

_BLOCK = 4096  # bytes of the test file


def mode_of(options: Options, folder: str) -> str:
    """Return the copy mode of the plan: the expected one, before the first file is copied."""
    if options.renames():
        return "rename"
    if options.copy_mode in ("auto", "reflink") and options.same_file_system():
        can = _can_clone(options, folder)
        return "reflink" if can or (can is None and options.copy_mode == "reflink") else "copy"
    return "copy" if options.copy_mode == "auto" else options.copy_mode


def _can_clone(options: Options, folder: str) -> bool | None:
    """Return whether the file system of the destination clones files.

    The work folder is used for the test; :data:`None` if it is on another file system.
    """
    if os.stat(folder).st_dev != os.stat(nearest_existing(options.destination)).st_dev:
        return None
    with tempfile.TemporaryDirectory(SCRATCH[1], SCRATCH[0], folder) as inside:
        one, other = (os.path.join(os.fsencode(inside), name) for name in (b"one", b"other"))
        with open(one, "wb") as file:
            file.write(bytes(_BLOCK))
        try:
            return all(found.ok for _key, found in copy_files([(None, one, other)], (), mode="reflink"))
        except (BagError, OSError):
            return False


def lack_of_space(destination: str, blocks: int, files: int, directories: int) -> list[tuple[str, str]]:
    """Return whether the destination's file system lacks space or inodes: kind and message of each conflict.

    :param blocks: bytes of the new files in blocks of 4 KiB, without directories
    :param files: number of new files
    :param directories: minimum number of new directories
    """
    if not hasattr(os, "statvfs"):
        return []
    place = nearest_existing(destination)
    status = os.statvfs(place)
    found = []
    free = status.f_bavail * status.f_frsize
    if blocks > free:
        what = f"at least {blocks} bytes needed, {free} free; free space, or use another file system"
        found.append(("space", f"{place}: {what}"))
    # Some file systems allocate inodes on demand, and report none.
    if status.f_files and files + directories > status.f_favail:
        what = f"at least {files + directories} inodes needed, {status.f_favail} free; use another file system"
        found.append(("inodes", f"{place}: {what}"))
    return found
