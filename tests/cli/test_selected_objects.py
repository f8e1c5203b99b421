"""``store check``, ``ls`` and ``get`` with identifiers, ``--from`` and ``--match``."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.errors import ObjectError, StoreError
from pressmark.fs.staging import LOCK
from pressmark.stores.directories import copied_objects
from pressmark.stores.stored_object import StoredObject
from support.memory_addresses import put_tree, use_memory
from ways.stores import KINDS, make_store

from .conftest import Call

IDS = ("urn:a", "urn:b", "urn:c")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store of each kind with three objects."""
    return make_store(request.param, tmp_path / "store", {one: {"f.txt": one.encode()} for one in IDS})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_store("ocfl", tmp_path / "store", {one: {"f.txt": one.encode()} for one in IDS})


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def summary(text: str) -> dict[str, Any]:
    found: dict[str, Any] = records(text)[-1]["summary"]
    return found


# --- check ------------------------------------------------------------------------------------------------------------


def test_check_identifiers(store: Path, call: Call) -> None:
    (store / "beside").write_bytes(b"x")
    done = call("store", "check", f"{store}", "urn:a", "urn:c", "--json")
    assert done.exit_code == 0
    assert summary(done.stdout) | {"selected": True, "ok": True, "objects": 2} == summary(done.stdout)
    assert "2 selected objects" in done.stderr
    assert "beside" not in done.stdout
    done = call("store", "check", f"{store}", "urn:a", "urn:x", "urn:c", "--json")
    assert done.exit_code == 1
    assert [(one["kind"], one["path"]) for one in records(done.stdout) if one.get("severity") == "error"] == [
        ("object-missing", "urn:x")
    ]
    assert summary(done.stdout)["objects"] == 2
    assert "what to do: object-missing: correct the identifier" in call("store", "check", f"{store}", "urn:x").stderr


@pytest.mark.parametrize(
    ("name", "end", "options"), [("list", b"\n", []), ("list.gz", b"\n", []), ("list", b"\0", ["-0"])]
)
def test_check_a_list(store: Path, call: Call, tmp_path: Path, name: str, end: bytes, options: list[str]) -> None:
    data = b"".join(one.encode() + end for one in ("urn:c", "urn:a"))
    if name.endswith(".gz"):
        import gzip

        data = gzip.compress(data)
    (tmp_path / name).write_bytes(data)
    done = call("store", "check", f"{store}", "--from", name, *options, "--json")
    assert (done.exit_code, summary(done.stdout)["objects"]) == (0, 2)
    if name == "list":
        done = call("store", "check", f"{store}", "--from", "-", *options, "--json", stdin=data)
        assert (done.exit_code, summary(done.stdout)["objects"]) == (0, 2)


@pytest.mark.parametrize(
    ("command", "options"), [("check", []), ("get", ["-o", "copies"]), ("ls", []), ("rm", ["--dry-run"])]
)
def test_lists_with_tabs(store: Path, call: Call, tmp_path: Path, command: str, options: list[str]) -> None:
    """The output of ls is no list of identifiers: one error names the line. An identifier may contain a TAB."""
    (tmp_path / "list").write_text("urn:a\nurn:b\tpath\nurn:c\tpath\n")
    done = call("store", command, "store", "--from", "list", *options)
    assert done.exit_code == 1
    assert done.stderr.endswith("list:2: has a TAB; specify one identifier per line\n")
    assert done.output.count("TAB") == 1
    (tmp_path / "list").write_text("urn:a\nurn:b\tx\n")
    stores.open(store).put("urn:b\tx", {"f.txt": b"x"})
    done = call("store", command, "store", "--from", "list", *options)
    assert "specify one identifier" not in done.output


def test_an_empty_line(store: Path, call: Call, tmp_path: Path) -> None:
    """The error names it by its number."""
    (tmp_path / "list").write_text("urn:a\n\nurn:b\n")
    done = call("store", "check", "store", "--from", "list")
    assert "error: object-missing: identifier 2 of the selection is empty; omit it\n" in done.stdout
    assert "2 selected objects" in done.stderr


