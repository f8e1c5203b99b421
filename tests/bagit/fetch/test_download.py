"""Downloading one URL to one file: policy, redirects, and bad connections."""

from __future__ import annotations

import gzip
import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit.fetch import download as downloads
from pressmark.bagit.fetch.addresses import why_not_public
from pressmark.bagit.fetch.download import Download, Downloader, DownloadPolicy
from pressmark.bagit.fetch.urls import redacted_url
from pressmark.errors import BagError
from support.processes import run_python

from ..loopback import (
    OPENSSL,
    Certificates,
    Handler,
    Server,
    drip,
    dropped,
    ranged,
    redirect,
    serving,
    silence,
    status,
    whole,
)

pytest.importorskip("urllib3")

BODY = bytes(range(256)) * 40
LARGE = os.urandom(1 << 20) + BODY * 10  # large enough to be resumed by another run


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def digests(body: bytes) -> dict[str, str]:
    return {"sha512": hashlib.sha512(body).hexdigest(), "md5": hashlib.md5(body).hexdigest()}


def policy(**changes: Any) -> DownloadPolicy:
    """A policy that allows this machine and has short timeouts."""
    return DownloadPolicy(
        **{"allow_http": True, "allow_private": True, "pause": 0.001, "timeout": 30.0, "retries": 2} | changes
    )


def fetch(folder: Path, url: str, body: bytes = BODY, *, length: int | None = -1, **changes: Any) -> Download:
    """Download to ``folder/part`` and move the complete file to ``folder/whole``; expect the length of ``body``."""
    downloader = Downloader(policy(**changes))
    try:
        given = len(body) if length == -1 else length
        found = downloader.download(url, os.fsencode(folder), b"part", given, digests(body))
    finally:
        downloader.close()
    if found.kind is None:
        (folder / "part").rename(folder / "whole")
    return found


