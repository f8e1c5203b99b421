"""Every change of the disk by a migration, killed or refused by the system; run with disk_faults.c preloaded.

    python every_change.py FROM TO copy|move FOLDER kill|ERRNO|-ERRNO STRIDE

For every STRIDE-th change of the disk, this creates a new source, runs a migration in a child process that fails at
that change, and checks both stores. No object may be lost or different, and no row may report success without its
object. When the run is resumed, or planned again if it had not started, it ends with the result of an uninterrupted
run.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from migrate.samples import Files, held, make, rows_of
from pressmark import migrate, stores
from pressmark.errors import PressmarkError
from pressmark.migrate.entry import GOOD
from pressmark.migrate.transfer import object_transfer as transfer
from support.disk_faults import DiskFault

GIVEN: dict[str, Files] = {name: {"one": name.encode() * 9} for name in ("aa1", "bb2", "bbx")}


def there(folder: Path) -> dict[str, Files]:
    """Return the objects of a destination; none if it is not a store yet."""
    try:
        return held(stores.open(folder))
    except PressmarkError:
        return {}


class Case:
    """A source and its destination."""

    def __init__(self, kind: str, to: str, move: bool, folder: Path) -> None:
        self.kind = kind
        self.folder, self.source, self.destination = folder, folder / "source", folder / "destination"
        self.work = Path(f"{self.destination}.migration")
        self.options = {"to": to, "layout": "0003" if to == "ocfl" else None, "move": move}
        make(kind, folder.with_name("pristine"), GIVEN, folder.with_name("given"))

    def renew(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.folder.with_name("pristine"), self.source)

    def go(self) -> migrate.Run:
        """Plan and run, resume, or continue a finished run's leftovers."""
        remaining = self.work / "remaining.txt"
        state = migrate.state(self.work)
        if state == "begun" or (state == "finished" and not remaining.read_bytes()):
            return migrate.resume(self.work, processes=False)
        ids = remaining if state == "finished" else None
        return migrate.run(migrate.plan(self.source, self.destination, ids=ids, **self.options), processes=False)

    def look(self, where: str) -> None:
        """Check both stores before any cleaning."""
        here, arrived = held(stores.open(self.source)), there(self.destination)
        assert here.items() <= GIVEN.items(), where
        assert arrived.items() <= GIVEN.items(), where
        assert {**here, **arrived} == GIVEN, where
        assert self.options["move"] or here == GIVEN, where
        assert all(row.status not in GOOD or row.id in arrived for row in rows_of(self.work)), where
        if self.kind == "ocfl":
            # Above the one object in progress; a resumed run removes them.
            found = stores.open(self.source).check().problems
            assert sum(one.kind == "directory-empty" for one in found) <= 1, where


def main() -> None:
    kind, to, way, folder, how, stride = sys.argv[1:]
    case = Case(kind, to, way == "move", Path(folder, "case"))
    fault = DiskFault(how, PressmarkError)
    transfer.WAITS = (0.001, 0.001, 0.001)
    step = 1
    cases = 0
    while True:
        case.renew()
        status = fault.run(step, lambda: case.go().ok).status
        where = f"change {step}, ended {status}"
        case.look(where)
        for _ in range(3):
            if (run := case.go()).ok:
                break
        assert run.ok, (where, run)
        case.look(where)
        assert there(case.destination) == GIVEN, where
        assert not case.options["move"] or not held(stores.open(case.source)), where
        assert kind != "ocfl" or stores.open(case.source).check().ok, where
        assert not [one for one in stores.open(case.destination).check().problems if one.severity == "error"], where
        if status == 0:
            break
        cases += 1
        step += int(stride)
    print(cases)


if __name__ == "__main__":
    main()
