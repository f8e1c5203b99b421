"""Checking a store, object by object, in chunks."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pressmark.errors import JobError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.jobs.chunks import BYTES, FILES, Chunk
from pressmark.jobs.listing import ListingLine, read_listing, require_outside, write_listing
from pressmark.jobs.receipt_builder import ReceiptBuilder
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import WorkFolder, job_key
from pressmark.layouts import layout_from_config
from pressmark.reports import Problem, Report
from pressmark.stores import registry
from pressmark.stores.store import Store, StoreObject

__all__ = ["CheckStore", "joined_report"]

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
    :ivar ignore: globs of names that are passed over
    """

    root: str
    kind: str = ""
    digests: bool = True
    layout: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", os.path.abspath(self.root))
        if not self.kind:
            object.__setattr__(self, "kind", registry.kind_of(self.root))

    def parameters(self) -> dict[str, Any]:
        """Return what decides its output, as in JSON."""
        parameters = asdict(self)
        # A later parameter counts where it is given: runs that were begun without it can be resumed.
        if not self.ignore:
            del parameters["ignore"]
        return parameters

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
        require_outside(folder, self.root)
        store = self._open()
        if store.kind == "ocfl" and store.layout is None:
            # Two objects of the same identifier would not be seen.
            raise JobError(self.root, "its layout is unknown; name a layout, or check the store without workers")
        return write_listing(folder, LISTING, "objects", self._listed(store), objects, BYTES)

    def _open(self) -> Store:
        layout = {} if self.layout is None else {"layout": layout_from_config(self.layout)}
        return registry.open(self.root, self.kind, **layout, **self.options)

    def _listed(self, store: Store) -> Iterator[ListingLine]:
        for found in _walked(store, self.ignore):
            if isinstance(found, Problem):
                record: dict[str, Any] = {"path": None, "problems": [found.record()]}
                yield ListingLine(record, 0, None)
            else:
                place, inside, problems, identifier, proper = found
                record = {
                    "path": decode_fs(place),
                    "inside": None if inside is None else decode_fs(inside),
                    "id": identifier,
                    "proper": proper,
                    "problems": [one.record() for one in problems],
                }
                yield ListingLine(record, 0, os.path.dirname(place))

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Check the objects of a chunk."""
        name = f"{chunk.id}.jsonl"
        store = self._open()
        with ReceiptBuilder(chunk, work) as receipt, work.writing(name) as output:

            def tell(found: Problem) -> None:
                output.write(json.dumps(found.record()).encode() + b"\n")

            check = _check_ocfl if store.kind == "ocfl" else _check_others
            records = read_listing(work, chunk)
            counts, advice = check(store, records, self.digests, tell, receipt, self.ignore)
            receipt.bytes += counts.get("bytes", 0)
            with work.writing(_counts_name(chunk.id)) as file:
                file.write(json.dumps({"counts": counts, "advice": advice}).encode())
        return receipt.build(self.key, output, name)


_Record = Mapping[str, Any]
# Counts, and advice by code, as it stands in JSON.
_Checked = tuple[dict[str, int], dict[str, tuple[str, int, str, str]]]
# What a walk tells of an object: its place, the object it is in, its problems, its identifier, whether
# it is proper.
_Walked = tuple[bytes, bytes | None, Iterable[Problem], str | None, bool]


def _walked(store: Store, ignore: Sequence[str]) -> Iterator[Problem | _Walked]:
    """Give what a store's walk finds, as cheaply as it can be had."""
    if store.kind == "ocfl":
        yield from _walked_ocfl(store, ignore)
        return
    if store.kind == "pairtree":
        from pressmark.stores.pairtree.version_files import version_problems

        yield from version_problems(os.fsencode(store.root))
    elif store.kind == "vitro":
        yield from store.namespaces_problems  # type: ignore[attr-defined]
    waiting: list[Problem] = []
    for record in store.objects(on_problem=waiting.append, ignore=ignore):
        yield from waiting
        waiting.clear()
        yield encode_fs(record.path), None, record.problems, record.id, record.proper
    yield from waiting


def _walked_ocfl(store: Store, ignore: Sequence[str]) -> Iterator[Problem | _Walked]:
    from pressmark.stores.ocfl.check import extension_problems, root_problems
    from pressmark.stores.ocfl.walk import Found, Walk

    storage = store.storage  # type: ignore[attr-defined]
    yield from root_problems(storage, store.layout_is_given)  # type: ignore[attr-defined]
    yield from extension_problems(storage)
    for item in Walk(storage, lambda _place, _entries: None, clashes=True, ignore=ignore):
        if isinstance(item, Found):
            yield item.place, item.inside, (), None, True
        else:
            yield item