def left(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


# --- success ------


@pytest.mark.parametrize("body", [b"", b"a", BODY, LARGE], ids=len)
@pytest.mark.parametrize("known", [True, False])
def test_complete_downloads(server: Server, tmp_path: Path, body: bytes, known: bool) -> None:
    """The file is downloaded, with its digests, whether or not its length is known."""
    url = server.answer("/file", whole(body))
    found = fetch(tmp_path, url, body, length=len(body) if known else None)
    assert found == Download(None, "", len(body), digests(body))
    assert (tmp_path / "whole").read_bytes() == body
    [(path, headers)] = server.requests
    assert path == "/file"
    assert headers["Accept-Encoding"] == "identity"
    assert headers["User-Agent"].startswith("pressmark/")
    assert headers["Range"] is None
    assert headers["Authorization"] is None


def test_the_directory_may_be_a_descriptor(server: Server, tmp_path: Path) -> None:
    """The partial file is created in an open directory, even if that has been moved meanwhile."""
    (tmp_path / "before").mkdir()
    descriptor = os.open(tmp_path / "before", os.O_RDONLY)
    (tmp_path / "before").rename(tmp_path / "after")
    downloader = Downloader(policy())
    try:
        url = server.answer("/file", whole(BODY))
        assert downloader.download(url, descriptor, b"part", None, digests(BODY)).kind is None
    finally:
        downloader.close()
        os.close(descriptor)
    assert left(tmp_path / "after") == {"part": len(BODY)}


def test_bytes_are_counted(server: Server, tmp_path: Path) -> None:
    """Every read is reported to the listener."""
    url = server.answer("/file", whole(LARGE))
    downloader = Downloader(policy())
    sizes: list[int] = []
    downloader.download(url, os.fsencode(tmp_path), b"part", len(LARGE), digests(LARGE), sizes.append)
    downloader.close()
    assert sum(sizes) == len(LARGE)
    assert len(sizes) > 1


def test_the_target_is_sent_unchanged(server: Server, tmp_path: Path) -> None:
    """Path and query are sent unchanged, invalid characters encoded; the fragment is not sent."""
    target = "/a%20b/%2E%2E/../c;d=1/@:+,'()*!$&/?q=a%2Fb&r=?/"
    assert fetch(tmp_path, server.answer(target, whole(BODY)) + "#part").kind is None
    assert fetch(tmp_path, server.answer("/caf%C3%A9", whole(BODY)).replace("%C3%A9", "é")).kind is None
    assert server.paths == [target, "/caf%C3%A9"]


def test_connections_are_reused(server: Server, tmp_path: Path) -> None:
    """Several files of one host use one connection."""
    clients = set()

    def answer(handler: Handler) -> None:
        clients.add(handler.client_address)
        handler.send(200, {}, BODY)

    url = server.answer("/file", answer)
    downloader = Downloader(policy())
    for number in range(5):
        name = b"%d" % number
        assert downloader.download(url, os.fsencode(tmp_path), name, len(BODY), digests(BODY)).kind is None
    downloader.close()
    assert len(clients) == 1


# --- schemes and hosts


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/a", "'http://example.org/a' is not encrypted"),
        ("ftp://example.org/a", "has the scheme 'ftp'; expected https:"),
        ("gopher://example.org:70/_x", "has the scheme 'gopher'"),
        ("data:text/plain,a", "has the scheme 'data'"),
        ("urn:isbn:1", "has the scheme 'urn'"),
        ("javascript:alert(1)", "has the scheme 'javascript'"),
        ("file:///etc/passwd", "is a local file"),
        ("FILE:///etc/passwd", "is a local file"),
        ("/etc/passwd", "has no scheme"),
        ("https:///a", "has no host"),
        ("https:a", "has no host"),
        ("https://./a", "has no host"),
        ("https://exa mple.org/a", "contains a space or control character"),
        ("https://example.org/\r\nHost: b", "contains a space or control character"),
        ("https://example.org:99999/", "is not a valid URL"),
        ("https://[::1/", "is not a valid URL"),
        ("https://a%00b/", "has no host"),
        ("https://" + "a" * 70_000, "URL longer than 65536 characters"),
        (
            "https://127.0.0.1/",
            "has the address 127.0.0.1, which is loopback; use allow_hosts=['127.0.0.1'] if you trust it",
        ),
        ("https://2130706433/", "which is loopback"),
        ("https://0x7f.1/", "which is loopback"),
        ("https://localhost/", "which is loopback"),
        ("https://0/", "which is unspecified"),
        ("https://[::1]/", "which is loopback"),
        ("https://[::ffff:10.0.0.1]/", "which is private"),
        ("https://[64:ff9b::a00:1]/", "which is private"),
        ("https://169.254.169.254/latest/meta-data/", "which is link-local"),
        ("https://me:secret@192.168.1.1/?token=secret#secret", "which is private"),
    ],
)
def test_urls_that_are_not_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, words: str) -> None:
    """A URL outside the policy is refused by name, without a connection, and without its secrets."""
    monkeypatch.setattr(socket.socket, "connect", lambda *_arguments: pytest.fail("it connects"))
    found = fetch(tmp_path, url, allow_http=False, allow_private=False)
    assert found.kind == "refused"
    assert words in found.message
    assert "secret" not in found.message
    assert "\n" not in found.message
    assert left(tmp_path) == {}


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("93.184.216.34", None),
        ("8.8.8.8", None),
        ("172.32.0.1", None),
        ("100.128.0.1", None),
        ("2606:2800:220:1::1", None),
        ("2001:4860:4860::8888", None),
        ("64:ff9b::808:808", None),
        ("::ffff:8.8.8.8", None),
        ("2002:808:808::1", None),
        ("0.0.0.0", "unspecified"),
        ("10.255.255.255", "private"),
        ("100.64.0.1", "private (shared by a provider's customers)"),
        ("127.255.0.1", "loopback"),
        ("169.254.0.1", "link-local"),
        ("172.31.255.255", "private"),
        ("192.0.0.1", "reserved"),
        ("192.168.0.1", "private"),
        ("198.19.0.1", "reserved (benchmarks)"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::7f00:1", "reserved"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:0:7f00:1", "reserved"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b:1::1", "reserved"),
        ("2002:7f00:1::", "loopback"),
        ("2001:0:7f00:1::", "reserved (protocols)"),
        ("100::1", "reserved"),
        ("fc00::1", "private (unique local)"),
        ("fd12:3456::1", "private (unique local)"),
        ("fe80::1%eth0", "link-local"),
        ("fec0::1", "private (site-local)"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "reserved (documentation)"),
        ("4000::1", "reserved"),
        ("/var/run/socket", "not an address"),
    ],
)
def test_special_addresses_are_named(address: str, fault: str | None) -> None:
    """Every special address range is named, also if mapped to the other IP version."""
    assert why_not_public(address) == fault


