"""Every number of a comparison equals the count of a real tree."""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path

import pytest

from pressmark.compare import compare
from pressmark.errors import IdentifierError
from pressmark.layouts import Layout
from pressmark.paths import name_violation
from support.implementations import Implementation

from . import samples, trees

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs file names of arbitrary bytes, and find -printf"),
    pytest.mark.skipif(shutil.which("find") is None, reason="find is not installed"),
]

IDS: list[str | bytes] = [*samples.hostile(), *samples.hathitrust()]


def path_of(layout: Layout, identifier: str | bytes) -> str | None:
    try:
        return layout.map_id(identifier)
    except IdentifierError:
        return None


@pytest.mark.parametrize("name", samples.layouts())
def test_every_number(implementation: Implementation, tmp_path: Path, name: str) -> None:
    """Directories by depth, fan-out, the largest; and of the paths lengths, depth, collisions."""
    layout = samples.layouts()[name]
    # Leave out paths that no file system allows; they are counted separately.
    paths = {identifier: path_of(layout, identifier) for identifier in IDS}
    ids = [one for one, path in paths.items() if path is None or name_violation(path, "unix") is None]
    assert len(ids) > 400 if name == "0002" else len(ids) > 380
    possible = [path for one in ids if (path := paths[one]) is not None]
    (result,) = compare(ids, [layout], directory_limit=10, memory=20_000, folder=tmp_path).layouts
    assert result.mapped == len(possible)
    assert result.unmapped.count == len(ids) - len(possible)
    assert trees.reported_paths(result) == trees.counted_paths(possible)
    root = os.fsencode(tmp_path / "tree")
    os.mkdir(root)
    trees.make(root, map(os.fsencode, possible))
    assert trees.reported(result) == trees.counted(root)
    assert result.directories.leaf == len(set(possible))
    assert result.directories.interim == result.directories.total - len(set(possible))
    assert result.fan_out.mean == pytest.approx(result.directories.total / max(result.fan_out.directories, 1))
    # All identifiers.
    (whole,) = compare(IDS, [layout], profile="unix").layouts
    assert whole.refused["unix"].count == len(IDS) - len(ids)
    assert (whole.mapped, whole.unmapped.count) == (
        sum(path is not None for path in paths.values()),
        sum(path is None for path in paths.values()),
    )


@pytest.mark.long(only=True)
@pytest.mark.parametrize("name", samples.layouts("."))
def test_a_hundred_thousand(tmp_path: Path, name: str) -> None:
    """Every number is also right for many identifiers."""
    layout = samples.layouts(".")[name]
    drawn = random.Random(8)
    ids = {}  # a comparison counts an identifier that repeats once
    while len(ids) < 100_000:
        digits = drawn.randrange(10**12)
        shapes = (f"mdp.39015{digits % 10**9:09d}", f"uiug.30112{digits % 10**9:09d}", f"uc2.ark:/13960/t{digits:010x}")
        ids[shapes[digits % 3]] = None
    (result,) = compare(ids, [layout], directory_limit=10).layouts
    paths = [path for one in ids if (path := path_of(layout, one)) is not None]
    assert trees.reported_paths(result) == trees.counted_paths(paths)
    root = os.fsencode(tmp_path / "tree")
    os.mkdir(root)
    trees.make(root, map(os.fsencode, paths))
    assert trees.reported(result) == trees.counted(root)
