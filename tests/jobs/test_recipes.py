"""The code in docs/how-to/jobs.md and dataframes.md, run unchanged."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pressmark
from support.processes import PACKAGE

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
DOCUMENTS = [GUIDES / "jobs.md", GUIDES / "dataframes.md"]
pytestmark = pytest.mark.skipif(not GUIDES.exists(), reason="the tests stand apart from the documents")

LAYOUT = pressmark.layout("0003")
IDENTIFIERS = [f"mdp.{number:04d}" for number in range(2000)]
COLUMN = [*IDENTIFIERS, None, ""]
PATHS = [*LAYOUT.map_ids(IDENTIFIERS), None, None]


def recipe(name: str) -> str:
    """Return the code after ``<!-- name -->``."""
    text = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    [found] = re.findall(rf"<!-- {name} -->\n```python\n(.*?)```\n", text, re.DOTALL)
    return str(found)


def done_here(name: str, **names: Any) -> dict[str, Any]:
    """Run a recipe in this process, and return its names."""
    names["__name__"] = __name__
    exec(compile(recipe(name), name, "exec", dont_inherit=True), names)
    return names


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with ids.parquet."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"id": COLUMN, "year": [1999] * len(COLUMN)}), tmp_path / "ids.parquet", row_group_size=500)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_script(folder: Path, name: str, code: str, *arguments: str) -> str:
    (folder / f"{name}.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, f"{name}.py", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def written() -> list[tuple[Any, Any]]:
    pq = pytest.importorskip("pyarrow.parquet")
    return [(row["id"], row["path"]) for row in pq.read_table("paths.parquet").to_pylist()]


def test_local_and_resumed(tmp_path: Path) -> None:
    """The script hashes a tree; the resuming script does what is left."""
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    for name in ("one", "sub/two"):
        (tmp_path / "tree" / name).write_text(name)
    assert run_script(tmp_path, "local", recipe("local")) == "2 files, 0 without a digest\n"
    manifest = "".join(f"{hashlib.sha512(name.encode()).hexdigest()}  {name}\n" for name in ("one", "sub/two"))
    assert hashed(tmp_path) == manifest
    next((tmp_path / "work" / "receipts").iterdir()).unlink()
    out = run_script(tmp_path, "resume", recipe("logging") + recipe("resume")).splitlines()
    assert (out[0], out[-1]) == ("1 chunks to go", "True")
    assert out[1:-1] == ["<Progress 0 done, 0 bytes>", "<Progress 2 done, 10 bytes>"]
    assert "work: 1 of 1 chunks done" in (tmp_path / "run.log").read_text()
    assert hashed(tmp_path) == manifest


def hashed(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted((folder / "work" / "output").iterdir()))


def trees(folder: Path, code: str) -> str:
    """Write a tree, and return the code for it."""
    (folder / "tree").mkdir()
    (folder / "tree" / "one").write_text("1")
    return code.replace("/data/tree", str(folder / "tree"))


def test_mpi(tmp_path: Path) -> None:
    """The script uses only the executor of mpi4py."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").touch()
    (tmp_path / "mpi4py" / "futures.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor as MPIPoolExecutor"
    )
    out = run_script(tmp_path, "script", trees(tmp_path, recipe("mpi")))
    assert out.startswith("Summary(chunks=1, done=1, n=1, bytes=1, errors=0, by_status={'ok': 1}")


def test_dask(tmp_path: Path) -> None:
    """The script runs on a cluster with a given address."""
    distributed = pytest.importorskip("distributed")
    code = trees(tmp_path, recipe("dask"))
    # Without a dashboard address, the scheduler uses port 8787, and warns if another cluster has it.
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address=":0"
    ) as cluster:
        out = run_script(tmp_path, "script", code, cluster.scheduler_address)
    assert out.startswith("Summary(chunks=1, done=1, n=1, bytes=1, errors=0, by_status={'ok': 1}")


class Frame:
    """A stand-in for Spark's ``mapInArrow``: the function is pickled and applied to batches."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = list(batches)

    def mapInArrow(self, function: Any, schema: str) -> list[Any]:
        import pyarrow as pa

        names = [part.split()[0] for part in schema.split(", ")]
        expected = pa.schema([(name, pa.string()) for name in names])

        def once() -> Iterator[Any]:
            yield from self._batches

        results = list(function(once()))
        assert all(isinstance(one, pa.RecordBatch) and one.schema == expected for one in results)
        return results


def test_spark() -> None:
    """The function maps record batches to record batches, as Spark requires."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"id": COLUMN, "year": [1999] * len(COLUMN)})
    empty = pa.RecordBatch.from_pydict({"id": [], "year": []}, schema=table.schema)
    names = done_here("spark", frame=Frame([*table.to_batches(300), empty]))
    found = pa.Table.from_batches(names["paths"])
    assert found.column("identifier").to_pylist() == COLUMN
    assert found.column("path").to_pylist() == PATHS
    # Referenced objects are pickled with it.
    assert pickle.loads(pickle.dumps(names["layout"])) == LAYOUT


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engines(folder: Path, engine: str) -> None:
    """The engine writes a file with the paths."""
    pytest.importorskip(engine)
    done_here(engine)
    assert written() == list(zip(COLUMN, PATHS, strict=True))
