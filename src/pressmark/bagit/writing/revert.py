"""Turn a bag back into the directory that it was created from: the payload takes its place, the tag files are removed.

The tag files contain the only checksums of the payload, so it is verified first. The change is a list of renames with a
journal: see :mod:`pressmark.fs.changes`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.bag_tags import BagTags, is_described, open_listing
from pressmark.bagit.changes import RUN_AGAIN, Listener, refusing, with_stages
from pressmark.bagit.changes.bag_changes import BagChange, is_decided, recover
from pressmark.bagit.manifest_index import ListedFile
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.problems import BagReport
from pressmark.bagit.validation.validate import validate
from pressmark.bagit.walk import BagEntry, walk
from pressmark.bagit.writing.options import Path
from pressmark.bagit.writing.payload import moves_along, why_unmovable
from pressmark.errors import BagError, BagInvalidError, quoted_path
from pressmark.fixity.manifests import write_manifest
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.names import is_inside
from pressmark.progress_event import EventListener, Progress
from pressmark.reports import Problem, ProgressEvent

__all__ = ["LEVELS", "revert"]

LEVELS = ("full", "complete")
# Tag files that an error names.
NAMED = 10
CHANGED = f"changed while it was being verified; {RUN_AGAIN}"
REQUEST = {"command": "revert"}


def revert(
    bag: BagTags | Path,
    *,
    level: str = "full",
    sums: Path | None = None,
    delete_tag_files: bool = False,
    dry_run: bool = False,
    threads: int | None = None,
    read: str = "parallel",
    progress: Progress | None = None,
) -> list[str]:
    """Turn a bag in a directory back into a directory of its payload files; return the tag files that were removed.

    The bag is validated first, because the tag files contain the only checksums. The change is atomic: after an
    interruption, either the bag is unchanged, or the same call completes the change. No content is copied.

    :param level: ``"full"``, or ``"complete"``, which does not verify checksums
    :param sums: write the checksums of the payload to this file first, for :func:`pressmark.fixity.verify`; the names
        begin with the path of the bag, and the format is ``coreutils``, or ``bsd`` for several algorithms
    :param delete_tag_files: also remove tag files that the BagIt specification does not describe, which are refused
        otherwise
    :param dry_run: check everything, and change nothing
    :param threads: number of threads; :data:`None` for one per core
    :param read: ``parallel``, or ``sequential`` to read one file at a time, for hard disks
    :param progress: its stages are those of :mod:`pressmark.bagit.changes`
    :return: the paths of the tag files; none if this call has only completed an interrupted one
    :raises BagInvalidError: the bag is not valid at this level; nothing was changed
    :raises BagError: the bag cannot be changed; nothing was changed
    :raises ValueError: another argument is invalid
    """
    if level not in LEVELS:
        raise ValueError(f"level={level!r}: expected {', '.join(LEVELS)}")
    path = os.fsencode(bag.path if isinstance(bag, BagTags) else bag)
    listed = None if sums is None else os.fsencode(sums)
    if listed is not None and is_inside(listed, path):
        raise BagError(listed, "file is inside the bag; choose a file outside of it")
    on_event = with_stages(progress)
    with BagDirectory(path) as base:
        where = base.real_path
        if dry_run and is_decided(where):
            raise BagError(path, "a change of this bag was interrupted; run that command again first")
        recovered = None if dry_run else recover(where)
        if recovered is not None:
            on_event(ProgressEvent("recover"))
            if recovered == REQUEST:
                return []
        opened = BagTags.open(path)
        tag_files, names = _examine(base, delete_tag_files)
        _verify(path, level, threads, read, on_event)
        if not dry_run:
            if listed is not None:
                with refusing(listed, "nothing was changed"):
                    _write_sums(listed, base, opened)
            _change(path, where, names, on_event)
    return tag_files


def _examine(base: BagDirectory, delete_tag_files: bool) -> tuple[list[str], list[list[bytes]]]:
    """Return the paths of the tag files, and the names in the bag and in ``data/``.

    :raises BagError: a tag file that BagIt does not describe would be lost, or the payload cannot be moved
    """
    path = os.path.join(base.path, PAYLOAD)
    with refusing(path):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise BagError(path, "not a directory; a payload elsewhere cannot be moved")
    tag_files: list[bytes] = []
    with BagDirectory(path) as payload:
        device = payload.status(b"").st_dev
        for found in walk(base):
            if found.path.startswith(BELOW_PAYLOAD):
                inner = found._replace(path=found.path.removeprefix(BELOW_PAYLOAD))
                if reason := _why_bound(payload, inner, device):
                    raise BagError(os.path.join(base.path, found.path), f"{reason}; nothing was changed")
            elif found.kind != "directory":
                tag_files.append(found.path)
    others = [one for one in tag_files if not is_described(one) and one != STAGING]
    if others and not delete_tag_files:
        more = f" and {len(others) - NAMED:,} more" if len(others) > NAMED else ""
        what = f"{', '.join(map(quoted_path, others[:NAMED]))}{more}: not tag files of BagIt, and would be lost"
        raise BagError(base.path, f"{what}; move them elsewhere")
    return [os.fsdecode(one) for one in tag_files], _names(base.path)


def _why_bound(payload: BagDirectory, found: BagEntry, device: int) -> str | None:
    """Return why a file or directory cannot take another place with the payload; :data:`None` if it can."""
    if found.path == STAGING:
        return "name of a directory of Pressmark; rename it"
    is_link = found.fault is not None and found.fault.kind.startswith("link-")
    if is_link and not (found.real is not None and moves_along(payload, found.path)):
        return "symbolic link that would lead elsewhere; replace it with its target"
    return None if is_link else why_unmovable(payload, found, device)


def _names(path: bytes) -> list[list[bytes]]:
    """Return the names in a bag, and those in ``data/``."""
    return [
        sorted(name for name in os.listdir(folder) if name != STAGING or folder != path)
        for folder in (path, os.path.join(path, PAYLOAD))
    ]


def _verify(path: bytes, level: str, threads: int | None, read: str, on_event: Listener) -> None:
    """Validate a bag.

    :raises BagInvalidError: it is not valid
    """
    on_event(ProgressEvent("hash" if level == "full" else "examine"))
    report: BagReport = validate(path, level, threads=threads, read=read, progress=EventListener(on_event))
    if report.ok:
        return
    first, count = report.errors[0], len(report.errors)
    reason = f"bag is not valid, nothing was changed: {_shown(first)}"
    raise BagInvalidError(path, reason + (f"; and {count - 1:,} more" if count > 1 else ""), report)


def _shown(found: Problem) -> str:
    return str(BagError(found.path, found.message)) if found.path else found.message


def _write_sums(sums: bytes, base: BagDirectory, bag: BagTags) -> None:
    """Write the checksums of the payload files under the paths that they will have."""

    def outcome(entry: ListedFile) -> Outcome:
        path = os.path.join(base.path, entry.path.removeprefix(BELOW_PAYLOAD))
        return Outcome(os.fsdecode(path), dict(entry.digests), None, None, None)

    with open_listing(base, bag, bag.manifests, []) as listing:
        format = "coreutils" if len(bag.algorithms) == 1 else "bsd"
        write_manifest(sums, map(outcome, listing.entries()), format)


def _change(path: bytes, where: bytes, names: Collection[list[bytes]], on_event: Listener) -> None:
    """Remove everything but the payload, which takes its place.

    :raises BagError: it cannot be moved, or something has appeared or vanished
    """
    with BagChange(where) as change, refusing(path, "nothing was changed"):
        if change.recovered is not None or _names(where) != names:
            raise BagError(path, CHANGED)
        away, into = names
        on_event(ProgressEvent("move"))
        change.commit(REQUEST, away, into, unnested=True, alone=CHANGED)
