"""Calls as in user code; not run, but checked by mypy and pyright in strict mode.

``assert_type`` fails if the type differs, and so does an ``ignore`` comment without an error.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, assert_type

import pressmark
from pressmark import fixity, migrate, stores
from pressmark.compare import Comparison, compare
from pressmark.reports import Report


class Exported:
    """An object with an Arrow column."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise NotImplementedError


class Series(Exported):
    """A series with the methods of polars that types can tell from others."""

    def drop_nulls(self) -> Series:
        raise NotImplementedError


LAYOUT = pressmark.layout("pairtree")
IDS: list[str | bytes] = ["ark:/13030/xt12t3", b"raw"]


def lists() -> None:
    """A result may be ``None`` only if a failure may become ``None``."""
    assert_type(LAYOUT.map_id("a"), str)
    assert_type(LAYOUT.map_ids(IDS), list[str])
    assert_type(LAYOUT.map_ids(IDS, "raise"), list[str])
    assert_type(LAYOUT.map_ids(IDS, on_error="raise"), list[str])
    assert_type(LAYOUT.map_ids(IDS, on_error="none"), list[str | None])
    assert_type(LAYOUT.map_ids((one for one in IDS), "none"), list[str | None])
    assert_type(LAYOUT.map(IDS), list[str])
    assert_type(LAYOUT.map(one for one in IDS), list[str])
    assert_type(LAYOUT.map("a"), str)
    assert_type(LAYOUT.map(b"a", "raise"), str)
    assert_type(LAYOUT.map("a", on_error="none"), str | None)
    assert_type(LAYOUT.unmap("a"), str)
    assert_type(LAYOUT.unmap(["ab/c"]), list[str])
    assert_type(LAYOUT.unmap(["ab/c"], on_error="raise"), list[str])
    assert_type(LAYOUT.unmap(["ab/c"], on_error="none"), list[str | None])
    assert_type(pressmark.Vitro().map_ids(["a"], on_error="none"), list[str | None])


def either(on_error: Literal["raise", "none"]) -> None:
    """If ``on_error`` is a variable, both are possible."""
    assert_type(LAYOUT.map_ids(IDS, on_error), list[str] | list[str | None])
    assert_type(LAYOUT.unmap(["a"], on_error=on_error), list[str | None])
    assert_type(LAYOUT.map("a", on_error), str | None)


def mistakes() -> None:
    """Calls that fail at run time fail in the type checker."""
    LAYOUT.map_ids(IDS, on_error="skip")  # type: ignore[call-overload]
    LAYOUT.unmap(IDS, on_error=None)  # type: ignore[call-overload]
    _length: int = len(LAYOUT.map_ids(IDS, on_error="none")[0])  # type: ignore[arg-type]
    LAYOUT.map_file(io.BytesIO(), io.BytesIO(), on_error="empty")  # type: ignore[arg-type]
    LAYOUT.map(1)  # type: ignore[call-overload]
    compare(Path("ids.txt"), [LAYOUT], crlf="drop")  # type: ignore[arg-type]


def columns(column: pressmark.StringColumn) -> None:
    """A column may have nulls with either value of ``on_error``."""
    assert_type(LAYOUT.map(column, on_error="none"), pressmark.StringColumn)
    assert_type(LAYOUT.map(column)[0], str | None)
    assert_type(iter(LAYOUT.unmap(column, "none")), Iterator[str | None])


def series(of_polars: Series, of_another: Exported) -> None:
    """A series gives one of the same library; another object with an Arrow column a column of ours."""
    errors: list[pressmark.IdentifierError] = []
    assert_type(LAYOUT.map(of_polars, on_error="none", errors=errors), Series)
    assert_type(LAYOUT.unmap(of_polars), Series)
    assert_type(LAYOUT.map(of_another), pressmark.StringColumn)


def lines() -> None:
    """Failed lines are counted, and their errors collected."""
    errors: list[pressmark.IdentifierError] = []
    progress = pressmark.Progress(lambda now: print(now.done, now.total, now.bytes))
    with open("ids.txt", "rb") as ids, open("paths.txt", "wb") as paths:
        counts = LAYOUT.map_file(ids, paths, on_error="skip", errors=errors, progress=progress)
    assert_type(counts, pressmark.LineCounts)
    assert_type(counts.failed, int)


def files() -> None:
    """A failure is an outcome without digests; the digests of a single file are never ``None``."""
    assert_type(fixity.hash_file("a", ("sha512",)), dict[str, str])
    for outcome in fixity.hash_files(["a", b"b"], ["sha512", "md5"]):
        assert_type(outcome.ok, bool)
        assert_type(outcome.digests, dict[str, str] | None)


def lists_of_identifiers(tmp: Path) -> None:
    """Comparisons and migrations accept ``crlf`` for lists of lines."""
    assert_type(compare(tmp, [LAYOUT], crlf="strip"), Comparison)
    plan = migrate.plan(tmp, tmp, to="bags", ids=tmp / "ids.txt", crlf="strip")
    assert_type(plan, migrate.Plan)


def objects(tmp: Path) -> None:
    """A store yields records; the identifier of a record may be ``None``."""
    store = stores.open(tmp)
    for record in store.objects():
        assert_type(record.id, str | None)
    for record in store.objects(ids=(line.strip() for line in (tmp / "ids").open("rb")), problems=[]):
        assert_type(record, stores.StoreObject)
    assert_type(store.check(match=["a:*", "b:*"]), Report)
    assert_type(stores.check_object(tmp, digests=True), Report)
    options: dict[str, Any] = store.layout.config() if store.layout is not None else {}
    assert_type(pressmark.layout_from_config(options), pressmark.Layout)
    assert_type(store, stores.Store)
    assert_type(stores.open(tmp, "pairtree"), stores.PairtreeStore)
    assert_type(stores.VitroStore.create(tmp, namespaces=["http://a/"]), stores.VitroStore)
    root = stores.open(tmp, "ocfl")
    for version in root.versions("a:1"):
        assert_type(version, stores.VersionInfo)
        assert_type(version.bytes, int | None)
    assert_type(root.diff("a:1", "v1", 2), stores.Changes)
    assert_type(root.get("a:1", version="v2").digests, dict[str, str])
    assert_type(root.update("a:1", add={"new": tmp / "new"}, rename={"old": "new name"}), stores.StoreObject)
    assert_type(root.restore("a:1", "v1", ["a", "b"], message="why"), stores.StoreObject)
    for upgraded in root.upgrade(["a:1"], to="1.1", algorithm="sha512"):
        assert_type(upgraded, stores.IngestResult[stores.StoreObject])
