"""Credentials: only the hosts that the user named receive them, and nothing shows them."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from pressmark.bagit.bag import Bag
from pressmark.bagit.fetch.complete import complete
from pressmark.bagit.fetch.credentials import SIZE, Credentials, read_credentials
from pressmark.bagit.fetch.download import DownloadPolicy
from pressmark.bagit.fetch.urls import parse_url, split_url
from pressmark.errors import BagError
from pressmark.reports import Report

from ..bags import Sketch
from ..loopback import Server, redirect, serving, status, whole

pytest.importorskip("urllib3")

BODY = b"content\n"
SECRET = "s3cr3t-t0ken"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        made.answer("/file", whole(BODY))
        yield made


def secrets(folder: Path, text: str | bytes, mode: int = 0o600) -> Path:
    """Write a file with secrets."""
    path = folder / "secrets.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def sent(credentials: Credentials, url: str) -> dict[str, str]:
    return credentials.headers(parse_url(url, split_url(url)))


def finish(folder: Path, url: str, header_from: Path | None = None, *, netrc: bool = False) -> Report:
    """Complete a bag with one file, from local servers."""
    fetch = f"{url} {len(BODY)} data/file\n".encode()
    path = b"data/file"
    bag = Sketch(payload={path: BODY}, absent={path}, info=None, fetch=fetch).write(folder / "bag")
    return complete(bag, allow_http=True, allow_private=True, retries=0, header_from=header_from, netrc=netrc)


# --- which host receives what ------


def test_only_named_hosts_receive_the_fields(tmp_path: Path) -> None:
    """A host receives its lines, at its port; no other host, port or subdomain does."""
    text = f"""\
# tokens of our repositories
Repository.example Authorization: Bearer {SECRET}
repository.example\tX-Api-Key:  a: b c

