"""Completing a bag: only correct files are added, whatever fetch.txt, servers and links contain."""

from __future__ import annotations

import errno
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit.bag import Bag
from pressmark.bagit.fetch.complete import complete
from pressmark.errors import BagError
from pressmark.fs import beneath as ways
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent, Report
from support.effort import repeats
from support.events import listening

from ..bags import Sketch, digest, tree
from ..loopback import Handler, Server, drip, dropped, missing, ranged, serving, silence, status, whole

pytest.importorskip("urllib3")

FILES = {b"data/%d/file" % number: b"content %d\n" % number * 100 for number in range(6)}
KILLS = repeats(2)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def fetch_line(url: str, length: int | None, path: bytes) -> bytes:
    return b"%b %b %b\n" % (url.encode(), b"-" if length is None else b"%d" % length, path)


def holey(folder: Path, server: Server, files: dict[bytes, bytes] | None = None, **changes: Any) -> Path:
    """Write a bag with files to fetch, and serve them."""
    files = FILES if files is None else files
    for path, body in files.items():
        server.answer(f"/{path.decode('latin-1')}", ranged(body))
    lines = [fetch_line(server.url(f"/{path.decode('latin-1')}"), len(body), path) for path, body in files.items()]
    sketch = Sketch(payload=dict(files), absent=set(files), info=None, fetch=b"".join(lines))
    for name, value in changes.items():
        setattr(sketch, name, value)
    return sketch.write(folder)


def finish(bag: Path | Bag, **changes: Any) -> Report:
    """Complete a bag from local servers, without waiting."""
    return complete(bag, **{"allow_http": True, "allow_private": True, "retries": 0, "timeout": 30.0} | changes)


def kinds(report: Report) -> list[tuple[str, str]]:
    return [(problem.kind, problem.path) for problem in report.problems]


def payload(bag: Path) -> dict[bytes, bytes]:
    return {path: body for path, body in tree(bag).items() if path.startswith(b"data/")}


def assert_clean(bag: Path) -> None:
    """Assert that a run left no files in the bag."""
    assert not [name for name in os.listdir(bag) if name.startswith(".")]


# --- success ------


def test_missing_files_are_fetched(server: Server, tmp_path: Path) -> None:
    """All files exist afterwards, fetch.txt is unchanged, nothing is left over, and a second call downloads nothing."""
    bag = holey(tmp_path / "bag", server)
    before = tree(bag)
    report = finish(bag)
    assert (report.ok, report.problems) == (True, [])
    size = sum(map(len, FILES.values()))
    assert report.counts == {"files": 6, "bytes": size, "present": 0, "failed": 0}
    assert tree(bag) == before | FILES
    assert_clean(bag)
    assert sorted(server.paths) == sorted(f"/{path.decode()}" for path in FILES)
    again = Bag.open(bag).complete(allow_http=True, allow_private=True)
    assert again.counts == {"files": 0, "bytes": 0, "present": 6, "failed": 0}
    assert len(server.requests) == 6


