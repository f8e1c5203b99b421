"""Jobs of a store: checking it in chunks of objects, and storing objects in chunks."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from pressmark.errors import JobError, ObjectError
from pressmark.fs.beneath import open_regular, read_regular
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.spilling import TemporaryDatabase
from pressmark.jobs.chunks import BYTES, FILES, Chunk, ListingLine, read_listing, require_outside, write_listing
from pressmark.jobs.receipts import Receipt, ReceiptBuilder
from pressmark.jobs.workdir import WorkFolder, job_key
from pressmark.layouts import layout_from_config
from pressmark.layouts.job_layouts import BringsLayouts
from pressmark.option_names import option
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, Report
from pressmark.stores import registry
from pressmark.stores.objects import SourcePath, StoreObject
from pressmark.stores.store import Store
from pressmark.stores.walked_store import WalkedStore
from pressmark.threads import resolve_threads

__all__ = ["CheckStore", "PutObjects", "joined_report", "walked"]

LISTING = "objects.jsonl"
LOOKED_UP = 500  # identifiers that are looked up at a time among those before them
OnProblem = Callable[[Problem], object]


@dataclass(frozen=True)
class _StoreJob(BringsLayouts):
    """A base of jobs: a store, which each worker opens.

    :ivar root: the store's directory, absolute
    :ivar kind: one of :data:`pressmark.stores.KINDS`; empty to detect it
    :ivar layout: an OCFL ``config.json`` mapping, if the store does not declare a layout
    :ivar options: arguments for opening the store
    """

    root: str
    kind: str = ""
    layout: Mapping[str, object] | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", os.path.abspath(self.root))
        if not self.kind:
            object.__setattr__(self, "kind", registry.kind_of(self.root))

    def roots(self) -> tuple[str, ...]:
        """Return the directories that every worker must see."""
        return (self.root,)

    def open(self) -> Store:
        """Open the store.

        :raises StoreError: not a store, or not readable
        """
        layout = {} if self.layout is None else {"layout": layout_from_config(self.layout)}
        store: Store = registry.store_class(self.kind)(self.root, **layout, **self.options)
        return store


@dataclass(frozen=True)
class CheckStore(_StoreJob):
    """The check of a store: each chunk writes the problems of its objects, one per line.

    The plan walks the directories; problems outside of objects are part of the output. The chunks open inventories,
    bags and files, and read their content. Statuses count objects: ``ok``, ``wrong``, ``gone`` for objects that another
    run removed after the walk, and ``beside`` for each problem outside of objects.

    :ivar root: the store's directory, absolute
    :ivar kind: one of :data:`pressmark.stores.KINDS`; empty to detect it
    :ivar layout: an OCFL ``config.json`` mapping, if the store does not declare a layout
    :ivar options: arguments for opening the store
    :ivar digests: verify the content, if the store contains digests
    :ivar ignore: globs of names to ignore
    """

    digests: bool = True
    ignore: tuple[str, ...] = ()

    def parameters(self) -> dict[str, object]:
        """Return the parameters that determine the output, as JSON values."""
        parameters = asdict(self)
        # Absent if empty: the key of a run includes the parameters.
        if not self.ignore:
            del parameters["ignore"]
        return parameters

    @property
    def key(self) -> str:
        """The key of the job: see :func:`~pressmark.jobs.workdir.job_key`."""
        return job_key("check-store", self.parameters())

    def plan(self, folder: str | os.PathLike[str], objects: int = FILES) -> Iterator[Chunk]:
        """Walk the store, and yield chunks of its objects.

        :param folder: the work folder for the listing
        :param objects: number of objects in a chunk
        :raises StoreError: not a store, or not readable
        :raises JobError: the objects cannot be checked one by one, or the work folder is inside the store
        """
        require_outside(folder, self.root)
        store = self.open()
        if store.kind == "ocfl" and store.layout is None:
            # Duplicate identifiers would not be detected.
            what = f"unknown layout; specify one ({option('layout')}), or check the store without workers"
            raise JobError(self.root, what)
        return write_listing(folder, LISTING, "objects", self._listed(store), objects, BYTES, resolve_threads(None))

    def _listed(self, store: Store) -> Iterator[ListingLine]:
        for found in walked(store, self.ignore):
            if isinstance(found, Problem):
                record: dict[str, Any] = {"path": None, "problems": [found.record()]}
                yield ListingLine(record, 0, None)
            else:
                path, inside, problems, identifier, proper = found
                record = {
                    "path": decode_fs(path),
                    "inside": None if inside is None else decode_fs(inside),
                    "id": identifier,
                    "proper": proper,
                    "problems": [one.record() for one in problems],
                }
                yield ListingLine(record, 0, os.path.dirname(path))

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Check the objects of a chunk."""
        name = f"{chunk.id}.jsonl"
        store = self.open()
        with ReceiptBuilder(chunk, work) as receipt, work.writing(name) as output:

            def report_problem(found: Problem) -> None:
                output.write(json.dumps(found.record()).encode() + b"\n")

            check = _check_ocfl if store.kind == "ocfl" else _check_others
            records = read_listing(work, chunk)
            counts, advice = check(store, records, self.digests, report_problem, receipt, self.ignore)
            receipt.bytes += counts.get("bytes", 0)
            with work.writing(_counts_name(chunk.id)) as file:
                file.write(json.dumps({"counts": counts, "advice": advice}).encode())
        return receipt.build(self.key, output, name)


