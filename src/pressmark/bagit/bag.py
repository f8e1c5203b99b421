"""Bags after the BagIt File Packaging Format 1.0: opened, made and changed, with all that can be done with one.

What each call needs is imported when it is made: who validates need not wait for what creates.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pressmark.bagit.bag_tags import BagTags
from pressmark.reports import Problem, Report

if TYPE_CHECKING:
    import datetime

    from pressmark.bagit.creation.options import Elements, Path
    from pressmark.bagit.creation.preflight import Listener
    from pressmark.bagit.profile.profile import Profile
    from pressmark.fixity.ledger import Ledger

__all__ = ["Bag", "create", "open", "update"]


class Bag(BagTags):
    """A bag in a directory: what its tag files say of it, and what can be done with it; :meth:`open` makes one."""

    def validate(self, level: str = "full", **options: Any) -> Report:
        """Check the bag as :func:`pressmark.bagit.validate` does, with its options."""
        from pressmark.bagit.validation.validate import validate

        return validate(self.path, level, **options)

    def update(self, **options: Any) -> Bag:
        """Change the bag as :func:`pressmark.bagit.update` does, with its options, and return it as it is then."""
        return update(self, **options)

    def complete(self, **options: Any) -> Report:
        """Fetch what fetch.txt lists and is not there, as :func:`pressmark.bagit.complete` does, with its options."""
        from pressmark.bagit.fetch.complete import complete

        return complete(self, **options)

    def check_profile(self, profile: Profile) -> list[Problem]:
        """Return where the bag is not as a BagIt Profile wants it."""
        return profile.check(self)


def open(path: Path) -> Bag:
    """Open the bag in a directory, as :meth:`Bag.open` does; its payload is not read.

    :param path: the base directory
    :raises BagError: it is no directory, has no bagit.txt, or a tag file in it cannot be read
    """
    return Bag.open(path)


def create(
    source: Path | Iterable[Path],
    destination: Path | None = None,
    algorithms: Iterable[str] | str = ("sha512",),
    info: Elements | None = None,
    *,
    mode: str = "copy",
    links: str = "refuse",
    tag_files: Mapping[str, Path] | Iterable[Path] = (),
    nested: bool = False,
    threads: int | None = None,
    read: str = "parallel",
    ledger: Ledger | None = None,
    date: datetime.date | None = None,
    on_event: Listener | None = None,
) -> Bag:
    """Make a bag of version 1.0, and return it.

    Without a ``destination``, the directory ``source`` becomes the bag: what is in it becomes its payload. Nothing is
    moved before everything was looked at and hashed; interrupted at any moment, it is as it was, but for a hidden
    directory that the next call removes, or the same call again finishes the bag.

    With one, the payload is what is in the directory ``source``, or, where it is a list, its files and directories
    under their own names. Of an interrupted run, nothing is left at ``destination``.

    :param algorithms: names as :func:`~pressmark.fixity.algorithm_name` knows them, one manifest each
    :param info: elements for bag-info.txt in this order; Bagging-Date, Bag-Size and Bag-Software-Agent are added where
        they are not given, Payload-Oxum always
    :param mode: how files come to the destination: ``copy``, ``reflink``, ``hardlink``, or ``auto``: reflink where the
        file system can, else copy
    :param links: ``refuse`` symbolic links; or ``follow`` them: in place those that stay inside are left as they are,
        elsewhere what any of them leads to is copied
    :param tag_files: more tag files: the path each shall have in the bag, and where it is; or where they are, and each
        gets its own name
    :param nested: make a bag of a directory that is one already
    :param threads: how many threads read and compute; :data:`None` or 0 for as many as there are cores
    :param read: ``parallel``, or ``sequential``: one file after another, for disks with heads
    :param ledger: an open ledger for the same algorithms: what it holds is not read again; only in place
    :param date: for Bagging-Date, in place of today
    :param on_event: called with the events of :mod:`pressmark.bagit.changes.events`
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises BagError: it is refused; nothing was changed
    :raises ValueError: another argument is wrong
    """
    from pressmark.bagit.creation.options import CreateOptions
    from pressmark.fixity.copying import MODES

    if mode not in MODES:
        raise ValueError(f"mode={mode!r}: expected {', '.join(MODES)}")
    options = CreateOptions.of(algorithms, info, links, tag_files, threads, read, date)
    on_event = on_event or (lambda _event: None)
    one = isinstance(source, str | bytes | os.PathLike)
    given: Iterable[Any] = [source] if one else source  # type: ignore[assignment]
    sources = list(map(os.fsencode, given))
    if destination is None:
        from pressmark.bagit.creation.in_place import create_in_place

        if not one:
            raise ValueError("a bag of several sources needs a destination")
        create_in_place(sources[0], options, nested, ledger, on_event)
        return Bag.open(sources[0])
    from pressmark.bagit.creation.copy import create_elsewhere

    if ledger is not None:
        raise ValueError("a ledger is only of use in place: what is copied has to be read")
    create_elsewhere(sources, not one, os.fsencode(destination), options, mode, nested, on_event)
    return Bag.open(destination)


def update(
    bag: BagTags | Path,
    *,
    algorithms: Iterable[str] | str | None = None,
    add: Iterable[str] | str = (),
    drop: Iterable[str] | str = (),
    info: Elements | Mapping[str, str | Iterable[str] | None] | None = None,
    payload: bool = True,
    accept: Collection[str] = (),
    rewrite: bool = False,
    date: datetime.date | None = None,
    threads: int | None = None,
    read: str = "parallel",
    ledger: Ledger | None = None,
    on_event: Listener | None = None,
) -> Bag:
    """Bring a bag up to version 1.0 and to what is asked for, and return it as it is then; or leave it as it was.

    All files are read once: what the old manifests say is verified while new checksums are computed. Manifests that
    need no change are left alone, as are the bytes of all elements of bag-info.txt that are not changed. Lines that
    md5sum wrote, or percent signs that are not encoded, have manifests written anew.

    :param algorithms: which payload manifests the bag shall have; :data:`None` for those that it has
    :param add: algorithms besides
    :param drop: algorithms no more
    :param info: elements for bag-info.txt, each in the place of all of its label; :data:`None` as value removes them
    :param payload: :data:`False` leaves payload and version alone and reads tag files only
    :param accept: what is taken over as it is found, instead of being refused: ``added``, ``removed`` and ``changed``
        payload files, and changed ``tag-files``
    :param rewrite: write all manifests anew
    :param date: sets Bagging-Date
    :param threads: how many threads read and compute; :data:`None` or 0 for as many as there are cores
    :param read: ``parallel``, or ``sequential`` for disks with heads
    :param ledger: an open ledger for :func:`algorithms_to_read`: payload files that it holds are not read again
    :param on_event: called with the events of :mod:`pressmark.bagit.changes.events`
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises BagInvalidError: the bag is not as its manifests say; its report lists how; nothing was changed
    :raises BagError: it cannot be changed; nothing was
    :raises ValueError: another argument is wrong
    """
    from pressmark.bagit.updating.update import UpdateOptions, update_bag

    path = bag.path if isinstance(bag, BagTags) else os.fsencode(bag)
    options = UpdateOptions.of(algorithms, add, drop, info, payload, accept, rewrite, date)
    update_bag(path, options, threads=threads, read=read, ledger=ledger, on_event=on_event)
    return Bag.open(path)