def test_a_complete_bag_is_only_read(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing is missing, nothing is written, and urllib3 is not needed."""
    bag = holey(tmp_path / "bag", server)
    finish(bag)
    plain = Sketch().write(tmp_path / "plain")
    monkeypatch.setitem(sys.modules, "urllib3", None)
    monkeypatch.setattr(os, "mkdir", lambda *_arguments, **_more: pytest.fail("it writes"))
    assert finish(bag).ok
    assert finish(plain).counts == {"files": 0, "bytes": 0, "present": 0, "failed": 0}


def test_without_urllib3_the_error_names_the_package(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing urllib3 is reported in one line with the remedy, and leaves no files."""
    bag = holey(tmp_path / "bag", server)
    monkeypatch.setitem(sys.modules, "urllib3", None)
    with pytest.raises(BagError, match=r"pip install .pressmark\[fetch\]"):
        finish(bag)
    assert_clean(bag)


def test_names_of_all_kinds(server: Server, tmp_path: Path) -> None:
    """Blanks, percent signs, line breaks and bytes that are not UTF-8 are preserved."""
    files = {b"data/a b\t ": b"1", b"data/50%25\r\n%": b"2", b"data/\xff": b"3", b"data/~$x.doc": b"4", b"data/x": b""}
    lines = []
    for number, (path, body) in enumerate(files.items()):
        written = path.replace(b"%", b"%25").replace(b"\r", b"%0D").replace(b"\n", b"%0a")
        lines.append(fetch_line(server.answer(f"/{number}", whole(body)), None, written))
    bag = holey(tmp_path / "bag", server, files, fetch=b"".join(lines))
    report = finish(bag)
    assert {kind for kind, _path in kinds(report)} == {"undecodable"}
    assert payload(bag) == files


def test_many_at_a_time(server: Server, tmp_path: Path) -> None:
    """The number of parallel downloads is the given one."""
    together = threading.Barrier(3)
    under_way = set()
    most = 0

    def answer(handler: Handler) -> None:
        nonlocal most
        under_way.add(handler.path)
        most = max(most, len(under_way))
        together.wait(10)
        under_way.discard(handler.path)
        handler.send(200, {}, FILES[handler.path[1:].encode()])

    bag = holey(tmp_path / "bag", server)
    for path in FILES:
        server.answer(f"/{path.decode()}", answer)
    assert finish(bag, threads=3).ok
    assert most == 3


def test_events(server: Server, tmp_path: Path) -> None:
    """The stage announces the totals, and the last event is the sum."""
    bag = holey(tmp_path / "bag", server)
    (bag / "data/0").mkdir()
    (bag / "data/0/file").write_bytes(FILES[b"data/0/file"])
    server.answer("/data/1/file", missing)
    events: list[Any] = []
    finish(bag, progress=EventListener(events.append))
    size = sum(map(len, FILES.values()))
    assert events[0] == ProgressEvent("fetch", of_items=6, of_bytes=size)
    assert events[-1] == ProgressEvent("fetch", 6, size - len(FILES[b"data/1/file"]), 1, 6, size)


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_during_a_download(server: Server, tmp_path: Path, threads: int) -> None:
    """The bytes of a file are reported before it is complete."""
    path, body = b"data/large", os.urandom(1 << 20)
    bag = holey(tmp_path / "bag", server, {path: body})
    seen = threading.Event()

    def answer(handler: Handler) -> None:
        handler.send(200, {"Content-Length": str(len(body))}, body[:-1])
        assert seen.wait(10)
        handler.wfile.write(body[-1:])

    def on_event(event: object) -> None:
        if isinstance(event, ProgressEvent) and event.bytes >= len(body) - 1:
            seen.set()

    server.answer("/data/large", answer)
    assert finish(bag, threads=threads, progress=EventListener(on_event)).ok


def test_a_slow_file_holds_up_no_other(server: Server, tmp_path: Path) -> None:
    """While one download is slow, all others are finished; problems still come in the order of fetch.txt."""
    files = {b"data/%03d" % number: b"%d" % number for number in range(200)}
    bag = holey(tmp_path / "bag", server, files)
    others = threading.Event()

    def slow(handler: Handler) -> None:
        assert others.wait(10)
        missing(handler)

    def last(handler: Handler) -> None:
        others.set()
        missing(handler)

    server.answer("/data/000", slow)
    server.answer("/data/199", last)
    assert kinds(finish(bag, threads=2)) == [("fetch-failed", "data/000"), ("fetch-failed", "data/199")]


def test_all_checksums_are_compared(server: Server, tmp_path: Path) -> None:
    """A file must match all of its checksums."""
    path = b"data/0/file"
    wrong = b"%b  %b\n" % (digest(b"", "md5").encode(), path)
    files = {path: FILES[path]}
    bag = holey(tmp_path / "bag", server, files, algorithms=["sha512", "md5"], manifests={"manifest-md5.txt": wrong})
    [problem] = finish(bag).problems
    assert problem.kind == "checksum-mismatch"
    assert (problem.path, problem.algorithm) == (os.fsdecode(path), "md5")
    assert (problem.expected, problem.found) == (digest(b"", "md5"), digest(FILES[path], "md5"))
    assert server.url("/data/0/file") in problem.message
    assert payload(bag) == {}
    assert_clean(bag)


# --- refusals ------------


OUTSIDE = [
    b"../evil",
    b"data/../../evil",
    b"data/../bagit.txt",
    b"/tmp/evil",
    b"~/evil",
    b"C:\\evil",
    b"\\\\host\\share",
    b"data/..\\..\\evil",
    b"data",
    b"data/",
    b"data/a/",
    b"bagit.txt",
    b"tagmanifest-md5.txt",
    b"new-tag-file.txt",
    b"DATA/a",
    b"data/a\0b",
]


@pytest.mark.parametrize("path", OUTSIDE, ids=repr)
def test_unsafe_paths_are_not_requested(server: Server, tmp_path: Path, path: bytes) -> None:
    """An unsafe path causes no request and no file; the others are fetched."""
    good = {b"data/good": b"good"}
    lines = fetch_line(server.answer("/evil", whole(b"evil")), 4, path)
    lines += fetch_line(server.url("/data/good"), 4, b"data/good")
    manifest = b"".join(b"%b  %b\n" % (digest(b"evil", "sha512").encode(), one) for one in [path])
    manifest += b"%b  data/good\n" % digest(b"good", "sha512").encode()
    bag = holey(tmp_path / "bag", server, good, fetch=lines, manifests={"manifest-sha512.txt": manifest})
    before = tree(tmp_path)
    report = finish(bag)
    assert not report.ok
    assert server.paths == ["/data/good"]
    assert tree(tmp_path) == before | {b"bag/data/good": b"good"}


@pytest.mark.parametrize("kind", ["link", "dangling", "inside", "file", "fifo"])
def test_occupied_paths(server: Server, tmp_path: Path, kind: str) -> None:
    """Links are never followed, and existing files are not changed."""
    bag = holey(tmp_path / "bag", server)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"precious")
    (bag / "inside").mkdir()
    (bag / "data/1").mkdir()
    way, end = bag / "data/0", bag / "data/1/file"
    targets = {"link": (outside, outside / "file"), "dangling": (tmp_path / "x",) * 2, "inside": (bag / "inside",) * 2}
    if kind in targets:
        way.symlink_to(targets[kind][0])
        end.symlink_to(targets[kind][1])
    elif kind == "file":
        way.write_bytes(b"precious")
        end.mkdir()
    else:
        os.mkfifo(way)
        os.mkfifo(end)
    before = tree(tmp_path)
    report = finish(bag)
    assert kinds(report) == [("fetch-refused", "data/0/file"), ("fetch-refused", "data/1/file")]
    assert {problem.section for problem in report.problems} == {"5.1"}
    assert len(server.requests) == 4
    landed = {b"bag/" + path: body for path, body in FILES.items() if path[5:6] not in b"01"}
    assert tree(tmp_path) == before | landed
    assert_clean(bag)


