"""``pressmark bag``: the output of the commands, its stream, and the exit statuses."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bagit.loopback import below, serving
from pressmark.cli.bag.options import Listener

from .conftest import COMMAND, PROFILE, Call, Run, environment

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files, devices and signals")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names are bytes on Linux")

DECLARATION = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"


def digest(data: bytes, algorithm: str = "sha512") -> str:
    return hashlib.new(algorithm, data).hexdigest()


def make_bag(
    folder: Path,
    files: dict[str, bytes],
    info: str = "",
    algorithm: str = "sha512",
    fetch: str = "",
    listed: dict[str, bytes] | None = None,
) -> Path:
    """Make a bag by hand; ``listed`` names missing files in the manifest."""
    (folder / "data").mkdir(parents=True)
    (folder / "bagit.txt").write_bytes(DECLARATION)
    for name, data in files.items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    lines = [f"{digest(data, algorithm)}  data/{name}\n" for name, data in {**files, **(listed or {})}.items()]
    (folder / f"manifest-{algorithm}.txt").write_bytes("".join(lines).encode())
    if info:
        (folder / "bag-info.txt").write_bytes(info.encode())
    if fetch:
        (folder / "fetch.txt").write_bytes(fetch.encode())
    tags = [path for path in sorted(folder.iterdir()) if path.is_file()]
    lines = [f"{digest(path.read_bytes(), algorithm)}  {path.name}\n" for path in tags]
    (folder / f"tagmanifest-{algorithm}.txt").write_bytes("".join(lines).encode())
    return folder


def content(folder: Path) -> dict[str, bytes | None]:
    """Return everything below ``folder``, directories as :data:`None`."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.is_fifo()
    }


FILES = {"a": b"", "b": b"bee", "d/c": b"sea"}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    return make_bag(tmp_path / "bag", FILES, "Source-Organization: Ex\nPayload-Oxum: 6.3\n")


# --- the group --------------------------------------------------------------------------------------------------------