def resolving(monkeypatch: pytest.MonkeyPatch, **answers: list[list[str]]) -> list[str]:
    """Make host names resolve to lists of addresses in turn; return the requested names."""
    asked: list[str] = []

    def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        given = answers.get(host.partition(".")[0], [[host]])
        return given.pop(0) if len(given) > 1 else given[0]

    monkeypatch.setattr(downloads, "resolve", resolve)
    return asked


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["2606:4700::1", "::1"]])
def test_one_bad_address_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server, addresses: list[str]
) -> None:
    """A host with any disallowed address is not connected to."""
    resolving(monkeypatch, bag=[addresses])
    monkeypatch.setattr(socket.socket, "connect", lambda *_arguments: pytest.fail("it connects"))
    found = fetch(tmp_path, server.url(host="bag.example"), allow_private=False)
    assert found.kind == "refused"
    assert "host 'bag.example' has the address" in found.message


def test_the_checked_address_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """A host is resolved once per request, so that a second answer cannot redirect it."""
    server.answer("/file", whole(BODY))
    asked = resolving(monkeypatch, bag=[["127.0.0.1"], ["10.0.0.1"]])
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **more: Any) -> Any:
        assert host == "127.0.0.1", "it is looked up again"
        return real(host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    url = server.url(host="bag.example")
    assert fetch(tmp_path, url, allow_private=False, allow_hosts=frozenset({"Bag.Example"})).kind is None
    assert asked == ["bag.example"]
    assert server.requests[0][1]["Host"] == f"bag.example:{server.port}"


def test_the_next_address_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """If the first of several addresses does not respond, the others are tried."""
    server.answer("/file", whole(BODY))
    resolving(monkeypatch, bag=[["127.0.0.2", "127.0.0.1"]])
    assert fetch(tmp_path, server.url(host="bag.example"), retries=0).kind is None


def test_failed_connections(tmp_path: Path, server: Server) -> None:
    """A failed connection names the address, after the given number of tries."""
    server.server_close()
    found = fetch(tmp_path, server.url())
    assert found.kind == "failed"
    assert found.message == f"'{server.url()}': cannot connect to 127.0.0.1"


def test_an_unknown_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown host fails immediately."""

    def resolve(*_arguments: Any) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(downloads, "resolve", resolve)
    found = fetch(tmp_path, "https://bag.example/")
    assert (found.kind, found.message) == (
        "failed",
        "unknown host 'bag.example': Name or service not known",
    )


# --- redirections


def test_redirections_are_followed(tmp_path: Path, server: Server) -> None:
    """Every kind of redirect, relative or absolute, is followed."""
    first = server.answer("/a/1", redirect("2", 301))
    server.answer("/a/2", redirect("/b/3", 303))
    server.answer("/b/3", redirect(server.url("/b/4"), 307))
    server.answer("/b/4", redirect(f"//127.0.0.1:{server.port}/b/5", 308))
    server.answer("/b/5", redirect("/c d/é?q=1#part", 302))
    server.answer("/c%20d/%E9?q=1", whole(BODY))
    assert fetch(tmp_path, first).kind is None
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("http://10.0.0.1/", "host '10.0.0.1' has the address 10.0.0.1, which is private"),
        ("http://169.254.169.254/", "which is link-local"),
        ("http://[::1]/", "which is loopback"),
        ("file:///etc/passwd", "has the scheme 'file'; expected https:"),
        ("ftp://example.org/", "has the scheme 'ftp'"),
        ("http://./", "has no host"),
    ],
)
def test_redirections_are_checked_like_urls(tmp_path: Path, server: Server, to: str, words: str) -> None:
    """A redirect is subject to the policy of URLs, and never leads to a local file."""
    url = server.answer("/file", redirect(to))
    found = fetch(tmp_path, url, allow_private=False, allow_hosts=frozenset({"127.0.0.1"}))
    assert found.kind == "refused"
    assert words in found.message


def test_redirections_end(tmp_path: Path, server: Server) -> None:
    """Redirect loops and long chains end after a limited number of steps."""
    found = fetch(tmp_path, server.answer("/a", redirect("/a#1")))
    assert (found.kind, found.message) == ("failed", f"'{server.url('/a')}' redirects more than 10 times")
    for number in range(20):
        server.answer(f"/{number}", redirect(f"/{number + 1}"))
    server.requests.clear()
    found = fetch(tmp_path, server.url("/0"))
    assert (found.kind, found.message) == ("failed", f"'{server.url('/0')}' redirects more than 10 times")
    assert len(server.requests) == 11
    found = fetch(tmp_path, server.answer("/a", status(302)))
    assert (found.kind, found.message) == ("failed", f"'{server.url('/a')}' redirects without a location")


def test_credentials_stay_with_their_origin(tmp_path: Path, server: Server) -> None:
    """Credentials of a URL are sent only to its origin, and never shown."""
    with serving("127.0.0.2") as other:
        server.answer("/a", redirect("/b"))
        server.answer("/b", redirect(other.url("/c")))
        other.answer("/c", redirect(server.url("/d")))
        server.answer("/d", status(403))
        found = fetch(tmp_path, server.url("/a").replace("//", "//me:s%40fe@"))
        assert found.kind == "failed"
        assert found.message == f"'{server.url('/d')}': server responded with 403 Forbidden"
        sent = [headers["Authorization"] for _path, headers in server.requests]
        assert sent == ["Basic bWU6c0BmZQ==", "Basic bWU6c0BmZQ==", None]
        assert [headers["Authorization"] for _path, headers in other.requests] == [None]


def test_urls_are_shown_without_secrets() -> None:
    """User information and query of a URL are not shown in messages."""
    assert redacted_url("https://me:secret@example.org/a?key=secret#x") == "'https://example.org/a?…'"
    assert redacted_url("https://a:b@c@example.org") == "'https://example.org'"
    assert redacted_url("https:me:secret@example.org") == "'https:example.org'"
    assert redacted_url("https://example.org/a@b") == "'https://example.org/a@b'"
    assert redacted_url("nothing\n") == r"'nothing\n'"


# --- lengths


@pytest.mark.parametrize("announced", [True, False])
def test_responses_that_are_too_long(tmp_path: Path, server: Server, announced: bool) -> None:
    """A response longer than allowed is cancelled at once, and nothing of it is kept."""
    answer = whole(LARGE) if announced else drip(1 << 16, 0)
    taken: list[int] = []
    downloader = Downloader(policy())
    url = server.answer("/file", answer)
    found = downloader.download(url, os.fsencode(tmp_path), b"part", 100_000, digests(BODY), taken.append)
    downloader.close()
    assert found.kind == "too-long"
    assert "limit" in found.message
    assert sum(taken) <= (0 if announced else 100_000)
    assert len(server.requests) == 1
    assert left(tmp_path) == {}


def test_the_maximum_of_files_without_length(tmp_path: Path, server: Server) -> None:
    """The maximum applies only to files of unknown length."""
    url = server.answer("/file", drip(1 << 16, 0))
    assert fetch(tmp_path, url, length=None, maximum=1 << 18).kind == "too-long"
    url = server.answer("/file", whole(BODY))
    assert fetch(tmp_path, url, length=None, maximum=len(BODY)).kind is None
    assert fetch(tmp_path, url, maximum=1).kind is None


def test_a_shorter_file_with_correct_digests(tmp_path: Path, server: Server) -> None:
    """The length in fetch.txt may be wrong; a file with the right digests is correct."""
    url = server.answer("/file", whole(BODY))
    assert fetch(tmp_path, url, length=len(BODY) + 1) == Download(None, "", len(BODY), digests(BODY))


def test_another_file_is_a_mismatch(tmp_path: Path, server: Server) -> None:
    """A file with other digests is not kept, and its digests are reported."""
    url = server.answer("/file", whole(BODY[::-1]))
    found = fetch(tmp_path, url)
    assert (found.kind, found.size, found.digests) == ("mismatch", len(BODY), digests(BODY[::-1]))
    assert found.message == f"'{url}' has wrong checksums"
    assert left(tmp_path) == {}
    assert len(server.requests) == 1


def test_nothing_is_decompressed(tmp_path: Path, server: Server) -> None:
    """Content is never decompressed: an unrequested compressed response is another file; a .gz file is correct."""
    packed = gzip.compress(BODY, mtime=0)
    url = server.answer("/file", whole(packed, Content_Encoding="gzip"))
    found = fetch(tmp_path, url, length=None)
    assert found.kind == "mismatch"
    assert fetch(tmp_path, url, packed).kind is None


# --- bad connections


def chunked(pieces: list[bytes], end: bool = True) -> Any:
    def answer(handler: Handler) -> None:
        handler.send(200, {"Transfer-Encoding": "chunked", "ETag": '"one"'}, length=False)
        for piece in pieces:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if end:
            handler.wfile.write(b"0\r\n\r\n")
        else:
            handler.close_connection = True

    return answer


def test_chunks(tmp_path: Path, server: Server) -> None:
    """A chunked response is assembled; an interrupted one is resumed."""
    url = server.answer("/file", chunked([BODY[:10], BODY[10:]]))
    assert fetch(tmp_path, url, length=None).kind is None
    url = server.answer("/file", chunked([BODY[:10], BODY[10:20]], end=False), ranged(BODY))
    server.requests.clear()
    assert fetch(tmp_path, url, length=None).kind is None
    assert server.ranges() == [None, "bytes=20-"]


def test_a_dropped_connection_is_resumed(tmp_path: Path, server: Server) -> None:
    """An interrupted download is resumed only if the file is unchanged."""
    url = server.answer("/file", dropped(BODY, 1000), ranged(BODY))
    assert fetch(tmp_path, url).kind is None
    assert server.ranges() == [None, "bytes=1000-"]
    assert server.requests[1][1]["If-Range"] == '"one"'
    assert (tmp_path / "whole").read_bytes() == BODY


def test_dates_replace_missing_etags(tmp_path: Path, server: Server) -> None:
    """Last-Modified is as good as a strong ETag for resuming; a weak ETag is not."""
    date = "Tue, 15 Nov 1994 12:45:26 GMT"
    first = dropped(BODY, 1000, etag='W/"weak"', Last_Modified=date)
    assert fetch(tmp_path, server.answer("/file", first, ranged(BODY, date))).kind is None
    assert server.ranges() == [None, "bytes=1000-"]
    assert server.requests[1][1]["If-Range"] == date


def test_without_etag_and_date_the_download_restarts(tmp_path: Path, server: Server) -> None:
    """Without ETag and date, a download restarts."""
    url = server.answer("/file", dropped(BODY, 1000, etag=None), whole(BODY))
    assert fetch(tmp_path, url).kind is None
    assert server.ranges() == [None, None]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(whole(BODY), id="ranges ignored"),
        pytest.param(ranged(BODY, '"two"'), id="another tag"),
    ],
)
def test_a_complete_response_restarts_the_download(tmp_path: Path, server: Server, answer: Any) -> None:
    """If the server sends the whole file instead of a range, the download restarts."""
    url = server.answer("/file", dropped(BODY[::-1], 1000), answer)
    assert fetch(tmp_path, url).kind is None
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Range": f"bytes 999-{len(BODY) - 1}/{len(BODY)}"},
        {"Content-Range": f"bytes 1000-999/{len(BODY)}"},
        {"Content-Range": "bytes=1000-"},
        {},
        {"Content-Range": f"bytes 1000-{len(BODY) - 1}/{len(BODY)}", "ETag": '"two"'},
        {"Content-Range": f"bytes 1000-{len(BODY) - 1}/{len(BODY)}", "ETag": 'W/"one"'},
    ],
    ids=str,
)
def test_a_wrong_range_is_discarded(tmp_path: Path, server: Server, headers: dict[str, str]) -> None:
    """A response with another range than requested is discarded."""
    url = server.answer(
        "/file",
        dropped(BODY, 1000),
        lambda handler: handler.send(206, headers, BODY[1000:]),
        ranged(BODY),
    )
    assert fetch(tmp_path, url).kind is None
    assert server.ranges() == [None, "bytes=1000-", None]


def test_a_shortened_file_restarts_the_download(tmp_path: Path, server: Server) -> None:
    """A partial file longer than the server's file is discarded."""
    url = server.answer("/file", dropped(BODY, 1000), status(416), ranged(BODY))
    assert fetch(tmp_path, url).kind is None
    assert server.ranges() == [None, "bytes=1000-", None]


def test_a_resumed_file_with_wrong_digests_is_fetched_again(tmp_path: Path, server: Server) -> None:
    """If the resumed file has wrong digests, it is downloaded once more as a whole."""
    url = server.answer("/file", dropped(BODY[::-1], 1000), ranged(BODY), ranged(BODY))
    assert fetch(tmp_path, url).kind is None
    assert server.ranges() == [None, "bytes=1000-", None]
    url = server.answer("/file", dropped(BODY[::-1], 1000), ranged(BODY), whole(BODY[::-1]))
    assert fetch(tmp_path, url).kind == "mismatch"


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_temporary_errors_are_retried(tmp_path: Path, server: Server, code: int) -> None:
    """Temporary errors are retried up to the given number of tries."""
    assert fetch(tmp_path, server.answer("/file", status(code), status(code), whole(BODY))).kind is None
    found = fetch(tmp_path, server.answer("/file", status(code)))
    assert found.kind == "failed"
    assert f"server responded with {code}" in found.message
    assert len(server.requests) == 3 + 3


@pytest.mark.parametrize("code", [204, 206, 304, 400, 401, 403, 404, 410, 501, 599])
def test_permanent_errors_are_not_retried(tmp_path: Path, server: Server, code: int) -> None:
    """Permanent errors are not retried."""
    found = fetch(tmp_path, server.answer("/file", status(code)), retries=0 if code == 206 else 2)
    assert found.kind == "failed"
    assert found.size == 0
    assert len(server.requests) == 1


def test_retry_after_is_obeyed(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry-After is obeyed, in seconds or as a date by the server's clock, up to a limit."""
    waits: list[float | None] = []
    monkeypatch.setattr(threading.Event, "wait", lambda _event, timeout=None: waits.append(timeout))
    date = "Tue, 15 Nov 1994 12:00:00 GMT"
    later = "Tue, 15 Nov 1994 12:00:07 GMT"

    def dated(handler: Handler) -> None:
        handler.send_response_only(503)
        handler.send_header("Date", date)
        handler.send_header("Retry-After", later)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    assert fetch(tmp_path, server.answer("/file", status(429, Retry_After="3"), dated, whole(BODY))).kind is None
    assert [wait for wait in waits if wait in (3.0, 7.0)] == [3.0, 7.0]
    found = fetch(tmp_path, server.answer("/file", status(503, Retry_After="86400")))
    assert found.message.endswith("503 Service Unavailable, and requests a delay of 86400 seconds")


def test_progress_resets_the_retries(tmp_path: Path, server: Server) -> None:
    """Progress resets the number of tries."""

    def answer(handler: Handler) -> None:
        start = int((handler.headers["Range"] or "bytes=0-")[6:-1])
        headers = {"ETag": '"one"', "Content-Length": str(len(body) - start)}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        handler.send(206 if start else 200, headers, body[start : start + (1 << 20)])
        handler.close_connection = True

    body = os.urandom(1 << 16) * 80  # 5 MiB
    assert fetch(tmp_path, server.answer("/file", answer), body, retries=1).kind is None
    assert len(server.requests) == 5


def test_silent_servers_fail(tmp_path: Path, server: Server) -> None:
    """A silent server is a failure after the timeout."""

    def stops(handler: Handler) -> None:
        handler.send(200, {"Content-Length": str(len(BODY))}, BODY[:10])
        silence(handler)

    for answer in (silence, stops):
        found = fetch(tmp_path, server.answer("/file", answer), timeout=0.1, retries=1)
        assert found.kind == "failed"
        assert found.message.endswith("no data for 0.1 seconds")
    assert len(server.requests) == 4


def test_a_changed_date_restarts_the_download(tmp_path: Path, server: Server) -> None:
    """A range of a file with another date than before is discarded, although it also has a tag."""
    before, after = "Tue, 15 Nov 1994 12:45:26 GMT", "Tue, 15 Nov 1994 12:45:27 GMT"
    span = {"Content-Range": f"bytes 1000-{len(BODY) - 1}/{len(BODY)}", "ETag": '"new"', "Last-Modified": after}
    first = dropped(BODY[::-1], 1000, etag=None, Last_Modified=before)
    url = server.answer("/file", first, lambda handler: handler.send(206, span, BODY[1000:]), ranged(BODY))
    assert fetch(tmp_path, url).kind is None
    assert server.ranges() == [None, "bytes=1000-", None]


def test_slow_transfers_fail(tmp_path: Path, server: Server) -> None:
    """A server below the minimum speed is a failure."""
    found = fetch(tmp_path, server.answer("/file", drip(1, 0.01)), timeout=0.5, retries=0)
    assert found.kind == "failed"
    assert found.message.endswith("transfer too slow")


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", b"Trailer: x\r\n"),
    ],
    ids=["continue", "header", "chunk", "trailer"],
)
def test_endless_responses_fail(tmp_path: Path, server: Server, begin: bytes, piece: bytes) -> None:
    """An endless response outside its body is cancelled, although data keeps arriving."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(begin)
        handler.close_connection = True
        while not handler.server.stopped.wait(0.005):
            handler.wfile.write(piece)

    found = fetch(tmp_path, server.answer("/file", answer), length=None, timeout=0.5, retries=0)
    assert found.kind == "failed"
    assert found.message.endswith("transfer too slow")


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabcde\r\n",
        b"",
    ],
    ids=lambda raw: repr(raw[:30]),
)
def test_responses_that_are_not_http_fail(tmp_path: Path, server: Server, raw: bytes) -> None:
    """A response that is not HTTP is a failure."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(raw)
        handler.close_connection = True

    found = fetch(tmp_path, server.answer("/file", answer), retries=0)
    assert found.kind == "failed"
    assert found.message.startswith(f"'{server.url()}': ")
    assert "\n" not in found.message
    assert "Error(" not in found.message