def test_a_payload_directory_that_is_a_link(server: Server, tmp_path: Path) -> None:
    """If data/ is a link, nothing is requested."""
    bag = holey(tmp_path / "bag", server)
    (bag / "data").rmdir()
    (tmp_path / "outside").mkdir()
    (bag / "data").symlink_to("../outside")
    assert {kind for kind, _path in kinds(finish(bag))} == {"fetch-refused"}
    assert server.requests == []
    (bag / "data").unlink()
    assert finish(bag).ok, "a missing payload directory is made"


@pytest.mark.parametrize("when", ["way", "name"])
def test_paths_occupied_during_a_download(server: Server, tmp_path: Path, when: str) -> None:
    """A file or link that appears during a download is not overwritten or followed."""
    path = b"data/0/file"
    outside = tmp_path / "outside"
    outside.mkdir()
    bag = holey(tmp_path / "bag", server, {path: FILES[path]})

    def answer(handler: Handler) -> None:
        if when == "way":
            (bag / "data/0").symlink_to(outside)
        else:
            (bag / "data/0").mkdir()
            (bag / "data/0/file").write_bytes(b"precious")
        handler.send(200, {}, FILES[path])

    server.answer("/data/0/file", answer)
    assert kinds(finish(bag)) == [("fetch-refused", os.fsdecode(path))]
    assert list(outside.iterdir()) == []
    if when == "name":
        assert (bag / "data/0/file").read_bytes() == b"precious"


