"""Bags of few small files, validated in memory: never otherwise than file by file, and not at all if unusual."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from pressmark.bagit import Profile, pack, validate, validate_many
from pressmark.bagit.problems import BagReport
from pressmark.bagit.validation import validate as one_by_one
from pressmark.bagit.validation.bag_check import LEVELS
from pressmark.bagit.validation.in_memory import PlainBag, check_in_memory
from pressmark.errors import BagError
from pressmark.reports import Problem, ProgressEvent
from support.effort import repeats
from support.events import listening
from support.users import OTHER, as_user, needs_users

from ..bags import Sketch, from_disk, line

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

TAGS = {b"readme.md": b"read me", b"meta/one.xml": b"<x/>"}
INFO = b"Contact-Name: J\xc3\xa4ne\nBagging-Date: 2026-01-31\nBag-Size: 1.5 KB\nPayload-Oxum: 20.2\nTitle: a\n story\n"
LONG = b"Title: " + b"x" * 73 + b"\n"

PLAIN = {
    "usual": Sketch(),
    "version 0.97": Sketch(version="0.97"),
    "all algorithms": Sketch(
        algorithms=["md5", "sha1", "sha256", "sha384", "sha512"],
        tag_algorithms=["md5", "sha1", "sha256", "sha384", "sha512"],
    ),
    "no tag manifest": Sketch(tag_algorithms=[], tag_files=TAGS),
    "tag files": Sketch(tag_files=TAGS),
    "no metadata": Sketch(info=None),
    "metadata": Sketch(info=INFO),
    "blank line of metadata": Sketch(info=b"A: b\n\nC: d\n"),
    "long lines": Sketch(info=b"A: b\n" + LONG + LONG),
    "names": Sketch(payload={b"data/ x;'y~ /z*.txt ": b"1", b"data/data/manifest-md5.txt": b"2"}, info=b"A: b\n"),
    "upper-case digits": Sketch(
        manifests={"manifest-sha512.txt": Sketch().manifest()[:128].upper() + Sketch().manifest()[128:]}
    ),
    "other version": Sketch(version="0.96"),
    "package-info.txt": Sketch(tag_files={b"package-info.txt": b"A: b\n"}),
    "other algorithm": Sketch(algorithms=["sha3256"], tag_algorithms=["sha3256"]),
    "other algorithm of tags": Sketch(tag_algorithms=["sha256"]),
    "hidden tag file": Sketch(tag_files={b".note": b"x"}),
    "not ASCII": Sketch(payload={b"data/\xc3\xa9": b"1"}, info=None),
    "empty file": Sketch(payload={b"data/a": b""}, info=None),
    "large file": Sketch(payload={b"data/a": bytes(1 << 15)}, info=None),
    "wrong date": Sketch(info=b"bagging-date: 2026-02-30\n"),
    "wrong size": Sketch(info=b"Bag-Size: much\n"),
    "count of a group": Sketch(info=b"Bag-Count: 1 of 2\n"),
    "metadata without end": Sketch(info=b"A: b"),
}
UNUSUAL = {
    "no declaration": Sketch(absent={b"bagit.txt"}),
    "unknown version": Sketch(version="2.0"),
    "other encoding": Sketch(encoding="ISO-8859-1"),
    "fetch.txt": Sketch(fetch=b"https://example.org/a 6 data/a.txt\n"),
    "file missing": Sketch(absent={b"data/a.txt"}),
    "file unlisted": Sketch(unlisted={b"data/a.txt"}),
    "tag file unlisted": Sketch(tag_files=TAGS, unlisted={b"readme.md"}),
    "manifest unlisted": Sketch(unlisted={b"manifest-sha512.txt"}),
    "listed twice": Sketch(manifests={"manifest-sha512.txt": Sketch().manifest() * 2}),
    "wrong checksum": Sketch(manifests={"manifest-sha512.txt": Sketch().manifest().replace(b"0", b"1", 1)}),
    "unterminated line": Sketch(manifests={"manifest-sha512.txt": Sketch().manifest()[:-1]}),
    "carriage return": Sketch(manifests={"manifest-sha512.txt": Sketch().manifest().replace(b"\n", b"\r\n")}),
    "blank line": Sketch(manifests={"manifest-sha512.txt": Sketch().manifest() + b"\n"}),
    "asterisk": Sketch(manifests={"manifest-sha512.txt": Sketch().manifest().replace(b"  ", b" *")}),
    "three spaces": Sketch(manifests={"manifest-sha512.txt": Sketch().manifest().replace(b"  ", b"   ")}),
    "two manifests of one algorithm": Sketch(manifests={"manifest-SHA512.txt": Sketch().manifest()}),
    "tag file in payload manifest": Sketch(
        manifests={"manifest-sha512.txt": Sketch().manifest() + line(b"read me", b"readme.md")}, tag_files=TAGS
    ),
    "payload in tag manifest": Sketch(tag_manifests={"tagmanifest-sha512.txt": line(b"alpha\n", b"data/a.txt")}),
    "names that collide": Sketch(payload={b"data/a": b"1", b"data/A": b"2"}, info=None),
    "directories that collide": Sketch(payload={b"data/a/b": b"1", b"data/A/b": b"2"}, info=None),
    "unsafe tag file": Sketch(tag_files={b"c:note": b"x"}),
    "percent sign": Sketch(payload={b"data/%41": b"1"}, info=None),
    "many files": Sketch(payload={b"data/%d" % number: b"x" for number in range(200)}, info=None),
    "wrong Payload-Oxum": Sketch(info=b"Payload-Oxum: 20.3\n"),
    "wrong Payload-Oxum in bytes": Sketch(info=b"Payload-Oxum: 21.2\n"),
    "two Payload-Oxum": Sketch(info=b"Payload-Oxum: 20.2\npayload-oxum: 20.2\n"),
    "continued Payload-Oxum": Sketch(info=b"Payload-Oxum: 20.2\n 1\n"),
    "space before the colon": Sketch(info=b"A : b\n"),
    "no space after the colon": Sketch(info=b"A:b\n"),
    "two spaces after the colon": Sketch(info=b"A:  b\n"),
    "indented first line": Sketch(info=b" A: b\n"),
    "metadata not UTF-8": Sketch(info=b"A: \xff\n"),
    "byte-order mark": Sketch(info=b"\xef\xbb\xbfA: b\n"),
}


def in_memory(path: Path, level: str = "full") -> PlainBag | None:
    (found,) = check_in_memory([os.fsencode(path)], level)
    return found


def agree(path: Path, level: str = "full") -> bool:
    """Return whether a bag is plain; then its counts and warnings are those of the validation file by file."""
    found, report = in_memory(path, level), from_disk(path, level=level)
    if found is None:
        return False
    assert report.ok
    assert (found.counts, found.problems) == (report.counts, report.problems)
    return True


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PLAIN)
def test_plain_bags(name: str, level: str, tmp_path: Path) -> None:
    bag = PLAIN[name].write(tmp_path / "bag")
    # Without Payload-Oxum, the level "oxum" finds an error.
    assert agree(bag, level) == from_disk(bag, level=level).ok


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_bags(name: str, tmp_path: Path) -> None:
    """All others are left to the validation file by file, whether they are valid or not."""
    bag = UNUSUAL[name].write(tmp_path / "bag")
    assert in_memory(bag) is None
    for level in ("complete", "oxum"):
        agree(bag, level)


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize(
    "name", ["data/link", "link", "data/pipe", ".pressmark-bag/x", "data", "bag-info.txt/x", "none"]
)
def test_unusual_entries(name: str, tmp_path: Path) -> None:
    """Links, pipes, leftovers of a change, and directories instead of files are left to it too."""
    bag = Sketch(tag_algorithms=[], info=None).write(tmp_path / "bag")
    if name == "data":
        (bag / "data").rename(bag / "other")
        (bag / "data").write_bytes(b"x")
    elif name.endswith("link"):
        (bag / name).symlink_to(bag / "data" / "a.txt")
    elif name.endswith("pipe"):
        os.mkfifo(bag / name)
    elif name == "none":
        bag /= name
    else:
        (bag / name).parent.mkdir()
        (bag / name).write_bytes(b"x")
    assert in_memory(bag) is None


@needs_users
@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("name", ["data/a.txt", "data/b", "bag-info.txt"])
def test_closed_files(name: str, tmp_path: Path) -> None:
    """So are bags with a file or directory that cannot be read, at every level that reads it."""
    bag = Sketch(tag_algorithms=[]).write(tmp_path / "bag")
    (bag / name).chmod(0)

    def check() -> None:
        found = [level for level in LEVELS if in_memory(Path("bag"), level) is not None]
        assert found == (["oxum"] if name == "data/a.txt" else [])

    tmp_path.chmod(0o755)
    as_user(OTHER, tmp_path, check)


@pytest.mark.usefixtures("implementation")
def test_deep_directories(tmp_path: Path) -> None:
    """A directory may be empty, but not too deep."""
    bag = Sketch().write(tmp_path / "bag")
    (bag / "data" / "empty").mkdir()
    assert agree(bag)
    (bag / "data" / "/".join("d" * 20)).mkdir(parents=True)
    assert in_memory(bag) is None


@pytest.mark.usefixtures("implementation")
def test_a_link_to_a_bag(tmp_path: Path) -> None:
    """The base directory may be named by a link."""
    (tmp_path / "link").symlink_to(Sketch().write(tmp_path / "bag"))
    assert agree(tmp_path / "link")


@pytest.mark.usefixtures("implementation")
def test_small_bags_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small valid bag is validated in memory, with its warnings, unless there is a ledger."""
    bag = Sketch(info=LONG).write(tmp_path / "bag")
    expected = {level: from_disk(bag, level=level) for level in ("full", "complete")}

    def no_more(*_arguments: object, **_options: object) -> None:
        raise AssertionError

    monkeypatch.setattr(one_by_one, "BagDirectory", no_more)
    told: list[Problem] = []
    events: list[ProgressEvent] = []
    assert validate(bag, progress=listening(events.append, told.append)) == expected["full"]
    assert told == expected["full"].problems
    listed = [file for file in bag.rglob("*") if file.is_file() and "tagmanifest" not in file.name]
    nbytes = sum(file.stat().st_size for file in listed)
    assert events == [ProgressEvent(items=len(listed), bytes=nbytes, of_items=len(listed))]
    assert validate(bag, level="complete", read="sequential") == expected["complete"]
    assert validate(bag, keep=0).summary() == {**expected["full"].summary(), "omitted": 1}
    with pytest.raises(ValueError, match="threads=-1"):
        validate(bag, threads=-1)
    with pytest.raises(AssertionError):
        validate(bag, ledger=tmp_path / "ledger")


