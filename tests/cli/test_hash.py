"""``pressmark hash`` and ``pressmark verify``: output, streams, and exit statuses."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pressmark.cli.common.progress import format_bytes

from .conftest import COMMAND, Call, Run, environment

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files, devices and signals")


def sha512(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    (folder / "d").mkdir(parents=True)
    (folder / "b").write_bytes(b"bee")
    (folder / "a").write_bytes(b"")
    (folder / "d" / "c").write_bytes(b"sea")
    return folder


WHOLE = (("files/a", b""), ("files/b", b"bee"), ("files/d/c", b"sea"))


def test_default_is_sha512_as_sha512sum_writes_it(run: Run, files: Path) -> None:
    """The default is SHA-512 in coreutils lines, sorted by the bytes of names."""
    done = run("hash", "files")
    wanted = "".join(f"{sha512(data)}  {name}\n" for name, data in WHOLE)
    assert (done.stdout.decode(), done.stderr, done.returncode) == (wanted, b"", 0)


@posix
def test_a_path_that_cannot_be_read(run: Run, files: Path) -> None:
    """An unreadable PATH fails like a file below one, and the others are hashed."""
    (files / "b").chmod(0)
    if os.access(files / "b", os.R_OK):
        pytest.skip("this user may read everything")
    done = run("hash", "files/b", "files/d")
    assert done.stdout.decode() == f"{sha512(b'sea')}  files/d/c\n"
    assert b"files/b: Permission denied" in done.stderr
    assert done.returncode == 1


def test_several_algorithms(quick: Run, files: Path) -> None:
    """Several algorithms give BSD lines by default, and are refused for coreutils lines."""
    done = quick("hash", "files/b", "-a", "SHA-256,md5")
    assert done.stdout.decode() == (
        f"SHA256 (files/b) = {hashlib.sha256(b'bee').hexdigest()}\nMD5 (files/b) = {hashlib.md5(b'bee').hexdigest()}\n"
    )
    done = quick("hash", "files/b", "-a", "sha256", "-a", "md5", "--format", "coreutils")
    assert (done.stdout, done.returncode) == (b"", 2)
    assert done.stderr.decode().strip() == (
        "pressmark: --format coreutils supports one algorithm; use bsd or json for several"
    )


def test_json(quick: Run, files: Path) -> None:
    """JSON lines have size and time, and every algorithm."""
    done = quick("hash", "files", "--format", "json", "-a", "md5,xxh64")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["path"] for record in records] == [name for name, _ in WHOLE]
    assert [record["size"] for record in records] == [0, 3, 3]
    assert records[1]["mtime_ns"] == (files / "b").stat().st_mtime_ns
    assert records[1]["digests"] == {"md5": hashlib.md5(b"bee").hexdigest(), "xxh64": records[1]["digests"]["xxh64"]}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["hash"], "missing argument; specify PATH, or --from FILE"),
        (["hash", "x", "-a", "md6"], "algorithm 'md6': unknown; choose from md5, .*"),
        (["hash", "x", "--ledger", "files/a"], "files/a: not a ledger; choose another file for the ledger"),
        (["hash", "x", "-o", "nowhere/x"], "nowhere/x: No such file or directory; create its directory first"),
        (["verify", "nowhere"], "nowhere: No such file or directory"),
        (["verify", "files/b"], "files/b:1: expected digest, two spaces and name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage_errors(quick: Run, files: Path, words: list[str], line: str) -> None:
    """A usage error is one line and exit status 2, and nothing is written."""
    (files / "a").write_bytes(b"not a ledger")
    done = quick(*words)
    assert (done.stdout, done.returncode) == (b"", 2)
    assert re.fullmatch(f"pressmark: {re.escape(line) if '.*' not in line else line}\\s*", done.stderr.decode())


@posix
def test_failures_are_listed_and_the_rest_is_hashed(quick: Run, files: Path) -> None:
    """Each failing file is a line on stderr, and the exit status is 1."""
    os.mkfifo(files / "c")
    (files / "e").symlink_to("nowhere")
    (files / "up").symlink_to(".")
    done = quick("hash", "files", "gone", "/dev/zero")
    assert done.stdout.decode() == "".join(f"{sha512(data)}  {name}\n" for name, data in WHOLE)
    assert done.stderr.decode() == (
        "pressmark: files/c: named pipe not opened\n"
        "pressmark: files/e: dangling symbolic link\n"
        "pressmark: files/up: symbolic link to a parent directory\n"
        "pressmark: gone: No such file or directory\n"
        "pressmark: /dev/zero: device not opened\n"
        "pressmark: 5 of 8 files failed\n"
    )
    assert done.returncode == 1


@posix
def test_links(quick: Run, files: Path) -> None:
    """Links are followed, skipped or refused."""
    (files / "z").symlink_to("b")
    assert quick("hash", "files").stdout.count(b"\n") == 4
    assert quick("hash", "files", "--links", "skip").stdout.count(b"\n") == 3
    done = quick("hash", "files", "--links", "refuse")
    assert (done.stdout.count(b"\n"), done.returncode) == (3, 1)
    assert done.stderr.startswith(b"pressmark: files/z: symbolic link not followed\n")


@posix
def test_directories_that_link_to_each_other(quick: Run, files: Path) -> None:
    """They are read once by name and once through a link, and the other links are listed."""
    for number in range(9):
        (files / f"{number}").mkdir()
        (files / f"{number}" / "f").write_bytes(b"")
        for other in {*range(9)} - {number}:
            (files / f"{number}" / f"to-{other}").symlink_to(f"../{other}")
    done = quick("hash", "files")
    assert 9 <= done.stdout.count(b"/f\n") <= 18
    assert b"pressmark: excluded: files/8/to-7/\n" in done.stderr
    assert quick("hash", "files", "--links", "skip").stdout.count(b"/f\n") == 9


@posix
@pytest.mark.parametrize("output", ["files/b", "./files/../files/b", "link"])
def test_output_that_is_an_input(quick: Run, files: Path, output: str) -> None:
    """A file to be hashed is not overwritten by the output."""
    (files.parent / "link").symlink_to("files/b")
    done = quick("hash", "files/a", "files/b", "-o", output)
    assert (done.stdout, done.returncode) == (b"", 2)
    assert done.stderr.decode() == f"pressmark: {output}: input and output are the same file; choose another output\n"
    assert (files / "b").read_bytes() == b"bee"
    assert (files.parent / "link").is_symlink()


def test_output_and_ledger_are_left_out(quick: Run, files: Path) -> None:
    """Below PATH, the output, the ledger and leftovers are not hashed."""
    (files / ".pressmark-0123456789abcdef.tmp").write_bytes(b"left over")
    call = ("hash", "files", "-o", "files/SUMS", "--ledger", "files/ledger")
    for turn in range(3):
        done = quick(*call)
        today = time.strftime("%Y-%m-%d", time.gmtime()).encode()
        read = b", 0 read, 3 from the ledger (since %b)" % today if turn else b""
        line = b"pressmark: files/SUMS: 3 files%b; sha512\n" % read
        assert (done.stdout, done.stderr, done.returncode) == (b"", line, 0)
        assert (files / "SUMS").read_text() == "".join(f"{sha512(data)}  {name}\n" for name, data in WHOLE)


@posix
def test_redirected_output_is_left_out(run: Run, files: Path) -> None:
    """The files that a shell has opened for stdout and stderr are neither hashed nor new, also if "*" names them."""
    for paths in (["."], ["a", "b", "d", "list", "log"]):
        with (files / "list").open("wb") as output, (files / "log").open("wb") as log:
            run("hash", *paths, stdout=output, stderr=log, cwd=files)
        assert (files / "log").read_bytes() == b""
        names = [line.split("  ")[1].removeprefix("./") for line in (files / "list").read_text().splitlines()]
        assert names == ["a", "b", "d/c"]
    (files / "log").unlink()
    with (files / "problems").open("wb") as output:
        assert run("verify", "list", "--root", ".", stdout=output, cwd=files).returncode == 0


def test_compressed_output(quick: Run, files: Path) -> None:
    """OUTPUT is compressed if its name ends in .gz, in each format, also by workers."""
    for options in ([], ["--format", "bsd"], ["--format", "json"], ["--workers", "1"]):
        assert quick("hash", "files", *options, "-o", "SUMS").returncode == 0
        assert quick("hash", "files", *options, "-o", "SUMS.gz").returncode == 0
        assert gzip.decompress((files.parent / "SUMS.gz").read_bytes()) == (files.parent / "SUMS").read_bytes()


@posix
def test_a_full_disk(run: Run, files: Path) -> None:
    """Output that cannot be written is one line and exit 1."""
    done = run("hash", "files", "-o", "/dev/full")
    assert (done.stderr, done.returncode) == (b"pressmark: /dev/full: No space left on device\n", 1)


@posix
def test_broken_pipe_is_success(tmp_path: Path) -> None:
    """If the reader leaves, the run ends silently with 0."""
    for number in range(3000):
        (tmp_path / f"{number:04}").write_bytes(b"x")
    process = subprocess.Popen(
        [*COMMAND, "hash", "."], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr
    assert (process.stderr.read(), process.wait(30)) == (b"", 0)
    process.stderr.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names are bytes on Linux")
def test_names_are_bytes(run: Run, tmp_path: Path) -> None:
    """Names are written byte for byte, escaped in messages, and with surrogates in JSON."""
    name = os.path.join(os.fsencode(tmp_path), b"\xff\n")
    with open(name, "wb") as file:
        file.write(b"x")
    assert run("hash", b"\xff\n").stdout == b"\\" + sha512(b"x").encode() + b"  \xff\\n\n"
    assert json.loads(run("hash", b"\xff\n", "--format", "json").stdout)["path"] == "\udcff\n"
    assert run("hash", b"\xfe").stderr.startswith(b"pressmark: \\xfe: No such file")


def test_threads_and_order(quick: Run, files: Path) -> None:
    """The output does not depend on threads or on the way of reading."""
    wanted = quick("hash", "files").stdout
    for options in (["--threads", "1"], ["--threads", "7"], ["--read", "sequential"]):
        assert quick("hash", "files", *options).stdout == wanted


def counts(**found: int) -> dict[str, int]:
    """Return a summary of verify."""
    states = ("ok", "changed", "missing", "unreadable", "new", "moved", "duplicate")
    return dict.fromkeys(states, 0) | found


# --- verify -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_name", ["coreutils", "bsd", "json"])
def test_verify_what_was_written(quick: Run, files: Path, format_name: str) -> None:
    """An unchanged tree verifies; a summary of both commands is the only line on stderr, and --quiet omits it."""
    done = quick("hash", "files", "-o", "SUMS", "--format", format_name)
    assert (done.stdout, done.stderr) == (b"", b"pressmark: SUMS: 3 files, 6 B; sha512\n")
    assert quick("hash", "files", "-o", "SUMS", "--format", format_name, "--quiet").stderr == b""
    assert quick("hash", "files", "-o", "-").stderr == b""
    done = quick("verify", "SUMS")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"pressmark: SUMS: 3 files, 6 B: all ok\n", 0)
    done = quick("verify", "SUMS", "--quiet")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)


@posix
def test_verify_lists_every_problem(quick: Run, files: Path, tmp_path: Path) -> None:
    """Changed, missing, new and unreadable files are lines on stdout, and counted on stderr."""
    (files / "e").write_bytes(b"e")
    manifest = "".join(f"{sha512(data)}  ./{name}\n" for name, data in (("a", b""), ("b", b"bee"), ("d/c", b"sea")))
    (tmp_path / "SUMS").write_text(f"{manifest}{sha512(b'e')}  ./e\n")
    (files / "a").write_bytes(b"changed")
    (files / "b").unlink()
    (files / "e").unlink()
    os.mkfifo(files / "e")
    (files / "new\nline").write_bytes(b"")
    done = quick("verify", "SUMS", "--root", "files")
    assert (done.stdout.decode(), done.stderr.decode(), done.returncode) == (
        "changed: ./a\nunreadable: ./e: named pipe not opened\nmissing: ./b\nnew: new\\nline\n",
        "pressmark: 1 changed, 1 missing, 1 unreadable, 1 new, 1 ok\n",
        1,
    )
    done = quick("verify", "SUMS", "--root", "files", "--json")
    *problems, last = map(json.loads, done.stdout.splitlines())
    assert last == {"summary": counts(ok=1, changed=1, missing=1, unreadable=1, new=1)}
    assert [(problem["kind"], problem["path"]) for problem in problems] == [
        ("changed", "./a"),
        ("fifo", "./e"),
        ("missing", "./b"),
        ("new", "new\nline"),
    ]
    assert problems[0]["expected"] == sha512(b"")
    assert problems[0]["found"] == sha512(b"changed")
    assert {problem["severity"] for problem in problems} == {"error"}


@pytest.mark.parametrize("name", ["sha256", "blake3", "sha512/256", "sha3-512", "xxh128", "blake2b-160", "xxh3-64"])
def test_verify_detects_the_algorithm(quick: Run, files: Path, name: str) -> None:
    """The name of a list tells its algorithm; nothing is read twice, and all is in the ledger."""
    sums = f"list.{name.replace('/', '-')}"
    quick("hash", "files", "-a", name, "-o", sums)
    done = quick("verify", sums)
    assert (done.stdout, done.returncode) == (b"", 0)
    assert done.stderr.decode() == f"pressmark: {sums}: 3 files, 6 B: all ok\n"
    (files / "a").write_bytes(b"changed")
    done = quick("verify", sums, "--json", "--root", ".")
    problem, *_, last = map(json.loads, done.stdout.splitlines())
    assert (problem["kind"], problem["path"], problem["algorithm"]) == ("changed", "files/a", name)
    assert last["summary"]["ok"] == 2
    assert quick("verify", sums, "--ledger", "l").returncode == 1
    assert b"0 read, 3 from the ledger" in quick("verify", sums, "--ledger", "l", "-a", name).stderr


def test_verify_asks_for_the_algorithm(quick: Run, files: Path) -> None:
    """If no file decides, the files are changed, and a message names the other algorithms and the option."""
    for name in ("a", "b", "d/c"):
        quick("hash", f"files/{name}", "-a", "blake3", "-o", "SUMS")
        (files / name).write_bytes(b"?")
        done = quick("verify", "SUMS")
        assert (done.stdout.decode(), done.returncode) == (f"changed: files/{name}\n", 1)
        assert done.stderr.decode().splitlines() == [
            "pressmark: SUMS: none of the first files matches; digests are interpreted as sha256;"
            " for sha512/256 or sha3-256 or blake2b-256 or blake2s or blake3 use -a",
            "pressmark: 1 changed, 0 ok",
        ]
    done = quick("verify", "SUMS", "-a", "blake3")
    assert done.stderr == b"pressmark: 1 changed, 0 ok\n"
    # Early in a long list, and not if one of the first files matches.
    for number in range(40):
        (files / f"{number:02}").write_bytes(b"%d" % number)
    quick("hash", "files", "-a", "blake3", "-o", "SUMS")
    done = quick("verify", "SUMS", "--json")
    assert (len(done.stdout.splitlines()), done.stderr.count(b"none of the first files")) == (44, 1)
    (files / "00").write_bytes(b"changed")
    assert b"none of" not in quick("verify", "SUMS", "-a", "blake3").stderr
    quick("hash", "files", "-a", "sha256", "-o", "SUMS")
    (files / "00").write_bytes(b"again")
    assert quick("verify", "SUMS").stderr == b"pressmark: 1 changed, 42 ok\n"


def test_verify_names_the_root_that_fits(quick: Run, files: Path, tmp_path: Path) -> None:
    """If no file is found, the message says what names are relative to, and which root fits."""
    quick("hash", "files", "-o", "SUMS")
    done = quick("verify", "SUMS", "--root", "files")
    assert (done.stdout, done.stderr.decode(), done.returncode) == (
        b"",
        "pressmark: SUMS: no file found; names such as 'files/a' are relative to --root files; omit --root, or use"
        " --root . to report other files there as new\n",
        1,
    )
    done = quick("verify", "SUMS", "--root", "files", "--json")
    assert json.loads(done.stdout.splitlines()[-1])["summary"] == counts(moved=3)
    assert b"no file found; names such as 'files/a' are relative to --root files; omit --root, or" in done.stderr
    (files / "SUMS").write_text(f"{sha512(b'bee')}  b\n")
    done = quick("verify", "files/SUMS")
    assert done.stderr.decode().splitlines()[0].endswith("are relative to the current directory; use --root files")
    (tmp_path / "above").mkdir()
    files.rename(tmp_path / "above" / "files")
    for root in ("above/files", "above/files/"):
        done = quick("verify", "SUMS", "--root", root)
        assert done.stderr.decode().splitlines()[0].endswith(f"are relative to --root {root}; use --root above")
    assert quick("verify", "SUMS", "--root", "above").returncode == 1  # SUMS in files is new
    (tmp_path / "empty").mkdir()
    assert b"use --root DIR" in quick("verify", "SUMS", "--root", "empty").stderr
    for root, reason in (("nowhere", "No such file or directory"), ("SUMS", "not a directory")):
        done = quick("verify", "SUMS", "--root", root)
        assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", f"pressmark: {root}: {reason}\n", 2)
    # One file is enough to know that the root is right.
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").touch()
    done = quick("verify", "SUMS")
    assert (done.stderr, done.returncode) == (b"pressmark: 2 missing, 1 ok\n", 1)


def test_verify_of_a_directory(quick: Run, files: Path) -> None:
    """A bag and another directory are refused, with the command or option to use."""
    done = quick("verify", "files")
    message = b"pressmark: files: a directory, not a manifest; specify the manifest, and the directory with --root\n"
    assert (done.stderr, done.returncode) == (message, 2)
    quick("bag", "create", "files", "-o", "bag")
    done = quick("verify", "bag")
    message = b"pressmark: bag: a bag, not a manifest; run pressmark bag validate bag\n"
    assert (done.stderr, done.returncode) == (message, 2)


def test_verify_reads_a_pipe(quick: Run, files: Path) -> None:
    """A manifest may be read from standard input; -a names its algorithm."""
    for algorithm in ("sha512", "blake3"):
        manifest = quick("hash", "files", "-a", algorithm).stdout
        done = quick("verify", "-", "-a", algorithm, stdin=manifest)
        line = b"pressmark: <stdin>: 3 files, 6 B: all ok\n"
        assert (done.stdout, done.stderr, done.returncode) == (b"", line, 0)


def test_verify_checks_the_manifest_first(quick: Run, files: Path) -> None:
    """A bad line is reported before any file is read."""
    manifest = quick("hash", "files").stdout
    (files / "a").write_bytes(b"changed")
    done = quick("verify", "-", stdin=manifest + b"nonsense\n")
    assert (done.stdout, done.returncode) == (b"", 2)
    assert done.stderr.startswith(b"pressmark: <stdin>:4: expected digest, two spaces and name")


def test_verify_of_an_empty_manifest(quick: Run, files: Path, tmp_path: Path) -> None:
    """An empty manifest fails, except for an empty folder."""
    (tmp_path / "empty").mkdir()
    for manifest in (b"", b"# a comment\n"):
        (tmp_path / "SUMS").write_bytes(manifest)
        done = quick("verify", "SUMS")
        assert (done.stdout, done.returncode) == (b"", 1)
        assert done.stderr == b"pressmark: SUMS: manifest is empty; nothing was verified\n"
        assert quick("verify", "SUMS", "--root", "files").returncode == 1
        assert quick("verify", "SUMS", "--root", "empty").returncode == 0


def test_verify_resumes_with_a_ledger(quick: Run, files: Path) -> None:
    """Verified files in the ledger are not read again; changed ones are."""
    quick("hash", "files", "-o", "SUMS")
    assert quick("verify", "SUMS", "--ledger", "l").returncode == 0
    (files / "b").write_bytes(b"longer")
    assert quick("verify", "SUMS", "--ledger", "l").stdout == b"changed: files/b\n"
    assert quick("verify", "SUMS", "--root", ".", "--ledger", "l").returncode == 2


@pytest.mark.parametrize("name", ["crlf", "bom", "utf-16", "gz", "one space", "tab", "comments"])
def test_verify_lists_of_others(quick: Run, files: Path, name: str) -> None:
    """Lists as other programs write them are read, from a file and from a pipe, and what is passed over is counted."""
    text = "".join(f"{sha512(data)}  {path}\n" for path, data in WHOLE)
    content = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "utf-16": text.replace("\n", "\r\n").encode("utf-16"),
        "gz": gzip.compress(text.encode()),
        "one space": text.replace("  ", " ").encode(),
        "tab": text.replace("  ", "\t").encode(),
        "comments": f"# made by hand\n\n{text}; the end\n".encode(),
    }[name]
    (files.parent / "list").write_bytes(content)
    over = ", 3 lines passed over" if name == "comments" else ""
    done = quick("verify", "list")
    assert (done.stdout, done.stderr.decode()) == (b"", f"pressmark: list: 3 files, 6 B{over}: all ok\n")
    done = quick("verify", "-", "--json", stdin=content)
    assert json.loads(done.stdout)["summary"].get("passed_over", 0) == (3 if over else 0)
    (files / "b").unlink()
    done = quick("verify", "list")
    assert (done.stdout, done.stderr.decode()) == (b"missing: files/b\n", f"pressmark: 1 missing, 2 ok{over}\n")


def test_verify_one_of_several_algorithms(quick: Run, files: Path) -> None:
    """With -a, digests of other algorithms are passed over, and their files are not new; without, a list is refused."""
    lines = [f"{sha512(b'bee')}  b\n", f"{hashlib.sha1(b'').hexdigest()}  a\n", f"{sha512(b'sea')}  d/c\n"]
    (files.parent / "list").write_text("".join(lines))
    done = quick("verify", "list", "--root", "files")
    assert (done.returncode, done.stderr) == (
        2,
        b"pressmark: list:2: digest has 40 hex digits, earlier ones have 128; choose one of the algorithms (-a)\n",
    )
    done = quick("verify", "list", "--root", "files", "-a", "sha512", "--ledger", "l")
    assert (done.stdout, done.stderr) == (b"", b"pressmark: list: 2 files, 1 line passed over: all ok\n")
    done = quick("verify", "list", "-a", "sha256")
    assert done.stderr == b"pressmark: list:1: digest of 128 hex digits is not sha256\n"


def test_verify_refuses_other_formats(quick: Run, files: Path) -> None:
    """A list in another format is named, with what to do."""
    (files.parent / "list").write_text("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n")
    done = quick("verify", "list")
    assert (done.stdout, done.returncode) == (b"", 2)
    assert done.stderr.startswith(b"pressmark: list:1: list signed with PGP; verify the signature and extract the list")


@posix
def test_verify_names_with_backslashes(quick: Run, files: Path) -> None:
    """A missing file that exists with slashes is named, also if none is found, and is not ignored."""
    (files.parent / "list").write_text(f"{sha512(b'bee')} *b\n{sha512(b'sea')} *d\\c\n")
    done = quick("verify", "list", "--root", "files")
    assert done.stdout.splitlines() == [
        b"missing: d\\c: 'd/c' exists; correct the name in the manifest",
        b"new: a",
        b"new: d/c",
    ]
    assert quick("verify", "list", "--root", "files", "--ignore-missing").stdout == done.stdout
    (files.parent / "list").write_text(f"{sha512(b'sea')} *d\\c\n")
    done = quick("verify", "list", "--root", "files")
    message = b"list: no file found; 'd/c' exists, but not 'd\\c'; correct the names in the manifest\n"
    assert (done.stderr, done.returncode) == (b"pressmark: " + message, 1)


def test_verify_ignores_missing_files(quick: Run, files: Path) -> None:
    """With --ignore-missing, missing files are counted only; if there is no other, the call is wrong."""
    quick("hash", "files", "-o", "list")
    (files / "b").unlink()
    done = quick("verify", "list", "--ignore-missing")
    line = b"pressmark: list: 2 files, 3 B, 1 missing ignored: all ok\n"
    assert (done.stdout, done.stderr, done.returncode) == (b"", line, 0)
    done = quick("verify", "list", "--ignore-missing", "--json")
    assert json.loads(done.stdout) == {"summary": counts(ok=2) | {"ignored": 1}}
    (files / "a").write_bytes(b"changed")
    done = quick("verify", "list", "--ignore-missing")
    assert (done.stdout, done.stderr, done.returncode) == (
        b"changed: files/a\n",
        b"pressmark: 1 changed, 1 ok, 1 missing ignored\n",
        1,
    )
    files.rename(files.parent / "elsewhere")
    done = quick("verify", "list", "--ignore-missing")
    assert done.stderr.decode().splitlines() == [
        "pressmark: list: no file found; names such as 'files/a' are relative to the current directory; use --root DIR,"
        " the directory that contains the first part of these names",
        "pressmark: 0 ok, 3 missing ignored",
    ]
    assert (done.stdout, done.returncode) == (b"", 1)


@posix
def test_a_file_is_not_new_under_another_path(quick: Run, files: Path) -> None:
    """With --root, no verified file is new, however the list spells its path."""
    (files / "link").symlink_to("d")
    (files / "b-link").symlink_to("b")
    (files.parent / "root").symlink_to("files")
    spellings = [f"{sha512(b'')}  {files}/a\n", f"{sha512(b'bee')}  ./d/../b-link\n", f"{sha512(b'sea')}  link//c\n"]
    (files.parent / "list").write_text("".join(spellings))
    for root in ("files", "./files/", str(files), "root"):
        done = quick("verify", "list", "--root", root)
        assert (done.stdout, done.returncode) == (b"", 0), root
    done = quick("verify", "list", "--root", "files", "--links", "skip")
    assert (done.stdout, done.returncode) == (b"", 0)
    (files / "new").symlink_to("../list")
    assert quick("verify", "list", "--root", "files").stdout == b"new: new\n"
    assert quick("verify", "list", "--root", "files", "--links", "skip").returncode == 0
    (files / "copy").write_bytes(b"bee")
    os.link(files / "b", files / "hard")
    done = quick("verify", "list", "--root", "files", "--links", "skip")
    assert done.stdout == b"new: copy\nnew: hard\n"


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (999_600, "1 MB"),
        (5e12, "5 TB"),
        (2e21, "2e+03 EB"),
    ],
)
def test_formatted_bytes(count: float, text: str) -> None:
    """Byte counts have decimal units."""
    assert format_bytes(count) == text


@posix
def test_log_lines(files: Path, tmp_path: Path) -> None:
    """In a log, a long run reports files, bytes, rate and remaining time now and then."""
    script = (
        "import pressmark.cli.common.progress as reporter, pressmark.cli.hash as hashing, time, sys\n"
        "reporter.LOG_EVERY = 0.05; reporter.DISPLAY_AFTER = 0.0\n"
        "def slow(paths, *rest, **more):\n"
        "    for path in original(paths, *rest, **more):\n"
        "        time.sleep(0.15)\n"
        "        yield path\n"
        "    time.sleep(0.5)\n"
        "original = hashing.hash_blocks; hashing.hash_blocks = slow\n"
        "from pressmark.cli import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "hash", "files", "--progress"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=True,
    )
    lines = [line for line in done.stderr.decode().splitlines() if "3 files" in line]
    assert lines
    for line in lines:
        assert re.fullmatch(r"pressmark: 3 files, 6 B( of 6 B)?(, \d+/s)?, [\d.]+ k?B/s(, 100 %, 0:00 left)?", line)


@posix
def test_ctrl_c_names_the_remedy(call: Call, monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    """Ctrl-C in a run gives one line and 130."""

    def interrupted(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pressmark.fixity.verification.verify", interrupted)
    monkeypatch.setattr("pressmark.cli.hash.hash_blocks", interrupted)
    (files / "SUMS").write_text(f"{sha512(b'')}  files/a\n")
    for words in (("hash", "files"), ("verify", "files/SUMS")):
        result = call(*words)
        assert result.exit_code == 128 + signal.SIGINT
        assert result.stderr == "pressmark: interrupted; use --ledger FILE to make a run resumable\n"
        result = call(*words, "--ledger", f"{words[0]}.ledger")
        assert result.stderr == f"pressmark: interrupted; run the same command to continue from {words[0]}.ledger\n"


def test_only_files_of_a_walk_are_known_to_be_files(call: Call, monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    """A PATH or a name in a list may be a device, and is examined before it is opened."""
    from pressmark.cli.hash import hash_blocks

    walked: list[object] = []
    monkeypatch.setattr(
        "pressmark.cli.hash.hash_blocks",
        lambda *args, **more: walked.append(more["walked"]) or hash_blocks(*args, **more),
    )
    (files / "list").write_text("files/a\n")
    for words in (("files",), ("files", "files/a"), ("--from", "files/list")):
        assert call("hash", *words).exit_code == 0
    assert walked == [True, False, False]


def test_excluded_names(call: Call, files: Path) -> None:
    """Excluded files are not in the manifest, are listed on stderr, and are not new with the same options."""
    (files / ".DS_Store").write_bytes(b"x")
    (files / "d" / "x.tmp").mkdir()
    (files / "d" / "x.tmp" / "y").write_bytes(b"x")
    options = ("--exclude", "*.tmp", "--exclude-junk")
    wanted = "".join(f"{sha512(data)}  {name}\n" for name, data in WHOLE)
    listed = "pressmark: excluded: files/.DS_Store\npressmark: excluded: files/d/x.tmp/\n"
    for more in ((), ("--workers", "1")):
        done = call("hash", "files", *options, *more)
        assert (done.stdout, done.stderr, done.exit_code) == (wanted, listed, 0)
    done = call("hash", "files", *options, "-o", "sums")
    assert done.stderr == f"{listed}pressmark: sums: 3 files, 6 B, 2 excluded; sha512\n"
    (files / "new").write_bytes(b"")
    done = call("verify", "sums", "--root", ".", *options)
    assert (done.stdout, done.exit_code) == ("new: files/new\n", 1)
    assert "excluded: ./files/d/x.tmp/\n" in done.stderr
    done = call("verify", "sums", "--root", ".", *options, "--json")
    *_, summary = map(json.loads, done.stdout.splitlines())
    assert (summary["summary"]["excluded"], summary["summary"]["new"], done.exit_code) == (2, 1, 1)
    found = [json.loads(line) for line in done.stdout.splitlines()[:-1]]
    assert [one["path"] for one in found if one["kind"] == "excluded"] == ["files/.DS_Store", "files/d/x.tmp"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hash", "files", "--exclude", "d/c"), "--exclude 'd/c': a glob matches a file name"),
        (("hash", "files", "--exclude", ""), "must not be empty"),
        (("verify", "sums", "--exclude-junk"), "--exclude-junk requires --root"),
    ],
)
def test_exclusions_that_cannot_match(call: Call, files: Path, arguments: tuple[str, ...], message: str) -> None:
    """A glob that matches nothing is refused, instead of leaving the files in."""
    done = call(*arguments)
    assert message in done.stderr
    assert (done.stdout, done.exit_code) == ("", 2)


def test_verify_names_moved_files(quick: Run, files: Path) -> None:
    """Moved files and duplicates have both names, in text and JSON; an option decides what is read."""
    quick("hash", "files", "-o", "SUMS")
    (files / "b").rename(files / "d" / "moved")
    (files / "d" / "copy").write_bytes((files / "d" / "c").read_bytes())
    done = quick("verify", "SUMS", "--root", ".", "--exclude", "SUMS")
    assert (done.stdout.decode(), done.stderr.decode(), done.returncode) == (
        "moved: files/b -> files/d/moved\nduplicate: files/d/copy: same content as files/d/c\n",
        "pressmark: 1 moved, 1 duplicate, 2 ok\n",
        1,
    )
    done = quick("verify", "SUMS", "--root", ".", "--json")
    *problems, last = map(json.loads, done.stdout.splitlines())
    assert last == {"summary": counts(ok=2, moved=1, duplicate=1)}
    assert [(problem["kind"], problem["path"], problem["same_as"]) for problem in problems] == [
        ("moved", "files/b", "files/d/moved"),
        ("duplicate", "files/d/copy", "files/d/c"),
    ]
    unread = b"missing: files/b\nnew: files/d/copy\nnew: files/d/moved\n"
    assert quick("verify", "SUMS", "--root", ".", "--no-read-new").stdout == unread
    unread = b"new: files/d/copy\nnew: files/d/moved\n"
    assert quick("verify", "SUMS", "--root", ".", "--ignore-missing").stdout == unread
    done = quick("verify", "SUMS", "--read-new")
    assert (done.returncode, done.stderr.startswith(b"pressmark: --read-new requires --root")) == (2, True)


def test_verify_finds_a_renamed_directory(quick: Run, files: Path) -> None:
    """If no file has its old name, --read-new finds them; without it, a wrong root is suspected."""
    quick("hash", "files", "-o", "SUMS")
    files.rename(files.parent / "renamed")
    assert b"no file found" in quick("verify", "SUMS", "--root", ".").stderr
    done = quick("verify", "SUMS", "--root", ".", "--read-new")
    assert done.stdout == b"".join(b"moved: files/%b -> renamed/%b\n" % (name, name) for name in (b"a", b"b", b"d/c"))
    assert (done.stderr, done.returncode) == (b"pressmark: 3 moved, 0 ok\n", 1)