def test_every_payload_manifest_must_list_it(server: Server, tmp_path: Path) -> None:
    """From version 1.0 on, all payload manifests must list a file, before that one; others are not downloaded."""
    bodies = {b"data/both": b"both", b"data/one": b"one", b"data/none": b"none"}
    md5 = b"".join(b"%b  %b\n" % (digest(bodies[path], "md5").encode(), path) for path in (b"data/both",))
    sha = b"".join(
        b"%b  %b\n" % (digest(bodies[path], "sha512").encode(), path) for path in (b"data/both", b"data/one")
    )
    manifests = {"manifest-md5.txt": md5, "manifest-sha512.txt": sha}
    for version, unlisted in (("1.0", [b"data/one", b"data/none"]), ("0.97", [b"data/none"])):
        server.requests.clear()
        bag = holey(
            tmp_path / version, server, bodies, version=version, algorithms=["md5", "sha512"], manifests=manifests
        )
        report = finish(bag)
        assert kinds(report) == [("fetch-unlisted", os.fsdecode(path)) for path in unlisted]
        assert len(server.requests) == 3 - len(unlisted)
    assert report.problems[0].message == "not listed in any manifest; not downloaded"


def test_unknown_algorithms(server: Server, tmp_path: Path) -> None:
    """A file is downloaded only if at least one of its checksums can be computed."""
    path = b"data/0/file"
    files = {path: FILES[path]}
    manifests = {"manifest-whirlpool.txt": b"00  data/0/file\n"}
    bag = holey(tmp_path / "one", server, files, algorithms=[], manifests=manifests, tag_algorithms=[])
    assert kinds(finish(bag)) == [("fetch-refused", os.fsdecode(path))]
    assert server.requests == []
    bag = holey(tmp_path / "two", server, files, algorithms=["md5"], manifests=manifests, tag_algorithms=[])
    assert finish(bag).ok
    assert payload(bag) == files


def test_a_path_is_fetched_once(server: Server, tmp_path: Path) -> None:
    """A second line for a file is a problem, and causes no request."""
    bag = holey(tmp_path / "bag", server)
    with open(bag / "fetch.txt", "ab") as file:
        file.write(fetch_line(server.answer("/other", whole(b"other")), 5, b"data/0/file"))
    report = finish(bag)
    assert kinds(report) == [("path-duplicate", "data/0/file")]
    assert "/other" not in server.paths
    assert payload(bag) == FILES


def test_malformed_lines_are_skipped(server: Server, tmp_path: Path) -> None:
    """Malformed lines of fetch.txt are reported in place, and the rest is fetched."""
    bag = holey(tmp_path / "bag", server)
    lines = (bag / "fetch.txt").read_bytes().splitlines(keepends=True)
    lines[1:1] = [b"\n", b"nonsense\n", b"http:/x - data/1/file\n"]
    (bag / "fetch.txt").write_bytes(b"".join(lines))
    report = finish(bag)
    assert [kind for kind, _path in kinds(report)] == [
        "line-blank",
        "line-malformed",
        "fetch-url-odd",
        "fetch-refused",
        "path-duplicate",
    ]
    assert payload(bag).keys() == FILES.keys() - {b"data/1/file"}


