"""The ``store`` commands with an address in object storage: results, options for the server, and what is refused."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from buckets.conftest import endpoint, settings  # noqa: F401
from buckets.servers import free_port
from pressmark.buckets import address
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.cli import main
from pressmark.stores.ocfl import inventory
from support.careless_bucket import CarelessBucket

from .conftest import Call

if TYPE_CHECKING:
    from click.testing import Result

ROOT = "s3://books/root"
#: A call of each command that opens a store at an address, by its name.
CALLS: dict[str, list[str]] = {
    "init": ["init", "ocfl", ROOT, "--layout", "0003"],
    "put": ["put", ROOT, "id:1", "scans"],
    "put list": ["put", ROOT, "--from", "list.tsv"],
    "update": ["update", ROOT, "id:1", "--add", "more.txt"],
    "restore": ["restore", ROOT, "id:1", "--version", "v1"],
    "upgrade": ["upgrade", ROOT, "--algorithm", "sha256"],
    "get": ["get", ROOT, "id:1", "copy"],
    "cat": ["cat", ROOT, "id:1", "a.txt"],
    "ls": ["ls", ROOT],
    "ls files": ["ls", ROOT, "id:1"],
    "log": ["log", ROOT, "id:1"],
    "diff": ["diff", ROOT, "id:1"],
    "check": ["check", ROOT],
    "report": ["report", ROOT, "--json"],
    "repair": ["repair", ROOT],
    "rm": ["rm", ROOT, "id:1"],
}
OPENING = [name for name in CALLS if name != "init"]


@pytest.fixture(autouse=True)
def inside(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write what the calls read, and hide the settings of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "a.txt").write_bytes(b"a")
    (tmp_path / "more.txt").write_bytes(b"more")
    (tmp_path / "list.tsv").write_text("id:2\tscans\nid:3\tscans\n")
    monkeypatch.setenv("PRESSMARK_USER", "Ann")
    monkeypatch.setenv("PRESSMARK_USER_ADDRESS", "mailto:ann@example.org")


def serve(monkeypatch: pytest.MonkeyPatch, bucket: MemoryBucket) -> MemoryBucket:
    """Let each address lead to this bucket."""
    monkeypatch.setattr(address, "open_bucket", lambda text: (bucket, address.parse(text)[1]))
    bucket.url = "s3://books"
    return bucket


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> MemoryBucket:
    return serve(monkeypatch, MemoryBucket())


@pytest.fixture
def root(bucket: MemoryBucket, call: Call) -> MemoryBucket:
    """A bucket with a storage root that contains an object."""
    assert call("store", *CALLS["init"]).exit_code == 0
    assert call("store", *CALLS["put"]).exit_code == 0
    return bucket


def assert_one_line(done: Result, status: int, line: str) -> None:
    """A call ended with this status, and with one line on standard error, which begins with the program's name."""
    assert (done.exit_code, done.stdout, done.stderr) == (status, "", f"pressmark: {line}\n")


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_whole_life(bucket: MemoryBucket, call: Call, tmp_path: Path) -> None:
    """Each command does with an address what it does with a directory."""

    def store(*arguments: str) -> tuple[str, str]:
        done = call("store", *arguments)
        assert done.exit_code == 0, done.output
        return done.stdout, done.stderr

    path = "b82/4aa/9f0/id%3a1"
    assert store(*CALLS["init"])[1] == f"pressmark: {ROOT}: created an empty store of kind ocfl\n"
    assert store(*CALLS["put"]) == (f"id:1\t{path}\n", "")
    assert store(*CALLS["put list"])[1] == f"pressmark: {ROOT}: 2 objects stored\n"
    assert f"id:1\t{path}\n" in store(*CALLS["ls"])[0]
    assert store(*CALLS["check"], "--digests")[1] == f"pressmark: {ROOT}: 3 objects, no problem; files: 3 read\n"
    assert store(*CALLS["cat"])[0] == "a"
    assert store(*CALLS["update"])[1] == "pressmark: 'id:1': version v2: 1 added, 1 unchanged\n"
    assert store(*CALLS["diff"])[0] == "added\tmore.txt\n"
    assert [line.split("\t")[0] for line in store(*CALLS["log"])[0].splitlines()] == ["v1", "v2"]
    assert [line.split("\t")[0] for line in store(*CALLS["ls files"])[0].splitlines()] == ["a.txt", "more.txt"]
    assert store(*CALLS["restore"], "a.txt")[1].endswith("v2 remains the newest version; content was not read\n")
    assert store(*CALLS["upgrade"])[1] == f"pressmark: {ROOT}: 3 objects upgraded\n"
    store(*CALLS["get"])
    assert sorted(os.listdir(tmp_path / "copy")) == ["a.txt", "more.txt"]
    assert store(*CALLS["rm"])[1] == "pressmark: 1 object removed\n"
    store(*CALLS["repair"])
    assert store(*CALLS["check"])[1] == f"pressmark: {ROOT}: 2 objects, 1 warning; content was not read\n"


