"""Roots that Pressmark writes are valid for ocfl-py, and ocfl-py's errors are errors here."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pressmark import DirectClean
from pressmark.stores.ocfl.root import OcflRoot
from support.effort import LONG
from support.samples import OCFL_WORDS

from .ocfl.samples import CREATED, USER, create, kinds, source
from .ocfl.test_object import BAD, folder_of

pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.slow_under_sanitizers]

VALIDATE = Path(__file__).with_name("ocfl_validate.py")
OBJECTS = 1000 if LONG else 40


@pytest.fixture(scope="module", autouse=True)
def _needs_ocfl_py(request: pytest.FixtureRequest) -> None:
    if os.environ.get("PRESSMARK_OCFL_PY"):
        return
    if importlib.util.find_spec("ocfl") is None:
        if request.config.getoption("--require-peers", default=False):
            pytest.fail("ocfl-py is not installed")
        pytest.skip("ocfl-py is not installed")


def validate(*roots: Path) -> list[dict[str, Any]]:
    """Return ocfl-py's results for storage roots."""
    # PRESSMARK_OCFL_PY names another Python with ocfl-py, to keep its dependencies out of this one.
    python = os.environ.get("PRESSMARK_OCFL_PY") or sys.executable
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, VALIDATE, *roots], stdout=subprocess.PIPE, env=environment, timeout=600, check=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def identifier(word: str, number: int) -> str:
    """Return an identifier with a distinct path in the layout."""
    match word:
        case "0002":
            return f"object-{number} \u00e9\u4f8b"
        case "0007":
            return f"info:{number:09}"
        case "0010":
            return f"info:{number:03}"
        case "0012":
            return f"info:fedora/{number}:{number} \u4f8b~{'long' * (number % 40)}"
        case _:
            return f"info:x{number}/{number} \u00e9\u4f8b"


# The version of OCFL changes nothing in a layout.
@pytest.mark.parametrize(
    ("word", "version"),
    [
        (word, version)
        for version in ("1.0", "1.1")
        for word in OCFL_WORDS
        if LONG or version == "1.1" or word in OCFL_WORDS[:2]
    ],
)
def test_roots_are_valid_for_ocfl_py(tmp_path: Path, word: str, version: str) -> None:
    """A thousand objects under each layout are valid for ocfl-py, and listed at the paths of our walk."""
    if word == "0010" and version == "1.0":
        pytest.skip("0010 needs OCFL 1.1")
    root = create(tmp_path / "root", word, version=version, algorithm="sha256" if version == "1.0" else "sha512")
    given = source(tmp_path / "in")
    files = {"a \u00e9~": given / "a.txt", "d/e/f": given / "deep/er/b.txt", "same": given / "same.txt"}
    clean = DirectClean(encode_utf=True)
    mapped = OcflRoot(root.root, content_paths=clean, user=USER, durable=False)
    for number in range(OBJECTS):
        (given / "a.txt").write_bytes(b"%d" % number)
        fixity = {"md5": {}, "sha1": {}} if number % 2 else {}
        into = mapped if number % 5 == 0 else root
        into.put(identifier(word, number), files if number % 7 else {}, created=CREATED, fixity=fixity)
    for number in range(0, OBJECTS, 50):
        root.put(identifier(word, number), {"new": given / "a.txt"}, created=CREATED, replace=True)
    ours = [(record.path, record.id) for record in root.objects()]
    assert sorted(found for _path, found in ours) == sorted(identifier(word, number) for number in range(OBJECTS))
    assert kinds(root.check(digests=True)) == []
    [said] = validate(tmp_path / "root")
    assert (said["valid"], said["objects"], said["good"]) == (True, OBJECTS, OBJECTS)
    assert not said["errors"]
    assert [tuple(found) for found in said["found"]] == sorted(ours)


# Not checked by ocfl-py 2.1.0: links (no part of E090), named pipes, repeated keys, unknown keys, a
# declaration's line feed, files directly in an object's extensions, files missing in the first inventory, and a content
# directory that only a middle inventory sets. It raises an exception if a version is not a JSON object.
NOT_SEEN = {
    "E007 declaration",
    "E019 content directory set later",
    "E023 earlier manifest",
    "E033 repeated key",
    "E047 version",
    "E067 extensions",
    "E089 pipe",
    "E102 key",
}


def test_bad_objects_are_bad_for_ocfl_py(tmp_path: Path) -> None:
    """An object with errors here has errors in ocfl-py, except for what ocfl-py does not check."""
    roots = {}
    for name, change, _expected, _code in BAD:
        if "E090" in name or name in NOT_SEEN:
            continue
        folder = tmp_path / name
        root = create(folder)
        root.put("info:x/1", source(tmp_path / "one"), created=CREATED, fixity={"md5": {}})
        root.put("info:x/1", source(tmp_path / "two", {"a.txt": b"three", "same.txt": b"one"}), replace=True)
        change(folder_of(root))
        roots[name] = folder
    said = validate(*roots.values())
    good = {name: bool(one["objects"] and one["good"]) for name, one in zip(roots, said, strict=True)}
    assert good == {name: not expected for name, _change, expected, _code in BAD if name in roots}