def test_other_spellings(server: Server, tmp_path: Path) -> None:
    """A name in another Unicode normalization is fetched under the manifest's name, with a warning."""
    nfc, nfd = "data/é".encode(), "data/e\u0301".encode()
    line = fetch_line(server.answer("/x", whole(b"x")), 1, nfd)
    bag = holey(tmp_path / "bag", server, {nfc: b"x"}, fetch=line)
    report = finish(bag)
    assert report.ok
    assert kinds(report) == [("name-normalized", os.fsdecode(nfc))]
    assert payload(bag) == {nfc: b"x"}


def test_secure_by_default(server: Server, tmp_path: Path) -> None:
    """By default, HTTP, file: URLs and local addresses are refused."""
    bag = holey(tmp_path / "bag", server)
    report = complete(bag)
    assert {problem.kind for problem in report.problems} == {"fetch-refused"}
    assert {problem.section for problem in report.problems} == {"5.2"}
    report = complete(bag, allow_http=True)
    assert "which is loopback" in report.problems[0].message
    assert server.requests == []
    assert complete(bag, allow_http=True, allow_hosts="127.0.0.1").ok


# --- existing file


def test_existing_files_are_kept(server: Server, tmp_path: Path) -> None:
    """A present file is not downloaded; a length that differs from fetch.txt is a warning."""
    bag = holey(tmp_path / "bag", server)
    (bag / "data/0").mkdir()
    (bag / "data/0/file").write_bytes(b"mine")
    report = finish(bag)
    [problem] = report.problems
    size = len(FILES[b"data/0/file"])
    assert (problem.kind, problem.severity) == ("fetch-length", "warning")
    assert (problem.expected, problem.found) == (str(size), "4")
    assert report.counts["present"] == 1
    assert (bag / "data/0/file").read_bytes() == b"mine"


def test_existing_files_are_verified_on_request(server: Server, tmp_path: Path) -> None:
    """With ``verify``, existing files are compared with their checksums, and never changed."""
    bag = holey(tmp_path / "bag", server)
    (bag / "data/0").mkdir()
    (bag / "data/0/file").write_bytes(FILES[b"data/0/file"][::-1])
    report = finish(bag, verify=True)
    assert kinds(report) == [("checksum-mismatch", "data/0/file")]
    assert report.counts == {"files": 5, "bytes": report.counts["bytes"], "present": 0, "failed": 1}
    (bag / "data/0/file").write_bytes(FILES[b"data/0/file"])
    assert finish(bag, verify=True).counts["present"] == 6


def test_a_wrong_length_in_fetch_txt(server: Server, tmp_path: Path) -> None:
    """A file longer than announced is refused; a shorter one with correct checksums gets a warning."""
    path, body = b"data/0/file", FILES[b"data/0/file"]
    url = server.url("/data/0/file")
    bag = holey(tmp_path / "one", server, {path: body}, fetch=fetch_line(url, len(body) - 1, path))
    assert kinds(finish(bag)) == [("fetch-too-long", os.fsdecode(path))]
    assert payload(bag) == {}
    bag = holey(tmp_path / "two", server, {path: body}, fetch=fetch_line(url, len(body) + 1, path))
    report = finish(bag)
    assert (report.ok, kinds(report)) == (True, [("fetch-length", os.fsdecode(path))])
    bag = holey(tmp_path / "three", server, {path: body}, fetch=fetch_line(url, None, path))
    assert kinds(finish(bag, maximum=10)) == [("fetch-too-long", os.fsdecode(path))]


# --- failures


