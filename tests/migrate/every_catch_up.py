"""Every change of the disk by a catch-up into an OCFL root, killed or refused; run with disk_faults.c preloaded.

    python every_catch_up.py FROM FOLDER kill|ERRNO|-ERRNO STRIDE

A finished run, then changes of the source. For one change of the disk in so many: a child that is armed plans the
catch-up and runs it. Each object of the destination has its old or its new files, whole, and its first version is what
it was; the destination is valid but for a version that is not finished, which a repair or the resumed run finishes.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import cast

from migrate.samples import Files, held, make, rows_of, write
from pressmark import migrate, stores
from pressmark.errors import PressmarkError
from pressmark.migrate.entry import GOOD
from pressmark.migrate.transfer import object_transfer as transfer
from pressmark.stores import StoredObject
from pressmark.stores.ocfl.root import OcflRoot
from support.disk_faults import DiskFault

OLD: dict[str, Files] = {name: {"one": name.encode() * 9, "sub/two": b"2", "gone": b"3"} for name in ("aa1", "bb2")}
OLD["cc3"] = {"one": b"stays"}
#: The versions of the source that follow, of an OCFL source; of others only the last.
LATER: dict[str, list[Files]] = {
    "aa1": [{"one": b"new", "sub/two": b"2", "gone": b"3"}, {"one": b"new", "moved/two": b"2", "more": b"4"}],
    "bb2": [{"one": b"bb2" * 9, "sub/two": b"2"}],
    "dd4": [{"one": b"added"}],
}
NEW: dict[str, Files] = {**OLD, **{name: versions[-1] for name, versions in LATER.items()}}
#: What a killed run leaves, and the next one removes.
LEFT = {"leftover", "directory-empty", "extensions-file"}


def files_of(found: StoredObject) -> Files:
    return {name: Path(path).read_bytes() for name, path in found.files()}


class Case:
    """A source that has changed, and the destination of a finished run."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.source, self.destination = folder / "source", folder / "destination"
        self.pristine, self.work = folder / "pristine", folder / "destination.migration"
        self.next = Path(f"{self.work}-2")
        store = make(kind, self.source, OLD, folder / "given")
        assert migrate.run(migrate.plan(self.source, self.destination, to="ocfl", layout="0003"), processes=False).ok
        shutil.copytree(self.destination, self.pristine)
        later = {name: versions if kind == "ocfl" else versions[-1:] for name, versions in LATER.items()}
        for identifier, versions in later.items():
            for number, files in enumerate(versions):
                store.put(identifier, write(folder / f"later-{identifier}-{number}", files), replace=True)
        #: The versions of each object in the end.
        self.versions = {name: [*([OLD[name]] if name in OLD else []), *later.get(name, [])] for name in NEW}

    def renew(self) -> None:
        shutil.rmtree(self.destination)
        shutil.copytree(self.pristine, self.destination)
        for later in self.work.parent.glob(f"{self.work.name}-*"):
            shutil.rmtree(later)

    def go(self) -> migrate.Run:
        """Catch up, or resume a catch-up."""
        work = migrate.work_folder(self.destination)
        if migrate.state(work) == "begun":
            return migrate.resume(work, processes=False)
        finished = migrate.finished_folder(self.destination)
        assert finished is not None
        return migrate.run(migrate.catch_up(finished, work=work), processes=False)

    def root(self) -> OcflRoot:
        return cast(OcflRoot, stores.open(self.destination))

    def look(self, where: str) -> set[str]:
        """Check both stores, and return the problems of the destination."""
        assert held(stores.open(self.source)) == NEW, where
        root = self.root()
        there = held(root)
        assert OLD.keys() <= there.keys() <= NEW.keys(), where
        for identifier, files in there.items():
            expected = self.versions[identifier]
            found = [files_of(root.get(identifier, one.version)) for one in root.versions(identifier)]
            assert found == expected[: len(found)], (where, identifier, found)
            assert files == found[-1], (where, identifier, files)
        assert all(row.status not in GOOD or there.get(row.id) == NEW[row.id] for row in rows_of(self.next)), where
        return {one.kind for one in root.check(digests=True).problems if one.severity == "error"}


def main() -> None:
    kind, folder, how, stride = sys.argv[1:]
    case = Case(kind, Path(folder))
    fault = DiskFault(how, PressmarkError)
    transfer.WAITS = (0.001, 0.001, 0.001)
    step, cases, unfinished = 1, 0, 0
    while True:
        case.renew()
        status = fault.run(step, lambda: case.go().ok).status
        where = f"change {step}, ended {status}"
        found = case.look(where)
        assert found <= LEFT | {"version-unfinished"}, (where, found)
        if "version-unfinished" in found:
            unfinished += 1
            if unfinished % 2:  # finished by a repair, or by the run
                case.root().repair()
                assert not case.look(where), where
        for _ in range(3):
            if (run := case.go()).ok:
                break
        assert run.ok, (where, run)
        assert not case.look(where), (where, case.root().check().problems)
        assert held(case.root()) == NEW, where
        for identifier, versions in case.versions.items():
            assert len(case.root().versions(identifier)) == len(versions), (where, identifier)
        if status == 0:
            break
        cases += 1
        step += int(stride)
    print(cases, unfinished)


if __name__ == "__main__":
    main()