_Record = Mapping[str, Any]
# Counts, and advice by code, as JSON values.
_Checked = tuple[dict[str, int], dict[str, tuple[str, int, str, str]]]
# The result of a walk: path, surrounding object, problems, identifier, and whether the object
# is proper.
Walked = tuple[bytes, bytes | None, Iterable[Problem], str | None, bool]


def walked(store: Store, ignore: Sequence[str]) -> Iterator[Problem | Walked]:
    """Yield the results of a store's walk, without opening objects where possible."""
    if not isinstance(store, WalkedStore):
        yield from _walked_ocfl(store, ignore)
        return
    yield from store.own_problems()
    waiting: list[Problem] = []
    for record in store.objects(ignore=ignore, problems=waiting):
        yield from waiting
        waiting.clear()
        yield encode_fs(record.path), None, record.problems, record.id, record.proper
    yield from waiting


def _walked_ocfl(store: Store, ignore: Sequence[str]) -> Iterator[Problem | Walked]:
    from pressmark.stores.ocfl.check import extension_problems, root_problems
    from pressmark.stores.ocfl.checking.object_tree import ObjectTree
    from pressmark.stores.ocfl.walk import Walk

    storage = store.storage  # type: ignore[attr-defined]
    yield from root_problems(storage, store.layout_is_given)  # type: ignore[attr-defined]
    yield from extension_problems(storage)

    def visit(tree: ObjectTree) -> Walked:
        return tree.path, tree.inside, (), None, True

    yield from Walk(storage, visit, reads="paths", clashes=True, ignore=ignore)


def _check_ocfl(
    store: Any,
    records: Iterable[_Record],
    digests: bool,
    report_problem: OnProblem,
    receipt: ReceiptBuilder,
    ignore: Sequence[str],
) -> _Checked:
    from pressmark.stores.ocfl.check import Check, ObjectResult

    pending = set()

    def objects() -> Iterator[Problem | tuple[bytes, bytes | None]]:
        for record in records:
            if record["path"] is None:
                yield from _beside(record, receipt)
            else:
                pending.add(record["path"])
                yield encode_fs(record["path"]), None if record["inside"] is None else encode_fs(record["inside"])

    def record_result(result: ObjectResult) -> None:
        pending.discard(result.path)
        _record_result(receipt, result.path, result.problems)

    def hear(event: object) -> None:
        if isinstance(event, Problem):  # the progress of a chunk is that of its job
            report_problem(event)

    check = Check(store, EventListener(hear), record_result)
    report = check.report_on(objects(), digests, 1, ignore)
    for path in sorted(pending):
        if not os.path.lexists(os.path.join(store.root, path)):
            receipt.count("gone")
            continue
        receipt.fail("wrong", path=path, message="found by the walk, but no longer readable")
    return report.counts, {code: (kind, n, decode_fs(at), words) for code, (kind, n, at, words) in check.advice.items()}


