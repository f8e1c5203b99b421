"""Making bags: of a directory where it is, or somewhere else of what is copied there. All or nothing.

In place, everything is looked at and hashed where it is; only when all tag files are written is anything moved, and
``bagit.txt`` is the last to come. Elsewhere, the bag grows in a hidden directory beside its destination, and one rename
makes it a bag.
"""

from __future__ import annotations

import datetime
import errno
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pressmark.bagit.bag_directory import Base
from pressmark.bagit.creation.copy import create_elsewhere
from pressmark.bagit.creation.options import Elements, Path, Wish, elements_of, tag_files_of
from pressmark.bagit.creation.preflight import (
    CHANGED_MEANWHILE,
    Listener,
    Seen,
    Survey,
    beneath,
    is_inside,
    payload_files,
    real_path,
    refuse_bag,
    take,
)
from pressmark.bagit.events import Stage
from pressmark.bagit.tag_writer import Manifests, write_tag_files
from pressmark.bagit.transaction import AGAIN, STAGING, Transaction, is_decided, recover, refusing
from pressmark.errors import BagError
from pressmark.fixity.algorithms import algorithm_names
from pressmark.fixity.copying import MODES
from pressmark.fixity.ledger import Ledger
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_files

if TYPE_CHECKING:
    from pressmark.bagit.bag import Bag

__all__ = ["create"]

LINKS = ("refuse", "follow")


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
    :param on_event: called with the events of :mod:`pressmark.bagit.events`
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises BagError: it is refused; nothing was changed
    :raises ValueError: another argument is wrong
    """
    # Bags know how they are changed, so that module knows this one.
    from pressmark.bagit.bag import Bag

    for value, allowed, what in ((mode, MODES, "mode"), (links, LINKS, "links")):
        if value not in allowed:
            raise ValueError(f"{what}={value!r}: expected {', '.join(allowed)}")
    wish = Wish(
        algorithm_names(algorithms),
        elements_of(info),
        links,
        tag_files_of(tag_files),
        threads,
        read,
        date or datetime.date.today(),
    )
    tell = on_event or (lambda _event: None)
    one = isinstance(source, str | bytes | os.PathLike)
    given: Iterable[Any] = [source] if one else source  # type: ignore[assignment]
    sources = list(map(os.fsencode, given))
    if destination is None:
        if not one:
            raise ValueError("a bag of several sources needs a destination")
        _create_in_place(sources[0], wish, nested, ledger, tell)
        return Bag.open(sources[0])
    if ledger is not None:
        raise ValueError("a ledger is only of use in place: what is copied has to be read")
    create_elsewhere(sources, not one, os.fsencode(destination), wish, mode, nested, tell)
    return Bag.open(destination)


def _create_in_place(path: bytes, wish: Wish, nested: bool, ledger: Ledger | None, tell: Listener) -> None:
    with Base(path) as base:  # which says no where it is no directory
        where = os.path.realpath(path)
        request = wish.request(nested=nested)
        if not is_decided(where):
            # What is left of a run that was killed when it had changed all it wanted to: a bag is valid without it.
            recover(where)
            refuse_bag(path, nested)
            for _path, file in wish.tag_files:
                if is_inside(os.path.realpath(file), where):
                    raise BagError(file, "the tag file is in what will be payload; move it out first")
        with _entered(where) as transaction:
            if transaction.recovered is not None:
                tell(Stage("recover"))
                if transaction.recovered == request:
                    return
                if transaction.recovered.get("command") == "create":
                    raise BagError(path, "an interrupted run has now made it a bag, but with other options; update it")
                refuse_bag(path, nested)
            tell(Stage("examine"))
            survey = Survey(wish.links, tell)
            with refusing(path, "nothing was changed"):
                survey.look(base)
                survey.settle(path)
                names = _stage(base, transaction.new, wish, ledger, survey, tell)
                away = [name for name in os.listdir(where) if name != STAGING]
            tell(Stage("move"))

            def nothing_new() -> None:
                for name in os.listdir(where):
                    if name != STAGING:
                        raise BagError(os.path.join(path, name), f"{CHANGED_MEANWHILE}; {AGAIN}")

            transaction.commit(request, away, names, payload=True, between=nothing_new)


def _entered(where: bytes) -> Transaction:
    try:
        return Transaction(where)
    except BagError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise BagError(error.path, f"{error.reason}; name a destination to make the bag elsewhere") from cause
        raise


def _stage(base: Base, new: bytes, wish: Wish, ledger: Ledger | None, survey: Survey, tell: Listener) -> list[bytes]:
    """Write all tag files for what is in ``base`` to ``new``, and return the names there."""
    links = survey.reach(in_place=True)
    tell(Stage("hash", survey.files, survey.bytes))
    seen = Seen()
    paths: deque[bytes] = deque()  # those that are under way

    def given() -> Iterator[bytes]:
        for found in payload_files(base, links):
            paths.append(found.path)
            yield real_path(found)

    def hashed() -> Iterator[tuple[bytes, Outcome]]:
        outcomes = hash_files(
            given(),
            wish.algorithms,
            wish.threads,
            tell,
            read=wish.read,
            ledger=ledger,
            beneath=beneath(base),
        )
        for outcome in outcomes:
            yield paths.popleft(), outcome

    with Manifests(new, wish.algorithms) as manifests:
        octets, files = take(hashed(), manifests, seen, survey)
    survey.settle(base.path)
    tell(Stage("tag"))
    names = write_tag_files(new, wish, octets, files)
    tell(Stage("check", files, octets))
    statuses = ((found.path, base.status(real_path(found))) for found in payload_files(base, links))
    seen.compare(base.path, statuses)
    return names