def test_a_failure_does_not_stop_other_downloads(server: Server, tmp_path: Path) -> None:
    """Each file has its own outcome in the order of fetch.txt, and a later run fetches what is missing."""
    bag = holey(tmp_path / "bag", server)
    server.answer("/data/0/file", status(503))
    server.answer("/data/1/file", drip(1 << 16, 0))
    server.answer("/data/3/file", whole(FILES[b"data/3/file"][::-1]))
    server.answer("/data/5/file", missing)
    seen: list[Any] = []
    report = finish(bag, progress=listening(on_problem=seen.append))
    assert kinds(report) == [
        ("fetch-failed", "data/0/file"),
        ("fetch-too-long", "data/1/file"),
        ("checksum-mismatch", "data/3/file"),
        ("fetch-failed", "data/5/file"),
    ]
    assert seen == report.problems
    assert report.counts["failed"] == 4
    assert report.summary()["kinds"] == {"checksum-mismatch": 1, "fetch-failed": 2, "fetch-too-long": 1}
    assert payload(bag) == {path: FILES[path] for path in (b"data/2/file", b"data/4/file")}
    assert_clean(bag)
    for path, body in FILES.items():
        server.answer(f"/{path.decode()}", whole(body))
    assert finish(bag).ok
    assert payload(bag) == FILES


def test_partial_files_are_resumed(server: Server, tmp_path: Path) -> None:
    """A partially downloaded large file is kept outside the bag, and the next run resumes it."""
    body = os.urandom(3 << 20)
    path = b"data/large"
    bag = holey(tmp_path / "bag", server, {path: body})
    server.answer("/data/large", dropped(body, 2 << 20), ranged(body))
    assert kinds(finish(bag)) == [("fetch-failed", os.fsdecode(path))]
    assert payload(bag) == {}
    assert os.listdir(bag / ".pressmark-bag") == ["fetch"]
    report = finish(bag)
    assert report.ok
    assert server.ranges() == [None, f"bytes={2 << 20}-"]
    assert payload(bag) == {path: body}
    assert_clean(bag)


def test_obsolete_partial_files_are_removed(server: Server, tmp_path: Path) -> None:
    """Partial files that are no longer needed are removed."""
    body = os.urandom(2 << 20)
    bag = holey(tmp_path / "bag", server, {b"data/large": body})
    server.answer("/data/large", dropped(body, 3 << 19))
    finish(bag)
    (bag / "data/large").write_bytes(body)
    assert finish(bag).ok
    assert_clean(bag)


@pytest.mark.parametrize("name", [".pressmark-bag", ".pressmark-bag/fetch"])
@pytest.mark.parametrize("kind", ["link", "file"])
def test_links_in_place_of_the_hidden_directory(server: Server, tmp_path: Path, name: str, kind: str) -> None:
    """A bag with links in place of the hidden directory is refused, and nothing outside is changed."""
    bag = holey(tmp_path / "bag", server)
    outside = tmp_path / "outside"
    outside.mkdir()
    (bag / name).parent.mkdir(exist_ok=True)
    if kind == "link":
        (bag / name).symlink_to(outside)
    else:
        (bag / name).write_bytes(b"x")
    with pytest.raises(BagError, match=r"move it elsewhere|remove it"):
        finish(bag)
    assert list(outside.iterdir()) == []
    assert server.requests == []


def test_one_run_at_a_time(server: Server, tmp_path: Path) -> None:
    """A second run on the same bag is refused, and does not disturb the first."""
    bag = holey(tmp_path / "bag", server)
    asked, go_on = threading.Event(), threading.Event()

    def answer(handler: Handler) -> None:
        asked.set()
        go_on.wait(10)
        handler.send(200, {}, FILES[b"data/0/file"])

    server.answer("/data/0/file", answer)
    found: list[Report] = []
    thread = threading.Thread(target=lambda: found.append(finish(bag)))
    thread.start()
    assert asked.wait(10)
    with pytest.raises(BagError, match="another run"):
        finish(bag)
    go_on.set()
    thread.join()
    assert found[0].ok
    assert payload(bag) == FILES


