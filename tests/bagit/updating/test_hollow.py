"""Hollow bags: files are removed only if the server has them, and complete restores them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pressmark.bagit.bag import Bag
from pressmark.bagit.changes import Stage
from pressmark.bagit.changes.bag_transaction import is_decided
from pressmark.bagit.fetch.complete import complete
from pressmark.bagit.updating.hollow import hollow
from pressmark.bagit.validation.validate import validate
from pressmark.errors import BagError
from pressmark.fixity import Progress
from pressmark.fs import transaction
from pressmark.reports import Report

from ..bags import Sketch, digest, tree
from ..loopback import Server, ranged, serving, status, whole

pytest.importorskip("urllib3")

FILES = {
    b"data/a b/50%.tif": b"one" * 1000,
    b"data/a b/c/\xc3\xa9?#&.txt": b"two",
    b"data/empty": b"",
    b"data/~x+y": b"three",
}
URLS = ["/files/a%20b/50%25.tif", "/files/a%20b/c/%C3%A9%3F%23%26.txt", "/files/empty", "/files/~x%2By"]
INFO = b"Payload-Oxum: 3008.4\n"
STAGING = b".pressmark-bag"


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with the files."""
    with serving() as made:
        for url, body in zip(URLS, FILES.values(), strict=True):
            made.answer(url, ranged(body))
        yield made


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    algorithms = ["sha512", "md5"]
    sketch = Sketch(payload=dict(FILES), algorithms=algorithms, tag_algorithms=algorithms, info=INFO)
    return sketch.write(tmp_path / "bag")


LOCAL = {"allow_http": True, "allow_private": True, "retries": 0, "timeout": 30.0}


def empty(bag: Path | Bag, server: Server, **changes: Any) -> Report:
    """Make a bag hollow."""
    return hollow(bag, server.url("/files"), **LOCAL | changes)


def kinds(report: Report) -> list[tuple[str, bytes]]:
    return [(problem.kind, problem.path) for problem in report.problems]


# --- success ------


@pytest.mark.parametrize("trust_head", [False, True])
def test_a_hollow_bag_is_completed_exactly(server: Server, bag: Path, trust_head: bool) -> None:
    """Only the payload files are missing afterwards, fetch.txt and tag manifests are right; complete restores all."""
    (bag / "data" / "nothing" / "here").mkdir(parents=True)
    before = tree(bag)
    report = empty(Bag.open(bag), server, trust_head=trust_head)
    size = sum(map(len, FILES.values()))
    assert (report.problems, report.counts) == ([], {"files": 4, "bytes": size, "failed": 0})
    assert set(server.methods) == ({"HEAD"} if trust_head else {"GET", "HEAD"})
    after = tree(bag)
    fetch = b"".join(
        b"%b %d %b\n" % (server.url(url).encode(), len(body), path.replace(b"%", b"%25"))
        for url, (path, body) in zip(URLS, FILES.items(), strict=True)
    )
    assert after.pop(b"fetch.txt") == fetch
    rest = {path: data for path, data in before.items() if path not in FILES}
    assert after.keys() == rest.keys()
    assert {path for path, data in after.items() if data != rest[path]} == {
        b"tagmanifest-sha512.txt",
        b"tagmanifest-md5.txt",
    }
    assert (bag / "data" / "nothing" / "here").is_dir()
    found = validate(bag)
    assert {one.kind for one in found.errors} == {"file-not-fetched", "oxum-mismatch"}
    assert len(found.missing) == 4
    assert complete(bag, **LOCAL).ok
    assert validate(bag).problems == []
    assert {path: tree(bag)[path] for path in FILES} == FILES
    assert (bag / "data" / "nothing" / "here").is_dir()


def test_a_complete_bag_becomes_hollow_again(server: Server, bag: Path) -> None:
    """The entries of files that are present are replaced; a bag without payload files is not changed."""
    empty(bag, server)
    hollowed = tree(bag)
    assert empty(bag, server).counts == {"files": 0, "bytes": 0, "failed": 0}
    assert tree(bag) == hollowed
    complete(bag, **LOCAL)
    assert empty(bag, server).ok
    assert tree(bag) == hollowed


