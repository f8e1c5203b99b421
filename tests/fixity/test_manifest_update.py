"""New versions of lists: lines that stay, lines that come and go, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pressmark.errors import ManifestError, SpillError
from pressmark.fixity.digest import hash_bytes
from pressmark.fixity.manifests import manifest_line
from pressmark.fixity.matching.manifest_update import ManifestUpdate, UpdateCounts
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.verification import Verdict, check_manifest
from pressmark.fs import spilling

posix = pytest.mark.skipif(os.name != "posix", reason="names that only POSIX systems have")

MD5_OF_A = hashlib.md5(b"a").hexdigest()


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def line(name: str | bytes, text: str, algorithm: str = "md5") -> bytes:
    return b"%b  %b\n" % (hashlib.new(algorithm, text.encode()).hexdigest().encode(), os.fsencode(name))


def update(
    sums: Path, root: Path, *, drop_missing: bool = False, algorithms: str | None = None
) -> tuple[bytes, UpdateCounts]:
    """Return the new list of the files in ``root``, and its counts."""
    status = sums.stat()
    new = io.BytesIO()
    with (
        check_manifest(sums, root, algorithms=algorithms) as check,
        ManifestUpdate(check, drop_missing=drop_missing) as changed,
    ):
        for verdict in check.verify(read_new=True, leave_out=[(status.st_dev, status.st_ino)]):
            changed.add(verdict)
        counts = changed.write(new)
    return new.getvalue(), counts


def states(sums: Path, root: Path) -> dict[str, str]:
    with check_manifest(sums, root) as check:
        return {one.path: one.state for one in check.verify(read_new=True)}


# --- what stays, comes and goes ---------------------------------------------------------------------------------------


def test_moved_new_and_missing_files(tmp_path: Path) -> None:
    """A moved file has its new name, new files are added in order, and all other lines stay."""
    listed = {name: name for name in ("a", "b", "c", "d", "e")}
    sums = tmp_path / "x.md5"
    sums.write_bytes(b"".join(line(name, text) for name, text in listed.items()))
    root = tree(tmp_path / "root", {"a": "a", "moved/b": "b", "c": "damaged", "bb": "new", "copy of a": "a", "e": "e"})
    new, counts = update(sums, root)
    wanted = [("a", "a"), ("bb", "new"), ("c", "c"), ("copy of a", "a"), ("d", "d"), ("e", "e"), ("moved/b", "b")]
    assert new == b"".join(line(*one) for one in wanted)
    assert counts == UpdateCounts(kept=4, added=2, moved=1, dropped=0)
    new, counts = update(sums, root, drop_missing=True)
    assert new == b"".join(line(*one) for one in wanted if one[0] != "d")
    assert counts == UpdateCounts(kept=3, added=2, moved=1, dropped=1)
    sums.write_bytes(new)
    assert {path: state for path, state in states(sums, root).items() if state != "ok"} == {"c": "changed"}


def test_damage_is_never_recorded(tmp_path: Path) -> None:
    """The new list has the old digest of a changed file, also if its name is listed twice or its content is new."""
    root = tree(tmp_path / "root", {"a": "damaged", "b": "b", "new": "damaged too"})
    sums = tmp_path / "x.md5"
    old = line("a", "a") + line("a", "other") + line("b", "b") + line("gone", "gone")
    sums.write_bytes(old)
    new, counts = update(sums, root)
    assert new == old + line("new", "damaged too")
    assert counts == UpdateCounts(kept=4, added=1, moved=0, dropped=0)


def test_dropping_one_of_two_lines_of_a_name(tmp_path: Path) -> None:
    """A line goes because of its own verdict, not because of its name."""
    root = tree(tmp_path / "root", {"b": "a", "c": "c"})
    sums = tmp_path / "x.md5"
    sums.write_bytes(line("a", "a") + line("a", "other") + line("c", "c"))
    assert update(sums, root) == (line("a", "other") + line("b", "a") + line("c", "c"), UpdateCounts(2, 0, 1, 0))


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        # As pressmark hash writes them: files and directories together.
        (["a/b", "a!", "z"], ["a/a", "a/b", "a!", "a!!", "m", "z", "zz"]),
        # As sort writes them.
        (["a!", "a/b", "z"], ["a!", "a!!", "a/a", "a/b", "m", "z", "zz"]),
        (["a/b", "z"], ["a/a", "a/b", "a!", "a!!", "m", "z", "zz"]),
        # As find writes them.
        (["z", "a/b", "a!"], ["z", "a/b", "a!", "a/a", "a!!", "m", "zz"]),
    ],
)
def test_the_order_of_the_list(tmp_path: Path, names: list[str], wanted: list[str]) -> None:
    """A sorted list stays sorted; otherwise new files are at the end."""
    files = {name: name for name in ("a/b", "a!", "z", "a/a", "a!!", "m", "zz")}
    root = tree(tmp_path / "root", files)
    sums = tmp_path / "x.md5"
    sums.write_bytes(b"".join(line(name, name) for name in names))
    assert update(sums, root)[0] == b"".join(line(name, name) for name in wanted)


def test_comments_and_the_last_line(tmp_path: Path) -> None:
    """Comments and blank lines stay where they are; a last line without an end gets one only if a line follows."""
    root = tree(tmp_path / "root", {"a": "a", "c": "b", "d": "d"})
    sums = tmp_path / "x.md5"
    head = b"# photos\n\n" + line("a", "a") + b"; moved\n"
    sums.write_bytes(head + line("b", "b") + b"# the end")
    assert update(sums, root)[0] == head + b"# the end\n" + line("c", "b") + line("d", "d")
    sums.write_bytes(head + line("b", "b") + line("d", "d").rstrip())
    assert update(sums, root)[0] == head + line("c", "b") + line("d", "d").rstrip()
    sums.write_bytes(head + line("d", "d") + line("c", "b").rstrip())
    assert update(sums, root)[0] == sums.read_bytes()
    sums.write_bytes(head + line("d", "d") + line("b", "b").rstrip())
    assert update(sums, root)[0] == head + line("d", "d") + line("c", "b")


# --- formats ----------------------------------------------------------------------------------------------------------

ODD = [
    b"z\n1",
    b"z\\2",
    b"z\r3",
    b" z4",
    b"*z5",
    b"z 6 ",
    b"#z7",
    b"z\xff8",
    "zü9".encode(),
    b"z(a) = b",
    b"z\r",
    b"\\",
]


def coreutils(separator: bytes = b"  ") -> Callable[[Outcome], bytes]:
    return lambda one: manifest_line(one, "coreutils").replace(b"  ", separator, 1)


FORMATS: dict[str, tuple[Callable[[Outcome], bytes], tuple[str, ...]]] = {
    "coreutils": (coreutils(), ("sha512",)),
    "coreutils, binary": (coreutils(b" *"), ("sha256",)),
    "coreutils, one space": (coreutils(b" "), ("md5",)),
    "coreutils, TAB": (coreutils(b"\t"), ("md5",)),
    "b3sum": (coreutils(), ("blake3",)),
    "bsd": (lambda one: manifest_line(one, "bsd"), ("sha512",)),
    "bsd, several algorithms": (lambda one: manifest_line(one, "bsd"), ("sha256", "md5")),
    "json": (lambda one: manifest_line(one, "json"), ("sha1", "blake3")),
}


def outcome_of(root: Path, name: bytes, algorithms: tuple[str, ...]) -> Outcome:
    path = os.path.join(os.fsencode(root), name)
    with open(path, "rb") as file:
        data = file.read()
    return Outcome(os.fsdecode(name), hash_bytes(data, algorithms), len(data), os.stat(path).st_mtime_ns, None)


@posix
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_every_format(tmp_path: Path, format: str, end: bytes) -> None:
    """New lines are in the format of the list, whatever the names are; the next verification finds all files."""
    write, algorithms = FORMATS[format]
    sums = tmp_path / ("x.b3" if format == "b3sum" else "sums")
    root = tree(tmp_path / "root", {"a": "a", "b/c": "c", "m": "m", "x": "x"})
    before = {
        name: write(outcome_of(root, name, algorithms)).replace(b"\n", end) for name in (b"a", b"b/c", b"m", b"x")
    }
    sums.write_bytes(b"".join(before.values()))
    (root / "m").rename(root / "b" / "moved")
    for number, name in enumerate(ODD):
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(b"%d" % number)
    del before[b"m"]
    if "one space" in format or "TAB" in format:
        # Sorted first, they would hide that names follow one space.
        (root / " z4").unlink()
        (root / "*z5").unlink()
    names = [name for name in (b"b/moved", *ODD) if os.path.lexists(os.path.join(os.fsencode(root), name))]
    after = {name: write(outcome_of(root, name, algorithms)).replace(b"\n", end) for name in names}
    new, counts = update(sums, root)
    lines = {**before, **after}
    assert new == b"".join(lines[name] for name in sorted(lines, key=lambda name: name.split(b"/")))
    assert counts == UpdateCounts(3, len(names) - 1, 1, 0)
    sums.write_bytes(new)
    assert set(states(sums, root).values()) == {"ok"}
    assert update(sums, root)[0] == new


@posix
def test_a_list_that_would_be_misread_is_refused(tmp_path: Path) -> None:
    """With names after one space, a first name that begins with one cannot be told from names after two."""
    root = tree(tmp_path / "root", {"a": "a", " b": "b"})
    sums = tmp_path / "sums"
    sums.write_bytes(line("a", "a").replace(b"  ", b" "))
    with pytest.raises(ManifestError, match=r"sums: cannot be updated; .*write a new list"):
        update(sums, root)


def test_upper_case_a_byte_order_mark_and_prefixes(tmp_path: Path) -> None:
    """New lines are spelled like the first one; a byte-order mark stays first."""
    root = tree(tmp_path / "root", {"0": "0", "a": "a"})
    sums = tmp_path / "sums"
    mark = b"\xef\xbb\xbf"
    digest = MD5_OF_A.upper().encode()
    sums.write_bytes(mark + digest + b" *./a\r\n")
    first = hashlib.md5(b"0").hexdigest().upper().encode()
    assert update(sums, root)[0] == mark + first + b" *./0\r\n" + digest + b" *./a\r\n"
    sums.write_bytes(line(os.path.abspath(root / "a"), "a"))
    new = update(sums, root)[0]
    assert new == line(os.path.abspath(root / "0"), "0") + line(os.path.abspath(root / "a"), "a")
    sums.write_bytes(f"MD5(a)= {MD5_OF_A}\n".encode())
    assert update(sums, root)[0] == f"MD5 (0) = {first.decode().lower()}\nMD5(a)= {MD5_OF_A}\n".encode()


def test_an_entry_of_several_lines_goes_as_a_whole(tmp_path: Path) -> None:
    """All lines of a moved file are dropped, and a comment between them stays."""
    root = tree(tmp_path / "root", {"b": "b", "z": "a"})
    sums = tmp_path / "sums"
    lines = [
        manifest_line(Outcome(name, {one: hashlib.new(one, text.encode()).hexdigest()}, 1, 1, 1), "bsd")
        for name, text in (("a", "a"), ("b", "b"), ("z", "a"))
        for one in ("sha1", "md5")
    ]
    sums.write_bytes(b"".join([lines[0], b"# between\n", *lines[1:4]]))
    assert update(sums, root) == (b"".join([b"# between\n", *lines[2:]]), UpdateCounts(1, 0, 1, 0))


# --- what is refused --------------------------------------------------------------------------------------------------

SHA1_LINE = hashlib.sha1(b"b").hexdigest() + "  b\n"
TWO = f"MD5 (a) = {MD5_OF_A}\nSHA1 (b) = {SHA1_LINE[:40]}\n"


@pytest.mark.parametrize(
    ("data", "algorithms", "message"),
    [
        (b"", None, "sums: an empty list"),
        (b"# nothing\n", None, "sums: an empty list"),
        (gzip.compress(line("a", "a")), None, "compressed or UTF-16"),
        (line("a", "a").decode().encode("utf-16"), None, "compressed or UTF-16"),
        (TWO.encode(), None, "sums:2: files have digests of different algorithms"),
        (TWO.encode(), "md5", "digests of other algorithms than algorithms="),
        (TWO.replace("(b)", "(a)").encode(), "md5", "digests of other algorithms than algorithms="),
        (line("a", "a") + SHA1_LINE.encode(), "md5", "digests of other algorithms than algorithms="),
    ],
    ids=[
        "empty",
        "comment",
        "gzip",
        "UTF-16",
        "two algorithms",
        "one of two",
        "one of two in BSD",
        "one of two lengths",
    ],
)
def test_lists_that_cannot_be_updated(tmp_path: Path, data: bytes, algorithms: str | None, message: str) -> None:
    """Each is refused before any file is read, with the reason."""
    root = tree(tmp_path / "root", {"a": "a", "b": "b"})
    sums = tmp_path / "sums"
    sums.write_bytes(data)
    with check_manifest(sums, root, algorithms=algorithms) as check, pytest.raises(ManifestError) as caught:
        ManifestUpdate(check)
    assert message in str(caught.value)


def test_a_stream_cannot_be_updated(tmp_path: Path) -> None:
    with (
        check_manifest(io.BytesIO(line("a", "a")), tmp_path) as check,
        pytest.raises(ManifestError, match="only a regular file can be updated"),
    ):
        ManifestUpdate(check)


def test_misspelled_names(tmp_path: Path) -> None:
    """A file under its other spelling would be added without its recorded digest: nothing is written."""
    sums = tmp_path / "x.md5"
    sums.write_bytes(line("a", "a") + line("d\\f", "f"))
    root = tree(tmp_path / "root", {"a": "a", "d/f": "damaged"})
    with pytest.raises(ManifestError, match=r"x\.md5:2: 'd/f' exists; correct the name in the manifest"):
        update(sums, root, drop_missing=True)


def test_an_uncertain_algorithm(tmp_path: Path) -> None:
    """New lines are not written with an algorithm that no file confirms."""
    sums = tmp_path / "sums"
    sums.write_bytes(line("a", "a", "sha3_256"))
    root = tree(tmp_path / "root", {"a": "a", "b": "b"})
    with pytest.raises(ManifestError, match="no file matches, so the algorithm is uncertain"):
        update(sums, root)
    assert update(sums, root, algorithms="sha3-256")[0] == line("a", "a", "sha3_256") + line("b", "b", "sha3_256")


@pytest.mark.parametrize("how", ["appended", "replaced"])
def test_a_list_that_changed_meanwhile(tmp_path: Path, how: str) -> None:
    """Lines that another program has written are not lost."""
    sums = tmp_path / "x.md5"
    sums.write_bytes(line("a", "a"))
    root = tree(tmp_path / "root", {"a": "a", "b": "b"})
    with check_manifest(sums, root) as check, ManifestUpdate(check) as changed:
        for verdict in check.verify(read_new=True):
            changed.add(verdict)
        if how == "appended":
            with sums.open("ab") as file:
                file.write(line("c", "c"))
        else:
            shutil.copy2(sums, tmp_path / "copy")
            (tmp_path / "copy").replace(sums)
        new = io.BytesIO()
        with pytest.raises(ManifestError, match=r"x\.md5: changed by another program"):
            changed.write(new)
    assert new.getvalue() == b""


def test_a_list_that_changes_while_the_new_one_is_written(tmp_path: Path) -> None:
    sums = tmp_path / "x.md5"
    sums.write_bytes(line("a", "a"))
    root = tree(tmp_path / "root", {"a": "a", "b": "b"})

    class File(io.BytesIO):
        def write(self, data: object) -> int:
            sums.write_bytes(line("c", "c") * 2)
            return 0

    with check_manifest(sums, root) as check, ManifestUpdate(check) as changed:
        for verdict in check.verify(read_new=True):
            changed.add(verdict)
        with pytest.raises(ManifestError, match="changed by another program"):
            changed.write(File())


def test_new_files_that_were_not_read(tmp_path: Path) -> None:
    """They have no digests, and are not ok in the new list."""
    sums = tmp_path / "x.md5"
    sums.write_bytes(line("a", "a"))
    root = tree(tmp_path / "root", {"a": "a", "b": "b"})
    with check_manifest(sums, root) as check, ManifestUpdate(check) as changed:
        verdicts = list(check.verify(read_new=False))
        assert [(one.state, changed.add(one)) for one in verdicts] == [("ok", True), ("new", False)]
        assert not changed.has_changes


# --- size -------------------------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_list(tmp_path: Path) -> None:
    """100,000 lines, and as many new files, need a few megabytes."""
    count = 100_000
    sums = tmp_path / "x.md5"
    sums.write_bytes(b"".join(b"%032x  directory/file-%07d\n" % (2 * number, 2 * number) for number in range(count)))

    def verdicts() -> Iterator[Verdict]:
        for number in range(count):
            yield Verdict(f"directory/file-{2 * number:07}", "ok", line=number + 1)
        for number in range(count):
            path = f"directory/file-{2 * number + 1:07}"
            yield Verdict(path, "new", outcome=Outcome(path, {"md5": f"{2 * number + 1:032x}"}, 1, 1, 1))

    tracemalloc.start()
    try:
        with (
            (tmp_path / "new").open("wb") as file,
            check_manifest(sums, tmp_path) as check,
            ManifestUpdate(check) as new,
        ):
            assert all(map(new.add, verdicts()))
            assert new.write(file) == UpdateCounts(count, count, 0, 0)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    wanted = b"".join(b"%032x  directory/file-%07d\n" % (number, number) for number in range(2 * count))
    assert (tmp_path / "new").read_bytes() == wanted


def test_a_full_temporary_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one error that says what to do, also while new files are matched."""
    connect = spilling.sqlite3.connect

    def small(*args: object, **options: object) -> object:
        base = connect(*args, **options)  # type: ignore[call-overload]
        base.execute("PRAGMA max_page_count = 20")
        return base

    monkeypatch.setattr(spilling.sqlite3, "connect", small)
    sums = tmp_path / "x.md5"
    sums.write_bytes(line("a", "a"))
    root = tree(tmp_path / "root", {"a": "a", **{f"{'n' * 200}{number}": "n" for number in range(300)}})
    with pytest.raises(SpillError, match="set TMPDIR to another directory"), check_manifest(sums, root) as check:
        list(check.verify(read_new=True))
    new = (Verdict("n" * 200, "new", outcome=Outcome("n" * 200, {"md5": MD5_OF_A}, 1, 1, 1)) for _ in range(300))
    wanted = pytest.raises(SpillError, match="set TMPDIR to another directory")
    with check_manifest(sums, root) as check, ManifestUpdate(check) as changed, wanted:
        list(map(changed.add, new))