def test_check_a_glob(store: Path, call: Call) -> None:
    done = call("store", "check", f"{store}", "--match", "urn:[ab]", "--match", "*c", "--json")
    assert (done.exit_code, summary(done.stdout)["objects"]) == (0, 3)
    done = call("store", "check", f"{store}", "--match", "a")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "0 selected objects" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--match", ""], "--match: the glob is empty; specify one such as 'ark:/13030/*'"),
        (["--from", "missing"], "missing: No such file or directory"),
        (["--from", "list", "urn:a"], "IDENTIFIER: not supported with --from, because each way selects objects"),
        (
            ["urn:a", "--workers", "2"],
            "IDENTIFIER: not supported with --workers, because workers check the whole store",
        ),
    ],
)
def test_wrong_calls(root: Path, call: Call, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "list").write_text("urn:a\n")
    done = call("store", "check", f"{root}", *arguments)
    assert done.exit_code in (1, 2)
    assert done.stderr.startswith(f"pressmark: {message}")
    assert done.stderr.count("\n") == 1


def test_check_an_object(root: Path, call: Call, tmp_path: Path) -> None:
    """The directory of an object is checked as one, with paths that begin with its name."""
    opened = stores.open(root)
    shutil.copytree(root / opened.find("urn:a").path, tmp_path / "object")
    done = call("store", "check", "object", "--digests", "--json")
    assert (done.exit_code, summary(done.stdout)["objects"], summary(done.stdout)["files"]) == (0, 1, 1)
    (tmp_path / "object" / "v1" / "content" / "f.txt").write_bytes(b"damaged")
    assert call("store", "check", "object").exit_code == 0
    done = call("store", "check", "object/", "--digests")
    assert done.exit_code == 1
    assert (
        "error: content-mismatch: object/v1/content/f.txt: sha512 digest mismatch (E092); object 'urn:a'\n"
        in done.stdout
    )
    assert done.stderr.startswith("pressmark: object/: 1 object, 1 error, ")
    for *arguments, surplus in (
        ("urn:a", "IDENTIFIER, --from and --match"),
        ("--match", "*", "IDENTIFIER, --from and --match"),
        ("--workers", "1", "--workers and --dask"),
    ):
        done = call("store", "check", "object", *arguments)
        assert done.exit_code == 2
        assert done.stderr == f"pressmark: object: a single OCFL object, not a store; omit {surplus}\n"


# --- ls ---------------------------------------------------------------------------------------------------------------


def test_ls(store: Path, call: Call, tmp_path: Path) -> None:
    whole = dict(line.split("\t") for line in call("store", "ls", f"{store}").stdout.splitlines())
    (tmp_path / "list").write_text("urn:c\nurn:x\nurn:a\n")
    done = call("store", "ls", f"{store}", "--from", "list")
    assert (done.exit_code, done.stdout) == (1, "".join(f"{one}\t{whole[one]}\n" for one in ("urn:c", "urn:a")))
    assert "error: object-missing: urn:x: " in done.stderr
    assert "2 objects, 1 not found\n" in done.stderr
    done = call("store", "ls", f"{store}", "--from", "list", "--json")
    assert (done.exit_code, summary(done.stdout)["kinds"]) == (1, {"object-missing": 1})
    done = call("store", "ls", f"{store}", "--match", "*b", "--null")
    assert (done.exit_code, done.stdout) == (0, f"urn:b\t{whole['urn:b']}\0")
    done = call("store", "ls", f"{store}", "urn:a", "urn:b")
    assert done.exit_code == 2
    assert done.stderr == (
        "pressmark: several IDENTIFIERs; specify one to list its files, or list the objects with --from\n"
    )


# --- get --------------------------------------------------------------------------------------------------------------


