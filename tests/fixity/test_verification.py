"""Verification: intact files, and every kind of difference."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark.fixity import (
    ALGORITHMS,
    ManifestEntry,
    Verdict,
    check_manifest,
    hash_files,
    verify,
    walk,
    write_manifest,
)
from pressmark.fixity.algorithms import algorithms_of_size
from pressmark.fixity.manifest_reader import BY_LENGTH
from pressmark.fixity.verification import _PathSet
from pressmark.progress_event import EventListener, ProgressEvent
from support.implementations import Implementation

from .trees import make

DIGEST = "0" * 32


def entries(folder: Path, *names: str) -> list[ManifestEntry]:
    return [
        ManifestEntry(os.path.relpath(outcome.path, folder), dict(outcome.digests or {}), outcome.size)
        for outcome in hash_files(walk(folder), names)
    ]


def test_unchanged_files(implementation: Implementation, tmp_path: Path) -> None:
    """Unchanged files are ok, in the order of the entries, and no file is new."""
    make(tmp_path, (0, 1, 5000, 300_000))
    known = entries(tmp_path, "sha512", "md5")
    assert [(verdict.path, verdict.state) for verdict in verify(known[::-1], tmp_path)] == [
        (entry.path, "ok") for entry in known[::-1]
    ]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_name_of_a_list(implementation: Implementation, tmp_path: Path, name: str) -> None:
    """The algorithm of a list is that of its name, then the usual one of its length; no file is read to detect it."""
    files = tmp_path / "files"
    files.mkdir()
    make(files, (0, 1, 5000, 300_000))
    usual = BY_LENGTH[2 * ALGORITHMS[name].size]
    others = tuple(one for one in algorithms_of_size(ALGORITHMS[name].size) if one != usual)
    doubts: list[str] = []
    for spelling, used in ((f"{name.replace('/', '-').upper()}SUMS", name), ("SUMS", usual)):
        assert write_manifest(tmp_path / spelling, hash_files(walk(files), name)) == []
        with check_manifest(tmp_path / spelling, files) as check:
            assert check.algorithms == [(used,)]
            assert check.other_algorithms == (others if spelling == "SUMS" else ())
            states = {one.state for one in check.verify()}
            doubts += [spelling] * check.is_doubtful
        assert states == {"ok" if used == name else "changed"}
    assert doubts == ([] if name == usual else ["SUMS"])


def test_a_stream_is_a_manifest(tmp_path: Path) -> None:
    """A list may be an open file, read from its position; one that cannot be read again is kept."""
    (tmp_path / "f").write_bytes(b"1")
    line = hashlib.md5(b"1").hexdigest().encode() + b"  f\n"

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    for file in (io.BytesIO(b"ignored" + line), Pipe(b"ignored" + line)):
        file.read(7)
        with check_manifest(file, tmp_path, name="M") as check:
            assert check.name == "M"
            for _ in range(2):
                assert [verdict.state for verdict in check.verify()] == ["ok"]
            assert check.first_missing() is None
    with check_manifest(io.BytesIO(line), tmp_path / "none") as check:
        assert check.first_missing() == "f"
        assert check.fitting_root("f") == str(tmp_path)
        assert check.fitting_root("g") is None


def test_misspelled_names(tmp_path: Path) -> None:
    """A missing name with backslashes, or a carriage return at its end, leads to the file that is meant."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"1")
    digests = {"md5": hashlib.md5(b"1").hexdigest()}
    names = ["d\\f", "d/f\r", "d\\g", "d\\", "\\", "\r"]
    found = verify([ManifestEntry(name, digests) for name in names], tmp_path, read_new=False)
    assert [one.kind for one in found] == ["misspelled", "misspelled", *["missing"] * 4, "new"]


def test_unknown_ways_to_treat_links() -> None:
    """A misspelled argument is an error, also without files."""
    with pytest.raises(ValueError, match="links='maybe': expected follow, skip or refuse"):
        list(verify([], links="maybe"))