@pytest.mark.usefixtures("implementation")
def test_profiles(tmp_path: Path) -> None:
    """A profile is checked in memory too."""
    profile = Profile.from_json(b"""{
        "BagIt-Profile-Info": {"BagIt-Profile-Identifier": "https://example.org/p.json", "BagIt-Profile-Version": "1.4",
            "Source-Organization": "A", "External-Description": "B", "Version": "1"},
        "Bag-Info": {"Contact-Name": {"required": true}},
        "Accept-BagIt-Version": ["1.0"]
    }""")
    bag = Sketch().write(tmp_path / "bag")
    assert validate(bag, profile=profile) == from_disk(bag, profile=profile)
    assert not validate(bag, profile=profile).ok


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("threads", [1, 2])
def test_many_bags(tmp_path: Path, threads: int) -> None:
    """Each bag has its own report, in order: wrong bags, missing ones and archives among valid ones."""
    draw = random.Random(7)
    paths = []
    for number in range(140):
        payload = {b"data/%d" % name: draw.randbytes(draw.choice([1, 100, 5000])) for name in range(draw.randint(1, 9))}
        algorithms = draw.choice([["sha512"], ["md5", "sha256"], ["sha256"]])
        sketch = Sketch(payload=payload, algorithms=algorithms, tag_algorithms=algorithms, info=b"A: b\n")
        bag = sketch.write(tmp_path / str(number))
        if draw.random() < 0.1:
            (bag / "data" / "0").write_bytes(bytes(len(payload[b"data/0"])))
        elif draw.random() < 0.1:
            shutil.rmtree(bag)
        paths.append(bag)
    pack(Sketch().write(tmp_path / "packed"), tmp_path / "bag.tar")
    paths.append(tmp_path / "bag.tar")
    told: list[Problem] = []
    kept = 0
    for path, found in zip(
        paths,
        validate_many(paths, threads=threads, progress=listening(on_problem=told.append)),
        strict=True,
    ):
        if isinstance(found, BagReport):
            assert found == from_disk(path)
            kept += len(found.problems)
            # Not those of the bags after it.
            assert len(told) == kept
        else:
            assert isinstance(found, BagError)
            assert found.path == os.fsdecode(path)
            assert not path.exists()
    assert 5 < kept < 60
    assert list(validate_many([], threads=threads)) == []
    with pytest.raises(ValueError, match="level"):
        next(validate_many([], "half"))