def _check_ocfl(
    store: Any,
    records: Iterable[_Record],
    digests: bool,
    tell: OnProblem,
    receipt: ReceiptBuilder,
    ignore: Sequence[str],
) -> _Checked:
    from pressmark.stores.ocfl.check import Check, ObjectResult

    unsettled = set()

    def found() -> Iterator[Problem | tuple[bytes, bytes | None]]:
        for record in records:
            if record["path"] is None:
                yield from _beside(record, receipt)
            else:
                unsettled.add(record["path"])
                yield encode_fs(record["path"]), None if record["inside"] is None else encode_fs(record["inside"])

    def settle(result: ObjectResult) -> None:
        unsettled.discard(result.path)
        _settle(receipt, result.path, result.problems)

    check = Check(store, None, tell, settle)
    report = check.report_on(found(), digests, 1, ignore)
    for path in sorted(unsettled):
        if not os.path.lexists(os.path.join(store.root, path)):
            receipt.count("gone")
            continue
        receipt.fail("wrong", path=path, message="it was there when the store was walked, and cannot be read now")
    if not digests:
        del report.counts["bytes"]
    return report.counts, {code: (kind, n, decode_fs(at), words) for code, (kind, n, at, words) in check.advice.items()}


def _check_others(
    store: Any,
    records: Iterable[_Record],
    digests: bool,
    tell: OnProblem,
    receipt: ReceiptBuilder,
    ignore: Sequence[str],
) -> _Checked:
    from pressmark.stores.bags.check import examined

    report = Report(counts=_nothing(store.kind, digests))
    for record in records:
        if record["path"] is None:
            for one in _beside(record, receipt):
                tell(one)
            continue
        walked = tuple(map(Problem.from_record, record["problems"]))
        found = StoreObject(record["id"], record["path"], record["proper"], None, walked)
        if store.kind == "bags":
            now = examined(store, found, digests, 1, report, ignore)
            if not now:
                receipt.count("gone")
                continue
            problems = [one for item in now for one in ((item,) if isinstance(item, Problem) else item.problems)]
            objects = [item for item in now if not isinstance(item, Problem)]
        else:
            unreadable = store.unreadable(found)
            problems = [*(one for one in walked if one not in unreadable), *unreadable]
            objects = [found]
        report.counts["objects"] += len(objects)
        report.counts["proper"] += sum(item.proper for item in objects)
        for one in problems:
            tell(one)
        _settle(receipt, record["path"], problems)
    return report.counts, {}


def _beside(record: _Record, receipt: ReceiptBuilder) -> list[Problem]:
    """Count the problems of a walk that belong to no object, and return them."""
    problems = [Problem.from_record(one) for one in record["problems"]]
    for one in problems:
        if one.severity == "error":
            receipt.fail("beside", path=decode_fs(one.path), message=one.message)
        else:
            receipt.count("beside")
    return problems


def _nothing(kind: str, digests: bool) -> dict[str, int]:
    """Return the counts of a check that has found nothing."""
    if kind == "ocfl":
        return {"objects": 0, "files": 0, **({"bytes": 0} if digests else {})}
    return {"objects": 0, "proper": 0, **({"files": 0, "bytes": 0} if kind == "bags" else {})}


def joined_report(job: CheckStore, work: WorkFolder, on_problem: OnProblem) -> Report:
    """Return the report of a whole run, as one check of the store gives it; of its problems it keeps the numbers.

    :param on_problem: called with each problem, in the order of the store
    """
    from pressmark.stores.ocfl.check import advice_problems

    report = Report()
    counts = Counter(_nothing(job.kind, job.digests))
    advice: dict[str, tuple[str, int, bytes, str]] = {}

    def tell(found: Problem) -> None:
        report.problems.append(found)
        on_problem(found)

    for receipt in work.receipts():
        assert receipt.output is not None
        beside = json.loads(work.output_path(_counts_name(receipt.output.removesuffix(".jsonl"))).read_bytes())
        counts.update(beside["counts"])
        for code, (kind, number, first, words) in beside["advice"].items():
            before = advice.get(code, (kind, 0, encode_fs(first), words))
            advice[code] = (*before[:1], before[1] + number, *before[2:])
        with open(work.output_path(receipt.output), "rb") as lines:
            found = list(map(json.loads, lines))
        # Advice is the last that a chunk says, once for each code.
        for record in found[: len(found) - len(beside["advice"])]:
            tell(Problem.from_record(record))
    for one in advice_problems(advice):
        tell(one)
    report.counts.update(counts)
    return report


def _counts_name(stem: str) -> str:
    """Return the name of the file beside a chunk's output that has what the whole report is made of."""
    return f"{stem}.counts.json"


def _settle(receipt: ReceiptBuilder, path: str, problems: Iterable[Problem]) -> None:
    wrong = [one for one in problems if one.severity == "error"]
    if not wrong:
        receipt.count("ok")
        return
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    receipt.fail("wrong", path=path, message=f"{wrong[0].kind}: {wrong[0].message}{more}")
