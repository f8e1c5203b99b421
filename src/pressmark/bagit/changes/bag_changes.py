"""Change bags, or directories that become bags, atomically: :mod:`pressmark.fs.changes` for bags."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Self

from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.changes import as_bag_error, refusing
from pressmark.errors import BagError
from pressmark.fs import changes
from pressmark.fs.changes import Change, ChangeError, ChangeFormat, Moves
from pressmark.fs.durable import exists

__all__ = ["FORMAT", "BagChange", "error_of_change", "is_decided", "recover"]

FORMAT = ChangeFormat(STAGING, "pressmark_bag", 1, b"bagit.txt", b"data")


class BagChange:
    """A change of the directory ``base``; a context manager. Without :meth:`commit`, nothing changes.

    It first finishes a change that an interrupted run had committed.

    :param base: the directory to change
    :ivar change: for a commit together with other changes
    :ivar new: directory for the files to move in
    :ivar recovered: the request of an interrupted change that was finished; else :data:`None`
    :raises BagError: ``base`` is not writable, another run is changing it, or an interrupted change cannot be finished
    """

    def __init__(self, base: bytes) -> None:
        [entered] = changes.enter([base], FORMAT)
        if not isinstance(entered, Change):
            raise error_of_change(entered, base)
        self.change = entered
        self.new = entered.new
        self.recovered = entered.recovered

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        changes.leave([self.change])

    def commit(
        self,
        request: dict[str, Any],
        moves_out: Iterable[bytes],
        moves_in: Iterable[bytes],
        contents: Mapping[bytes, bytes | None] = MappingProxyType({}),
        *,
        nested: bool = False,
        discarded: Sequence[bytes] = (),
        unnested: bool = False,
        alone: str = "",
    ) -> None:
        """Move names out of the base directory, then others in; or leave everything unchanged.

        :param request: a JSON-serializable record of the change; a later run finds it in :attr:`recovered`
        :param moves_out: names in the base directory
        :param moves_in: names in :attr:`new`
        :param contents: small files that are written to :attr:`new` first, by name; :data:`None` for one that is there
        :param nested: move everything that is moved out in again, as one directory
        :param discarded: paths below the base directory, none inside another or in ``moves_out``, to remove at the end
        :param unnested: ``data`` is among ``moves_out``, and the names of ``moves_in`` are in it instead
        :param alone: refuse a name that is in the base directory after the moves out, for this reason
        :raises BagError: a move failed; everything is unchanged, or the next run reverses or finishes the change
        """
        moves = Moves.ordered(FORMAT, moves_out, moves_in, nested, discarded, unnested)
        [error] = changes.commit([self.change], request, [moves], [contents], alone=alone)
        if error is not None:
            raise error_of_change(error, self.change.base)


def error_of_change(error: OSError | ChangeError, base: bytes) -> BagError:
    """Return the error of a change as an error of the bag ``base``."""
    if not isinstance(error, ChangeError):
        return as_bag_error(error, os.path.join(base, STAGING), base)
    found = BagError(error.path, error.reason)
    found.__cause__ = error.__cause__
    return found


def is_decided(base: bytes) -> bool:
    """Return whether a change of ``base`` was committed and is unfinished.

    :raises BagError: the hidden directory cannot be read
    """
    with refusing(base):
        return changes.is_decided(base, FORMAT)


def recover(base: bytes) -> dict[str, Any] | None:
    """Finish the change of ``base`` that an interrupted run had committed, or remove the files that it had prepared.

    :return: the request of the change that was finished; :data:`None` if no change was committed
    :raises BagError: another run is changing ``base``, or a move fails
    """
    with refusing(base):
        if not exists(os.path.join(base, STAGING)):
            return None
    with BagChange(base) as change:
        return change.recovered
