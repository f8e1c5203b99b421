"""Advice on damaged bags: it follows the cause, and names no way that deletes or drops anything."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bagit.bags import Sketch, tree
from cli.conftest import call
from pressmark.bagit.archive.pack import pack
from pressmark.bagit.bag import update
from pressmark.bagit.problems import KINDS, REMEDIES
from pressmark.bagit.validation.validate import validate
from pressmark.errors import BagInvalidError

__all__ = ["call"]

PAYLOAD = {b"data/a.txt": b"a", b"data/sub/b.txt": b"bb", b"data/sub/c d.txt": b"ccc"}
LOSES = re.compile(r"\b(?:remove[sd]?|delete[sd]?|drop(?:ped)?|discard|rm)\b|--accept", re.IGNORECASE)
MANIFEST = "manifest-md5.txt"


def sketch(*algorithms: str) -> Sketch:
    names = list(algorithms or ["md5"])
    return Sketch(payload=dict(PAYLOAD), info=b"Payload-Oxum: 6.3\n", algorithms=names, tag_algorithms=names)


def rewrite(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def damage(bag: Path) -> None:
        (bag / MANIFEST).write_bytes(change((bag / MANIFEST).read_bytes()))

    return damage


def by_line(form: str) -> Callable[[Path], object]:
    def change(data: bytes) -> bytes:
        lines = (line.split("  ", 1) for line in data.decode().splitlines())
        return "".join(f"{form.format(digest, path, path.replace('/', chr(92)))}\n" for digest, path in lines).encode()

    return rewrite(change)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": rewrite(lambda _data: b""),
    "cut in a line": rewrite(lambda data: data[:-20]),
    "cut after a line": rewrite(lambda data: data[: data.rindex(b"\n", 0, -1) + 1]),
    "zeroed": rewrite(lambda data: bytes(len(data))),
    "zeroed at the end": rewrite(lambda data: data[:60] + bytes(len(data) - 60)),
    "no manifest": lambda bag: (bag / MANIFEST).unlink(),
    "no data": lambda bag: shutil.rmtree(bag / "data"),
    "empty data": lambda bag: [path.unlink() for path in bag.rglob("data/**/*.txt")],
    "data is a file": lambda bag: (shutil.rmtree(bag / "data"), (bag / "data").write_bytes(b"")),
    "no bagit.txt": lambda bag: (bag / "bagit.txt").unlink(),
    "empty bagit.txt": lambda bag: (bag / "bagit.txt").write_bytes(b""),
    "zeroed bagit.txt": lambda bag: (bag / "bagit.txt").write_bytes(bytes(55)),
    "BSD": by_line("MD5 ({1}) = {0}"),
    "hashdeep": rewrite(lambda data: b"%%%% HASHDEEP-1.0\n" + data.replace(b"  ", b",/x/")),
    "hashdeep lines": by_line("1,{0},/x/{1}"),
    "backslashes": by_line("{0}  {2}"),
    "swapped": by_line("{1}  {0}"),
}
FOREIGN = {"BSD": "BSD", "hashdeep": "hashdeep", "hashdeep lines": "hashdeep", "backslashes": "backslashes"}
FOREIGN["swapped"] = "path before the checksum"


@pytest.mark.parametrize("tag_manifests", [["md5"], []], ids=["tag manifest", "no tag manifest"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_advice_follows_the_cause(
    tmp_path: Path, call: Any, implementation: Any, damage: str, tag_manifests: list[str]
) -> None:
    """No command names a way that loses the content or the checksums of the bag, or changes it."""
    bag = tmp_path / "bag"
    described = sketch()
    described.tag_algorithms = tag_manifests
    described.write(bag)
    DAMAGES[damage](bag)
    before = tree(bag)
    shown = call("bag", "validate", f"{bag}")
    assert shown.exit_code == 1
    advice = shown.stderr.splitlines()[-1]
    if damage == "cut after a line" and not tag_manifests:
        assert advice.endswith("--accept added"), advice  # nothing tells a cut manifest from a new file
        assert "another copy" in advice
    else:
        assert not LOSES.search(advice), advice
    assert not LOSES.search(shown.stdout), shown.stdout
    lines = call("bag", "validate", f"{bag}", "--json").stdout.splitlines()
    messages = [one["message"] for one in map(json.loads, lines) if "message" in one]
    assert not any(map(LOSES.search, messages)), messages
    if damage in FOREIGN:
        assert all(FOREIGN[damage] in one for one in messages[: 1 + damage.startswith("hashdeep ")]), messages
    refused = call("bag", "update", f"{bag}")
    if refused.exit_code:
        assert refused.exit_code in (1, 2)
        if not advice.endswith("--accept added"):
            assert not LOSES.search(refused.stderr), refused.stderr
        assert tree(bag) == before
    else:
        assert damage.endswith("bagit.txt") or damage == "backslashes", refused.output
        assert validate(bag).ok


@pytest.mark.parametrize("damage", ["empty", "no data", "BSD"])
def test_advice_on_archives(tmp_path: Path, call: Any, damage: str) -> None:
    """The damage of an archive has the same cause."""
    bag = tmp_path / "bag"
    sketch().write(bag)
    DAMAGES[damage](bag)
    shutil.make_archive(f"{bag}", "zip", tmp_path, "bag")
    shown = call("bag", "validate", f"{bag}.zip")
    assert "request the archive again" in shown.stderr.splitlines()[-1]
    assert not LOSES.search(shown.stderr)


@pytest.mark.parametrize("damage", ["no data", "empty data"])
def test_a_payload_is_never_accepted_as_removed_as_a_whole(tmp_path: Path, implementation: Any, damage: str) -> None:
    """The manifests of a bag without any payload file are the only record of it."""
    bag = tmp_path / "bag"
    sketch().write(bag)
    DAMAGES[damage](bag)
    before = tree(bag)
    with pytest.raises(BagInvalidError, match=r"data/ from another copy") as caught:
        update(bag, accept=["added", "removed", "changed", "tag-files"])
    assert "payload-directory-missing" in [one.kind for one in caught.value.report.errors]
    assert tree(bag) == before
    (bag / "data").mkdir(exist_ok=True)
    (bag / "data" / "a.txt").write_bytes(b"a")
    update(bag, accept=["removed"])
    assert validate(bag).ok


def test_a_damaged_manifest_among_others(tmp_path: Path, call: Any, implementation: Any) -> None:
    """If one of two manifests is missing, the advice is not to do without it."""
    bag = tmp_path / "bag"
    sketch("md5", "sha512").write(bag)
    (bag / MANIFEST).unlink()
    for command in ("validate", "update"):
        shown = call("bag", command, f"{bag}")
        assert shown.exit_code == 1
        assert "restore the manifest from another copy" in shown.stderr
        assert not LOSES.search(shown.stderr)


def test_several_bags(tmp_path: Path, call: Any) -> None:
    """The payload of one bag and the manifest of another are not mixed up."""
    for name in ("one", "two"):
        sketch().write(tmp_path / name)
    (tmp_path / "one" / "data" / "new").write_bytes(b"")
    shown = call("bag", "validate", f"{tmp_path / 'one'}", f"{tmp_path / 'two'}")
    assert "--accept added" in shown.stderr.splitlines()[-1]
    DAMAGES["no data"](tmp_path / "two")
    shown = call("bag", "validate", f"{tmp_path / 'one'}", f"{tmp_path / 'two'}")
    assert not LOSES.search(shown.stderr.splitlines()[-1])


def test_no_remedy_deletes() -> None:
    """No remedy removes a file or a line; those that accept a change are about one that is intended."""
    assert set(REMEDIES) == set(KINDS)
    for kind, remedy in REMEDIES.items():
        assert not re.search(r"\bremove\b|\bdelete\b|\brm\b", remedy), (kind, remedy)


def test_packing_reports_the_cause(tmp_path: Path) -> None:
    """A damaged bag is not packed."""
    bag = tmp_path / "bag"
    sketch().write(bag)
    DAMAGES["BSD"](bag)
    with pytest.raises(BagInvalidError, match="format of BSD tools"):
        pack(bag)
    assert os.listdir(tmp_path) == ["bag"]
