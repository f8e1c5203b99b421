"""Reports on stores on a server: the numbers of the same store on the disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.conftest import Call, call  # noqa: F401
from pressmark import stores
from stores.reporting.counting import CASES, make_store


@pytest.mark.parametrize("kind", CASES)
def test_report(kind: str, folder: Path, call: Call, tmp_path: Path) -> None:  # noqa: F811
    """The keys of the server have the times of its files."""
    local = make_store(kind, tmp_path / "local", 4)
    stores.audit(stores.open(local), "here")
    here = stores.report(stores.open(local), "here").record()
    shutil.copytree(local, folder / kind)
    assert call("store", "audit", f"s3://books/{kind}", "--state", "there").exit_code == 0
    done = call("store", "report", f"s3://books/{kind}", "--state", "there", "--json")
    assert done.exit_code == 0, done.output
    there = json.loads(done.stdout)["summary"]
    assert there.pop("store") == f"s3://books/{kind}"
    for one in (here, there):
        one.pop("store", None)
        assert one["coverage"]["oldest"]
        del one["created"], one["coverage"]["oldest"]
    assert there == json.loads(json.dumps(here))