def test_a_full_disk_is_one_problem(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk ends the run with one problem that names the remedy."""
    bag = holey(tmp_path / "bag", server)
    real = os.write

    def write(descriptor: int, data: Any) -> int:
        if len(payload(bag)) >= 2:
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    report = finish(bag, threads=1)
    assert kinds(report) == [("disk-full", "fetch.txt")]
    assert "free some" in report.problems[0].message
    assert len(payload(bag)) == 2
    monkeypatch.undo()
    assert finish(bag).ok
    assert payload(bag) == FILES


def test_a_disk_that_fails(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write error is a problem of its file; the others are fetched, and the next run fetches it."""
    bag = holey(tmp_path / "bag", server)
    real, failed = os.write, []

    def write(descriptor: int, data: Any) -> int:
        if not failed:
            failed.append(descriptor)
            raise OSError(5, "Input/output error")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    report = finish(bag, threads=1)
    assert [problem.kind for problem in report.problems] == ["file-unwritable"]
    assert "Input/output error" in report.problems[0].message
    assert len(payload(bag)) == len(FILES) - 1
    monkeypatch.undo()
    assert finish(bag).ok
    assert payload(bag) == FILES


@pytest.mark.parametrize("unflushed", [1, 1024])
def test_failed_flushes(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unflushed: int) -> None:
    """A failed flush keeps the fetched files and is one problem; a directory moved away is none."""
    monkeypatch.setattr("pressmark.bagit.fetch.complete.UNFLUSHED", unflushed)
    bag = holey(tmp_path / "bag", server)

    def flush(number: int) -> Any:
        def failing(path: bytes) -> None:
            raise OSError(number, os.strerror(number), path)

        return failing

    monkeypatch.setattr("pressmark.bagit.fetch.complete.flush_directory", flush(errno.EIO))
    report = finish(bag)
    assert kinds(report) == [("file-unwritable", "")]
    assert "a power failure can still remove them" in report.problems[0].message
    assert report.counts["files"] == len(FILES)
    assert payload(bag) == FILES
    assert_clean(bag)
    monkeypatch.setattr("pressmark.bagit.fetch.complete.flush_directory", flush(errno.ENOENT))
    assert finish(holey(tmp_path / "other", server)).ok


def test_file_systems_without_hard_links(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hard links, a file is renamed, and never replaces another one."""

    def link(*_arguments: Any, **_more: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    bag = holey(tmp_path / "bag", server)

    def answer(handler: Handler) -> None:
        (bag / "data/1").mkdir()
        (bag / "data/1/file").write_bytes(b"precious")
        handler.send(200, {}, FILES[b"data/1/file"])

    server.answer("/data/1/file", answer)
    assert kinds(finish(bag)) == [("fetch-refused", "data/1/file")]
    assert payload(bag) == FILES | {b"data/1/file": b"precious"}
    assert_clean(bag)


def test_without_descriptors_of_directories(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bags are completed on systems without directory descriptors as well."""
    monkeypatch.setattr(ways, "HAS_DESCRIPTORS", False)
    bag = holey(tmp_path / "bag", server)
    (tmp_path / "outside").mkdir()
    (bag / "data/0").symlink_to(tmp_path / "outside")
    assert kinds(finish(bag)) == [("fetch-refused", "data/0/file")]
    (bag / "data/0").unlink()
    assert finish(bag).ok
    assert payload(bag) == FILES
    assert_clean(bag)


@pytest.mark.parametrize("what", ["directory", "declaration", "fetch"])
def test_directories_that_are_not_bags(server: Server, tmp_path: Path, what: str) -> None:
    """A directory that cannot be opened as a bag is refused."""
    bag = holey(tmp_path / "bag", server)
    if what == "declaration":
        (bag / "bagit.txt").unlink()
    elif what == "fetch":
        (bag / "fetch.txt").unlink()
        (bag / "fetch.txt").symlink_to("../fetch.txt")
    with pytest.raises(BagError):
        finish(bag / "nothing" if what == "directory" else bag)
    assert server.requests == []


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"retries": -1}, {"timeout": 0}, {"maximum": -1}])
def test_invalid_arguments(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """Invalid arguments are refused by name."""
    [(name, value)] = wrong.items()
    with pytest.raises(ValueError, match=f"^{name}={value}: expected"):
        complete(tmp_path, **wrong)


# --- interruptions --


@pytest.mark.parametrize("answer", [silence, drip(1 << 10, 0.001)], ids=["silent", "dripping"])
def test_an_interrupted_run_ends_within_a_moment(server: Server, tmp_path: Path, answer: Any) -> None:
    """Ctrl-C ends the run at once and leaves no thread behind."""
    bag = holey(tmp_path / "bag", server)
    for path in FILES:
        server.answer(f"/{path.decode()}", answer)

    def on_event(event: object) -> None:
        if isinstance(event, ProgressEvent):
            raise KeyboardInterrupt

    begun = time.monotonic()
    fetch = b"".join(line.replace(b" 1100 ", b" - ") for line in (bag / "fetch.txt").read_bytes().splitlines(True))
    (bag / "fetch.txt").write_bytes(fetch)
    with pytest.raises(KeyboardInterrupt):
        finish(bag, progress=EventListener(on_event), timeout=60)
    assert time.monotonic() - begun < 10
    assert not [thread for thread in threading.enumerate() if thread.name == "pressmark-fetch"]
    assert payload(bag) == {}


CHILD = """
import sys
from pressmark.bagit.fetch.complete import complete
report = complete(sys.argv[1], allow_http=True, allow_private=True, retries=0, threads=2)
sys.exit(not report.ok)
"""


@pytest.mark.kill
def test_killed_runs_are_resumed(server: Server, tmp_path: Path) -> None:
    """After each kill, all fetched files are correct, and a later run completes the bag."""
    files = {b"data/%d/%d" % (number % 7, number): os.urandom(random.choice((0, 10, 5000))) for number in range(60)}
    files[b"data/large"] = os.urandom(8 << 20)

    def slow(body: bytes) -> Any:
        good = ranged(body)

        def answer(handler: Handler) -> None:
            time.sleep(0.002)
            good(handler)

        return answer

    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    kills = 0
    for turn in itertools.count():
        bag = holey(tmp_path / str(turn), server, files)
        for path, body in files.items():
            server.answer(f"/{path.decode()}", slow(body))
        while True:
            child = subprocess.Popen([sys.executable, "-c", CHILD, str(bag)], env=environment)
            if kills < KILLS:
                # It needs a moment to start.
                before = len(server.requests)
                while len(server.requests) == before and child.poll() is None:
                    time.sleep(0.001)
                time.sleep(random.uniform(0, 0.2))
                child.send_signal(signal.SIGKILL)
            ended = child.wait()
            found = payload(bag)
            assert found.items() <= files.items()
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
            kills += 1
        assert found == files
        assert_clean(bag)
        if kills >= KILLS:
            return


def test_impossible_paths() -> None:
    with pytest.raises(BagError):
        complete(b"a\0b")


def test_other_problems_of_the_bag_are_reported(tmp_path: Path) -> None:
    """No file that fetch.txt lists is missing, but the bag is not complete: a validation would say so."""
    line = b"https://example.org/a - data/a.txt\nnonsense\n"
    payload = {b"data/a.txt": b"a", b"data/gone": b"b", b"data/new": b"c"}
    sketch = Sketch(payload=payload, info=b"nonsense\n", fetch=line, absent={b"data/gone"}, unlisted={b"data/new"})
    bag = sketch.write(tmp_path / "bag")
    report = complete(bag)
    assert not report.ok
    found = [(one.kind, one.path) for one in report.problems]
    assert sorted(found) == [
        ("file-missing", "data/gone"),
        ("file-unlisted", "data/new"),
        ("info-malformed", "bag-info.txt"),
        ("line-malformed", "fetch.txt"),
    ]
