"""Changes of an OCFL object with three versions, killed or refused by the system at every single step.

    python every_version.py FOLDER SAVED kill|ERRNO|-ERRNO [STRIDE]

To be run with disk_faults.c preloaded. For each operation and each change of the disk that it makes: a fresh root, a
child that is armed and does it, and then a look at what is there. The object must be valid, or have an unfinished
version that is whole; a reader finds the old files or the new ones. A repair and, in another copy, the next change of
the object finish the version. Of so many steps one is taken.

Each root that must be valid for other tools is copied to SAVED. The output is a JSON object: the number of steps with
each state.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pressmark
from pressmark.errors import ObjectError, StoreError
from pressmark.stores.ocfl.root import OcflRoot
from support.disk_faults import DiskFault

Files = dict[str, bytes]
State = dict[str, Files]

OLD: Files = {"a": b"a" * 1000, "b": b"b", "deep/c": b"c"}
#: What a run leaves, which the next change removes.
LEFT = {"leftover", "directory-empty"}
#: sha256 is not recommended.
ADVICE = {"inventory-advice"}
USER = {"name": "A Curator", "address": "mailto:curator@example.org"}


def state(root: OcflRoot) -> State:
    """Return every object's files, read by its identifier."""
    found: State = {}
    for record in root.objects():
        assert record.id is not None
        stored = root.get(record.id)
        found[record.id] = {name: Path(path).read_bytes() for name, path in stored.files()}
        for name, data in found[record.id].items():
            with stored.open(name) as file:
                assert file.read() == data
    return found