def test_entries_without_digests(tmp_path: Path) -> None:
    """They are not verified, and not new."""
    make(tmp_path, (1,))
    [entry] = entries(tmp_path, "md5")
    assert list(verify([entry._replace(digests={})], tmp_path)) == []


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")
def test_every_state(implementation: Implementation, tmp_path: Path) -> None:
    """Changed, missing, unreadable and new files have their status."""
    make(tmp_path, (1, 2, 3, 4, 5))
    known = entries(tmp_path, "md5", "sha512")
    names = [entry.path for entry in known]
    (tmp_path / names[0]).write_bytes(b"?")
    (tmp_path / names[1]).write_bytes(b"longer")
    (tmp_path / names[2]).unlink()
    (tmp_path / names[3]).unlink()
    os.mkfifo(tmp_path / names[3])
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "x").write_bytes(b"x")
    verdicts = list(verify(known, tmp_path))
    assert [(verdict.path, verdict.state, verdict.kind) for verdict in verdicts] == [
        (names[0], "changed", "changed"),
        (names[1], "changed", "changed"),
        (names[3], "unreadable", "fifo"),
        (names[4], "ok", "ok"),
        (names[2], "missing", "missing"),
        ("new/x", "new", "new"),
    ]
    assert verdicts[0].algorithm == "md5"
    assert verdicts[0].expected == known[0].digests["md5"]
    shown = [f"{digest[:12]}…" for digest in (verdicts[0].found or "", verdicts[0].expected or "")]
    assert verdicts[0].message == f"md5 is {shown[0]}, expected {shown[1]}"
    assert verdicts[1].message.startswith("size is 6 bytes, expected 2; md5 is ")
    assert [verdict.ok for verdict in verdicts] == [False] * 3 + [True, False, False]


def test_second_algorithm_counts(implementation: Implementation, tmp_path: Path) -> None:
    """A file is ok only if all of its digests match."""
    make(tmp_path, (1,))
    (entry,) = entries(tmp_path, "sha512", "md5")
    wrong = entry._replace(digests=entry.digests | {"md5": DIGEST})
    (verdict,) = verify([wrong], tmp_path)
    assert (verdict.state, verdict.algorithm, verdict.expected) == ("changed", "md5", DIGEST)


def test_entries_of_several_algorithms(implementation: Implementation, tmp_path: Path) -> None:
    """Entries may have different algorithms."""
    make(tmp_path, (1, 2, 3))
    known = entries(tmp_path, "sha512", "md5")
    mixed = [known[0], known[1]._replace(digests={"md5": known[1].digests["md5"]}), known[2]]
    assert [verdict.state for verdict in verify(mixed, tmp_path)] == ["ok"] * 3


