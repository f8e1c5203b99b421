"""How files will come, before the first one has."""

from __future__ import annotations

import os
import tempfile

from pressmark.errors import BagError
from pressmark.fixity.copying import CopyTask, copy_files
from pressmark.migrate.options import Options, existing

__all__ = ["mode_of"]

_BLOCK = 4096  # bytes that are cloned to try it


def mode_of(options: Options, folder: str) -> str:
    """Return how files will come, as far as can be said before the first one."""
    if options.renames():
        return "rename"
    if options.copy_mode in ("auto", "reflink") and options.same_file_system():
        can = _can_clone(options, folder)
        return "reflink" if can or (can is None and options.copy_mode == "reflink") else "copy"
    return "copy" if options.copy_mode == "auto" else options.copy_mode


def _can_clone(options: Options, folder: str) -> bool | None:
    """Return whether the file system of the destination shares blocks between files.

    That is tried in the work folder; :data:`None` where it is on another one.
    """
    if os.stat(folder).st_dev != os.stat(existing(options.destination)).st_dev:
        return None
    with tempfile.TemporaryDirectory(prefix="identifiers-", suffix=".tmp", dir=folder) as inside:
        one, other = (os.path.join(os.fsencode(inside), name) for name in (b"one", b"other"))
        with open(one, "wb") as file:
            file.write(bytes(_BLOCK))
        try:
            return all(found.ok for found in copy_files([CopyTask(one, other)], ("xxh3-64",), mode="reflink"))
        except (BagError, OSError):
            return False