def test_entries_of_missing_files_are_kept(server: Server, tmp_path: Path) -> None:
    """Entries for files that are already missing stay, and those of present files are replaced."""
    gone, here = b"data/a b/50%.tif", b"data/empty"
    lines = [b"https://example.org/x - data/a b/50%25.tif\n", b"https://example.org/y 0 data/empty\n"]
    sketch = Sketch(payload=dict(FILES), absent={gone}, info=INFO, fetch=b"".join(lines))
    bag = sketch.write(tmp_path / "bag")
    assert empty(bag, server).counts["files"] == 3
    entries = [(entry.url, entry.path) for entry in Bag.open(bag).fetch]
    assert entries[0] == ("https://example.org/x", gone)
    assert [path for _url, path in entries] == [gone, *(path for path in FILES if path != gone)]
    assert (server.url("/files/empty"), here) in entries


@pytest.mark.parametrize("encoding", ["UTF-16", "ISO-8859-1"])
def test_other_versions_and_encodings(server: Server, tmp_path: Path, encoding: str) -> None:
    """Bags of earlier versions, and with tag files in other encodings, keep both."""
    names = {b"data/x": b"ex", b"data/\xc3\xa9": b"e"}
    sketch = Sketch(payload=names, info=b"Payload-Oxum: 3.2\n", version="0.97", encoding=encoding)
    bag = sketch.write(tmp_path / "bag")
    server.answer("/files/x", whole(b"ex"))
    server.answer("/files/%C3%A9", whole(b"e"))
    assert validate(bag).ok
    assert empty(bag, server).ok
    assert Bag.open(bag).version == (0, 97)
    assert {one.kind for one in validate(bag).errors} == {"file-not-fetched", "oxum-mismatch"}
    complete(bag, **LOCAL)
    assert validate(bag).ok


def test_events(server: Server, bag: Path) -> None:
    """Stages and progress are reported; the last progress counts everything."""
    events: list[object] = []
    empty(bag, server, on_event=events.append)
    assert [event.name for event in events if isinstance(event, Stage)] == ["examine", "read", "tag", "move"]
    assert [event for event in events if isinstance(event, Progress)][-1] == Progress(4, 3008, 0)


# --- refusals ------


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (whole(b"twx"), "checksum-mismatch"),
        (whole(b"tw"), "checksum-mismatch"),
        (whole(b"two!"), "fetch-too-long"),
        (status(404), "fetch-failed"),
        (status(302, Location="ftp://example.org/"), "fetch-refused"),
    ],
)
def test_one_wrong_file_leaves_the_bag_unchanged(server: Server, bag: Path, answer: Any, kind: str) -> None:
    """Whatever a server has instead of one file, nothing is removed, and that file is reported."""
    before = tree(bag)
    server.answer(URLS[1], answer)
    heard: list[Any] = []
    report = empty(bag, server, on_problem=heard.append)
    assert set(kinds(report)) == {(kind, b"data/a b/c/\xc3\xa9?#&.txt")}
    assert heard == report.problems
    assert (report.ok, report.counts["files"], report.counts["failed"]) == (False, 3, 1)
    assert tree(bag) == before
    assert not (bag / os.fsdecode(STAGING)).exists()


def test_every_manifest_is_compared(server: Server, tmp_path: Path) -> None:
    """A file that matches one manifest and not the other stays."""
    right = Sketch(payload=dict(FILES)).manifest("md5")
    wrong = right.replace(digest(b"three", "md5").encode(), b"0" * 32)
    sketch = Sketch(payload=dict(FILES), info=None, manifests={"manifest-md5.txt": wrong}, tag_algorithms=[])
    bag = sketch.write(tmp_path / "bag")
    before = tree(bag)
    report = empty(bag, server)
    assert kinds(report) == [("checksum-mismatch", b"data/~x+y")]
    assert report.problems[0].algorithm == "md5"
    assert tree(bag) == before


