"""On a slow disk, where kernels return before they have handled all items: the same results, and interrupts."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.preloading import preloadable
from support.signals import restore_signals

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


SLOW = [f"slow-{number}" for number in range(100)]
# Commands that would take seconds.
LONG = (
    *(
        "store ls root",
        "store check root --digests",
        "store report root --json",
        "store put books2 --from list.tsv",
        "store put root2 --from list.tsv",
    ),
    *(f"bag {verb} {' '.join(SLOW)}" for verb in ("create", "validate")),
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


def test_an_interrupt(tmp_path: Path) -> None:
    """An interrupt ends a command at once, whatever its threads are reading."""
    library = preloadable(Path(__file__).with_name("slow.c"), tmp_path)
    variables = {**environment(), "LD_PRELOAD": library, "OLD_KERNEL": "1"}

    def make() -> None:
        for name in SLOW:
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            (tmp_path / name).mkdir()
            (tmp_path / name / "slow-file").write_bytes(b"x")

    make()
    (tmp_path / "list.tsv").write_text("".join(f"{name}\t{name}\n" for name in SLOW))

    def run(line: str) -> None:
        subprocess.run([*COMMAND, *line.split()], cwd=tmp_path, env=variables, capture_output=True, check=True)

    for name in ("books", "books2"):
        run(f"store init pairtree {name}")
    for name in ("root", "root2"):
        run(f"store init ocfl {name} --layout 0002")
    for name in ("books", "root"):
        run(f"store put {name} --from list.tsv")
    for line in LONG:
        if line.startswith("bag validate"):
            make()  # some may be bags already
            run(line.replace("validate", "create"))
        begun = tmp_path / "begun"
        process = subprocess.Popen(
            [*COMMAND, *line.split(), *(["--threads", "2"] if "put" not in line else [])],
            cwd=tmp_path,
            env={**variables, "DELAY": "20000", "BEGUN": str(begun)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=restore_signals,
        )
        with process:
            while not begun.exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            sent = time.monotonic()
            _, error = process.communicate(timeout=60)
            # A fifth of a second, and the end of Python on a busy machine.
            assert time.monotonic() - sent < 5, line
        assert process.returncode == 130, (line, error)
        begun.rmdir()