@pytest.mark.parametrize("answer", [silence, drip(1 << 10, 0.001), status(503, Retry_After="100")])
def test_cancelled_downloads_end_at_once(tmp_path: Path, server: Server, answer: Any) -> None:
    """A stopped run ends every download at once."""
    url = server.answer("/file", answer)
    downloader = Downloader(policy(timeout=60))
    found: list[Download] = []

    def work() -> None:
        found.append(downloader.download(url, os.fsencode(tmp_path), b"part", None, digests(BODY)))

    thread = threading.Thread(target=work)
    thread.start()
    while not server.requests:
        time.sleep(0.001)
    time.sleep(0.05)
    downloader.cancel()
    thread.join(10)
    assert not thread.is_alive()
    assert [one.kind for one in found] == ["cancelled"]
    assert downloader.download(url, os.fsencode(tmp_path), b"part", None, digests(BODY)).kind == "cancelled"
    downloader.close()


# --- resuming in another run


def test_a_later_run_resumes(tmp_path: Path, server: Server) -> None:
    """A large partial file is hashed and resumed by another run."""
    half = len(LARGE) - 5
    url = server.answer("/file", dropped(LARGE, half), status(404))
    assert fetch(tmp_path, url, LARGE).kind == "failed"
    assert left(tmp_path).keys() == {"part", "part.json"}
    server.requests.clear()
    server.answer("/file", ranged(LARGE))
    assert fetch(tmp_path, url, LARGE).kind is None
    assert server.ranges() == [f"bytes={half}-"]