def test_without_a_subcommand_there_is_help(quick: Run) -> None:
    """Without a subcommand, the help is printed on stderr, and the command fails."""
    done = quick("bag")
    assert (done.stdout, done.returncode) == (b"", 2)
    for name in (b"create", b"validate", b"update", b"complete", b"info"):
        assert name in done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["bag", "nope"], "no such command 'nope' (see 'pressmark bag --help')"),
        (
            ["bag", "verify", "bag"],
            "no such command 'verify'; did you mean pressmark bag validate? (see 'pressmark bag --help')",
        ),
        (["bag", "create"], "missing argument 'SOURCE...' (see 'pressmark bag create --help')"),
        (["bag", "create", "nowhere"], "nowhere: No such file or directory"),
        (["bag", "create", "nowhere", "-o", "new"], "nowhere: No such file or directory"),
        (["bag", "create", "files/b"], "files/b: not a directory; use -o DESTINATION to create a bag from files"),
        (["bag", "create", "files", "-a", "md6"], "algorithm 'md6': unknown; choose from .*"),
        (
            ["bag", "create", "files", "files/b"],
            "files/b: not a directory; use -o DESTINATION to create a bag from files",
        ),
        (
            ["bag", "create", "files", "bag", "--ledger", "l"],
            "--ledger: not supported with several bags; create each bag with its own ledger",
        ),
        (["bag", "create", "files", "bag", "--tag-file", "bag/bagit.txt"], "'bagit.txt': name not allowed .*"),
        (["bag", "create", "files", "--copy-mode", "copy"], "--copy-mode requires -o; without -o, nothing is copied"),
        (
            ["bag", "create", "files", "--ledger", "files/l"],
            "--ledger files/l: file is inside 'files'; choose a file outside of it",
        ),
        (
            ["bag", "create", "files", "-o", "new", "--ledger", "l"],
            "--ledger: not supported with -o, because copying reads all files; omit one of them",
        ),
        (["bag", "create", "files", "--info", "Contact"], "--info 'Contact': expected LABEL=VALUE"),
        (
            ["bag", "create", "files", "--info", "a:b=c"],
            "--info 'a:b=c': label 'a:b': label contains a colon or a line break",
        ),
        (
            ["bag", "create", "files", "--info", "Payload-Oxum=1.1"],
            "--info 'Payload-Oxum=1.1': Payload-Oxum is computed; omit it",
        ),
        (["bag", "create", "files", "--info-file", "nowhere"], "nowhere: No such file or directory"),
        (["bag", "create", "files", "--tag-file", "nowhere"], "nowhere: No such file or directory"),
        (["bag", "create", "bag"], "'bag': already a bag; .*"),
        (["bag", "create", "files", "-o", "bag"], "'.*bag': destination already exists; choose another name"),
        (["bag", "validate", "nowhere"], "nowhere: No such file or directory"),
        (
            ["bag", "validate", "bag", "files/b"],
            "files/b: not a directory or archive; expected zip, tar or compressed tar",
        ),
        (["bag", "validate", "-", "bag", "-"], "-: given more than once; standard input is one archive"),
        (["bag", "validate", "-", "--ledger", "l"], "--ledger: not supported with an archive; omit it"),
        (["bag", "info", "files/b"], "'files/b': not a directory; .*"),
        (["bag", "update", "files/b"], "files/b: not a directory; for an archive, run pressmark bag unpack first"),
        (["bag", "complete", "files/b"], "'files/b': not a directory; .*; for an archive, run pressmark bag unpack.*"),
        (["bag", "validate", "bag", "bag", "--ledger", "l"], "--ledger: not supported with several bags; .*"),
        (
            ["bag", "validate", "bag", "--ledger", "bag/l"],
            "--ledger bag/l: file is inside 'bag'; choose a file outside of it",
        ),
        (["bag", "validate", "bag", "--profile", "nowhere"], "nowhere: No such file or directory"),
        (["bag", "info", "files"], "'files': bagit.txt not found; specify the base directory of a bag"),
        (["bag", "info", "nowhere"], "'nowhere': No such file or directory"),
        (
            ["bag", "update", "bag", "--metadata-only", "--rewrite"],
            "--metadata-only: supported with --info, --remove-info and --drop-algorithm only",
        ),
        (["bag", "update", "files", "--rewrite"], "'files': bagit.txt not found; specify the base directory of a bag"),
        (
            ["bag", "update", "bag", "--accept", "all"],
            "--accept 'all': expected added, removed, changed, tag-files, no-manifest",
        ),
        (
            ["bag", "update", "bag", "--drop-algorithm", "sha512"],
            "'bag': no payload manifest would remain; .*",
        ),
        (["bag", "complete", "files"], "'files': bagit.txt not found; specify the base directory of a bag"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_usage_errors(call: Call, files: Path, bag: Path, tmp_path: Path, words: list[str], line: str) -> None:
    """A usage error is one line and exit status 2, and nothing is changed."""
    before = content(tmp_path)
    result = call(*words)
    assert (result.stdout_bytes, result.exit_code) == (b"", 2), result.stderr
    assert result.stderr.count("\n") == 1
    pattern = re.escape(line).replace(r"\.\*", ".*")
    assert re.fullmatch(f"pressmark: {pattern}", result.stderr.rstrip()), result.stderr
    assert content(tmp_path) == before


def test_archives(call: Call, files: Path, bag: Path, tmp_path: Path) -> None:
    """Archives and directories are validated together; each problem and verdict names its bag."""
    shutil.make_archive(str(tmp_path / "good"), "gztar", tmp_path, "bag")
    (bag / "data" / "b").write_bytes(b"changed")
    shutil.make_archive(str(tmp_path / "bad"), "tar", tmp_path, "bag")
    shutil.make_archive(str(tmp_path / "bad"), "zip", tmp_path, "bag")
    result = call("bag", "validate", "good.tar.gz", "bad.tar", "bad.zip", "bag", "--json")
    assert result.exit_code == 1
    records = [json.loads(line) for line in result.stdout.splitlines()]
    found = {name: [one for one in records if one.get("bag") == name] for name in ("bad.tar", "bad.zip", "bag")}
    for one in found.values():
        assert [each.get("kind") for each in one] == [each.get("kind") for each in found["bag"]]
        assert one[0]["kind"] == "checksum-mismatch"
    verdicts = re.findall(r"pressmark: ([a-z.]+): (valid|invalid):", result.stderr)
    assert verdicts == [("good.tar.gz", "valid"), ("bad.tar", "invalid"), ("bad.zip", "invalid"), ("bag", "invalid")]
    (tmp_path / "cut.tar").write_bytes((tmp_path / "bad.tar").read_bytes()[:5000])
    result = call("bag", "validate", "cut.tar")
    assert (result.stdout.count("archive-malformed"), result.exit_code) == (1, 1)
    assert result.stderr.startswith("pressmark: cut.tar: invalid: 1 error")
    assert "what to do: archive-malformed: request the archive again" in result.stderr
    advice = "request the archive again; or unpack it with tar or unzip, and run pressmark bag update on the directory"
    assert advice in call("bag", "validate", "bad.tar").stderr
    result = call("bag", "info", "good.tar.gz", "--json")
    assert json.loads(result.stdout)["path"] == "good.tar.gz"
    assert {**json.loads(result.stdout), "path": "bag"} == json.loads(call("bag", "info", "bag", "--json").stdout)


def test_an_archive_from_standard_input(call: Call, run: Run, bag: Path, tmp_path: Path) -> None:
    """A BAG of "-" is read from standard input, whatever else is there."""
    (tmp_path / "-").mkdir()
    for kind in ("tar", "gztar"):
        archive = Path(shutil.make_archive(str(tmp_path / "bag"), kind, tmp_path, "bag"))
        done = run("bag", "validate", "-", "--json", stdin=archive.read_bytes())
        assert done.returncode == 0, done.stderr
        assert done.stderr.decode().startswith("pressmark: -: valid: 3 files")
        assert json.loads(done.stdout)["summary"]["files"] == 3
        cut = archive.read_bytes()[: archive.stat().st_size // 3]
        done = run("bag", "validate", "bag", "-", "--level", "complete", stdin=cut)
        assert done.returncode == 1
        assert b"archive-malformed: -: " in done.stdout
    archive = Path(shutil.make_archive(str(tmp_path / "bag"), "zip", tmp_path, "bag"))
    done = run("bag", "validate", "-", stdin=archive.read_bytes())
    assert (done.returncode, done.stdout) == (1, b"")
    assert (
        done.stderr.decode()
        == "pressmark: '-': a zip file cannot be read from a pipe; save it, and validate the file\n"
    )
    result = call("bag", "validate", "-", "--workers", "2")
    assert (result.exit_code, result.stdout) == (2, "")


# --- create -----------------------------------------------------------------------------------------------------------


def manifest(bag: Path, algorithm: str = "sha512") -> str:
    return (bag / f"manifest-{algorithm}.txt").read_text()


def listed(files: dict[str, bytes], algorithm: str = "sha512") -> str:
    return "".join(f"{digest(data, algorithm)}  data/{name}\n" for name, data in files.items())


def test_create_in_place(run: Run, files: Path) -> None:
    """The directory becomes the bag; stdout stays empty, stderr has the summary."""
    done = run("bag", "create", "files", "--info", "Contact-Name=Ä. Archivist", "--info", "contact-name=Another")
    assert (done.stdout, done.stderr.decode(), done.returncode) == (
        b"",
        "pressmark: files: bag created: 3 files, 6 B; sha512\n",
        0,
    )
    assert {name for name, data in content(files / "data").items() if data is not None} == set(FILES)
    assert manifest(files) == listed(FILES)
    info = (files / "bag-info.txt").read_text().splitlines()
    assert info[:2] == ["Contact-Name: Ä. Archivist", "Contact-Name: Another"]
    assert "Payload-Oxum: 6.3" in info
    assert run("bag", "validate", "files").returncode == 0


@pytest.mark.parametrize("mode", ["copy", "hardlink", "auto"])
def test_create_elsewhere(quick: Run, files: Path, tmp_path: Path, mode: str) -> None:
    """The source is unchanged; every algorithm has its manifest; tag files are copied."""
    (tmp_path / "readme.txt").write_text("read me")
    before = content(files)
    done = quick(
        "bag", "create", "files", "-o", "new", "-a", "SHA-256,md5", "--copy-mode", mode, "--tag-file", "readme.txt"
    )
    assert (done.stdout, done.returncode) == (b"", 0), done.stderr
    line = r"pressmark: new: bag created: 3 files, 6 B, (copied|hard-linked|cloned \(reflink\)); md5, sha256\n"
    assert re.fullmatch(line, done.stderr.decode())
    assert content(files) == before
    assert manifest(tmp_path / "new", "sha256") == listed(FILES, "sha256")
    assert manifest(tmp_path / "new", "md5") == listed(FILES, "md5")
    assert (tmp_path / "new" / "readme.txt").read_text() == "read me"
    assert "readme.txt" in (tmp_path / "new" / "tagmanifest-md5.txt").read_text()
    assert (os.stat(files / "b").st_nlink == 2) == (mode == "hardlink")
    done = quick("bag", "validate", "new")
    assert (done.stdout, done.returncode) == (b"", 0)


def test_create_of_a_bag_names_the_command(quick: Run, files: Path, tmp_path: Path) -> None:
    """A bag is changed by another command; with --nested, it becomes a payload."""
    assert quick("bag", "create", "files").returncode == 0
    before = content(files)
    for options in ((), ("-o", "new"), ("--exclude-junk",)):
        done = quick("bag", "create", "files", *options)
        assert (done.returncode, done.stderr.decode()) == (
            2,
            "pressmark: 'files': already a bag; update it, or create a nested bag (--nested)\n",
        )
    assert content(files) == before
    assert not (tmp_path / "new").exists()
    assert quick("bag", "create", "files", "-o", "new", "--nested").returncode == 0
    assert (tmp_path / "new" / "data" / "bagit.txt").exists()


def test_create_without_excluded_files(quick: Run, files: Path, tmp_path: Path) -> None:
    """Excluded files are listed and counted; in place, they are refused or deleted."""
    (files / ".DS_Store").write_bytes(b"x")
    warning = "pressmark: warning: excluded: files/.DS_Store: left out of the bag"
    done = quick("bag", "create", "files", "-o", "new", "--exclude-junk")
    count = "pressmark: new: bag created: 3 files, 6 B, copied, 1 excluded; sha512\n"
    assert (done.stderr.decode(), done.returncode) == (f"{warning}\n{count}", 0)
    assert manifest(tmp_path / "new") == listed(FILES)
    done = quick("bag", "create", "files", "--exclude", ".DS_*")
    assert done.returncode == 2
    first, last = done.stderr.decode().splitlines()
    assert first == (
        "pressmark: error: excluded: files/.DS_Store: would stay in the directory; create the bag in another directory"
    )
    assert last == "pressmark: files: no bag was created: 1 problem; nothing was changed"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Thumbs.db").write_bytes(b"x")
    done = quick("bag", "create", "files", "other", "--exclude-junk", "--delete-excluded")
    assert done.returncode == 0, done.stderr
    assert f"{warning}; deleted when the bag is complete\n" in done.stderr.decode()
    assert manifest(files) == listed(FILES)
    assert manifest(tmp_path / "other") == ""
    assert quick("bag", "validate", "files").returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--delete-excluded",), "--delete-excluded requires --exclude or --exclude-junk"),
        (("--delete-excluded", "--exclude-junk", "-o", "new"), "--delete-excluded: not supported with -o"),
        (("--exclude", "d/e"), "--exclude 'd/e': a glob matches a file name"),
    ],
)
def test_create_refuses_useless_exclusions(quick: Run, files: Path, options: tuple[str, ...], message: str) -> None:
    """Options that would have no effect are refused, and nothing is changed."""
    before = content(files)
    done = quick("bag", "create", "files", *options)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert content(files) == before


def test_create_of_several_sources(quick: Run, files: Path, tmp_path: Path) -> None:
    """Each source is stored in the payload under its name."""
    (tmp_path / "one.txt").write_bytes(b"one")
    assert quick("bag", "create", "files", "one.txt", "-o", "new").returncode == 0
    wanted = {**{f"files/{name}": data for name, data in FILES.items()}, "one.txt": b"one"}
    assert manifest(tmp_path / "new") == listed(wanted)


