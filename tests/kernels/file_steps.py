"""Lists of steps with a fault at every change of the disk: both implementations end alike.

    python file_steps.py FOLDER

Run with disk_faults.c preloaded.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

from pressmark import _kernels
from pressmark._kernels.records import ALONE, FLUSH, LOCK, MAKE, MODE, MOVE, RMDIR, UNLINK, WRITE, Step
from support.disk_faults import DiskFault

LISTS: list[list[Step]] = [
    [(MAKE, b"h", 0o755), (LOCK, b"h/lock", None), (MAKE, b"h/new", 0o777), (WRITE, b"h/new/f", b"1" * 100_000)],
    [
        (WRITE, b"f", b""),
        (MODE, b"f", 0o640),
        (MOVE, b"f", b"g"),
        (MOVE, b"d", b"e"),
        (ALONE, b"e", b"x"),
        (FLUSH, b"", None),
    ],
    [(MOVE, b"d/x", b"f"), (FLUSH, b"f", None), (UNLINK, b"f", None), (UNLINK, b"f", None)],
    [(UNLINK, b"d/x", None), (RMDIR, b"d", None), (WRITE, b"f", b"2"), (UNLINK, b"f", None)],
]


class _Fault(DiskFault):
    """A fault of this process."""

    def arm_at(self, step: int) -> None:
        self._armed = (0, step, self._number)
        self.arm()


def outcome(name: str, folder: Path, fault: _Fault, step: int) -> tuple[object, object]:
    """Run all lists in new folders; return the outcomes and the resulting files."""
    shutil.rmtree(folder, ignore_errors=True)
    bases = []
    for number in range(len(LISTS)):
        base = folder / str(number)
        (base / "d").mkdir(parents=True)
        (base / "d" / "x").write_bytes(b"x")
        bases.append(os.fsencode(base))
    fault.arm_at(step)
    found = _kernels.load(name).run_steps(bases, LISTS)
    fault.disarm()
    for _error, _made, lock in found:
        if lock >= 0:
            os.close(lock)
    ends = [(error, made, lock >= 0) for error, made, lock in found]
    files = sorted(
        (str(path.relative_to(folder)), path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    )
    return ends, files


def main() -> None:
    folder = Path(sys.argv[1])
    for number in (errno.EIO, errno.ENOSPC, -errno.EROFS):
        fault = _Fault(str(number))
        step = 0
        sound = outcome("pure", folder, fault, 0)
        while True:
            step += 1
            native, pure = (outcome(name, folder, fault, step) for name in ("native", "pure"))
            assert native == pure, (number, step, native, pure)
            if pure == sound:
                break
        assert step > 15, step


if __name__ == "__main__":
    main()