def test_put_again(root: MemoryBucket, call: Call, tmp_path: Path) -> None:
    """An object with the same files is a success, one with other files is not changed."""
    keys = root.keys
    done = call("store", *CALLS["put"])
    assert done.exit_code == 0
    assert done.stderr == f"pressmark: {ROOT}: 1 object exists with the same content; not stored again\n"
    (tmp_path / "scans" / "a.txt").write_bytes(b"b")
    done = call("store", *CALLS["put"])
    assert done.exit_code == 1
    assert "object exists at" in done.stderr
    assert root.keys == keys


def test_damaged_content(root: MemoryBucket, call: Call) -> None:
    """The advice names no command that does not work in object storage."""
    [key] = [key for key in root.keys if key.endswith(b"content/a.txt")]
    root.put(key, b"x", over=ANY)
    done = call("store", "check", ROOT, "--digests")
    assert done.exit_code == 1
    advice = "content-mismatch: replace the files by those of a good copy with another program"
    assert done.stderr.splitlines()[-1] == f"pressmark: what to do: {advice}"
    done = call("store", "repair", ROOT, "--from", "scans")
    what = "replacing damaged files is not supported in object storage"
    assert_one_line(done, 2, f"--from: {what}; write the files of a good copy to their keys with another program")


# --- what is refused --------------------------------------------------------------------------------------------------

