"""Change a bag, or a directory that becomes one, atomically: :mod:`pressmark.fs.transaction` for bags."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.changes import enter_staging, refusing
from pressmark.errors import BagError
from pressmark.fs import transaction
from pressmark.fs.durable import exists
from pressmark.fs.transaction import ChangeFormat, Transaction, TransactionError

__all__ = ["BagTransaction", "is_decided", "recover"]

FORMAT = ChangeFormat(STAGING, "pressmark_bag", 1, b"bagit.txt", b"data")


class _AsBagError:
    """Turns a :class:`TransactionError` into a :class:`BagError`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, TransactionError):
            raise BagError(error.path, error.reason) from error.__cause__


class BagTransaction(Transaction):
    """A :class:`~pressmark.fs.transaction.Transaction` that raises :class:`BagError`.

    Its staging directory is shared: every user with write access to the bag can finish an interrupted change.

    :param base: the directory to change
    :raises BagError: ``base`` is not writable, another run is changing it, or an interrupted change cannot be finished
    """

    def __init__(self, base: bytes) -> None:
        with refusing(base), _AsBagError():
            super().__init__(base, enter_staging(os.path.join(base, STAGING), base, shared=True), FORMAT)

    def commit(
        self,
        request: dict[str, Any],
        moves_out: Iterable[bytes],
        moves_in: Iterable[bytes],
        *,
        nested: bool = False,
        discarded: Sequence[bytes] = (),
        between: Callable[[], None] | None = None,
    ) -> None:
        with _AsBagError():
            super().commit(request, moves_out, moves_in, nested=nested, discarded=discarded, between=between)


def is_decided(base: bytes) -> bool:
    """Return whether a change of ``base`` was committed and is unfinished.

    :raises BagError: the hidden directory cannot be read
    """
    with refusing(base):
        return transaction.is_decided(base, STAGING)


def recover(base: bytes) -> dict[str, Any] | None:
    """Finish the change of ``base`` that an interrupted run had committed, or remove the files that it had prepared.

    :return: the request of the change that was finished; :data:`None` if no change was committed
    :raises BagError: another run is changing ``base``, or a move fails
    """
    with refusing(base):
        if not exists(os.path.join(base, STAGING)):
            return None
    with BagTransaction(base) as change:
        return change.recovered
