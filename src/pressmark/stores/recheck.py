"""A second look at what is wrong: another run may have been changing it while it was looked at the first time.

An object that is put, replaced or removed is between two states for a moment, and a look at it goes from name to name
while that happens. So nothing is said of a fault that is seen once: when no run moves anything, it is looked for again,
until two looks agree. What is really wrong is still there then.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import sleep
from typing import TypeVar

from pressmark.fs.locks import lock_descriptor
from pressmark.fs.names import encode_fs
from pressmark.fs.run_directories import LOCK, leftovers
from pressmark.reports import Problem
from pressmark.stores.problems import problem
from pressmark.stores.store import OnProblem, StoreObject

__all__ = ["LOOKS", "Item", "abandoned", "agreed", "await_turn", "changing", "settled", "settled_objects"]

Item = StoreObject | Problem
T = TypeVar("T")

LOOKS = 10
# A run moves something in or out in a moment. Of one that was stopped in its turn nobody knows how long it takes.
PAUSE = 0.01  # seconds
PAUSES = 500
# Whatever lies there under the lock's name, opening it waits for nothing and follows nothing.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))


def agreed(
    found: T,
    again: Callable[[], T],
    is_fine: Callable[[T], bool],
    folder: bytes,
    *,
    is_same: Callable[[T, T], bool] = operator.eq,
) -> tuple[T, bool]:
    """Look again until two looks agree, or one of them finds no fault; return the last look.

    :param found: the first look
    :param folder: the workshop of the runs that may be changing what is looked at
    :return: the last look, and False if no two looks agree
    """
    for _ in range(LOOKS):
        if is_fine(found):
            return found, True
        await_turn(folder)
        before, found = found, again()
        if is_same(before, found):
            return found, True
    return found, is_fine(found)


def settled(item: Item, again: Callable[[], list[Item]], folder: bytes) -> list[Item]:
    """Check an item with a fault again, and return what is there now; an empty list if it is gone.

    :param again: looks again: returns what a walk finds there
    :param folder: the workshop of the runs that change it
    """

    def is_fine(items: list[Item]) -> bool:
        return all(isinstance(one, StoreObject) and not one.problems for one in items)

    found, is_settled = agreed([item], again, is_fine, folder)
    return found if is_settled else [changing(item)]


def settled_objects(
    walk: Iterable[Item], second_look: Callable[[Item], list[Item]], on_problem: OnProblem | None
) -> Iterator[StoreObject]:
    """Yield the objects that a walk finds; the problems that belong to none go to ``on_problem``.

    :param second_look: returns what is in the place of something with a fault
    """
    for found in walk:
        if isinstance(found, StoreObject) and not found.problems:
            yield found
            continue
        for item in second_look(found):
            if isinstance(item, StoreObject):
                yield item
            elif on_problem is not None:
                on_problem(item)


def changing(item: Item) -> Item:
    """Return what is to be said of something that was never twice the same."""
    found = problem("object-changing", encode_fs(item.path))
    return item._replace(proper=False, problems=(found,)) if isinstance(item, StoreObject) else found


def await_turn(folder: bytes) -> None:
    """Wait until no run moves anything in or out.

    :param folder: its workshop; where there is none, nobody changes the store
    """
    for _ in range(PAUSES):
        try:
            descriptor = os.open(os.path.join(folder, LOCK), _FLAGS)
        except OSError:
            return
        try:
            lock_descriptor(descriptor)
            return
        except BlockingIOError:
            pass
        except OSError:
            return  # no locks there: nobody can say
        finally:
            os.close(descriptor)
        sleep(PAUSE)


def abandoned(folder: bytes) -> Sequence[bytes]:
    """Return the private directories that killed runs have left in a workshop.

    A run that begins or ends has for a moment one that is empty, or whose lock it does not hold: none that is seen
    once is taken for left.
    """
    found = leftovers(folder)
    for _ in range(LOOKS):
        if not found:
            break
        sleep(PAUSE)
        still = leftovers(folder)
        found = [path for path in found if path in still]
        if not any(map(_is_empty, found)):
            break
    return found


def _is_empty(directory: bytes) -> bool:
    try:
        return not os.listdir(directory)
    except OSError:
        return False