def mutated(draw: random.Random, data: bytes) -> bytes:
    """Insert, replace or remove a few bytes."""
    for _ in range(draw.choice([1, 1, 2])):
        at = draw.randint(0, len(data))
        piece = draw.choice(
            [
                b"\n",
                b"\r",
                b" ",
                b"\t",
                b":",
                b"%",
                b"\\",
                b"/",
                b".",
                b"*",
                b"\0",
                b"\x7f",
                b"\xff",
                b"\xc3\xa9",
                b"A",
                b"0",
            ]
        )
        data = data[:at] + piece * draw.randint(0, 1) + data[at + draw.randint(0, 1) :]
    return data


def drawn(draw: random.Random) -> Sketch:
    """Return a bag with a few faults, whose checksums are right."""
    names = [b"data/a.txt", b"data/A.txt", b"data/b/c", b"data/b c", b"data/b/", b"data/e", b"data/-", b"data/d/d/d/d"]
    payload = {
        name.rstrip(b"/"): draw.randbytes(draw.choice([1, 9, 200, 16384] * 4 + [0]))
        for name in names
        if draw.random() < 0.4
    }
    algorithms = draw.sample(["md5", "sha1", "sha256", "sha512"], draw.choice([1, 1, 1, 2]))
    good = [
        b"Payload-Oxum: %d.%d\n" % (sum(map(len, payload.values())), len(payload)),
        *(b"Bagging-Date: 2025-12-31\n", b"Bag-Size: 77.5 MB\n", b"Title: x  \n", b"T: y\n", b"T u: z\n"),
        *(b"T: a\n more\n", b"T: a\n\tmore\n", b"Title: " + b"\xc3\xa9" * draw.choice([72, 73]) + b"\n"),
    ]
    bad = [
        *(b"Bagging-Date: 2024-02-29\n", b"Bagging-Date: 2025-04-31\n", b"bag-size: 7 kB\n", b"Bag-Size: 1.B\n"),
        *(
            b"Bag-Count: 1 of 2\n",
            b"Title:\n",
            b"Title: \n",
            b" \n",
            b"T\xc3\xa4: y\n",
            b" more\n",
            b"Payload-Oxum: 1.1\n",
        ),
    ]
    elements = draw.sample(good, draw.randint(0, 4)) + draw.sample(bad, draw.choice([0, 0, 0, 1]))
    sketch = Sketch(
        version=draw.choice(["1.0", "1.0", "0.97"]),
        payload=payload,
        algorithms=algorithms,
        tag_algorithms=algorithms if draw.random() < 0.8 else draw.choice([[], ["sha512"]]),
        info=b"".join(draw.sample(elements, len(elements))),
    )
    fault = draw.random()
    if fault < 0.2:
        sketch.info = mutated(draw, sketch.info or b"")
    elif fault < 0.4:
        name = draw.choice(algorithms)
        sketch.manifests[f"manifest-{name}.txt"] = mutated(draw, sketch.manifest(name))
    elif fault < 0.5:
        sketch.declaration = mutated(draw, sketch.tags()[b"bagit.txt"])
    elif fault < 0.6:
        sketch.tag_files[mutated(draw, b"tags/x").strip(b"/").replace(b"\0", b"").replace(b"//", b"/")] = b"x"
    elif fault < 0.7:
        sketch.unlisted.add(draw.choice([*sketch.tags(), *payload]))
    return sketch


@pytest.mark.usefixtures("implementation")
def test_random_bags(tmp_path: Path) -> None:
    """A bag is valid in memory only if the validation file by file finds the same counts and warnings."""
    seed = random.randrange(1 << 32)
    draw = random.Random(seed)
    accepted = 0
    rounds = repeats(300, 20_000)
    for number in range(rounds):
        try:
            bag = drawn(draw).write(tmp_path / str(number))
        except OSError:  # a file and a directory of one name
            continue
        if draw.random() < 0.2:
            file = draw.choice([path for path in bag.rglob("*") if path.is_file()])
            file.write_bytes(mutated(draw, file.read_bytes()))
        try:
            accepted += [agree(bag, level) for level in LEVELS][-1]
        except AssertionError as error:
            error.add_note(f"seed {seed}, bag {number}")
            raise
        shutil.rmtree(bag)
    assert accepted > rounds / 20
