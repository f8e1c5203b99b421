"""The objects that a caller selects: by identifier, by path, or by a glob of identifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pressmark.errors import IdentifierError, ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.reports import Problem
from pressmark.stores.objects import OnProblem, StoreObject
from pressmark.stores.problems import problem

if TYPE_CHECKING:
    from pressmark.buckets.bucket import Bucket

__all__ = [
    *("Ids", "by_path", "id_matcher", "kept", "look_up_all", "not_selected", "refuse_both", "selected_records"),
    "searched_records",
    "unreadable_only",
]

#: Identifiers, or paths of objects.
Ids = Iterable[str | bytes]
# Identifiers that one walk looks for.
MANY = 1 << 16
Found = TypeVar("Found")
Result = TypeVar("Result")


class _Store(Protocol):
    """What is asked of a store; see :class:`pressmark.stores.Store`."""

    @property
    def bucket(self) -> Bucket | None: ...

    def find(self, id: str | bytes) -> StoreObject: ...

    def at(self, path: str) -> StoreObject | None: ...


def by_path(store: Any, identifier: str | bytes, act: Callable[[Any], Result]) -> Result:
    """Call a function with an identifier; if no object has it, with the record of the object at this path.

    :param act: called with the identifier, then with the record
    """
    try:
        return act(identifier)
    except (IdentifierError, ObjectError) as error:
        # A layout may map a path to itself, where the object with another identifier is.
        if isinstance(error, ObjectError) and error.kind not in ("missing", "collision"):
            raise
        record = store.at(decode_fs(encode_fs(identifier)))
        if record is None:
            raise
    return act(record)


def selected_records(store: _Store, ids: Ids, strict: bool) -> Iterator[StoreObject | Problem]:
    """Yield the record of each object, or the problem that it is not found.

    :param strict: raise the error instead
    """

    def find(identifier: str | bytes) -> StoreObject:
        return by_path(store, identifier, lambda one: one if isinstance(one, StoreObject) else store.find(one))

    return look_up_all(ids, find, strict, store.bucket)


def searched_records(
    ids: Ids,
    objects: Callable[[], Iterable[StoreObject]],
    at: Callable[[str | bytes], StoreObject | None],
    missing: Callable[[str | bytes], ObjectError],
    strict: bool,
    own: Callable[[Sequence[str | bytes]], Iterable[StoreObject | None]] = lambda _ids: (),
) -> Iterator[StoreObject | Problem]:
    """Yield records as :func:`selected_records` does, from a store whose objects may be anywhere: one walk looks for
    many of them, and yields them in its order.

    :param objects: walks the store
    :param at: returns the object at a path
    :param missing: returns the error of an object that is not found
    :param own: returns the objects with some identifiers, if they are where new ones would be
    """
    rest = enumerate(ids, 1)
    while some := {decode_fs(encode_fs(one)): (number, one) for number, one in islice(rest, MANY)}:
        found = set()
        for record in own([one for _number, one in some.values()]):
            if record is not None:
                found.add(record.id)
                yield record
        left = some.keys() - found
        for record in objects() if left else ():
            if record.id in left:
                found.add(record.id)
                yield record
        for shown, (number, identifier) in some.items():
            if shown in found:
                continue
            if (record := at(identifier)) is not None:
                yield record
                continue
            error = missing(identifier)
            if strict:
                raise error
            yield not_selected(identifier, number, error)


def look_up_all(
    ids: Ids, find: Callable[[str | bytes], Found], strict: bool, bucket: Bucket | None
) -> Iterator[Found | Problem]:
    """Yield the result of a function for each identifier, in order; if it raises an error, the problem.

    :param strict: raise the error instead
    :param bucket: where the store is; many objects in it are looked up at a time
    """

    def attempt(item: tuple[int, str | bytes]) -> Found | Problem:
        number, identifier = item
        try:
            return find(identifier)
        except (IdentifierError, ObjectError) as error:
            if strict:
                raise
            return not_selected(identifier, number, error)

    if bucket is None:
        return map(attempt, enumerate(ids, 1))
    from pressmark.buckets.requests import in_order  # most stores are on a disk

    return in_order(attempt, enumerate(ids, 1))


def not_selected(identifier: str | bytes, number: int, error: IdentifierError | ObjectError) -> Problem:
    """Return the problem that an identifier selects no object; its path is the identifier.

    :param number: which one it is, from 1
    """
    if not identifier:
        return problem("object-missing", b"", f"identifier {number:,} of the selection is empty; omit it", section="")
    kind = "object-missing"
    if isinstance(error, ObjectError) and error.kind not in ("missing", "collision", "bad-name", "reserved"):
        kind = "duplicate-id" if error.kind == "duplicate-id" else "unreadable"
    return problem(kind, encode_fs(identifier), error.reason, section="")


def id_matcher(match: Sequence[str] | str) -> Callable[[str | None], bool]:
    """Return a function that returns whether one of the globs ``match`` matches an identifier as a whole.

    An object whose identifier is unknown may have any, and is selected, too.

    :raises ValueError: a glob is empty
    """
    from fnmatch import translate  # few runs select objects

    globs = [match] if isinstance(match, str) else match
    if not all(globs):
        raise ValueError("match: a glob of identifiers must not be empty")
    matches = re.compile("|".join(map(translate, globs))).match
    return lambda identifier: identifier is None or matches(identifier) is not None


def refuse_both(ids: Ids | None, match: Sequence[str] | str) -> None:
    """Check that objects are selected in one way only.

    :raises ValueError: they are selected by identifiers and by globs
    """
    if ids is not None and match:
        raise ValueError("ids: not supported with match; omit one of them")


def kept(items: Iterable[Found | Problem], on_problem: OnProblem | None) -> Iterator[Found]:
    """Yield what is no problem; problems are passed to ``on_problem``."""
    for item in items:
        if not isinstance(item, Problem):
            yield item
        elif on_problem is not None:
            on_problem(item)


def unreadable_only(on_problem: OnProblem | None) -> OnProblem | None:
    """Return a function that passes on the problems of directories that cannot be read, where a selected object may
    be.
    """
    if on_problem is None:
        return None
    return lambda found: on_problem(found) if found.kind == "unreadable" else None