def test_wrong_lengths_of_head(server: Server, bag: Path) -> None:
    """With trust_head, a file whose length differs, or is not stated, stays with all others."""
    before = tree(bag)
    server.answer(URLS[1], whole(b"tw"))
    server.answer(URLS[3], status(200, Content_Length="x"))
    report = empty(bag, server, trust_head=True)
    assert [kind for kind, _path in kinds(report)] == ["fetch-length", "fetch-failed"]
    assert report.problems[0].message == "3 bytes here; the server states 2"
    assert not report.ok
    assert tree(bag) == before


def spoil_tag_file(bag: Path) -> None:
    (bag / "bag-info.txt").write_bytes(b"X: changed\n")


def add_file(bag: Path) -> None:
    (bag / "data" / "new").write_bytes(b"new")


def remove_file(bag: Path) -> None:
    (bag / "data" / "empty").unlink()


def link_file(bag: Path) -> None:
    os.rename(bag / "data" / "empty", bag / "data" / "~x+z")
    os.symlink("~x+z", bag / "data" / "empty")


def unknown_algorithm(bag: Path) -> None:
    (bag / "manifest-x99.txt").write_bytes((bag / "manifest-md5.txt").read_bytes())


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (spoil_tag_file, "checksum-mismatch"),
        (add_file, "file-unlisted"),
        (remove_file, "file-missing"),
        pytest.param(link_file, "link-inside", marks=pytest.mark.skipif(os.name == "nt", reason="links")),
        (unknown_algorithm, "algorithm-unknown"),
    ],
)
def test_other_problems_of_the_bag_are_reported_before_reading(
    server: Server, bag: Path, spoil: Any, kind: str
) -> None:
    """A bag that is invalid for another reason than its payload's content is unchanged, and nothing is requested."""
    spoil(bag)
    before = tree(bag)
    report = empty(bag, server)
    assert kind in {one.kind for one in report.errors}
    assert tree(bag) == before
    assert server.requests == []


def test_damaged_payload_files_do_not_matter(server: Server, bag: Path) -> None:
    """The file on the server matches the manifests, so the damaged one here can go."""
    (bag / "data" / "~x+y").write_bytes(b"thrEE")
    assert not validate(bag).ok
    assert empty(bag, server).ok
    assert complete(bag, **LOCAL).ok
    assert validate(bag).ok


@pytest.mark.parametrize("moment", ["read", "move"])
def test_changes_meanwhile_are_kept(server: Server, bag: Path, moment: str) -> None:
    """A file that is added or changed while the server is read is not removed."""
    before = tree(bag)

    def change(event: object) -> None:
        if isinstance(event, Stage) and event.name == moment:
            (bag / "data" / "late").write_bytes(b"late")

    with pytest.raises(BagError, match="while the server was read; nothing was changed; run the same command again"):
        empty(bag, server, on_event=change)
    assert tree(bag) == before | {b"data/late": b"late"}


class FileHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        pass


@pytest.mark.parametrize("trust_head", [False, True])
@pytest.mark.parametrize("shared", ["data", "data/~x+y", "data/a b"])
def test_a_server_of_the_same_files(bag: Path, tmp_path: Path, trust_head: bool, shared: str) -> None:
    """A server that serves the bag itself, or a part of it, is noticed before the files are gone."""
    before = tree(bag)
    served_files = tmp_path / "data"
    shutil.copytree(bag / "data", served_files)
    link = tmp_path / shared
    shutil.rmtree(link) if link.is_dir() else link.unlink()
    link.symlink_to(bag / shared)
    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(FileHandler, directory=str(served_files)))
    thread = Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{served.server_address[1]}/"
        with pytest.raises(
            BagError, match=f"{re.escape(shared)}.*when this file was moved away, the server did not send it"
        ):
            hollow(bag, url, trust_head=trust_head, **LOCAL)
    finally:
        served.shutdown()
        thread.join()
        served.server_close()
    assert tree(bag) == before
    if not trust_head:
        with pytest.raises(BagError, match="when this file was moved away"):
            hollow(bag, served_files.as_uri(), allow_file=True, retries=0)
        assert tree(bag) == before