def test_get_many(store: Path, call: Call, tmp_path: Path) -> None:
    """Each object is in a directory of its own; the same command copies what is left."""
    done = call("store", "get", f"{store}", "urn:a", "urn:x", "urn:b", "-o", "copies")
    assert (done.exit_code, done.stdout) == (1, "urn:a\tcopies/urn+a\nurn:b\tcopies/urn+b\n")
    assert "'urn:x': " in done.stderr
    assert done.stderr.splitlines()[-1] == "pressmark: copies: 2 objects copied, 1 failed"
    (tmp_path / "copies" / "urn+a" / "f.txt").write_bytes(b"kept")
    done = call("store", "get", f"{store}", "--match", "urn:*", "-o", "copies", "--json", "--threads", "3")
    assert done.exit_code == 0
    assert {one["id"]: one.get("files", one.get("exists")) for one in records(done.stdout)[:-1]} == {
        "urn:a": True,
        "urn:b": True,
        "urn:c": 1,
    }
    assert summary(done.stdout) == {"ok": True, "copied": 1, "existing": 2, "failed": 0}
    copies = {path.relative_to(tmp_path / "copies").as_posix(): path for path in (tmp_path / "copies").rglob("*")}
    assert sorted(copies) == sorted(["urn+a", "urn+b", "urn+c", *(f"urn+{one}/f.txt" for one in "abc")])
    assert [copies[f"urn+{one}/f.txt"].read_bytes() for one in "abc"] == [b"kept", b"urn:b", b"urn:c"]


def test_get_a_list(store: Path, call: Call, tmp_path: Path) -> None:
    """An identifier that is listed twice is copied once, and a path selects an object."""
    path = stores.open(store).find("urn:b").path
    (tmp_path / "list").write_text(f"urn:a\nurn:a\nurn:a\n{path}\n")
    done = call("store", "get", f"{store}", "--from", "list", "-o", "copies", "--threads", "4")
    assert (done.exit_code, done.stdout.count("urn:a\t"), done.stdout.count("urn:b\t")) == (0, 3, 1)
    assert done.stderr == "pressmark: copies: 2 objects copied, 2 existed\n"
    assert sorted(os.listdir("copies")) == ["urn+a", "urn+b"]