READ_ONLY = {
    "pairtree": "a Pairtree in object storage is read-only: an object of several files cannot be stored in one step",
    "vitro": "a Vitro store in object storage is read-only: a file and its name cannot be replaced in one step",
}
REFUSED = {
    **{
        f"store init {kind} s3://books/new": f"'s3://books/new': {reason}; use an OCFL storage root"
        for kind, reason in READ_ONLY.items()
    },
    "store init bags s3://books/new": (
        "'s3://books/new': a folder of bags is only read in object storage; use a local path"
    ),
    f"store check {ROOT} --workers 2": "--workers: not supported in object storage; omit the option",
    f"store check {ROOT} --dask tcp://x:1": "--dask: not supported in object storage; omit the option",
    f"store put {ROOT} id:1 scans --copy-mode reflink": (
        "--copy-mode reflink: not supported in object storage; use --copy-mode auto"
    ),
    f"store ls {ROOT} --endpoint=": "--endpoint: the value is empty",
    "bag complete scans --region x": "--region: only with --allow-bucket; omit the option",
    "bag complete scans --allow-bucket books --region=": "--region: the value is empty",
    **{
        text.replace("X", "s3://books/x"): f"s3://books/x: object storage is not supported for {name}; use a local path"
        for text, name in (
            (f"store get {ROOT} id:1 X", "DESTINATION"),
            (f"store put {ROOT} id:1 scans X", "SOURCE"),
            (f"store put {ROOT} --from X", "--from"),
            (f"store rm {ROOT} --from X", "--from"),
            (f"store repair {ROOT} --from X", "--from"),
            ("store repair scans --from X", "--from"),
            (f"migrate scans {ROOT} --to ocfl --layout 0003 --work X", "--work"),
            (f"migrate scans {ROOT} --to ocfl --layout 0003 --ids X", "--ids"),
            ("bag create X", "SOURCE"),
            ("bag unpack scans -o X", "--output"),
            ("bag update X", "BAG"),
            ("bag complete X", "BAG"),
            ("bag complete scans --header-from X", "--header-from"),
            ("bag pack X", "BAG"),
            ("bag validate scans --ledger X", "--ledger"),
            ("verify X", "MANIFEST"),
            ("map 0003 X", "FILE"),
        )
    },
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an address does not support is refused in one line, before anything is opened or written."""

    def opened(*_arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr(address, "open_bucket", opened)
    before = sorted(tmp_path.rglob("*"))
    assert_one_line(call(*text.split()), 2, REFUSED[text])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("option", ["--endpoint", "--s3-profile", "--region"])
def test_options_of_a_local_store(name: str, option: str, call: Call) -> None:
    arguments = [one.replace(ROOT, "local") for one in CALLS[name]]
    line = f"{option}: only for an address such as s3://bucket/prefix; omit the option"
    assert_one_line(call("store", *arguments, option, "x"), 2, line)


MALFORMED = {
    "s3://": "invalid bucket name ''; use an address such as s3://bucket/prefix",
    "s3:///root": "invalid bucket name ''; use an address such as s3://bucket/prefix",
    "s3://a b/root": "invalid bucket name 'a b'; use an address such as s3://bucket/prefix",
    "s3://books//root": ("the prefix has an empty part, or the part '.' or '..'; use one such as s3://bucket/prefix"),
    "s3://books/../root": ("the prefix has an empty part, or the part '.' or '..'; use one such as s3://bucket/prefix"),
}


@pytest.mark.parametrize("text", MALFORMED)
@pytest.mark.parametrize("name", CALLS)
def test_malformed_addresses(name: str, text: str, bucket: MemoryBucket, call: Call) -> None:
    done = call("store", *(one.replace(ROOT, text) for one in CALLS[name]))
    assert_one_line(done, 2, f"{text!r}: {MALFORMED[text]}")


@pytest.mark.parametrize("name", OPENING)
def test_no_root_at_the_prefix(name: str, bucket: MemoryBucket, call: Call) -> None:
    what = "not an OCFL storage root: no 0=ocfl_1.1 or 0=ocfl_1.0; create a root with pressmark store init"
    assert_one_line(call("store", *CALLS[name]), 2, f"'{ROOT}': {what}")
    assert bucket.keys == {}


def test_a_prefix_that_is_not_empty(root: MemoryBucket, call: Call) -> None:
    line = f"'{ROOT}': the prefix contains '0=ocfl_1.1'; specify an empty or new prefix"
    assert_one_line(call("store", *CALLS["init"]), 2, line)


def test_namespaces(bucket: MemoryBucket, call: Call) -> None:
    """The namespaces of a Vitro store are listed and not changed."""
    assert call("store", "init", "vitro", "local", "--namespace", "http://a/").exit_code == 0
    [declared] = Path("local").glob("*.properties")
    bucket.put(f"root/{declared.name}".encode(), declared.read_bytes())
    bucket.put(b"root/file_storage_root/a~n/1/f", b"")
    keys = bucket.keys
    assert call("store", "declare", ROOT).stdout == "a\thttp://a/\n"
    what = f"'{ROOT}': {READ_ONLY['vitro']}; use an OCFL storage root"
    assert_one_line(call("store", "declare", ROOT, "http://b/"), 2, what)
    assert bucket.keys == keys


# --- servers ----------------------------------------------------------------------------------------------------------


def test_a_server_that_ignores_conditions(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written to it, and what is there can be read."""
    bucket = serve(monkeypatch, MemoryBucket())
    assert call("store", *CALLS["init"]).exit_code == 0
    assert call("store", *CALLS["put"]).exit_code == 0
    keys = bucket.keys
    careless = serve(monkeypatch, CarelessBucket())
    for key, data in keys.items():
        careless.put(key, data)
    what = "the server ignores conditions, so that writers can overwrite each other's files"
    for name in ("put list", "update", "restore", "upgrade", "rm"):
        done = call("store", *CALLS[name])
        assert done.exit_code in (1, 2), name
        assert what in done.stderr, name
        assert len(done.stderr.splitlines()) <= 2, done.stderr
    assert careless.keys == keys
    for name in ("get", "cat", "ls", "log", "check"):
        assert call("store", *CALLS[name]).exit_code == 0
    done = call("store", "init", "ocfl", "s3://books/other", "--layout", "0003")
    how = "use --claims if only Pressmark writes to the root, or --single-writer if only this run does"
    assert_one_line(done, 2, f"'s3://books/other': {what}; {how}; see pressmark store probe")


@pytest.mark.parametrize("option", ["--claims", "--single-writer"])
def test_writing_without_conditions(option: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the option, each command changes the root as on a server that keeps conditions."""
    found: list[dict[bytes, bytes]] = []
    for bucket, options in ((MemoryBucket(), []), (CarelessBucket(), [option])):
        serve(monkeypatch, bucket)
        assert call("store", *CALLS["init"], *options).exit_code == 0
        for name in ("put", "update", "restore"):
            assert call("store", *CALLS[name], "--created", "2026-01-02T00:00:00Z", *options).exit_code == 0, name
        monkeypatch.setattr(inventory, "_moment", lambda _seconds: "2026-01-02T00:00:00Z")
        assert call("store", *CALLS["upgrade"], *options).exit_code == 0
        found.append(bucket.keys)
        assert call("store", *CALLS["rm"], *options).exit_code == 0
        assert call("store", *CALLS["repair"], *options).exit_code == 0
        assert [key for key in bucket.keys if b"staging" in key or b"0=ocfl_object" in key] == []
    assert found[0] == found[1]
    assert any(key.endswith(b"v2/content/more.txt") for key in found[1])


@pytest.mark.parametrize("option", ["--claims", "--single-writer"])
@pytest.mark.parametrize("name", ["init", "put", "update", "restore", "upgrade", "rm", "repair"])
def test_writers_of_a_local_store(name: str, option: str, call: Call) -> None:
    assert call("store", *(one.replace(ROOT, "local") for one in CALLS["init"])).exit_code == 0
    arguments = [one.replace(ROOT, "local") for one in CALLS[name]]
    line = f"{option}: only for an OCFL storage root in object storage; omit the option"
    assert_one_line(call("store", *arguments, option), 2, line)


def test_claims_of_a_single_writer(root: MemoryBucket, call: Call) -> None:
    line = "--claims: excludes --single-writer; omit one of them"
    assert_one_line(call("store", *CALLS["put"], "--claims", "--single-writer"), 2, line)


@pytest.mark.parametrize("option", ["--claims", "--single-writer"])
def test_migrating_without_conditions(option: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration creates and fills a root there, with the option only."""
    assert call("store", "init", "pairtree", "pairs").exit_code == 0
    assert call("store", "put", "pairs", "id:1", "scans").exit_code == 0
    careless = serve(monkeypatch, CarelessBucket())
    arguments = ["migrate", "pairs", ROOT, "--to", "ocfl", "--layout", "0003"]
    refused = call(*arguments)
    assert refused.exit_code == 2
    assert "use --claims if only Pressmark writes to the root" in refused.stderr
    assert careless.keys == {}
    done = call(*arguments, "--work", "work", option)
    assert done.exit_code == 0, done.output
    assert call("store", "cat", ROOT, "id:1", "a.txt").stdout == "a"
    line = f"{option} requires --to ocfl"
    assert_one_line(call("migrate", "pairs", "bags", "--to", "bags", option), 2, line)


class Refusing(MemoryBucket):
    """A server whose every answer is an error."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.on_request = self._refuse
        self._error = error

    def close(self) -> None: ...

    def _refuse(self, call: str, _key: bytes) -> None:
        raise self._error


ERRORS = [
    PermissionError(errno.EACCES, "no credentials; set AWS_ACCESS_KEY_ID", "s3://books"),
    FileNotFoundError(errno.ENOENT, "bucket not found; check its name and the endpoint", "s3://books"),
    ConnectionError(errno.ECONNRESET, "no connection; check the endpoint and the network", "s3://books"),
]


@pytest.mark.parametrize("error", ERRORS, ids=["credentials", "bucket", "down"])
@pytest.mark.parametrize("name", CALLS)
def test_errors_of_a_server(name: str, error: OSError, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the address, the reason of the server, and no other advice."""
    serve(monkeypatch, Refusing(error))
    assert_one_line(call("store", *CALLS[name]), 1, f"'{ROOT}': {error.strerror}")
    assert_one_line(call("store", "probe", ROOT), 2, f"{ROOT}: {error.strerror}")


@pytest.fixture
def served(endpoint: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:  # noqa: F811
    """The endpoint of a server, with the credentials of a user in the environment."""
    pytest.importorskip("botocore")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return endpoint


@pytest.fixture
def named(served: str) -> str:
    """The name of a new bucket of the server."""
    from pressmark.buckets.s3 import S3Bucket

    name = f"cli-{time.time_ns()}"
    bucket = S3Bucket(name, endpoint=served)
    bucket._call("CreateBucket", "PUT", b"")
    bucket.close()
    return name


def test_on_a_server(named: str, served: str, call: Call, tmp_path: Path) -> None:
    """With the options for the server, each command works, and leaves the environment as it was."""
    root = f"s3://{named}/root"
    where = ("--endpoint", served, "--region", "us-east-1")
    for name in (
        "init",
        "put",
        "put list",
        "update",
        "ls",
        "check",
        "get",
        "restore",
        "upgrade",
        "rm",
        "repair",
        "check",
    ):
        done = call("store", *(one.replace(ROOT, root) for one in CALLS[name]), *where)
        assert done.exit_code == 0, done.output
    assert done.stderr == f"pressmark: {root}: 2 objects, 1 warning; content was not read\n"
    assert sorted(os.listdir(tmp_path / "copy")) == ["a.txt", "more.txt"]
    assert "AWS_ENDPOINT_URL_S3" not in os.environ


@pytest.mark.parametrize("name", ["init", "put", "ls", "check"])
def test_credentials(name: str, named: str, served: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing and wrong ones; a profile takes precedence over those in the environment."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", served)
    root = f"s3://{named}/root"
    arguments = ["store", *(one.replace(ROOT, root) for one in CALLS[name])]
    user = {key: os.environ[key] for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    profile = f"[good]\naws_access_key_id = {user['AWS_ACCESS_KEY_ID']}\n"
    profile += f"aws_secret_access_key = {user['AWS_SECRET_ACCESS_KEY']}\n"
    Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"]).write_text(profile)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    rejected = "the server rejects the access key; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_PROFILE"
    assert_one_line(call(*arguments), 1, f"'{root}': {rejected}")
    done = call(*arguments, "--s3-profile", "good")
    assert "access key" not in done.stderr
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == "wrong"
    line = "--s3-profile 'other': not found in the AWS settings; specify one that exists"
    assert_one_line(call(*arguments, "--s3-profile", "other"), 2, line)
    for key in user:
        monkeypatch.delenv(key)
    done = call(*arguments)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"pressmark: '{root}': no credentials: ")
    assert done.stderr.endswith("; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE\n")


def test_no_bucket(served: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", served)
    for name in ("init", "put", "ls"):
        done = call("store", *(one.replace(ROOT, "s3://nobody/root") for one in CALLS[name]))
        assert_one_line(done, 1, "'s3://nobody/root': bucket not found; check its name and the endpoint")


def test_a_server_that_is_down(served: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    down = f"http://127.0.0.1:{free_port()}"
    done = call("store", "ls", ROOT, "--endpoint", down)
    reason = f"no connection to {down}: Connection refused; check the endpoint and the network"
    assert_one_line(done, 1, f"'{ROOT}': {reason}")
    done = call("store", "ls", ROOT, "--endpoint", "nowhere")
    assert_one_line(done, 2, "'s3://books': Invalid endpoint: nowhere")


# --- options ----------------------------------------------------------------------------------------------------------


def test_variables(bucket: MemoryBucket, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The options set the variables of the AWS command line before the store is opened, until the command ends."""
    pytest.importorskip("botocore")
    Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"]).write_text("[me]\naws_access_key_id = x\n")
    monkeypatch.setenv("AWS_PROFILE", "before")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    seen: dict[str, str] = {}

    def opened(text: bytes) -> tuple[MemoryBucket, bytes]:
        seen.update({name: value for name, value in os.environ.items() if name.startswith("AWS_")})
        return bucket, address.parse(text)[1]

    monkeypatch.setattr(address, "open_bucket", opened)
    before = dict(os.environ)
    options = ("--endpoint", "http://localhost:1", "--s3-profile", "me", "--region", "here")
    assert call("store", *CALLS["init"], *options).exit_code == 0
    expected = {"AWS_ENDPOINT_URL_S3": options[1], "AWS_PROFILE": "me", "AWS_DEFAULT_REGION": "here"}
    assert {name: seen.get(name) for name in expected} == expected
    assert "AWS_ACCESS_KEY_ID" not in seen
    assert dict(os.environ) == before


def test_every_command_with_an_address_has_the_options() -> None:
    """Every command with an argument that may be an address has all of them, as has ``bag complete`` for URLs; no
    other command has one.
    """
    for group, without in (("store", set()), ("bag", {"update", "revert"})):
        commands = main.get_command(click.Context(main), group)
        assert isinstance(commands, click.Group)
        for name in commands.list_commands(click.Context(commands)):
            command = commands.get_command(click.Context(commands), name)
            assert command is not None
            options = {option for one in command.params for option in one.opts}
            found = options & {"--endpoint", "--s3-profile", "--region"}
            assert len(found) == (0 if name in without else 3), name
