"""Checking a store, object by object, in chunks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pressmark.errors import JobError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.jobs.chunks import BYTES, FILES, Chunk
from pressmark.jobs.counts import Tally
from pressmark.jobs.listing import Listed, listed_chunks, read_listing, refuse_inside
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import WorkFolder, job_key
from pressmark.layouts import layout_from_config
from pressmark.reports import Problem, Report
from pressmark.stores import registry
from pressmark.stores.store import Store, StoreObject

__all__ = ["CheckStore"]

LISTING = "objects.jsonl"
OnProblem = Callable[[Problem], object]


@dataclass(frozen=True)
class CheckStore:
    """All that is wrong with a store: for each chunk the problems of its objects, a line each.

    The plan walks the directories, and finds what belongs to no object; that is in the output as well. The chunks open
    inventories, bags and files, and read their content. Statuses are of objects: ``ok``, ``wrong``, ``gone`` for those
    that another run removed after the walk, and ``beside`` for each problem that belongs to none.

    :ivar root: the store's directory, absolute
    :ivar kind: one of :data:`pressmark.stores.KINDS`; an empty one is found out when the job is made
    :ivar digests: verify the content, where the store holds digests
    :ivar layout: an OCFL ``config.json`` mapping, where the store does not say its own
    :ivar options: for opening the store
    """

    root: str
    kind: str = ""
    digests: bool = True
    layout: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", os.path.abspath(self.root))
        if not self.kind:
            object.__setattr__(self, "kind", registry.kind_of(self.root))

    def parameters(self) -> dict[str, Any]:
        """Return what decides its output, as in JSON."""
        return asdict(self)

    @property
    def key(self) -> str:
        """What it does."""
        return job_key("check-store", self.parameters())

    def roots(self) -> tuple[str, ...]:
        """Return the directories that every worker must see."""
        return (self.root,)

    def plan(self, folder: str | os.PathLike[str], objects: int = FILES) -> Iterator[Chunk]:
        """Walk the store, and give chunks of its objects.

        :param folder: the work folder, where the listing is written
        :param objects: how many make a chunk
        :raises StoreError: it is no store, or cannot be read
        :raises JobError: its objects cannot be checked one by one, or the work folder is in it
        """
        refuse_inside(folder, self.root)
        store = self._open()
        if store.kind == "ocfl" and store.layout is None:
            # Two objects of the same identifier would not be seen.
            raise JobError(self.root, "nothing says its layout: give one, or use pressmark store check")
        return listed_chunks(folder, LISTING, "objects", self._listed(store), objects, BYTES)

    def _open(self) -> Store:
        layout = {} if self.layout is None else {"layout": layout_from_config(self.layout)}
        return registry.open(self.root, self.kind, **layout, **self.options)

    def _listed(self, store: Store) -> Iterator[Listed]:
        for found in _walked(store):
            if isinstance(found, Problem):
                record: dict[str, Any] = {"path": None, "problems": [found.record()]}
                yield Listed(record, 0, None)
            else:
                place, inside, problems, identifier = found
                record = {
                    "path": decode_fs(place),
                    "inside": None if inside is None else decode_fs(inside),
                    "id": identifier,
                    "problems": [one.record() for one in problems],
                }
                yield Listed(record, 0, os.path.dirname(place))

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Check the objects of a chunk."""
        name = f"{chunk.id}.jsonl"
        store = self._open()
        with Tally(chunk, work) as tally, work.writing(name) as output:

            def tell(found: Problem) -> None:
                output.write(json.dumps(found.record()).encode() + b"\n")

            objects = []
            for record in read_listing(work, chunk):
                if record["path"] is not None:
                    objects.append(record)
                    continue
                for one in map(_problem, record["problems"]):
                    tell(one)
                    if one.severity == "error":
                        tally.fail("beside", path=decode_fs(one.path), message=one.message)
                    else:
                        tally.count("beside")
            check = _check_ocfl if store.kind == "ocfl" else _check_others
            tally.bytes += check(store, objects, self.digests, tell, tally)
        return tally.receipt(self.key, output, name)


# What a walk tells of an object: its place, the object it is in, its problems, its identifier.
_Walked = tuple[bytes, bytes | None, Iterable[Problem], str | None]


def _walked(store: Store) -> Iterator[Problem | _Walked]:
    """Give what a store's walk finds, as cheaply as it can be had."""
    if store.kind == "ocfl":
        yield from _walked_ocfl(store)
        return
    if store.kind == "pairtree":
        from pressmark.stores.pairtree.version_files import version_problems

        yield from version_problems(os.fsencode(store.root))
    elif store.kind == "vitro":
        yield from store.namespaces_problems  # type: ignore[attr-defined]
    waiting: list[Problem] = []
    for record in store.objects(on_problem=waiting.append):
        yield from waiting
        waiting.clear()
        yield encode_fs(record.path), None, record.problems, record.id
    yield from waiting


def _walked_ocfl(store: Store) -> Iterator[Problem | _Walked]:
    from pressmark.stores.ocfl.check import root_problems
    from pressmark.stores.ocfl.walk import Found, Walk

    root = os.fsencode(store.root)
    yield from root_problems(root, store.layout_is_given)  # type: ignore[attr-defined]
    for item in Walk(root, lambda _place, _entries: None, clashes=True):
        if isinstance(item, Found):
            yield item.place, item.inside, (), None
        else:
            yield item


def _check_ocfl(store: Any, records: list[dict[str, Any]], digests: bool, tell: OnProblem, tally: Tally) -> int:
    from pressmark.stores.ocfl.check import Check, ObjectResult

    def settle(found: ObjectResult) -> None:
        unsettled.discard(found.path)
        _settle(tally, found.path, found.problems)

    unsettled = {record["path"] for record in records}
    places = (
        (encode_fs(record["path"]), None if record["inside"] is None else encode_fs(record["inside"]))
        for record in records
    )
    report = Check(store, os.fsencode(store.root), None, tell, settle).report_on(places, digests, 1)
    for path in sorted(unsettled):
        if not os.path.lexists(os.path.join(store.root, path)):
            tally.count("gone")
            continue
        tally.fail("wrong", path=path, message="it was there when the store was walked, and cannot be read now")
    return report.counts["bytes"]


def _check_others(store: Any, records: list[dict[str, Any]], digests: bool, tell: OnProblem, tally: Tally) -> int:
    from pressmark.stores.bags.check import examined

    report = Report(counts={"files": 0, "bytes": 0})
    for record in records:
        walked = [_problem(one) for one in record["problems"]]
        found = StoreObject(record["id"], record["path"], True, None, tuple(walked))
        if store.kind == "bags":
            now = examined(store, found, digests, 1, report)
            if not now:
                tally.count("gone")
                continue
            problems = [one for item in now for one in ((item,) if isinstance(item, Problem) else item.problems)]
        else:
            unreadable = store.unreadable(found)
            problems = [*(one for one in walked if one not in unreadable), *unreadable]
        for one in problems:
            tell(one)
        _settle(tally, record["path"], problems)
    return report.counts["bytes"]


def _settle(tally: Tally, path: str, problems: Iterable[Problem]) -> None:
    wrong = [one for one in problems if one.severity == "error"]
    if not wrong:
        tally.count("ok")
        return
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    tally.fail("wrong", path=path, message=f"{wrong[0].kind}: {wrong[0].message}{more}")


def _problem(record: Mapping[str, Any]) -> Problem:
    """Return the problem of a listing, the inverse of its ``record``."""
    return Problem(**{**record, "path": encode_fs(record["path"])})