def test_get_damaged_and_other_versions(root: Path, call: Call, tmp_path: Path) -> None:
    stores.open(root).put("urn:a", {"f.txt": b"new"}, replace=True)
    directory = root / stores.open(root).find("urn:b").path
    (directory / "v1" / "content" / "f.txt").write_bytes(b"damaged")
    done = call("store", "get", f"{root}", "--match", "*", "-o", "copies", "--json")
    assert done.exit_code == 1
    assert [(one["kind"], one["id"]) for one in records(done.stdout) if "kind" in one] == [
        ("content-mismatch", "urn:b")
    ]
    assert sorted(os.listdir("copies")) == ["urn+a", "urn+c"]
    assert call("store", "get", f"{root}", "urn:b", "-o", "copies", "--no-verify").exit_code == 0
    done = call("store", "get", f"{root}", "urn:a", "-o", "old", "--version", "v1")
    assert (done.exit_code, Path("old/urn+a/f.txt").read_bytes()) == (0, b"urn:a")
    assert call("store", "get", f"{root}", "urn:a", "-o", "old", "--version", "v7").exit_code == 0  # it exists
    assert "version 'v7' not found" in call("store", "get", f"{root}", "urn:c", "-o", "old", "--version", "v7").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["urn:a"], "specify IDENTIFIER and DESTINATION, or any number of IDENTIFIERs and -o DIR"),
        (["urn:a", "urn:b", "copies"], "specify IDENTIFIER and DESTINATION, or any number of IDENTIFIERs and -o DIR"),
        ([], "specify IDENTIFIER and DESTINATION, or any number of IDENTIFIERs and -o DIR"),
        (["-o", "copies"], "missing argument; specify IDENTIFIER, --from or --match"),
        (["--match", "*"], "--match requires -o; specify the directory of the copies: -o DIR"),
        (["--from", "list", "copies"], "--from requires -o; specify the directory of the copies: -o DIR"),
        (
            ["urn:a", "urn:b"],
            "'urn:b': an identifier in the store; specify -o DIR for several objects, or another DESTINATION, such as"
            " './urn:b'",
        ),
        (
            ["urn:a", "none/urn:x"],
            "'none/urn:x': DESTINATION is in 'none', which does not exist; create it, or specify -o DIR for several"
            " objects",
        ),
        (["urn:a", "--match", "*", "-o", "copies"], "IDENTIFIER: not supported with --match"),
        (["urn:a", "-o", "store/copies"], "store/copies: inside the store; choose a directory outside"),
        (["urn:a", "-o", "file"], "'file': "),
    ],
)
def test_wrong_calls_of_get(root: Path, call: Call, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "file").write_bytes(b"x")
    before = sorted(os.listdir(tmp_path))
    done = call("store", "get", "store", *arguments)
    assert done.exit_code in (1, 2)
    assert done.stderr.startswith(f"pressmark: {message}")
    assert done.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_a_copy_is_named(root: Path, call: Call, tmp_path: Path) -> None:
    """The result names object and version; a directory can have the name of another object, or of its own."""
    for options, name in ((["./urn:b"], "./urn:b: 1 file of 'urn:a'"), (["urn:a"], "urn:a: 1 file of 'urn:a'")):
        assert call("store", "get", "store", "urn:a", *options).stderr == f"pressmark: {name}\n"
    done = call("store", "get", "store", "urn:a", "old", "--version", "1")
    assert done.stderr == "pressmark: old: 1 file of 'urn:a', version v1\n"
    assert (tmp_path / "urn:b" / "f.txt").read_bytes() == b"urn:a"


def test_names_of_directories(tmp_path: Path, call: Call) -> None:
    """Identifiers with slashes and dots are names of one directory; one that is too long is an error."""
    ids = ["ark:/13030/x", "../up", ".", "a b"]
    make_store("pairtree", tmp_path / "store", {one: {"f": b"x"} for one in [*ids, "l" * 300]})
    done = call("store", "get", "store", "--match", "*", "-o", "copies")
    assert done.exit_code == 1
    assert "file name too long: 300 bytes" in done.stderr
    assert sorted(os.listdir("copies")) == sorted(["ark+=13030=x", ",,=up", ",", "a^20b"])


def test_a_file_in_the_way(root: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "urn+a").write_bytes(b"file")
    done = call("store", "get", "store", "urn:a", "urn:b", "-o", "copies")
    assert (done.exit_code, done.stdout) == (1, "urn:b\tcopies/urn+b\n")
    assert "Not a directory" in done.stderr
    assert (tmp_path / "copies" / "urn+a").read_bytes() == b"file"