def test_create_a_bag_of_each_source(quick: Run, files: Path, tmp_path: Path) -> None:
    """Without -o, each source becomes a bag; those that fail are reported, and the others are created."""
    shutil.copytree(files, tmp_path / "two")
    shutil.copytree(files, tmp_path / "linked")
    os.symlink("nowhere", tmp_path / "linked" / "link")
    assert quick("bag", "create", "files", "-o", "bag").returncode == 0
    done = quick("bag", "create", "files", "linked", "bag", "two", "-a", "md5")
    assert (done.stdout, done.returncode) == (b"", 1)
    assert done.stderr.decode().splitlines() == [
        "pressmark: files: bag created: 3 files, 6 B; md5",
        "pressmark: error: link-dangling: linked/link: symbolic link to a missing target; restore the target, or move"
        " the link elsewhere",
        "pressmark: linked: no bag was created: 1 problem; nothing was changed",
        "pressmark: 'bag': already a bag; update it, or create a nested bag (--nested)",
        "pressmark: two: bag created: 3 files, 6 B; md5",
        "pressmark: 2 bags created; 2 failed",
    ]
    assert quick("bag", "validate", "files", "two", "bag").returncode == 0
    assert content(tmp_path / "linked") == {**content(files / "data"), "link": None}
    (tmp_path / "linked" / "link").unlink()
    done = quick("bag", "create", "linked", "bag", "--nested")
    assert (done.stderr.splitlines()[-1], done.returncode) == (b"pressmark: 2 bags created; 0 failed", 0)


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_create_takes_elements_from_a_file(run: Run, files: Path, tmp_path: Path, source: str) -> None:
    """A bag-info.txt can be a template: order, repeats and folded values are kept, computed elements are not."""
    template = b"Source-Organization: Ex\nPayload-Oxum: 1.1\nExternal-Description: long\n  story\nContact-Name: A\n"
    (tmp_path / "info").write_bytes(template)
    done = run(
        "bag",
        "create",
        "files",
        "--info",
        "Contact-Name=B",
        "--info-file",
        "info" if source == "file" else "-",
        stdin=b"" if source == "file" else template,
    )
    assert done.returncode == 0, done.stderr
    info = (files / "bag-info.txt").read_text().splitlines()
    assert info[:5] == [
        "Source-Organization: Ex",
        "External-Description: long",
        " story",
        "Contact-Name: A",
        "Contact-Name: B",
    ]
    assert [line for line in info if line.startswith("Payload-Oxum")] == ["Payload-Oxum: 6.3"]


def test_invalid_templates(quick: Run, files: Path, tmp_path: Path) -> None:
    """The first bad line of a template is named, and nothing is changed."""
    (tmp_path / "info").write_bytes(b"Contact-Name: A\nnonsense\n")
    done = quick("bag", "create", "files", "--info-file", "info")
    assert (done.stderr.decode(), done.returncode) == (
        "pressmark: info: line 2: expected a label, a colon and a value: 'nonsense'\n",
        2,
    )
    assert not (files / "data").exists()


@linux
def test_create_lists_what_it_refuses(quick: Run, files: Path, tmp_path: Path) -> None:
    """Every reason for a refusal is one line, and nothing is changed."""
    os.mkfifo(files / "pipe")
    (files / "link").symlink_to("/etc/passwd")
    with open(os.path.join(os.fsencode(files), b"\xff\n"), "wb"):
        pass
    before = content(tmp_path)
    for call in (["files"], ["files", "-o", "new"]):
        done = quick("bag", "create", *call)
        *reasons, last = done.stderr.decode().splitlines()
        assert done.returncode == 2
        assert last == f"pressmark: {call[-1]}: no bag was created: 3 problems; nothing was changed"
        assert {tuple(line.split(": ")[:2]) for line in reasons} == {("pressmark", "error")}
        assert sorted(line.split(": ")[3] for line in reasons) == [
            r"files/\xff\n",
            "files/link",
            "files/pipe",
        ]
        assert content(tmp_path) == before


@linux
def test_create_with_hostile_names(run: Run, files: Path) -> None:
    """Names with line ends, percent signs and blanks are encoded in the manifest, and the bag is valid."""
    names = ["line\nfeed", "%0A", "100%", " blanks ", "~$_x", "-rf", "\r", 'quote"s', "ünï"]
    for name in names:
        (files / name).write_bytes(b"x")
    done = run("bag", "create", "files")
    assert done.returncode == 0, done.stderr
    assert "data/line%0Afeed\n" in manifest(files)
    assert "data/%250A\n" in manifest(files)
    done = run("bag", "validate", "files")
    assert (done.stdout, done.returncode) == (b"", 0)


def test_create_warns(quick: Run, files: Path) -> None:
    """A bag with portability problems causes warnings on stderr."""
    (files / "empty").mkdir()
    done = quick("bag", "create", "files", "-o", "new")
    assert done.returncode == 0
    assert done.stderr.decode().startswith("pressmark: warning: directory-empty: files/empty: ")


@posix
@pytest.mark.parametrize(
    ("target", "in_place", "expected"),
    [
        ("a.txt", True, "symbolic link; include its target with --links follow, or move it elsewhere"),
        ("/etc/passwd", False, "symbolic link; include its target with --links follow, or move it elsewhere"),
        (
            "/etc/passwd",
            True,
            "symbolic link to a target outside the directory; move it, or create the bag in a new directory with"
            " --links follow",
        ),
        ("nowhere", False, "symbolic link to a missing target; restore the target, or move the link elsewhere"),
    ],
)
def test_create_names_the_option_where_it_helps(
    quick: Run, files: Path, target: str, in_place: bool, expected: str
) -> None:
    """The message for a refused link names ``--links follow`` only where it helps."""
    (files / "a.txt").write_bytes(b"a")
    (files / "link").symlink_to(target)
    call = ["files"] if in_place else ["files", "-o", "new"]
    done = quick("bag", "create", *call)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[0].endswith(f": files/link: {expected}")
    assert quick("bag", "create", *call, "--links", "follow").returncode == (0 if expected[13] == ";" else 2)