def _check_others(
    store: Any,
    records: Iterable[_Record],
    digests: bool,
    report_problem: OnProblem,
    receipt: ReceiptBuilder,
    ignore: Sequence[str],
) -> _Checked:
    report = Report(counts=_nothing(store.kind, digests))
    for record in records:
        if record["path"] is None:
            for one in _beside(record, receipt):
                report_problem(one)
            continue
        problems = [*map(Problem.from_record, record["problems"])]
        found = StoreObject(record["id"], record["path"], record["proper"], None, tuple(problems))
        now = store.examine(found, digests, report, ignore)
        if not now:
            receipt.count("gone")
            continue
        problems = [one for item in now for one in ((item,) if isinstance(item, Problem) else item.problems)]
        objects = [item for item in now if not isinstance(item, Problem)]
        report.counts["objects"] += len(objects)
        report.counts["proper"] += sum(item.proper for item in objects)
        for one in problems:
            report_problem(one)
        _record_result(receipt, record["path"], problems)
    return report.counts, {}


def _beside(record: _Record, receipt: ReceiptBuilder) -> list[Problem]:
    """Count the problems outside of objects, and return them."""
    problems = [Problem.from_record(one) for one in record["problems"]]
    for one in problems:
        if one.severity == "error":
            receipt.fail("beside", path=one.path, message=one.message)
        else:
            receipt.count("beside")
    return problems


def _nothing(kind: str, digests: bool) -> dict[str, int]:
    """Return the counts of an empty check."""
    if kind == "ocfl":
        return {"objects": 0, "files": 0, **({"bytes": 0} if digests else {})}
    return {"objects": 0, "proper": 0, **({"files": 0, "bytes": 0} if kind == "bags" else {})}


def joined_report(job: CheckStore, work: WorkFolder, on_problem: OnProblem) -> Report:
    """Return the report of a whole run; it counts the problems without keeping them.

    :param on_problem: called with each problem, in the order of the store
    """
    from pressmark.stores.ocfl.check import advice_problems

    report = Report()
    counts = Counter(_nothing(job.kind, job.digests))
    advice: dict[str, tuple[str, int, bytes, str]] = {}

    def report_problem(problem: Problem) -> None:
        report.problems.append(problem)
        on_problem(problem)

    for receipt in work.receipts():
        assert receipt.output is not None
        beside = json.loads(read_regular(work.output_path(_counts_name(receipt.output.removesuffix(".jsonl")))))
        counts.update(beside["counts"])
        for code, (kind, number, first, words) in beside["advice"].items():
            before = advice.get(code, (kind, 0, encode_fs(first), words))
            advice[code] = (*before[:1], before[1] + number, *before[2:])
        with open_regular(work.output_path(receipt.output)) as lines:
            records = list(map(json.loads, lines))
        # Advice is at the end of a chunk's output, one line per code.
        for record in records[: len(records) - len(beside["advice"])]:
            report_problem(Problem.from_record(record))
    for one in advice_problems(advice):
        report_problem(one)
    report.counts.update(counts)
    return report


def _counts_name(stem: str) -> str:
    """Return the name of the file with the counts and advice of a chunk."""
    return f"{stem}.counts.json"


def _record_result(receipt: ReceiptBuilder, path: str, problems: Iterable[Problem]) -> None:
    wrong = [one for one in problems if one.severity == "error"]
    if not wrong:
        receipt.count("ok")
        return
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    receipt.fail("wrong", path=path, message=f"{wrong[0].kind}: {wrong[0].message}{more}")