def test_a_complete_partial_file_needs_no_request(tmp_path: Path, server: Server) -> None:
    """A complete partial file with the right digests needs no request."""
    (tmp_path / "part").write_bytes(BODY)
    assert fetch(tmp_path, server.url()).kind is None
    assert server.requests == []


@pytest.mark.parametrize("damage", ["body", "json", "url", "longer", "link", "fifo", "name", "header"])
def test_a_damaged_partial_file_is_discarded(tmp_path: Path, server: Server, damage: str) -> None:
    """A damaged partial file is discarded, and the result is correct."""
    folder = tmp_path / "parts"
    folder.mkdir()
    (tmp_path / "other").write_bytes(b"precious")
    url = server.answer("/file", dropped(LARGE, len(LARGE) - 5), status(404))
    assert fetch(folder, url, LARGE).kind == "failed"
    part, beside = folder / "part", folder / "part.json"
    if damage == "body":
        part.write_bytes(bytes(part.stat().st_size))
    elif damage == "json":
        beside.write_bytes(b"{")
    elif damage == "url":
        beside.write_bytes(beside.read_bytes().replace(b"/file", b"/elif"))
    elif damage == "header":
        beside.write_bytes(beside.read_bytes().replace(b'\\"one\\"', b'\\"one\\"\\r\\nHost: b'))
    elif damage == "longer":
        part.write_bytes(LARGE + b"x")
    else:
        part.unlink()
        if damage == "link":
            part.symlink_to(tmp_path / "other")
            beside.unlink()
            beside.symlink_to(tmp_path / "other")
        elif damage == "name":
            part.hardlink_to(tmp_path / "other")
        else:
            os.mkfifo(part)
    server.answer("/file", ranged(LARGE))
    assert fetch(folder, url, LARGE).kind is None
    assert (folder / "whole").read_bytes() == LARGE
    assert not (folder / "whole").is_symlink()
    assert (tmp_path / "other").read_bytes() == b"precious"


