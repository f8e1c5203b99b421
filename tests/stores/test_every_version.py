"""Changes of an OCFL object, killed or refused at any step, and where two names cannot be exchanged."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pressmark import stores
from support.effort import LONG, stride
from support.preloading import run_preloaded

from .ocfl.peers import NAMES, Missing, open_peer
from .test_ocfl_peers import validate

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

STRIDE = str(stride(17))
# Other stores try the other errors, which all end an operation in the same way.
HOWS = ["kill", f"{errno.EIO}", f"-{errno.ENOSPC}", *([f"-{errno.EIO}", f"-{errno.EROFS}"] if LONG else [])]


@pytest.mark.parametrize("how", HOWS)
def test_every_step_of_a_version(disk_faults: str, tmp_path: Path, how: str) -> None:
    """An object is valid at every step, or has a whole version that a repair or the next change finishes."""
    script = Path(__file__).with_name("every_version.py")
    counts = json.loads(run_preloaded(disk_faults, script, str(tmp_path / "at"), str(tmp_path / "saved"), how, STRIDE))
    assert sum(counts.values()) > 5
    roots = sorted((tmp_path / "saved").iterdir())
    print(how, counts, len(roots), "roots")
    if how != "kill" and not LONG:
        return  # the checks above find the same roots valid
    if importlib.util.find_spec("ocfl") is not None or os.environ.get("PRESSMARK_OCFL_PY"):
        said = validate(*roots)
        wrong = [one for one in said if not (one["valid"] and one["good"] == one["objects"] and not one["errors"])]
        assert (len(said), wrong) == (len(roots), [])
    for name in NAMES:
        with suppress(Missing), closing(open_peer(name)) as peer:
            for root in roots:
                directories = [record.path for record in stores.open(root).objects()]
                verdicts = peer.validate(root, paths=directories)
                assert {one: verdict.errors for one, verdict in verdicts.items()} == {one: [] for one in directories}
                assert name == "ocfl-py" or not peer.validate_root(root)


WITHOUT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from every_version import NEW, OLD, UPDATED, build, put, state, update
from pressmark import migrate, stores
from pressmark.fs import moves

folder = Path(sys.argv[1])
given = folder / "in"
root = build(folder)
assert not moves.exchange(bytes(folder), bytes(folder / "in")), "the shim has no effect"
update(root, given)
assert state(root)["info:abc"] == UPDATED
root.put("info:abc", given / "new", replace=True)
assert state(root)["info:abc"] == {"new": NEW}
assert list(root.get("info:abc").inventory["versions"]) == ["v1", "v2", "v3", "v4", "v5"]
assert root.check(digests=True).problems == []

pairtree = stores.create("pairtree", folder / "pairtree")
pairtree.put("info:abc", given / "a")
plan = migrate.plan(folder / "pairtree", folder / "target", to="ocfl", layout="0003")
assert migrate.run(plan, processes=False).ok
pairtree.put("info:abc", given / "new", replace=True)
assert migrate.run(migrate.catch_up(plan), processes=False).by_status == {"ok": 1}
target = stores.open(folder / "target")
assert list(target.get("info:abc").inventory["versions"]) == ["v1", "v2"]
assert state(target)["info:abc"] == {"new": NEW}
assert target.check(digests=True).ok
"""


def test_without_renameat2(disk_faults: str, tmp_path: Path) -> None:
    """Where two names cannot be exchanged, put, update and a migration that catches up add versions as elsewhere."""
    script = tmp_path / "without.py"
    script.write_text(WITHOUT)
    run_preloaded(disk_faults, script, str(tmp_path / "at"), str(Path(__file__).parent), DISK_NO_RENAMEAT2="1")