# --- storing many objects ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PutObjects(_StoreJob):
    """Storing many objects: each chunk stores some, and writes the record or the error of each, one per line.

    Objects are stored one by one: a run that was interrupted has stored some, and the next run of the same chunks finds
    them. Statuses count objects: ``stored``, ``exists_same``, and ``failed``.

    ::

        job = stores.PutObjects("root", options={"user": user})
        work = jobs.WorkFolder.create("root.work", job, job.plan("root.work", items))  # pairs of identifier and path
        print(jobs.run_local(job, work).by_status)

    :ivar root: the store's directory, absolute
    :ivar kind: one of :data:`pressmark.stores.KINDS`; empty to detect it
    :ivar layout: an OCFL ``config.json`` mapping, if the store does not declare a layout
    :ivar options: arguments for opening the store, such as ``user`` and ``message``
    :ivar how: arguments of :meth:`pressmark.stores.Store.put_all`; by default, an object that the store contains with
        the same files is no failure
    """

    how: Mapping[str, object] = field(default_factory=lambda: {"compare": True})

    def parameters(self) -> dict[str, object]:
        """Return the parameters that determine the output, as JSON values."""
        return asdict(self)

    @property
    def key(self) -> str:
        """The key of the job: see :func:`~pressmark.jobs.workdir.job_key`."""
        return job_key("put-objects", self.parameters())

    def plan(
        self,
        folder: str | os.PathLike[str],
        objects: Iterable[tuple[str | bytes, SourcePath] | Exception],
        size: int = FILES,
    ) -> Iterator[Chunk]:
        """Read the objects, and yield chunks of them.

        Of several objects with one identifier the first is stored, because the chunks run in any order.

        :param folder: the work folder for the listing
        :param objects: pairs of identifier and the path of a file or directory; an error stands for an object that
            cannot be stored
        :param size: number of objects in a chunk
        :raises JobError: the work folder is inside the store
        """
        require_outside(folder, self.root)
        return write_listing(folder, LISTING, "objects", self._listed(objects), size, workers=resolve_threads(None))

    def _listed(self, objects: Iterable[tuple[str | bytes, SourcePath] | Exception]) -> Iterator[ListingLine]:
        rest = iter(objects)
        with TemporaryDatabase("CREATE TABLE names (name BLOB PRIMARY KEY) WITHOUT ROWID;") as seen:
            while some := list(islice(rest, LOOKED_UP)):
                names = [encode_fs(found[0]) for found in some if not isinstance(found, Exception)]
                query = f"SELECT name FROM names WHERE name IN ({','.join('?' * len(names))})"
                listed = {name for (name,) in seen.rows(query, names)}
                seen.execute_many("INSERT OR IGNORE INTO names VALUES (?)", zip(names, strict=True))
                for found in some:
                    if isinstance(found, Exception):
                        yield ListingLine({"id": None, "error": str(found)}, 0, None)
                        continue
                    name = encode_fs(found[0])
                    record = {"id": decode_fs(name)}
                    if name in listed:
                        what = "listed before; list each object once, or run without workers"
                        record["error"] = str(ObjectError(self.root, found[0], "exists", what))
                    else:
                        listed.add(name)
                        source = os.fsdecode(found[1])
                        # The workers may have another current directory.
                        record["source"] = source if os.path.isabs(source) else os.path.abspath(source)
                    yield ListingLine(record, 0, name)

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Store the objects of a chunk."""
        name = f"{chunk.id}.jsonl"
        store = self.open()
        with ReceiptBuilder(chunk, work) as receipt, work.writing(name) as output:

            def write(record: Mapping[str, object], status: str) -> None:
                if status == "failed":
                    receipt.fail(status, **record)
                else:
                    receipt.count(status)
                output.write(json.dumps(record).encode() + b"\n")
                work.report(chunk.id, receipt.by_status.total(), 0)

            def objects() -> Iterator[tuple[bytes, str]]:
                for record in read_listing(work, chunk):
                    if "error" in record:
                        write(record, "failed")
                    else:
                        yield encode_fs(record["id"]), record["source"]

            for result in store.put_all(objects(), **self.how):  # type: ignore[arg-type]
                found = result.record
                if found is None:
                    write({"id": decode_fs(encode_fs(result.id)), "error": str(result.error)}, "failed")
                else:
                    write(found.record(), "exists_same" if found.exists_same else "stored")
        return receipt.build(self.key, output, name)

    def results(self, work: WorkFolder) -> Iterator[StoreObject | str]:
        """Yield the record of each object of a run, or the message of its error, in the order of the chunks."""
        for receipt in work.receipts():
            assert receipt.output is not None
            with open_regular(work.output_path(receipt.output)) as lines:
                for record in map(json.loads, lines):
                    yield record["error"] if "error" in record else StoreObject.from_record(record)