def test_names_that_differ_in_case(root: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system ignores case, another object's directory is not taken for a copy."""
    monkeypatch.setattr(copied_objects, "is_case_insensitive", lambda _directory: True)
    monkeypatch.setattr(copied_objects, "existing_spelling", lambda _base, name: name.upper())
    done = call("store", "get", "store", "urn:a", "-o", "copies")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "'URN+A' differs only in case" in done.stderr


def test_what_a_killed_run_left(root: Path, call: Call, tmp_path: Path) -> None:
    """A hidden directory beside a complete copy is removed; a copy that was not complete is made again."""
    assert call("store", "get", "store", "urn:a", "urn:b", "-o", "copies").exit_code == 0
    for name in (b"urn+a", b"urn+b"):
        hidden = copied_objects.NewPath.beside(os.fsencode(tmp_path / "copies") + b"/" + name)
        os.makedirs(os.path.join(hidden, b"files"))
        os.chmod(hidden, 0o700)
        Path(os.fsdecode(hidden), os.fsdecode(LOCK)).touch()
    shutil.rmtree(tmp_path / "copies" / "urn+b")
    done = call("store", "get", "store", "urn:a", "urn:b", "-o", "copies", "--json")
    assert (done.exit_code, summary(done.stdout)["copied"], summary(done.stdout)["existing"]) == (0, 1, 1)
    assert sorted(os.listdir("copies")) == ["urn+a", "urn+b"]


def test_an_interrupt_leaves_complete_copies(
    root: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_to = StoredObject.copy_to

    def interrupted(self: StoredObject, target: Any, **options: Any) -> Any:
        if self.id == "urn:b":
            raise KeyboardInterrupt
        return copy_to(self, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr(StoredObject, "copy_to", interrupted)
        done = call("store", "get", "store", *IDS, "-o", "copies", "--threads", "1")
    assert done.exit_code == 130
    assert done.stderr.endswith("interrupted after 1 object; run the same command again to copy the others\n")
    assert os.listdir("copies") == ["urn+a"]
    assert call("store", "get", "store", *IDS, "-o", "copies").exit_code == 0


def test_an_object_in_use(root: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(self: StoredObject, target: Any, **options: Any) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable", target)

    monkeypatch.setattr(StoredObject, "copy_to", busy)
    done = call("store", "get", "store", "urn:a", "-o", "copies")
    assert done.exit_code == 1
    assert "in use by another run; wait for it to finish" in done.stderr


def test_records_without_an_identifier(tmp_path: Path, call: Call) -> None:
    """They match, and are an error."""
    root = make_store("ocfl", tmp_path / "store", {one: {"f.txt": b"x"} for one in IDS})
    (root / stores.open(root).find("urn:c").path / "inventory.json").write_bytes(b"{")
    done = call("store", "get", "store", "--match", "urn:a", "-o", "copies")
    assert (done.exit_code, done.stdout) == (1, "urn:a\tcopies/urn+a\n")
    assert "identifier cannot be read; check the store" in done.stderr


def test_errors_are_of_objects(tmp_path: Path) -> None:
    """Every reason not to copy an object is its own result."""
    store = stores.create("pairtree", tmp_path / "store")
    record = store.put("a", {"f": b"x"})
    (tmp_path / "out").mkdir()

    def gone(_record: object) -> StoredObject:
        raise ObjectError(store.root, "a", "missing", "gone")

    found = list(
        copied_objects.copy_objects(
            store.root, [record], gone, os.fsencode(tmp_path / "out"), copy_mode="auto", verify=True, threads=1
        )
    )
    assert [one.error is not None and one.files is None for one in found] == [True]


def test_a_server_that_is_gone(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends with one line; copies that are complete stay, and no other object is named."""
    ids = [f"urn:{number}" for number in range(200)]
    bucket = use_memory(monkeypatch)
    put_tree(bucket, make_store("ocfl", tmp_path / "store", {one: {"f.txt": one.encode()} for one in ids}), "root")
    (tmp_path / "list").write_text("".join(f"{one}\n" for one in ids))
    begin = bucket.requests

    def fall_silent(_call: str, _key: bytes) -> None:
        if bucket.requests > begin + 300:
            raise StoreError("s3://memory", "no request was answered") from TimeoutError("silent")

    bucket.on_request = fall_silent
    done = call("store", "get", "s3://memory/root", "--from", "list", "-o", "copies")
    assert (done.exit_code, done.stderr) == (1, "pressmark: 's3://memory': no request was answered\n")
    # Each thread may have asked once more.
    assert bucket.requests < begin + 350
    copied = len(done.stdout.splitlines())
    assert 0 < copied <= len(os.listdir("copies")) < len(ids)
    bucket.on_request = None
    done = call("store", "get", "s3://memory/root", "--from", "list", "-o", "copies")
    assert (done.exit_code, len(os.listdir("copies"))) == (0, len(ids))