def test_without_root(implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a root, names are relative to the current directory, and no file is new."""
    make(tmp_path, (1, 2))
    (first, _) = entries(tmp_path, "md5")
    monkeypatch.chdir(tmp_path)
    assert [verdict.state for verdict in verify([first])] == ["ok"]
    assert [verdict.state for verdict in verify([first], ".")] == ["ok", "new"]


def test_names_are_normalized(tmp_path: Path) -> None:
    """A file that the manifest lists as ./a is not reported as new under a."""
    make(tmp_path, (1,))
    (entry,) = entries(tmp_path, "md5")
    for path in ("./" + entry.path, "x/.//../" + entry.path):
        (tmp_path / "x").mkdir(exist_ok=True)
        assert [verdict.state for verdict in verify([entry._replace(path=path)], tmp_path)] == ["ok"]


def test_no_entries(tmp_path: Path) -> None:
    """An empty manifest matches an empty directory."""
    assert list(verify([], tmp_path)) == []
    (tmp_path / "x").write_bytes(b"")
    assert list(verify([], tmp_path)) == [Verdict("x", "new", kind="new", message="not in the manifest")]


def test_many_names_are_distinguished() -> None:
    """The stored keys of names are distinct, however often the table has grown."""
    known = _PathSet()
    names = [b"%d" % number for number in range(5000)]
    assert not any(name in known for name in names)
    for name in names[::2] * 2:
        known.add(name)
    assert [name in known for name in names] == [True, False] * 2500


def test_excluded_names(tmp_path: Path) -> None:
    """Excluded files are not new; a file in the manifest is verified even if its name matches."""
    make(tmp_path, (1, 2))
    (tmp_path / "listed.tmp").write_bytes(b"a")
    known = entries(tmp_path, "sha512")
    (tmp_path / "listed.tmp").write_bytes(b"b")
    (tmp_path / "new.tmp").write_bytes(b"")
    (tmp_path / "new").write_bytes(b"")
    excluded: list[str] = []
    found = verify(known, tmp_path, exclude=["*.tmp"], excluded=excluded)
    states = {verdict.path: verdict.state for verdict in found if not verdict.ok}
    assert states == {"listed.tmp": "changed", "new": "new"}
    assert excluded == [str(tmp_path / "new.tmp")]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
@pytest.mark.parametrize("where", ["root", "linked root", "here", "above", "absolute"])
def test_links_in_names(
    implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """No name leads through a link if links are refused; the root and the working directory may be links."""
    folder = tmp_path / "r" / "files"
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "d" / "e" / "f").write_bytes(b"1")
    (folder / "d" / "link").symlink_to("e")
    (folder / "d" / "last").symlink_to("e/f")
    (folder / "out").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to("r")
    monkeypatch.chdir(tmp_path / ("r" if where == "above" else "linked"))
    root = {"root": tmp_path / "r", "linked root": tmp_path / "linked"}.get(where)
    before = {"above": "../r/", "absolute": f"{tmp_path}/r/"}.get(where, "")
    names = [
        "files/d/e/f",
        "./files/d//e/f",
        "files/d/link/f",
        "files/d/last",
        "files/out/r/files/d/e/f",
        "none/f",
    ]
    digests = {"sha512": hashlib.sha512(b"1").hexdigest()}
    entries = [ManifestEntry(before + name, digests) for name in names]
    found = [one.kind for one in verify(entries, root, links="refuse")]
    assert found[:6] == ["ok", "ok", "link", "link", "link", "missing"]
    assert [one.state for one in verify(entries, root)][:6] == ["ok"] * 5 + ["missing"]


def test_progress_has_a_total(implementation: Implementation, tmp_path: Path) -> None:
    """The total is the number of files in the list; files of several algorithms are counted together."""
    for name in "abc":
        (tmp_path / name).write_text(name)
    listed = entries(tmp_path, "md5")[:2], entries(tmp_path, "sha256")[2:]
    lines = [
        f"{name.upper()} ({one.path}) = {one.digests[name]}\n"
        for some in listed
        for one in some
        for name in one.digests
    ]
    events: list[tuple[int, int | None]] = []
    progress = EventListener(lambda event: events.append((event.items, event.of_items)))
    with check_manifest(io.BytesIO("".join(lines).encode()), tmp_path) as check:
        assert check.files == 3
        assert [verdict.state for verdict in check.verify(progress=progress)] == ["ok"] * 3
    assert events[-1] == (3, 3)
    assert events == sorted(events)


def content(text: str) -> dict[str, str]:
    return {"md5": hashlib.md5(text.encode()).hexdigest()}


def states(verdicts: Iterable[Verdict]) -> list[tuple[str, ...]]:
    """Return the state and the names of each file that is not ok."""
    return [(one.state, one.path, *([one.same_as] if one.same_as else [])) for one in verdicts if not one.ok]


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_moved_files_and_duplicates(implementation: Implementation, tmp_path: Path) -> None:
    """A missing file with the digests of a new one is moved; another new file like a listed one is a duplicate."""
    listed = [ManifestEntry(name, content(text)) for name, text in {"a": "1", "b": "2", "c": "3", "d": "4"}.items()]
    tree(tmp_path, {"a": "1", "c": "?", "copy": "1", "good c": "3", "x/b": "2", "x/z": "2", "x/new": "5"})
    verdicts = list(verify(listed, tmp_path))
    assert states(verdicts) == [
        ("changed", "c"),
        ("moved", "b", "x/b"),
        ("missing", "d"),
        ("duplicate", "copy", "a"),
        ("duplicate", "good c", "c"),
        ("new", "x/new"),
        ("duplicate", "x/z", "b"),
    ]
    moved = verdicts[2].outcome
    assert moved is not None
    assert (moved.path, moved.digests, moved.size) == ("x/b", content("2"), 1)
    # Entries that can be iterated only once are not compared with new files that did not move.
    assert [one.state for one in verify(iter(listed), tmp_path)][4:] == ["new", "new", "new", "new"]


def test_new_files_are_read_only_if_asked_or_a_file_is_missing(tmp_path: Path) -> None:
    """A verification without missing files costs what it did."""
    listed = [ManifestEntry("a", content("1"))]
    tree(tmp_path, {"a": "1", "copy": "1"})
    assert states(verify(listed, tmp_path)) == [("new", "copy")]
    assert states(verify(listed, tmp_path, read_new=True)) == [("duplicate", "copy", "a")]
    (tmp_path / "a").unlink()
    assert states(verify(listed, tmp_path)) == [("moved", "a", "copy")]
    assert states(verify(listed, tmp_path, read_new=False)) == [("missing", "a"), ("new", "copy")]


def test_the_last_name_decides_among_equal_files(tmp_path: Path) -> None:
    """A file of the same last name is the moved one, in any order; empty files are moved only under it."""
    names = ["a/x", "a/y", "a/empty", "a/gone"]
    listed = [ManifestEntry(name, content("" if "y" in name[3:] or "g" in name else "1")) for name in names]
    tree(tmp_path, {"b/0": "1", "b/x": "1", "b/empty": "", "b/other": "", "b/y": "1", "b/z": "1"})
    assert states(verify(listed, tmp_path)) == [
        ("moved", "a/x", "b/x"),
        ("moved", "a/y", "b/y"),
        ("moved", "a/empty", "b/empty"),
        ("missing", "a/gone"),
        ("duplicate", "b/0", "a/x"),
        ("new", "b/other"),
        ("duplicate", "b/z", "a/x"),
    ]


def test_all_digests_of_an_entry_must_match(tmp_path: Path) -> None:
    """Entries of different algorithms are matched by their own."""
    both = {name: hashlib.new(name, b"1").hexdigest() for name in ("md5", "sha1")}
    wrong = both | {"md5": DIGEST}
    listed = [ManifestEntry("a", wrong), ManifestEntry("b", {"sha1": both["sha1"]})]
    tree(tmp_path, {"n": "1"})
    assert states(verify(listed, tmp_path)) == [("missing", "a"), ("moved", "b", "n")]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_moved_files_without_links(tmp_path: Path) -> None:
    """With refused links, new files are opened beneath the root."""
    tree(tmp_path / "root", {"d/n": "1"})
    (tmp_path / "root" / "link").symlink_to("d/n")
    verdicts = states(verify([ManifestEntry("a", content("1"))], tmp_path / "root", links="refuse"))
    assert verdicts == [("moved", "a", "d/n"), ("unreadable", "link")]


def test_a_new_file_that_cannot_be_read_stays_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its verdict has the reason."""
    tree(tmp_path, {"n": "1"})

    def gone(*arguments: Any, **options: Any) -> Iterator[str]:
        yield os.fsencode(tmp_path / "n")
        (tmp_path / "n").unlink(missing_ok=True)
        yield os.fsencode(tmp_path / "other")

    monkeypatch.setattr("pressmark.fixity.verification.walk_files", gone)
    verdicts = list(verify([ManifestEntry("a", content("1"))], tmp_path, threads=1, read="sequential"))
    assert [(one.state, one.path, one.kind) for one in verdicts] == [
        ("missing", "a", "missing"),
        ("new", "n", "missing"),
        ("new", "other", "missing"),
    ]
    assert verdicts[1].message.startswith("not in the manifest, and not read: ")


def test_progress_of_new_files(tmp_path: Path) -> None:
    """New files that are read are a stage of their own, without a total; without them, there is no such stage."""
    tree(tmp_path, {"n": "12"})
    line = f"{content('12')['md5']}  a\n".encode()
    events: list[ProgressEvent] = []
    progress = EventListener(events.append)
    with check_manifest(io.BytesIO(line), tmp_path) as check:
        assert states(check.verify(progress=progress)) == [("moved", "a", "n")]
        assert events[-1] == ProgressEvent("new", 1, 2)
        assert [event[:3] for event in events if event.of_items is not None][-1] == ("", 1, 0)
        (tmp_path / "n").rename(tmp_path / "a")
        events.clear()
        assert not states(check.verify(progress=progress, read_new=True))
    assert {event.stage for event in events} == {""}
    assert events[-1] == ProgressEvent("", 1, 2, of_items=1)