def test_a_server_without_head(server: Server, bag: Path) -> None:
    """Files are read once more, if the server does not state their lengths."""
    before = tree(bag)

    def answer(body: bytes) -> Any:
        read = ranged(body)
        refuse = status(405)
        return lambda handler: (refuse if handler.command == "HEAD" else read)(handler)

    for url, body in zip(URLS, FILES.values(), strict=True):
        server.answer(url, answer(body))
    assert empty(bag, server).ok
    assert server.methods.count("GET") == 2 * len(FILES)
    assert tree(bag).keys() == {*before.keys() - FILES.keys(), b"fetch.txt"}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("files", "not an absolute URL"),
        ("https:///x", "not an absolute URL"),
        ("mailto:x@example.org", "not an absolute URL"),
        ("https://example.org/a#b", "not an absolute URL"),
        ("https://example.org/get?file=", "query"),
        ("https://me:secret@example.org/", "user name or password"),
    ],
)
def test_unsuitable_urls(bag: Path, url: str, message: str) -> None:
    """A URL that cannot be the start of others, or would disclose a password, is refused."""
    with pytest.raises(ValueError, match=message) as caught:
        hollow(bag, url)
    assert "secret" not in str(caught.value)


def test_urls_that_the_policy_refuses(server: Server, bag: Path) -> None:
    """One error for the URL, not one for each file; nothing is changed."""
    before = tree(bag)
    for url, options, message in (
        (server.url(), {}, "not encrypted; use --allow-http"),
        (server.url(), {"allow_http": True}, "which is loopback; use --allow-host"),
        ("file:///tmp", {}, "use --allow-file"),
        ("ftp://example.org/", {}, "scheme"),
    ):
        with pytest.raises(BagError, match=message):
            hollow(bag, url, **options)
    assert tree(bag) == before
    with pytest.raises(ValueError, match="threads=0"):
        hollow(bag, server.url(), threads=0)


# --- interruptions ------


def test_until_the_server_sent_a_file_again_the_change_is_reversed(
    server: Server, bag: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies while it asks the server again has removed nothing: the next run reverses the change."""
    before = tree(bag)

    class Killed(BaseException):
        pass

    def undo(*_arguments: object) -> None:
        raise Killed

    answers = [ranged(b""), lambda _handler: (_ for _ in ()).throw(ConnectionError)]
    server.answer("/files/empty", *answers)
    with monkeypatch.context() as patched:
        patched.setattr(transaction.Transaction, "_undo", undo)
        with pytest.raises((Killed, BagError)):
            empty(bag, server)
    assert is_decided(os.fsencode(bag))
    assert not (bag / "data").exists()
    assert (bag / os.fsdecode(STAGING) / "journal.undo").exists()
    server.answer("/files/empty", status(404))
    assert not empty(bag, server).ok
    assert tree(bag) == before


def test_the_same_call_finishes(server: Server, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last check, the next run finishes the change, also without the server."""
    real = os.rename

    def rename(source: Any, target: Any, **more: Any) -> None:
        if os.fsencode(target).endswith(b"bagit.txt") and b"/new/" in os.fsencode(source):
            raise KeyboardInterrupt
        real(source, target, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", rename)
        patched.setattr(transaction.Transaction, "_undo", lambda *_arguments: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            empty(bag, server)
    # The handler of the exception began to reverse the change; a kill would not have.
    (bag / os.fsdecode(STAGING) / "journal.undo").rename(bag / os.fsdecode(STAGING) / "journal")
    server.answers.clear()
    events: list[object] = []
    assert empty(bag, server, on_event=events.append).ok
    assert events == [Stage("recover")]
    assert {one.kind for one in validate(bag).errors} == {"file-not-fetched", "oxum-mismatch"}
    assert not (bag / os.fsdecode(STAGING)).exists()