def build(folder: Path, **form: str) -> OcflRoot:
    """Make a root with an object of three versions, and another object.

    :param form: ``version`` and ``algorithm`` of the root
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in {**OLD, "new": b"new" * 1000, "other": b"other"}.items():
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    OcflRoot.create(folder / "root", pressmark.layout("0002"), version=form.get("version", "1.1"))
    root = OcflRoot(folder / "root", user=USER, algorithm=form.get("algorithm", "sha512"))
    given = folder / "in"
    root.put("info:abc", {"a": given / "a"})
    root.put("info:abc", {"a": given / "a", "b": given / "new"}, replace=True)
    root.put("info:abc", {name: given / name for name in OLD}, replace=True)
    root.put("info:xyz", {"a": given / "a"})
    return root


def opened(folder: Path) -> OcflRoot:
    return OcflRoot(folder / "root", user=USER)


def put(root: OcflRoot, given: Path) -> None:
    source = {"a": given / "a", "d": given / "b", "new/one": given / "new", "new/two": given / "new"}
    root.put("info:abc", source, replace=True)


def update(root: OcflRoot, given: Path) -> None:
    root.update("info:abc", add={"new/one": given / "new"}, remove=["deep/c"], rename={"b": "d"})


def restore(root: OcflRoot, given: Path) -> None:
    """Add a file whose content is in the object, but damaged."""
    root.update("info:abc", add={"new/one": given / "new"})


def bring_back(root: OcflRoot, _given: Path) -> None:
    root.restore("info:abc", "v2")


def upgrade(root: OcflRoot, _given: Path) -> None:
    """Give all objects another form; nothing is copied."""
    for result in root.upgrade(to="1.1", algorithm="sha512"):
        if result.error is not None:
            raise result.error


def delete(root: OcflRoot, _given: Path) -> None:
    root.delete("info:abc")


def next_change(root: OcflRoot, given: Path) -> None:
    root.update("info:abc", add={"next": given / "other"})


def repair_unlisted(root: OcflRoot, _given: Path) -> None:
    root.repair()


def repair_sidecar(root: OcflRoot, _given: Path) -> None:
    root.repair()


def interrupt(folder: Path, change: Callable[[], object], *, is_listed: bool) -> None:
    """Change an object, and undo the last steps of the change.

    :param folder: the object
    :param is_listed: undo only the replacement of the sidecar, not that of the inventory
    """
    [sidecar] = folder.glob("inventory.json.*")
    kept = {path: path.read_bytes() for path in ([sidecar] if is_listed else [sidecar, folder / "inventory.json"])}
    change()
    for path, data in kept.items():
        path.write_bytes(data)


NEW = b"new" * 1000
UPDATED = {"a": OLD["a"], "d": OLD["b"], "new/one": NEW}
#: The operations, and the files of the object afterwards.
OPERATIONS: dict[Callable[[OcflRoot, Path], None], Files] = {
    put: {"a": OLD["a"], "d": OLD["b"], "new/one": NEW, "new/two": NEW},
    update: UPDATED,
    restore: {**OLD, "new/one": NEW},
    bring_back: {"a": OLD["a"], "b": NEW},
    upgrade: OLD,
    delete: {},
    repair_unlisted: UPDATED,
    repair_sidecar: UPDATED,
}


class Proof:
    """The steps of all operations.

    :ivar counts: steps with each state
    """

    def __init__(self, folder: Path, saved: Path, how: str) -> None:
        self._folder = folder
        self._saved = saved
        self._fault = DiskFault(how, StoreError, ObjectError)
        self._number = 0
        self._damage: set[str] = set()  # what the check finds in the object from the beginning
        self.counts: Counter[str] = Counter()

    def step(self, operation: Callable[[OcflRoot, Path], None], step: int) -> bool:
        """Try one step; return False if the operation has fewer."""
        root = build(self._folder, **({"version": "1.0", "algorithm": "sha256"} if operation is upgrade else {}))
        if operation in (repair_unlisted, repair_sidecar):
            folder, given = self._folder / "root/info:abc", self._folder / "in"
            interrupt(folder, lambda: update(root, given), is_listed=operation is repair_sidecar)
        self._damage.clear()
        if operation is restore:
            (self._folder / "root/info:abc/v2/content/b").write_bytes(NEW.upper())
            self._damage.add("content-mismatch")
        before = state(root)
        after = {**before, "info:abc": OPERATIONS[operation]}
        if operation is delete:
            del after["info:abc"]
        change = functools.partial(operation, opened(self._folder), self._folder / "in")
        status = self._fault.run(step, change).status
        where = f"{operation.__name__}, change {step}, ended {status}"
        found = state(root)
        assert found in (before, after), where
        if status == 0:
            assert found == after, where
            self._check(where)
            return False
        errors = [
            one
            for one in opened(self._folder).check(digests=True).problems
            if one.kind not in LEFT | ADVICE | self._damage
        ]
        kinds = [(one.kind, one.code) for one in errors]
        windows = {"E046": "unlisted", "E060": "old sidecar"}
        if operation is upgrade:
            windows |= {"E038": "old form", "E076": "two declarations"}
        assert len(kinds) <= 1, (where, errors)
        for kind, code in kinds:
            assert (kind in ("version-unfinished", "declaration-several"), code in windows) == (True, True), (
                where,
                errors,
            )
        window = windows[str(errors[0].code)] if errors else "valid"
        self.counts[f"{operation.__name__}: {window}"] += 1
        assert window == "valid" or found == (before if window == "unlisted" else after), where
        self._finish(where, operation, window, found, after)
        return True

    def _finish(
        self, where: str, operation: Callable[[OcflRoot, Path], None], window: str, found: State, after: State
    ) -> None:
        if window == "valid":
            self._save()
        copy = self._folder.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder, copy)
        root = opened(self._folder)
        kept = {path: path.read_bytes() for path in Path(root.root).glob("*/v*/**/*") if path.is_file()}
        report = root.repair()
        assert [one for one in report.problems if one.kind not in ADVICE] == [], (where, report.problems)
        expected = found if window == "valid" else after
        assert state(root) == expected, where
        assert {path: path.read_bytes() for path in kept} == kept, where
        self._check(where)
        self._folder, here = copy, self._folder
        # In the copy, nothing is repaired before the next change.
        root = opened(copy)
        if operation is upgrade:
            upgrade(root, copy / "in")
            heads = [root.get(one).inventory["head"] for one in ("info:abc", "info:xyz")]
            assert heads == ["v4", "v2"], (where, heads)
            assert {root.get(one).inventory["digestAlgorithm"] for one in expected} == {"sha512"}, where
        if "info:abc" in expected:
            next_change(root, copy / "in")
            assert state(root) == {**expected, "info:abc": {**expected["info:abc"], "next": b"other"}}, where
        else:
            put(root, copy / "in")
        self._check(where)
        self._folder = here

    def _check(self, where: str) -> None:
        found = opened(self._folder).check(digests=True).problems
        problems = [one for one in found if one.kind not in self._damage | ADVICE]
        assert problems == [], (where, problems)
        names = sorted(os.listdir(self._folder / "root"))
        assert "extensions" not in names, (where, names)
        self._save()

    def _save(self) -> None:
        """Copy the root for other tools, without what a killed run has left outside of objects."""
        if self._damage:
            return
        self._number += 1
        target = self._saved / str(self._number)
        shutil.copytree(self._folder / "root", target, ignore=shutil.ignore_patterns("extensions"))


def main() -> None:
    folder, saved, how, stride = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int((*sys.argv, "1")[4])
    proof = Proof(folder, saved, how)
    for turn, operation in enumerate(OPERATIONS):
        # Each operation starts at another step, so that all kinds of steps are covered.
        step = 1 - stride + turn % stride
        while proof.step(operation, step := step + stride):
            pass
    print(json.dumps(proof.counts))


if __name__ == "__main__":
    main()