repository.example:8443 Authorization: Bearer other
[2001:DB8::1]:8080 X-Api-Key: six
bücher.example. Cookie: a=1; b=2
"""
    found = read_credentials(secrets(tmp_path, text), False)
    both = {"authorization": f"Bearer {SECRET}", "x-api-key": "a: b c"}
    assert sent(found, "https://repository.example/a") == both
    assert sent(found, "https://REPOSITORY.example.:443/a") == both
    assert sent(found, "https://repository.example:8443/a") == {"authorization": "Bearer other"}
    assert sent(found, "http://[2001:db8::1]:8080/a") == {"x-api-key": "six"}
    assert sent(found, "https://xn--bcher-kva.example/a") == {"cookie": "a=1; b=2"}
    for other in (
        "https://repository.example:444/",
        "https://www.repository.example/",
        "https://repository.example.org/",
        "https://evil.example/repository.example",
        "https://repository.example@evil.example/",
    ):
        assert sent(found, other) == {}


def test_the_server_receives_them(server: Server, tmp_path: Path) -> None:
    """They replace the fields of the request, and the login of the URL."""
    where = f"127.0.0.1:{server.port}"
    path = secrets(tmp_path, f"{where} authorization: Bearer {SECRET}\n{where} User-Agent: me\n")
    assert finish(tmp_path, server.url().replace("//", "//user:password@"), path).ok
    [(_, headers)] = server.requests
    assert headers.get_all("Authorization") == [f"Bearer {SECRET}"]
    assert headers.get_all("User-Agent") == ["me"]


def test_redirects(server: Server, tmp_path: Path) -> None:
    """A redirect takes no field to another host; a named host receives its own fields."""
    with serving("127.0.0.2") as other:
        server.answer("/a", redirect("/b"))
        server.answer("/b", redirect(other.url("/c")))
        other.answer("/c", redirect(server.url("/file")))
        path = secrets(tmp_path, f"127.0.0.1:{server.port} Authorization: Bearer {SECRET}\n")
        assert finish(tmp_path, server.url("/a"), path).ok
        assert [headers["Authorization"] for _, headers in server.requests] == [f"Bearer {SECRET}"] * 3
        assert [headers["Authorization"] for _, headers in other.requests] == [None]


def test_http_is_refused_by_default(server: Server, tmp_path: Path) -> None:
    """Without permission for unencrypted downloads, no request is sent."""
    path = secrets(tmp_path, f"127.0.0.1:{server.port} Authorization: Bearer {SECRET}\n")
    fetch = f"{server.url()} - data/file\n".encode()
    payload = {b"data/file": BODY}
    bag = Sketch(payload=payload, absent=set(payload), info=None, fetch=fetch).write(tmp_path / "bag")
    report = Bag.open(bag).complete(allow_private=True, header_from=path)
    assert [one.kind for one in report.problems] == ["fetch-refused"]
    assert server.requests == []


def test_nothing_shows_them(server: Server, tmp_path: Path) -> None:
    """Neither problems nor the policy show them; a refused token says which option to use."""
    path = secrets(tmp_path, f"127.0.0.1:{server.port} Authorization: Bearer {SECRET}\n")
    server.answer("/denied", status(401, WWW_Authenticate=f"Bearer {SECRET}"))
    report = finish(tmp_path, server.url("/denied"), path)
    [problem] = report.problems
    advice = f"specify valid credentials for 127.0.0.1:{server.port} with header_from="
    assert problem.message.endswith(f"server responded with 401 Unauthorized; {advice}")
    policy = DownloadPolicy(credentials=read_credentials(path, False))
    for text in (str(report), repr(report.problems), repr(policy), repr(policy.credentials)):
        assert SECRET not in text
    assert SECRET.encode() not in b"".join(one.read_bytes() for one in (tmp_path / "bag").rglob("*") if one.is_file())


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://host.example/a", "host.example"),
        ("https://host.example:443/a", "host.example"),
        ("http://host.example:443/a", "host.example:443"),
        ("https://[::1]/a", "[::1]"),
        ("https://[::1]:8443/a", "[::1]:8443"),
    ],
)
def test_the_advice_names_the_host_as_the_file_does(tmp_path: Path, url: str, authority: str) -> None:
    """A line for the authority of a URL gives it the fields."""
    assert parse_url(url, split_url(url)).authority == authority
    path = secrets(tmp_path, f"{authority} X: {SECRET}\n")
    assert sent(read_credentials(path, False), url) == {"x": SECRET}


# --- files of fields ------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"Authorization: Bearer {SECRET}", "line 1: expected a host, a header and its value, such as: "),
        (f"\n\nhost.example {SECRET}", "line 3: expected a host"),
        (f"host.example Authorization {SECRET}", "line 1: expected a host"),
        ("host.example Authorization:", "line 1: expected a host"),
        (f"https://host.example Authorization: {SECRET}", "line 1: expected a host"),
        (f"me:{SECRET}@host.example X: a", "line 1: expected a host"),
        (f"host.example:99999 X: {SECRET}", "line 1: expected a host"),
        (f"host.example X: {SECRET}\r\0", "line 1: expected a host"),
        (f"host.example X: {SECRET}é", "line 1: expected a host"),
        (f"host.example Host: {SECRET}", "line 1: header 'host' is set by each request; omit the line"),
        (f"host.example RANGE: {SECRET}", "line 1: header 'range' is set by each request"),
        (f"a.example X: 1\nA.example x: {SECRET}", "line 2: header 'x' is not unique for its host; keep one line"),
        (f"host.example X: {SECRET}".encode("utf-16"), "not in UTF-8"),
        (b"#" * (SIZE + 1), "longer than 1,048,576 bytes"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str | bytes, reason: str) -> None:
    """The error names the line and what to do, and shows no value."""
    path = secrets(tmp_path, text)
    with pytest.raises(BagError) as caught:
        read_credentials(path, False)
    assert caught.value.path == str(path)
    assert caught.value.reason.startswith(reason)
    assert SECRET not in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_files_that_others_can_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of secrets that all users can read is refused, before the bag is opened; so is a missing one."""
    path = secrets(tmp_path, "host.example X: 1", 0o644)
    with pytest.raises(BagError, match=f"readable by all users of this machine; run: chmod 600 {path}"):
        complete(tmp_path / "no bag", header_from=path)
    monkeypatch.setenv("NETRC", str(path))
    with pytest.raises(BagError, match="readable by all users"):
        read_credentials(None, True)
    with pytest.raises(BagError, match="No such file"):
        read_credentials(tmp_path / "missing", False)


# --- netrc ------


def test_netrc(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The logins are sent on request only, to the named hosts; fields of the other file take precedence."""
    where = f"127.0.0.1:{server.port}"
    text = f"machine {where} login me password {SECRET}\nmachine b.example login b password c\n"
    text += "default login d password e\n"
    monkeypatch.setenv("NETRC", str(secrets(tmp_path, text)))
    basic = "Basic " + b64encode(f"me:{SECRET}".encode()).decode()
    assert finish(tmp_path / "1", server.url()).ok
    assert finish(tmp_path / "2", server.url(), netrc=True).ok
    (tmp_path / "other").mkdir()
    bearer = secrets(tmp_path / "other", f"{where} Authorization: Bearer x\n{where} X-Y: z\n")
    assert finish(tmp_path / "3", server.url(), bearer, netrc=True).ok
    assert [headers["Authorization"] for _, headers in server.requests] == [None, basic, "Bearer x"]
    found = read_credentials(bearer, True)
    assert sent(found, "https://b.example/") == {"authorization": "Basic Yjpj"}
    assert sent(found, "https://default/") == sent(found, "https://b.example:444/") == {}


def test_the_netrc_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NETRC, it is ~/.netrc; an error in it shows no password."""
    monkeypatch.delenv("NETRC", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    home = secrets(tmp_path, "machine a.example login b password c\n").rename(tmp_path / ".netrc")
    assert sent(read_credentials(None, True), "https://a.example/") == {"authorization": "Basic Yjpj"}
    home.write_text(f"machine a.example login b password c\n{SECRET}\n")
    with pytest.raises(BagError, match="not in the format of netrc") as caught:
        read_credentials(None, True)
    assert SECRET not in str(caught.value)