def test_write_errors_are_reported(tmp_path: Path, server: Server) -> None:
    """A write error is an outcome."""
    (tmp_path / "part").mkdir()
    found = fetch(tmp_path, server.answer("/file", whole(BODY)))
    assert found.kind == "disk"
    assert found.message.startswith("cannot be written: ")


def test_a_full_disk_is_reported(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk, a partial file is kept only if its length is known."""
    real = os.write

    def write(descriptor: int, data: Any) -> int:
        if os.fstat(descriptor).st_size >= 1000:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[:1000])

    url = server.answer("/file", whole(BODY))
    monkeypatch.setattr(os, "write", write)
    for length, kept in ((len(BODY), {"part": 1000}), (None, {})):
        found = fetch(tmp_path, url, length=length)
        assert (found.kind, found.message) == ("full", "no space left on the disk")
        assert left(tmp_path) == kept


# --- local files ---------


# --- TLS


@pytest.mark.skipif(OPENSSL is None, reason="makes its certificates with openssl")
def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host needs a trusted certificate for its name; the name is sent, not the address."""
    resolving(monkeypatch, bag=[["127.0.0.1"]], other=[["127.0.0.1"]])
    certificates = Certificates(tmp_path, "DNS:bag.example,IP:127.0.0.1")
    folder = tmp_path / "parts"
    folder.mkdir()
    trusting = {"certificates": str(certificates.authority), "allow_http": False}
    with serving(context=certificates.context) as server, serving() as plain:
        server.answer("/file", whole(BODY))
        url = server.url(host="bag.example")
        assert fetch(folder, url, **trusting).kind is None
        found = fetch(folder, url)
        assert found.kind == "failed"
        assert "certificate not accepted: " in found.message
        found = fetch(folder, server.url(host="other.example"), **trusting)
        assert "certificate not accepted: " in found.message
        assert "other.example" in found.message
        # HTTPS is not left for HTTP.
        server.answer("/file", redirect(plain.url()))
        found = fetch(folder, url, **trusting)
        assert found.kind == "refused"
        assert f"'{url}' redirects to '{plain.url()}', which is not encrypted" in found.message
        assert plain.requests == []
        plain.answer("/file", whole(BODY))
        assert fetch(folder, url, **trusting | {"allow_http": True}).kind is None


@pytest.mark.skipif(OPENSSL is None, reason="makes its certificates with openssl")
@pytest.mark.parametrize("answer", [silence, drip(1, 0.01)], ids=["silent", "dripping"])
def test_encrypted_connections_time_out(tmp_path: Path, answer: Any) -> None:
    """Timeouts and cancellation work on TLS connections."""
    certificates = Certificates(tmp_path, "IP:127.0.0.1")
    trusting = {"certificates": str(certificates.authority)}
    folder = tmp_path / "parts"
    folder.mkdir()
    with serving(context=certificates.context) as server:
        url = server.answer("/file", answer)
        assert fetch(folder, url, length=None, timeout=0.3, retries=0, **trusting).kind == "failed"
        downloader = Downloader(policy(**trusting))
        timer = threading.Timer(0.2, downloader.cancel)
        timer.start()
        begun = time.monotonic()
        assert downloader.download(url, os.fsencode(folder), b"part", None, digests(BODY)).kind == "cancelled"
        assert time.monotonic() - begun < 10
        timer.join()
        downloader.close()


def test_silent_handshakes_end(tmp_path: Path) -> None:
    """A server that accepts a connection and never answers the TLS handshake is a failure after the timeout."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        begun = time.monotonic()
        found = fetch(tmp_path, f"https://127.0.0.1:{listener.getsockname()[1]}/file", timeout=0.2, retries=0)
        assert found.kind == "failed"
        assert time.monotonic() - begun < 10


def test_unreadable_certificates(tmp_path: Path) -> None:
    """An invalid certificate file is refused before any request."""
    (tmp_path / "empty.pem").write_bytes(b"")
    for name, words in (("nothing.pem", "No such file or directory"), ("empty.pem", "cannot read certificates")):
        with pytest.raises(BagError, match=words):
            Downloader(policy(certificates=str(tmp_path / name)))


# --- urllib3


def test_missing_urllib3_is_reported_in_one_line() -> None:
    """Without urllib3 the package can be imported, and the error names the remedy."""
    run = run_python(
        "import sys; sys.modules['urllib3'] = None\n"
        "from pressmark.bagit.fetch import download as downloads\n"
        "from pressmark.errors import BagError\n"
        "try: downloads.Downloader(downloads.DownloadPolicy())\n"
        "except BagError as error: print(error)"
    )
    assert run.stdout == "'fetch.txt': downloads require urllib3: pip install 'pressmark[fetch]'\n", run.stderr
