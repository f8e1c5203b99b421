"""The recipes for dataframes, on a frame whose index does not number its rows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import pressmark
from support.implementations import Implementation

from .pages import DOCS, blocks

RECIPES = [block for block in blocks(DOCS / "how-to/dataframes.md")[1:] if block.language == "python"]


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask with pandas 3.1
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb", "dask"])
def test_recipes_on_a_filtered_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, implementation: Implementation
) -> None:
    """Each row has the path of its identifier, also in a frame that was filtered and sorted."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    frame = pandas.DataFrame({"id": [f"ark:/{number}" for number in range(9)], "year": range(1900, 1909)})
    frame[frame["year"] > 1903].sort_values("year", ascending=False).to_parquet("ids.parquet")
    if library == "duckdb":
        # The default connection keeps functions; each run has a connection of its own.
        duckdb = pytest.importorskip("duckdb")
        monkeypatch.setattr(duckdb, "sql", (own := duckdb.connect()).sql)
        monkeypatch.setattr(duckdb, "create_function", own.create_function)
    names: dict[str, Any] = {}
    checked = 0
    for block in RECIPES:
        if block.not_run or block.requires[:1] != (library,):
            continue
        exec(compile(block.text, block.place, "exec"), names)
        frames = [names.pop(name) for name in ("frame", "table") if name in names]
        for path in filter(Path.exists, (Path("paths.parquet"), Path("paths"))):
            frames.append(pandas.read_parquet(path))
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        for one in frames:
            checked += 1
            paths = pressmark.layout("0003").map_ids(list(map(str, one["id"])))
            assert list(map(str, one["path"])) == paths, block.place
    assert checked
