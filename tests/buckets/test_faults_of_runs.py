"""Migrations and new bags through a network that fails: each fault at each request."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pressmark import bagit, migrate, stores
from pressmark.buckets import address

from .proxy import Proxy
from .test_ocfl_faults import FAULTS, FIT, no_waits  # noqa: F401

if TYPE_CHECKING:
    from pressmark.buckets.s3 import S3Bucket

FILES = {"a.txt": b"a", "deep/b.bin": bytes(range(256)) * 10}


@pytest.fixture(autouse=True)
def no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probe nothing: that is another test's."""
    for where in ("pressmark.buckets.probe", "pressmark.stores.ocfl.remote.location"):
        monkeypatch.setattr(f"{where}.probe", lambda _bucket, _prefix: FIT)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A storage root with an object of two versions, a Pairtree and a bag."""
    root = stores.OcflRoot.create(tmp_path / "root", "0003", user={"name": "A Curator"})
    root.put("id:1", FILES)
    root.update("id:1", add={"more": b"more"})
    stores.create("pairtree", tmp_path / "tree").put("id:1", FILES)
    for name, content in FILES.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
    bagit.create(tmp_path / "in", tmp_path / "bag")
    return tmp_path


NUMBERS = count()


def migrated(source: str, destination: str, folder: Path, to: str = "ocfl") -> None:
    how: dict[str, Any] = {"layout": "0004"} if to == "ocfl" else {}
    plan = migrate.plan(source, destination, to=to, work=folder / f"work{next(NUMBERS)}", **how)
    run = migrate.run(plan, processes=False)
    assert (run.by_status, run.complete) == ({"ok": 1}, True), [row.error for row in run.rows()]
    store = stores.open(destination)
    files = {name: store.get("id:1").read_bytes(name) for name, _path in store.get("id:1").files()}
    assert FILES.items() <= files.items()


def valid(where: str) -> None:
    assert bagit.validate(where).ok


# Each takes the folder of what was made, and an address of its own.
RUNS: dict[str, Callable[[Path, str], object]] = {
    "migrate a Pairtree": lambda made, there: migrated(str(made / "tree"), there, made),
    "migrate a root": lambda made, there: migrated(str(made / "root"), there, made),
    "migrate back": lambda made, there: migrated(
        f"{there.rpartition('/number/')[0]}/root", f"{made}/{there[-6:]}", made, "pairtree"
    ),
    "create a bag": lambda made, there: (bagit.create(made / "in", there), valid(there)),
    "pack a bag": lambda made, there: (bagit.pack(made / "bag", f"{there}.tar.gz"), valid(f"{there}.tar.gz")),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", RUNS)
def test_every_fault(
    proxied: S3Bucket,
    proxy: Proxy,
    made: Path,
    name: str,
    fault: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that fails for a time is repeated, so that everything arrives."""
    monkeypatch.setattr(address, "open_bucket", lambda text: (proxied, address.parse(text)[1]))
    run = RUNS[name]
    if name == "migrate back":
        migrated(str(made / "root"), f"{proxied.url}/root", made)
    proxy.reset()
    run(made, f"{proxied.url}/number/000000")
    requests = len(proxy.requests)
    # Each request in the long form; every thirteenth otherwise, another one for each fault.
    step = 1 if request.config.getoption("--long") else 13
    for number in range(1 + list(FAULTS).index(fault) % step, requests + 1, step):
        proxy.reset()
        proxy.faults = {number: FAULTS[fault]}
        run(made, f"{proxied.url}/number/{number:06}")