@posix
def test_create_fails_where_a_file_cannot_be_read(
    call: Call, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that disappears after the check of the names is a failure: exit 1, and nothing is changed."""
    from pressmark.fixity.pool import hash_tasks

    def without_one(tasks: Iterable[Any], *arguments: Any, **options: Any) -> Any:
        names = list(tasks)
        next(path for path in files.rglob("*") if path.is_file()).unlink()
        return hash_tasks(names, *arguments, **options)

    monkeypatch.setattr("pressmark.bagit.writing.in_place._can_be_small", lambda _options: False)
    monkeypatch.setattr("pressmark.bagit.writing.in_place.hash_tasks", without_one)
    result = call("bag", "create", "files")
    last = result.stderr.splitlines()[-1]
    assert (last, result.exit_code) == ("pressmark: files: no bag was created: 1 problem; nothing was changed", 1)


def test_create_with_a_ledger_prints_no_rate(call: Call, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in a ledger are not read: the size by the time would be no rate."""
    monkeypatch.setattr("pressmark.cli.bag.create.format_rate", lambda size, seconds: ["RATE"])
    (files.parent / "other").mkdir()
    assert "RATE" not in call("bag", "create", "files", "--ledger", "ledger").stderr
    assert "RATE" in call("bag", "create", "other").stderr


@posix
def test_create_refuses_a_directory_that_cannot_be_entered(quick: Run, files: Path) -> None:
    """A directory needs permission to list and to enter it, before anything is written."""
    for mode in (0o400, 0o100):
        files.chmod(mode)
        try:
            if os.access(files / ".", os.R_OK):
                pytest.skip("this user may read everything")
            done = quick("bag", "create", "files")
        finally:
            files.chmod(0o700)
        assert (done.stderr, done.returncode) == (b"pressmark: files: Permission denied\n", 2)


INTERRUPTED = "pressmark: interrupted; nothing was changed; run the same command again\n"


@posix
def test_create_reports_progress(call: Call, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stage is reported, and the long ones with their progress."""
    lines = []

    class Recorded(Listener):
        def __call__(self, event: object) -> None:
            super().__call__(event)
            lines.append(self._reporter.view().line())

    monkeypatch.setattr("pressmark.cli.bag.create.Listener", Recorded)
    result = call("bag", "create", "files", "--progress")
    assert result.stderr == "pressmark: files: bag created: 3 files, 6 B; sha512\n"
    stages = [line.partition(":")[0] for line in lines]
    assert list(dict.fromkeys(stages)) == [
        "checking all names",
        "hashing",
        "writing tag files",
        "checking for concurrent changes",
        "moving everything into place",
    ]
    last = [line for line in lines if line.startswith("hashing")][-1]
    assert re.fullmatch("hashing: 3 of 3 files, 6 B of 6 B, .*/s, 100 %, 0:00 left", last)


@posix
def test_create_interrupted(call: Call, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C gives one line and 130; nothing is changed, and a ledger lets the next run skip finished files."""

    def interrupted(*_args: object) -> None:
        raise KeyboardInterrupt

    before = content(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("pressmark.bagit.writing.tag_writer.TagWriter.finish", interrupted)
        result = call("bag", "create", "files")
        assert (result.stderr, result.exit_code) == (INTERRUPTED, 130)
        assert content(tmp_path) == before
        result = call("bag", "create", "files", "--ledger", "l")
        line = "pressmark: interrupted; nothing was changed; run the same command again to continue from l\n"
        assert (result.stderr, result.exit_code) == (line, 130)
        assert before.items() <= content(tmp_path).items()
    (files / "b").write_bytes(b"BEE")
    result = call("bag", "create", "files", "--ledger", "l")
    assert result.exit_code == 0
    assert re.search(
        r": bag created: 3 files, 6 B, 1 read, 2 from the ledger \(since 20[0-9-]+\); sha512\n", result.stderr
    )
    assert manifest(files) == listed(FILES | {"b": b"BEE"})


# --- info -------------------------------------------------------------------------------------------------------------


def test_info(run: Run, bag: Path) -> None:
    """The text output shows the bag's properties and its elements in order."""
    (bag / "bag-info.txt").write_text("Zeta: 1\nPayload-Oxum: 6.3\nAlpha: 2\nzeta: long\n  value\nAlpha: 3\n")
    done = run("bag", "info", "bag")
    assert (done.stdout.decode(), done.stderr, done.returncode) == (
        "BagIt version      1.0\n"
        "tag files in       UTF-8\n"
        "payload manifests  sha512\n"
        "tag manifests      sha512\n"
        "payload            3 files, 6 B (Payload-Oxum 6.3)\n"
        "\n"
        "Zeta: 1\n"
        "Payload-Oxum: 6.3\n"
        "Alpha: 2\n"
        "zeta: long\n"
        "  value\n"
        "Alpha: 3\n",
        b"",
        0,
    )


def test_info_as_json(quick: Run, tmp_path: Path) -> None:
    """The JSON output has the same, with repeats and order."""
    made = make_bag(
        tmp_path / "bag",
        {"a": b"a"},
        info="B: \u001b[31m\nA: 2\nB: 3\n",
        algorithm="md5",
        fetch="https://example.org/b - data/b\n",
        listed={"b": b"b"},
    )
    done = quick("bag", "info", str(made), "--json")
    assert json.loads(done.stdout) == {
        "path": str(made),
        "version": "1.0",
        "encoding": "UTF-8",
        "algorithms": ["md5"],
        "tag_algorithms": ["md5"],
        "payload_oxum": None,
        "fetch": 1,
        "elements": [
            {"label": "B", "value": "\u001b[31m"},
            {"label": "A", "value": "2"},
            {"label": "B", "value": "3"},
        ],
    }
    # No control characters reach a terminal.
    assert r"B: \x1b[31m" in quick("bag", "info", str(made)).stdout.decode().splitlines()


# --- validate ---------------------------------------------------------------------------------------------------------


def problems(stdout: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the problems of a report in JSON lines, and its summary."""
    *found, last = map(json.loads, stdout.splitlines())
    assert list(last) == ["summary"]
    return found, last["summary"]


def test_a_valid_bag(run: Run, bag: Path) -> None:
    """For a valid bag, stdout is empty; the verdict is on stderr."""
    done = run("bag", "validate", "bag")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"pressmark: bag: valid: 3 files, 6 B\n", 0)
    found, summary = problems(run("bag", "validate", "bag", "--json").stdout)
    assert found == []
    assert (summary["ok"], summary["errors"], summary["files"], summary["bytes"]) == (True, 0, 3, 6)


def damage(bag: Path) -> None:
    """Break a bag in four ways: change a file, remove one, add one, and so falsify the Payload-Oxum."""
    (bag / "data" / "b").write_bytes(b"BEE")
    (bag / "data" / "a").unlink()
    (bag / "data" / "new").write_bytes(b"new")


def test_every_problem_is_a_line(quick: Run, bag: Path) -> None:
    """All problems are listed, each on a line with its severity, kind and path."""
    damage(bag)
    done = quick("bag", "validate", "bag")
    lines = done.stdout.decode().splitlines()
    assert sorted(line.split(": ")[:3] for line in lines) == [
        ["error", "checksum-mismatch", "data/b"],
        ["error", "file-missing", "data/a"],
        ["error", "file-unlisted", "data/new"],
        ["error", "oxum-mismatch", "bag-info.txt"],
    ]
    assert done.returncode == 1
    copied = "restore the files from another copy of the bag; if the changes are intended"
    # The last line is what to do, once for all problems.
    assert done.stderr.decode().splitlines() == [
        "pressmark: bag: invalid: 4 errors, 3 files, 9 B",
        f"pressmark: what to do: {copied}: pressmark bag update bag --accept added,changed,removed",
    ]
    accepted = done.stderr.decode().rpartition(": pressmark ")[2].split()
    assert quick(*accepted).returncode == 0
    assert quick("bag", "validate", "bag").returncode == 0


@pytest.mark.parametrize(
    ("path", "text", "level", "last"),
    [
        ("bag-info.txt", "A: b\n", "full", "bag update {} --accept tag-files"),
        (
            "data/new",
            "",
            "full",
            "compare the manifests with another copy of the bag; if the changes are intended: pressmark bag",
        ),
        ("data/a", "longer", "oxum", "find the files that cause it: pressmark bag validate {}"),
        ("data/a", "longer", "complete", "find the files that cause it: pressmark bag validate {}"),
        ("fetch.txt", "https://example.org/a 1 data/a\n", "full", "download the files: pressmark bag complete {}"),
        ("bagit.txt", "BagIt-Version: 1.0\n", "full", "declaration-malformed: write the two lines as in section 2.1.1"),
    ],
)
def test_validate_says_what_to_do(quick: Run, bag: Path, path: str, text: str, level: str, last: str) -> None:
    """The last line names the command for the problems of the bag; --json has no such line."""
    if path != "bag-info.txt":
        (bag / "tagmanifest-sha512.txt").unlink()
    (bag / path).write_text(text)
    if path == "fetch.txt":
        (bag / "data" / "a").unlink()
    moved = bag.rename(bag.parent / "a bag")
    lines = quick("bag", "validate", moved.name, "--level", level).stderr.decode().splitlines()
    assert lines[-1].startswith("pressmark: what to do: ")
    assert last.format("'a bag'") in lines[-1]
    assert len(lines) == 2
    assert b"what to do" not in quick("bag", "validate", moved.name, "--level", level, "--json").stderr


def test_problems_as_json(quick: Run, bag: Path) -> None:
    """The JSON output has each problem with all its fields, and last the summary."""
    damage(bag)
    done = quick("bag", "validate", "bag", "--json")
    found, summary = problems(done.stdout)
    assert done.returncode == 1
    keys = ["kind", "severity", "section", "path", "algorithm", "expected", "found", "message"]
    assert all(list(problem) == keys for problem in found)
    mismatch = next(problem for problem in found if problem["kind"] == "checksum-mismatch")
    assert mismatch["message"] == f"sha512 is {digest(b'BEE')[:12]}…; expected {digest(b'bee')[:12]}…"
    assert (mismatch["severity"], mismatch["section"], mismatch["path"]) == ("error", "3", "data/b")
    assert (mismatch["algorithm"], mismatch["expected"], mismatch["found"]) == (
        "sha512",
        digest(b"bee"),
        digest(b"BEE"),
    )
    assert (summary["ok"], summary["errors"], summary["warnings"]) == (False, 4, 0)
    assert (summary["missing"], summary["changed"], summary["untracked"]) == (1, 1, 1)
    assert summary["kinds"] == {problem["kind"]: 1 for problem in sorted(found, key=lambda one: str(one["kind"]))}
    assert "omitted" not in summary


def test_warnings_are_marked_and_leave_a_bag_valid(quick: Run, bag: Path) -> None:
    """A file that no tag manifest lists is a warning."""
    (bag / "notes.txt").write_text("notes")
    done = quick("bag", "validate", "bag")
    assert done.stdout.startswith(b"warning: tag-file-unlisted: notes.txt: ")
    assert (done.stderr, done.returncode) == (b"pressmark: bag: valid: 1 warning, 3 files, 6 B\n", 0)


def test_several_bags(quick: Run, bag: Path, tmp_path: Path) -> None:
    """Each bag has its verdict, each problem names its bag, and the exit status covers all."""
    bad = make_bag(tmp_path / "bad", {"a": b"a"}, listed={"gone": b""})
    done = quick("bag", "validate", "bag", "bad")
    assert done.stdout.startswith(b"error: file-missing: bad/data/gone: ")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "pressmark: bag: valid: 3 files, 6 B",
        "pressmark: bad: invalid: 1 error, 1 file, 1 B",
        "pressmark: 2 bags; 1 invalid",
        "pressmark: what to do: restore the files from another copy of the bag; if the changes are intended: pressmark"
        " bag update BAG --accept removed",
    ]
    done = quick("bag", "validate", "bag", "bad", "--json")
    first, problem, second, last = map(json.loads, done.stdout.splitlines())
    assert (first["bag"], first["summary"]["ok"]) == ("bag", True)
    assert (problem["bag"], problem["kind"], problem["path"]) == ("bad", "file-missing", "data/gone")
    assert (second["bag"], second["summary"]["ok"], second["summary"]["files"]) == ("bad", False, 1)
    assert list(last) == ["summary"]
    summary = last["summary"]
    assert (summary["bags"], summary["failed"], summary["ok"]) == (2, 1, False)
    assert (summary["errors"], summary["files"], summary["kinds"]) == (1, 4, {"file-missing": 1})
    assert bad.exists()


@posix
def test_problems_precede_the_verdict_of_their_bag(tmp_path: Path) -> None:
    """On a terminal, the problems of a bag are followed by its verdict, then by those of the next bag."""
    names = ["bad0", "bad1"]
    for name in names:
        (make_bag(tmp_path / name, {"a": b"a"}, listed={"gone": b""}) / "note.txt").touch()
    terminal, ours = os.openpty()
    command = [*COMMAND, "bag", "validate", *names]
    subprocess.run(command, cwd=tmp_path, env=environment(), stdout=ours, stderr=ours, check=False)
    os.close(ours)
    lines = os.read(terminal, 1 << 16).decode().split("\r\n")
    os.close(terminal)
    of_bag = ("warning: tag-file-unlisted: {}/", "error: file-missing: {}/", "pressmark: {}: invalid: ")
    expected = [start.format(name) for name in names for start in of_bag]
    assert all(line.startswith(start) for line, start in zip(lines, expected, strict=False)), lines


@linux
def test_hostile_names_stay_on_their_line(run: Run, bag: Path) -> None:
    """Unprintable characters are escaped in text and exact in JSON."""
    names = [b"line\nfeed", b"\xff", b"\x1b[31mred", "\u202etxt".encode(), b"error: file-missing: data"]
    for name in names:
        with open(os.path.join(os.fsencode(bag), b"data", name), "wb"):
            pass
    done = run("bag", "validate", "bag")
    text = done.stdout.decode("ascii")
    assert text.count("\n") == len(names) + 1  # and Payload-Oxum
    for name in (r"data/line\nfeed", r"data/\xff", r"data/\x1b[31mred", r"data/\u202etxt"):
        assert f"error: file-unlisted: {name}: " in text
    found, _ = problems(run("bag", "validate", "bag", "--json").stdout)
    assert {os.fsencode(problem["path"]) for problem in found} == {b"data/" + name for name in names} | {
        b"bag-info.txt"
    }


def test_levels(quick: Run, bag: Path, tmp_path: Path) -> None:
    """A quick check finds less, and does not call a bag valid."""
    (bag / "data" / "b").write_bytes(b"BEE")
    for level, word in (("complete", "complete"), ("oxum", "matches its Payload-Oxum")):
        done = quick("bag", "validate", "bag", "--level", level)
        assert (done.stdout, done.returncode) == (b"", 0)
        line = f"pressmark: bag: {word} (checksums were not verified): 3 files, 6 B\n"
        assert done.stderr.decode() == line
    (bag / "data" / "a").write_bytes(b"longer")
    assert quick("bag", "validate", "bag", "--level", "complete").stdout.startswith(b"error: oxum-mismatch: ")
    done = quick("bag", "validate", "bag", "--level", "oxum")
    assert done.stderr == (
        b"pressmark: bag: does not match its Payload-Oxum: 1 error, 3 files, 12 B\n"
        b"pressmark: what to do: find the files that cause it: pressmark bag validate bag\n"
    )
    assert done.returncode == 1
    incomplete = make_bag(tmp_path / "incomplete", {"a": b"a"}, listed={"gone": b""})
    assert quick("bag", "validate", str(incomplete), "--level", "complete").returncode == 1


def test_lenient(quick: Run, tmp_path: Path) -> None:
    """With --lenient, a bag with blank lines in manifests, or with malformed lines beside its manifests, is valid."""
    made = make_bag(tmp_path / "bag", FILES)
    (made / "tagmanifest-sha512.txt").unlink()
    with open(made / "manifest-sha512.txt", "ab") as file:
        file.write(b"\n")
    done = quick("bag", "validate", "bag")
    assert done.stdout.startswith(b"error: line-blank: manifest-sha512.txt: ")
    assert done.returncode == 1
    done = quick("bag", "validate", "bag", "--lenient")
    assert done.stdout.startswith(b"warning: line-blank: manifest-sha512.txt: ")
    assert done.returncode == 0
    (made / "bag-info.txt").write_bytes(b"Contact-Name: A\n\nno colon\n B : c\n")
    (made / "fetch.txt").write_bytes(b"\nhttps://example.org/a data/a\nhttps://example.org/a one data/a\n")
    strict, done = quick("bag", "validate", "bag"), quick("bag", "validate", "bag", "--lenient")
    kinds = ["info-malformed", "info-whitespace", "line-malformed"]
    assert [strict.stdout.count(f"error: {kind}".encode()) for kind in kinds] == [1, 1, 2]
    assert [done.stdout.count(f"warning: {kind}".encode()) for kind in kinds] == [1, 1, 2]
    assert b"warning: info-blank-line: bag-info.txt: line 2\n" in strict.stdout
    assert (strict.returncode, done.returncode) == (1, 0)


def test_a_directory_without_bagit_txt(quick: Run, files: Path) -> None:
    """A directory without bagit.txt is reported as such."""
    done = quick("bag", "validate", "files")
    assert b"error: declaration-missing: bagit.txt: " in done.stdout
    assert done.returncode == 1


@posix
def test_links(quick: Run, bag: Path, tmp_path: Path) -> None:
    """Links that lead out are followed only if trusted."""
    (tmp_path / "outside").write_bytes(b"bee")
    (bag / "data" / "b").unlink()
    (bag / "data" / "b").symlink_to(tmp_path / "outside")
    done = quick("bag", "validate", "bag")
    assert b"error: link-outside: data/b: " in done.stdout
    assert done.returncode == 1
    assert quick("bag", "validate", "bag", "--links", "trusted").returncode == 0


def test_profile(quick: Run, bag: Path, tmp_path: Path) -> None:
    """A bag that violates its profile is invalid; an invalid profile is a usage error."""
    (tmp_path / "profile.json").write_text(json.dumps(PROFILE))
    done = quick("bag", "validate", "bag", "--profile", "profile.json")
    assert re.match(rb"error: profile-[a-z-]+: bag-info.txt: ", done.stdout), done.stderr
    assert done.returncode == 1
    (tmp_path / "profile.json").write_text("nonsense")
    done = quick("bag", "validate", "bag", "--profile", "profile.json")
    assert (done.stdout, done.returncode) == (b"", 2)
    assert done.stderr.startswith(b"pressmark: profile.json: ")


@posix
@posix
def test_a_bag_that_cannot_be_read(quick: Run, bag: Path, tmp_path: Path) -> None:
    """An unreadable bag fails, and the others are validated."""
    (tmp_path / "closed").mkdir(mode=0)
    if os.access(tmp_path / "closed", os.R_OK):
        pytest.skip("this user may read everything")
    done = quick("bag", "validate", "closed", bag.name)
    assert b"'closed': Permission denied" in done.stderr
    assert f"{bag.name}: valid".encode() in done.stderr
    assert done.returncode == 1


def test_validate_with_a_ledger(quick: Run, bag: Path, tmp_path: Path) -> None:
    """With a ledger, files with unchanged size, times and inode are not read again."""
    assert quick("bag", "validate", "bag", "--ledger", "l").returncode == 0
    again = quick("bag", "validate", "bag", "--ledger", "l")
    assert (again.returncode, b", 0 read, " in again.stderr) == (0, True)
    status = (bag / "data" / "b").stat()
    (bag / "data" / "b").write_bytes(b"BEE")
    os.utime(bag / "data" / "b", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert quick("bag", "validate", "bag", "--ledger", "l").returncode == 1
    (tmp_path / "noledger").write_text("nonsense")
    done = quick("bag", "validate", "bag", "--ledger", "noledger")
    assert (done.stdout, done.stderr, done.returncode) == (
        b"",
        b"pressmark: noledger: not a ledger; choose another file for the ledger\n",
        2,
    )


def test_threads_and_order(quick: Run, bag: Path) -> None:
    """The report does not depend on threads or on the way of reading."""
    damage(bag)
    wanted = quick("bag", "validate", "bag").stdout
    for options in (["--threads", "1"], ["--threads", "7"], ["--read", "sequential"]):
        assert quick("bag", "validate", "bag", *options).stdout == wanted


@posix
def test_validate_interrupted(call: Call, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C gives one line and 130, and the remedy."""

    def interrupted(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pressmark.bagit.validation.validate.check_in_memory", interrupted)
    monkeypatch.setattr("pressmark.fixity.pool.hash_tasks", interrupted)
    result = call("bag", "validate", "bag")
    assert result.exit_code == 128 + signal.SIGINT
    assert result.stderr == "pressmark: interrupted; use --ledger FILE to make a run resumable\n"
    result = call("bag", "validate", "bag", "--ledger", "l")
    assert result.stderr == "pressmark: interrupted; run the same command to continue from l\n"


@posix
def test_broken_pipe_is_success(tmp_path: Path) -> None:
    """If the reader leaves, a validation ends silently with the verdict reached so far."""
    made = make_bag(tmp_path / "bag", {"a": b"a"}, listed={f"gone-{number:05}": b"" for number in range(20_000)})
    process = subprocess.Popen(
        [*COMMAND, "bag", "validate", str(made)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr
    assert (process.stderr.read(), process.wait(30)) == (b"", 1)
    process.stderr.close()


@posix
def test_a_full_disk(run: Run, bag: Path) -> None:
    """A report that cannot be written is one line and exit 1."""
    damage(bag)
    with open("/dev/full", "wb") as full:
        done = run("bag", "validate", "bag", stdout=full)
    assert (done.stderr, done.returncode) == (b"pressmark: <stdout>: No space left on device\n", 1)


@posix
def test_log_lines(bag: Path, tmp_path: Path) -> None:
    """In a log, a long validation reports its progress over all bags now and then."""
    script = (
        "import pressmark.cli.common.progress as reporter, pressmark.bagit.validation.validate as validation, time\n"
        "from pressmark.fixity import pool\n"
        "reporter.LOG_EVERY = 0.01; reporter.DISPLAY_AFTER = 0.0\n"
        "def slow(tasks, *rest, **more):\n"
        "    for found in original(tasks, *rest, **more):\n"
        "        time.sleep(0.15)\n"
        "        yield found\n"
        "    time.sleep(0.3)\n"
        "original = pool.hash_tasks; pool.hash_tasks = slow\n"
        "validation.check_in_memory = lambda paths, *rest, **more: (None for _ in paths)\n"
        "from pressmark.cli import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "bag", "validate", "bag", "bag", "--progress"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=True,
    )
    lines = [line for line in done.stderr.decode().splitlines() if "%" in line]
    counts = [int(re.match(r"pressmark: (\d+) files?", line)[1]) for line in lines]  # type: ignore[index]
    assert counts == sorted(counts)
    assert counts[-1] > 7, "three payload files and four tag files, twice"


def test_validate_says_what_a_directory_is(quick: Run, bag: Path, tmp_path: Path) -> None:
    """The last line about a directory that is no bag says what it is, and which command to use."""
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "a").touch()
    (tmp_path / "bag" / "data" / "below").mkdir()
    (tmp_path / "books" / "pairtree_root").mkdir(parents=True)
    inside = "inside the bag bag; to validate it: pressmark bag validate bag"
    for path, advice in {
        "scans": "not a bag (no bagit.txt); to make one: pressmark bag create scans -o BAG",
        "bag/data": inside,
        "bag/data/below": inside,
        "books": "not a bag, but a store of kind pairtree; to check it: pressmark store check books",
        ".": "not a bag, but a folder of bags; to check all of them: pressmark store check .",
    }.items():
        done = quick("bag", "validate", path)
        verdict, last = done.stderr.decode().splitlines()
        assert verdict.startswith(f"pressmark: {path}: invalid: ")
        assert (last, done.returncode) == (f"pressmark: {path}: {advice}", 1)
    # A bag that lost its declaration is damaged; no other bag should be created from it.
    for name in ("bagit.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt", "bag-info.txt"):
        (bag / name).unlink()
        done = quick("bag", "validate", "bag")
        verdict, last = done.stderr.splitlines()
        assert (b"bag: invalid: " in verdict, done.returncode) == (True, 1)
        assert last.startswith(b"pressmark: what to do: ")
        assert b"bag create" not in last


# --- update -----------------------------------------------------------------------------------------------------------


def test_update_algorithms(run: Run, bag: Path) -> None:
    """Algorithms are added and dropped, and the bag stays valid; bag-info.txt keeps its bytes."""
    before = (bag / "bag-info.txt").read_bytes()
    done = run("bag", "update", "bag", "--add-algorithm", "sha256,md5", "--drop-algorithm", "sha512")
    assert (done.stdout, done.stderr, done.returncode) == (
        b"",
        b"pressmark: bag: bag updated; 3 files verified, 6 B; md5, sha256\n",
        0,
    )
    names = sorted(path.name for path in bag.glob("*manifest-*"))
    assert names == ["manifest-md5.txt", "manifest-sha256.txt", "tagmanifest-md5.txt", "tagmanifest-sha256.txt"]
    assert manifest(bag, "sha256") == listed(FILES, "sha256")
    assert (bag / "bag-info.txt").read_bytes() == before
    assert run("bag", "validate", "bag").returncode == 0
    done = run("bag", "update", "bag")
    assert done.stderr == b"pressmark: bag: no change needed; 3 files verified, 6 B; md5, sha256\n"


def test_update_metadata(quick: Run, bag: Path) -> None:
    """An element replaces all with its label and keeps the others; the payload need not be read."""
    (bag / "data" / "b").write_bytes(b"BEE")
    (bag / "tagmanifest-sha512.txt").unlink()
    (bag / "bag-info.txt").write_bytes(b"Zeta: 1\r\nContact-Name: A\r\nContact-Name: B\r\nContact-Email: e\r\n")
    call = ["--info", "contact-name=C", "--info", "Bagging-Date=2026-11-21", "--remove-info", "Contact-Email"]
    done = quick("bag", "update", "bag", "--metadata-only", *call)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"pressmark: bag: bag updated; sha512\n", 0)
    wanted = b"Zeta: 1\r\nContact-Name: C\r\nBagging-Date: 2026-11-21\r\n"
    assert (bag / "bag-info.txt").read_bytes() == wanted
    done = quick("bag", "update", "bag", "--metadata-only", "--rewrite")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


def test_update_refuses_damage(quick: Run, bag: Path) -> None:
    """A file that differs from the manifests stops the update; all are listed, nothing is changed."""
    damage(bag)
    before = content(bag)
    done = quick("bag", "update", "bag", "--add-algorithm", "md5")
    assert sorted(line.split(": ")[:3] for line in done.stdout.decode().splitlines()) == [
        ["error", "file-missing", "data/a"],
        ["error", "file-unlisted", "data/new"],
    ]
    assert done.returncode == 1
    assert done.stderr.startswith(b"pressmark: 'bag': bag does not match its manifests, nothing was changed: ")
    assert done.stderr.count(b"\n") == 1
    assert content(bag) == before
    done = quick("bag", "update", "bag", "--accept", "added,removed", "--json")
    found, summary = problems(done.stdout)
    assert done.returncode == 1
    assert [(one["severity"], one["kind"], one["path"]) for one in found if one["severity"] == "error"] == [
        ("error", "checksum-mismatch", "data/b")
    ]
    assert (summary["ok"], summary["updated"], summary["errors"]) == (False, False, 1)
    assert content(bag) == before


def test_update_accepts_changes(quick: Run, bag: Path) -> None:
    """With --accept, the current payload is accepted, with a warning per difference."""
    damage(bag)
    done = quick("bag", "update", "bag", "--accept", "added,removed", "--accept", "changed", "--json")
    found, summary = problems(done.stdout)
    assert done.returncode == 0, done.stderr
    assert {(one["severity"], one["path"]) for one in found} == {
        ("warning", "data/a"),
        ("warning", "data/b"),
        ("warning", "data/new"),
    }
    assert (summary["ok"], summary["updated"], summary["warnings"]) == (True, True, 3)
    assert "Payload-Oxum: 9.3\n" in (bag / "bag-info.txt").read_text()
    done = quick("bag", "validate", "bag")
    assert (done.stdout, done.returncode) == (b"", 0)


def test_update_reports_what_it_accepted(quick: Run, bag: Path) -> None:
    """The summary counts accepted files, and an unlisted tag file is not added without a word."""
    (bag / "note.txt").write_bytes(b"note")
    done = quick("bag", "update", "bag")
    line = b"warning: tag-file-unlisted: note.txt: tag file is not listed in any tag manifest; "
    assert (done.stdout, done.returncode) == (line + b"to add it, use --accept tag-files\n", 0)
    assert done.stderr == b"pressmark: bag: no change needed; 3 files verified, 6 B; sha512\n"
    (bag / "data" / "new").write_bytes(b"n")
    done = quick("bag", "update", "bag", "--accept", "added,tag-files")
    assert line + b"added to the tag manifests\n" in done.stdout
    assert done.stderr == (
        b"pressmark: bag: bag updated: 1 file accepted (added), 1 tag file added to the tag manifests; "
        b"4 files verified, 7 B; sha512\n"
    )
    assert quick("bag", "validate", "bag").stdout == b""
    damage(bag)
    done = quick("bag", "update", "bag", "--accept", "added,removed,changed", "--add-algorithm", "md5")
    assert b": bag updated: 3 files accepted (1 removed, 2 changed); " in done.stderr


def test_update_converts_an_old_bag(quick: Run, tmp_path: Path) -> None:
    """An old bag made with md5sum becomes a bag of version 1.0."""
    made = make_bag(tmp_path / "bag", FILES, algorithm="md5")
    (made / "tagmanifest-md5.txt").unlink()
    (made / "bagit.txt").write_text("BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n")
    (made / "manifest-md5.txt").write_text(listed(FILES, "md5").replace("  data", " *data"))
    assert quick("bag", "validate", "bag").stdout.count(b"warning: md5sum-mark: ") >= 1
    done = quick("bag", "update", "bag", "--add-algorithm", "sha512")
    assert done.returncode == 0, done.stderr
    assert (made / "bagit.txt").read_bytes() == DECLARATION
    assert manifest(made, "md5") == listed(FILES, "md5")
    done = quick("bag", "validate", "bag")
    assert (done.stdout, done.returncode) == (b"", 0)


@posix
def test_update_with_a_ledger(call: Call, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted update changes nothing, and finished files are not read again."""

    def interrupted(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    before = content(bag)
    with monkeypatch.context() as patch:
        patch.setattr("pressmark.bagit.writing.tag_writer.ManifestWriter.finish", interrupted)
        result = call("bag", "update", "bag", "--add-algorithm", "md5", "--ledger", "l")
        line = "pressmark: interrupted; nothing was changed; run the same command again to continue from l\n"
        assert (result.stderr, result.exit_code) == (line, 130)
        result = call("bag", "update", "bag", "--add-algorithm", "md5")
        assert (result.stderr, result.exit_code) == (INTERRUPTED, 130)
    assert content(bag) == before
    assert call("bag", "update", "bag", "--add-algorithm", "md5", "--ledger", "l").exit_code == 0
    assert call("bag", "validate", "bag").exit_code == 0


@posix
def test_a_broken_pipe_does_not_stop_an_update(bag: Path) -> None:
    """A broken pipe does not stop an update."""
    damage(bag)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, "bag", "update", str(bag), "--accept", "added,removed,changed"],
        stdout=write,
        stderr=subprocess.PIPE,
        env=environment(),
        timeout=60,
        check=False,
    )
    os.close(write)
    assert done.returncode == 0
    assert done.stderr.count(b"\n") == 1
    assert (bag / "manifest-sha512.txt").read_text().count("data/new") == 1


# --- complete ---------------------------------------------------------------------------------------------------------


#: What a local server requires.
LOCAL = ("--allow-http", "--allow-private")


@pytest.fixture
def holey(tmp_path: Path) -> Iterator[Path]:
    """A bag with two files to fetch from a local server."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "x").write_bytes(b"ex")
    (tmp_path / "store" / "y").write_bytes(b"why")
    with serving() as server:
        server.default = below(tmp_path / "store")
        fetch = "".join(f"{server.url(f'/{name}')} {size} data/{name}\n" for name, size in (("x", "2"), ("y", "-")))
        yield make_bag(tmp_path / "bag", {"a": b"a"}, fetch=fetch, listed={"x": b"ex", "y": b"why"})


def test_complete(run: Run, holey: Path) -> None:
    """Missing files are fetched and verified; a second run has nothing to do."""
    pytest.importorskip("urllib3")
    done = run("bag", "validate", "bag")
    assert done.stdout.count(b"error: file-not-fetched: data/") == 2
    done = run("bag", "complete", "bag", *LOCAL)
    assert (done.stdout, done.stderr, done.returncode) == (
        b"",
        b"pressmark: bag: no file is missing: 2 files downloaded, 5 B\n",
        0,
    )
    assert (holey / "data" / "y").read_bytes() == b"why"
    assert run("bag", "validate", "bag").returncode == 0
    done = run("bag", "complete", "bag", *LOCAL, "--json")
    found, summary = problems(done.stdout)
    assert (found, summary["ok"], summary["files"], summary["present"]) == ([], True, 0, 2)
    assert done.stderr == b"pressmark: bag: no file is missing: 2 files listed in fetch.txt already present\n"


def test_complete_refuses_insecure_urls(quick: Run, holey: Path) -> None:
    """Plain HTTP and private hosts are refused by default, and local files always; each refusal says what to do."""
    pytest.importorskip("urllib3")
    done = quick("bag", "complete", "bag")
    lines = done.stdout.decode().splitlines()
    assert [line.split(": ")[:3] for line in lines] == [
        ["error", "fetch-refused", "data/x"],
        ["error", "fetch-refused", "data/y"],
    ]
    assert done.returncode == 1
    assert done.stderr == b"pressmark: bag: not complete: 2 files not downloaded\n"
    assert not (holey / "data" / "x").exists()
    (holey / "fetch.txt").write_text(f"{(holey.parent / 'store' / 'x').as_uri()} 2 data/x\n")
    done = quick("bag", "complete", "bag", *LOCAL)
    assert b"fetch-refused: data/x: 'file://" in done.stdout
    assert done.stdout.endswith(b" is a local file; copy it to its path in the bag\n")
    assert done.returncode == 1
    assert quick("bag", "complete", "bag", "--allow-file").returncode == 2
    assert quick("bag", "hollow", "bag", "--fetch-base", "https://example.org/").returncode == 2


def test_complete_refuses_wrong_files(quick: Run, holey: Path, tmp_path: Path) -> None:
    """A file with another checksum is not added; the others are."""
    pytest.importorskip("urllib3")
    (tmp_path / "store" / "y").write_bytes(b"not")
    done = quick("bag", "complete", "bag", *LOCAL, "--json")
    found, summary = problems(done.stdout)
    assert [(one["severity"], one["path"]) for one in found] == [("error", "data/y")]
    assert (summary["ok"], summary["files"], summary["failed"]) == (False, 1, 1)
    assert done.returncode == 1
    assert (holey / "data" / "x").exists()
    assert not (holey / "data" / "y").exists()


def test_complete_with_credentials(quick: Run, holey: Path, tmp_path: Path) -> None:
    """The host of the file receives its header; neither an error of the file nor another message shows it."""
    pytest.importorskip("urllib3")
    url = (holey / "fetch.txt").read_text().split()[0].removesuffix("/x")
    path = tmp_path / "tokens.txt"
    path.write_text(f"{url.removeprefix('http://')} Authorization: Bearer s3cr3t\n")
    path.chmod(0o600)
    done = quick("bag", "complete", "bag", *LOCAL, "--header-from", "tokens.txt")
    assert (done.stdout, done.returncode) == (b"", 0)
    assert b"s3cr3t" not in done.stderr
    path.write_text("Authorization: Bearer s3cr3t\n")
    done = quick("bag", "complete", "bag", "--header-from", "tokens.txt")
    assert done.stderr.startswith(b"pressmark: 'tokens.txt': line 1: expected a host, a header and its value")
    assert b"s3cr3t" not in done.stderr
    assert done.returncode == 2
    done = quick("bag", "complete", "bag", "--header-from", "missing.txt")
    assert (done.stderr, done.returncode) == (b"pressmark: missing.txt: No such file or directory\n", 2)
    (holey / "fetch.txt").write_text("s3://books/x 2 data/x\n")
    (holey / "data" / "x").unlink()
    done = quick("bag", "complete", "bag")
    assert done.stdout.endswith(
        b"in the bucket 'books', which is not allowed; use --allow-bucket books if you trust it\n"
    )


@posix
def test_complete_interrupted(call: Call, holey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C gives one line and 130; the same command resumes."""

    def interrupted(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pressmark.cli.bag.complete.complete", interrupted)
    result = call("bag", "complete", "bag")
    assert (result.stderr, result.exit_code) == (
        "pressmark: interrupted; run the same command again to continue\n",
        130,
    )


def test_create_with_fetch_base(quick: Run, files: Path, tmp_path: Path) -> None:
    """The files are listed, not copied; options that do not fit are usage errors."""
    done = quick("bag", "create", "files", "-o", "new", "--fetch-base", "https://example.org/x")
    assert (done.stdout, done.returncode) == (b"", 0)
    assert re.fullmatch(
        rb"pressmark: new: bag created: 3 files, 6 B(, .*)?, listed in fetch.txt; sha512\n", done.stderr
    )
    assert (tmp_path / "new" / "fetch.txt").read_text().splitlines()[2] == "https://example.org/x/d/c 3 data/d/c"
    assert list((tmp_path / "new" / "data").iterdir()) == []
    for words, message in (
        ([], "--fetch-base requires -o; specify a new directory"),
        (["-o", "x.tar"], "--fetch-base requires -o DIRECTORY"),
        (["-o", "x", "--copy-mode", "auto"], "--copy-mode: not supported with --fetch-base, because nothing is copied"),
    ):
        done = quick("bag", "create", "files", "--fetch-base", "https://example.org/x", *words)
        assert done.returncode == 2
        assert message in done.stderr.decode()
    assert content(files) == {"a": b"", "b": b"bee", "d": None, "d/c": b"sea"}


def test_create_with_fetch(quick: Run, tmp_path: Path) -> None:
    """Files on a server are listed with the checksums of lists; what lacks is named, and nothing is written."""
    (tmp_path / "urls").write_text("https://example.org/a 1 data/a\nhttps://example.org/b - data/b\n")
    (tmp_path / "sums").write_text("".join(f"{number * 128}  {name}\n" for number, name in (("0", "a"), ("1", "b"))))
    (tmp_path / "less").write_text(f"{'0' * 32}  a\n{'0' * 32}  c\n")
    words = ["bag", "create", "--fetch", "urls", "-o", "new"]
    done = quick(*words, "--manifest", "sums", "--manifest", "less")
    assert done.stderr.decode().splitlines() == [
        "pressmark: error: fetch-unlisted: data/b: no md5 checksum in less; add it",
        "pressmark: error: file-missing: c: listed in less, but not among the files to fetch; correct the lists",
        "pressmark: new: no bag was created: 2 problems; nothing was changed",
    ]
    assert done.returncode == 2
    for more, message in (
        (["--manifest", "sums", "files"], "SOURCE: not supported with --fetch"),
        (["--manifest", "sums", "--fetch-base", "https://example.org/"], "--fetch-base: not supported with --fetch"),
        (["--manifest", "sums", "--copy-mode", "auto"], "--copy-mode: not supported with --fetch"),
        (["--manifest", "sums", "--exclude-junk"], "--exclude-junk: not supported with --fetch"),
        (["--manifest", "sums", "-o", "x.zip"], "--fetch requires -o DIRECTORY"),
        (["--manifest", "none"], "none: No such file or directory"),
        (["--manifest", "urls"], "line 1: expected digest, two spaces and name"),
        (["--manifest", "sums", "-a", "md5"], "digest of 128 hex digits is not md5"),
        ([], "--fetch requires --manifest; specify the checksums of the files"),
    ):
        done = quick(*words, *more)
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr
        assert message in done.stderr.decode()
    assert b"--manifest requires --fetch" in quick("bag", "create", "files", "--manifest", "sums").stderr
    assert b"missing argument 'SOURCE...'" in quick("bag", "create", "-o", "new").stderr
    assert sorted(os.listdir(tmp_path)) == ["less", "sums", "urls"]
    done = quick(*words, "--manifest", "sums")
    assert done.stderr == (
        b"pressmark: new: bag created: 2 files, without Payload-Oxum, because lengths are unknown,"
        b" listed in fetch.txt; sha512\n"
    )
    assert done.returncode == 0
    assert list((tmp_path / "new" / "data").iterdir()) == []
    assert (tmp_path / "new" / "manifest-sha512.txt").read_text() == f"{'0' * 128}  data/a\n{'1' * 128}  data/b\n"


def test_json_of_create(call: Call, tmp_path: Path) -> None:
    """Each bag is an object, also in place; the summary counts them."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    done = call("bag", "create", "one", "-o", "bag", "--json", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert list(map(json.loads, done.stdout.splitlines())) == [
        {"status": "created", "path": "bag", "files": 1, "bytes": 3},
        {"summary": {"ok": True, "created": 1, "failed": 0}},
    ]
    done = call("bag", "create", "one", "bag", "two", "--json")
    assert done.exit_code == 1
    first, failed, second, summary = map(json.loads, done.stdout.splitlines())
    created = [{"status": "created", "path": name, "files": 1, "bytes": 3} for name in ("one", "two")]
    assert [first, second] == created
    assert (failed["status"], failed["path"], failed["message"][:13]) == ("failed", "bag", "already a bag")
    assert summary == {"summary": {"ok": False, "created": 2, "failed": 1}}
