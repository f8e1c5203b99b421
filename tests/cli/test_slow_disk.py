"""On a slow disk, where calls of the kernels return before they have handled all items, the results are the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.preloading import preloadable

from .conftest import COMMAND, environment

pytestmark = pytest.mark.slow_under_sanitizers

# A turn of a tenth of a second is enough for a few of the objects.
OBJECTS, DELAY = 8, 0.02
# Inventories and plans contain times.
TIMES = re.compile(r"inventory|\.migration")
COMMANDS = (
    *("store init pairtree books", "store init ocfl root --layout 0002"),
    *("store put books --from list.tsv", "store put root --from list.tsv"),
    *("store ls books", "store check root --digests"),
    "migrate books bags --to bags --dry-run",
    *(f"bag {verb} {' '.join(f'slow-{number}' for number in range(OBJECTS))}" for verb in ("create", "validate")),
)


def test_the_same_results(tmp_path: Path) -> None:
    library = preloadable(Path(__file__).with_name("slow.c"), tmp_path)
    variables = {**environment(), "SOURCE_DATE_EPOCH": "0", "LD_PRELOAD": library, "OLD_KERNEL": "1"}
    results = []
    for name, delay in ("fast", 0), ("slow", DELAY):
        variables["DELAY"] = str(round(delay * 1e6))
        folder = tmp_path / name
        for number in range(OBJECTS):
            (folder / f"slow-{number}").mkdir(parents=True)
            (folder / f"slow-{number}" / "slow-file").write_bytes(b"%d" % number)
        lines = [f"slow-{number}\tslow-{number}\n" for number in range(OBJECTS)]
        (folder / "list.tsv").write_text("".join(lines))
        output = []
        for line in COMMANDS:
            done = subprocess.run(
                [*COMMAND, *line.split()], cwd=folder, env=variables, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (line, done.stderr)
            output.append((line, done.stdout, done.stderr))
        paths = [path for path in folder.rglob("*") if path.is_file() and not TIMES.search(str(path))]
        results.append((output, {path.relative_to(folder): path.read_bytes() for path in paths}))
    assert results[0] == results[1]
