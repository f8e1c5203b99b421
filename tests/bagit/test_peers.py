"""Exchange of bags with bagit and bdbag; where they misread a name, a test shows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark.bagit.archive import validate_archive
from pressmark.bagit.archive.pack import pack
from pressmark.bagit.archive.unpack import unpack
from pressmark.bagit.bag import create, create_archive, make_bag, update
from pressmark.bagit.validation.validate import validate

from .bags import tree
from .naive import flaws
from .writing.test_create import HOSTILE, make

pytestmark = pytest.mark.peers

# Names that both tools misread (versions 1.9 and 1.8): they call their own bags with such names invalid
# themselves, except for percent signs, which they do not encode.
MISREAD = {
    # A manifest must have them encoded (2.1.3); the tools decode only %0A and %0D.
    "percent signs": (b"%", b"100%", b"%0A", b"%0a", b"%25", b"%2525", b"%41", b"\n%0A"),
    # The tools strip lines.
    "blanks at the end": (b"trailing ", b"tab\t"),
    # Line ends only for str.splitlines and Python's codecs (2.1.3).
    "other line ends": (b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b\x0c", b"\x1c\x1d\x1e"),
}
WRONG = frozenset(name for names in MISREAD.values() for name in names)
RIGHT = tuple(name for name in HOSTILE if name not in WRONG)

# In another process: they change the working directory, and the import path may have another "bagit".
CODE = """
import json, logging, os, sys
logging.disable(logging.CRITICAL)
if sys.argv[1] == "bdbag":
    from bdbag import bdbagit as tool
    Bag = tool.BDBag
else:
    import bagit as tool
    Bag = tool.Bag
said = []
for path in sys.argv[3:]:
    try:
        if sys.argv[2] == "make":
            tool.make_bag(path, checksums=["sha512", "md5"])
        else:
            Bag(path).validate()
        said.append("")
    except Exception as error:
        said.append(type(error).__name__ + ": " + str(error))
print(json.dumps(said))
"""

Peer = Callable[..., list[str]]


@pytest.fixture(params=["bagit", "bdbag"])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Peer:
    """One of the tools: call it to ``make`` or ``validate`` bags, and get its objections to each."""

    def call(what: str, *paths: Path) -> list[str]:
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_PRELOAD")}
        run = subprocess.run(
            [sys.executable, "-c", CODE, request.param, what, *map(str, paths)],
            # bdbag writes its configuration to the home directory.
            env=variables | {"HOME": str(tmp_path / "home")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        if "ModuleNotFoundError" in run.stderr and not request.config.getoption("--require-peers", default=False):
            pytest.skip(f"needs {request.param}")
        assert run.returncode == 0, run.stderr
        said: list[str] = json.loads(run.stdout.splitlines()[-1])
        assert len(said) == len(paths)
        return said

    return call


def test_our_bags(peer: Peer, tmp_path: Path) -> None:
    """Our bags with names that the tools read correctly are valid for them, in every variant."""
    source = make(tmp_path / "s", RIGHT + tuple(b"dir/%b/x" % name for name in RIGHT))
    here = source
    for _ in range(12):
        here /= "d" * 250
    here.mkdir(parents=True)
    (here / "deep").write_bytes(b"deep")
    (tmp_path / "mets.xml").write_bytes(b"<mets/>")
    info = {"X-Long": "word " * 60, "É": ["1", "2"]}
    more = {"tag_files": {"metadata/mets.xml": tmp_path / "mets.xml"}, "info": info, "nested": True}
    algorithms = ["sha512", "sha256", "md5", "sha1"]
    create(source, tmp_path / "copied", algorithms=algorithms, **more)
    create(source, tmp_path / "linked", copy_mode="hardlink", nested=True)
    create([tmp_path / "s" / "dir", tmp_path / "mets.xml"], tmp_path / "several", nested=True)
    (tmp_path / "empty").mkdir()
    make_bag(tmp_path / "empty")
    shutil.copytree(tmp_path / "copied", tmp_path / "updated")
    (tmp_path / "updated" / "data" / "new").write_bytes(b"new")
    (tmp_path / "updated" / "data" / "plain").unlink()
    update(tmp_path / "updated", algorithms=["sha512", "sha384"], accept=["added", "removed"], info={"X-Long": None})
    make_bag(source, nested=True)
    bags = [tmp_path / name for name in ("copied", "linked", "several", "empty", "updated", "s")]
    assert [flaws(bag) for bag in bags] == [[]] * len(bags)
    assert peer("validate", *bags) == [""] * len(bags)


def test_our_bags_with_names_that_they_misread(peer: Peer, tmp_path: Path) -> None:
    """The tools call our bags with names that they misread invalid; the naive validator does not."""
    bags = []
    for number, name in enumerate(sorted(WRONG)):
        make(tmp_path / f"ours{number}", (name,))
        make_bag(tmp_path / f"ours{number}")
        assert flaws(tmp_path / f"ours{number}") == []
        assert validate(tmp_path / f"ours{number}").problems == []
        bags.append(tmp_path / f"ours{number}")
    assert [said.partition(":")[0] for said in peer("validate", *bags)] == ["BagValidationError"] * len(bags)
    for names in (MISREAD["blanks at the end"], MISREAD["other line ends"]):
        theirs = [make(tmp_path / f"theirs-{name!r}", (name,)) for name in names]
        assert peer("make", *theirs) == [""] * len(theirs)
        assert [said.partition(":")[0] for said in peer("validate", *theirs)] == ["BagValidationError"] * len(theirs)
    percent = make(tmp_path / "percent", (b"%25",))
    peer("make", percent)
    assert b"  data/%25\n" in (percent / "manifest-md5.txt").read_bytes()


def test_their_bags(peer: Peer, tmp_path: Path) -> None:
    """Their bags with any names are valid here; changes are found; an update raises the version to 1.0."""
    # The tools encode only some characters, so that two names become one: these lines are ambiguous.
    names = tuple(name for name in HOSTILE if name not in (b"%0a", b"\n%0A"))
    source = make(tmp_path / "s", names + tuple(b"dir/%b/x" % name for name in names))
    before = {b"data/" + path: data for path, data in tree(source).items()}
    peer("make", source)  # the tool makes the bag, and then cannot open it
    report = validate(source)
    assert report.errors == []
    assert {path: data for path, data in tree(source).items() if path.startswith(b"data/")} == before
    changed = tmp_path / "changed"
    shutil.copytree(source, changed)
    (changed / "data" / "plain").write_bytes(b"other")
    assert {(found.kind, found.path) for found in validate(changed).errors} == {
        ("checksum-mismatch", "data/plain"),
        ("oxum-mismatch", "bag-info.txt"),
    }
    update(source, drop="md5")
    assert flaws(source) == []
    # Long lines of bag-info.txt are kept.
    assert {found.kind for found in validate(source).problems} <= {"info-long-line"}


def test_their_empty_bags(peer: Peer, tmp_path: Path) -> None:
    """Of an empty directory they make a bag without a manifest, which no validator calls valid (2.1.3)."""
    (tmp_path / "s").mkdir()
    peer("make", tmp_path / "s")
    assert peer("validate", tmp_path / "s") != [""]
    assert [found.kind for found in validate(tmp_path / "s").errors] == ["payload-manifest-missing"]


ARCHIVES = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from bdbag import bdbag_api
bdbag_api.make_bag(sys.argv[1], algs=["md5", "sha256", "sha512"])
print(json.dumps([bdbag_api.archive_bag(sys.argv[1], kind) for kind in ("zip", "tar", "tgz", "bz2", "xz")]))
"""


def test_archives_of_bdbag(tmp_path: Path) -> None:
    """Archives that bdbag makes have the verdict of the bag, also from a pipe."""
    bag = make(tmp_path / "bag", (b"a", b"b c", b"sub/deep/e", "\xe9.txt".encode()))
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_PRELOAD")}
    run = subprocess.run(
        [sys.executable, "-c", ARCHIVES, str(bag)],
        env=variables | {"HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = validate(bag)
    assert (expected.ok, expected.counts["files"]) == (True, 4)
    (tmp_path / "unpacked").mkdir()
    for archive in map(Path, json.loads(run.stdout.splitlines()[-1])):
        reports = [validate(archive)]
        if archive.suffix != ".zip":
            with archive.open("rb") as file:
                reports.append(validate_archive("-", stream=file))
        for report in reports:
            assert (report.problems, report.counts) == (expected.problems, expected.counts), archive
        unpack(archive, tmp_path / "unpacked" / archive.name, threads=2)
        assert tree(tmp_path / "unpacked" / archive.name) == tree(bag)


# What unpacks an archive in the working directory, by the ending of its name.
UNPACKERS = {
    "tar": (["tar", "xf"], ["bsdtar", "xf"], [sys.executable, "-m", "tarfile", "-e"]),
    "tar.gz": (["tar", "xzf"], ["bsdtar", "xf"], [sys.executable, "-m", "tarfile", "-e"]),
    "tar.zst": (["tar", "--zstd", "-xf"], ["bsdtar", "xf"]),
    "zip": (["unzip", "-q"], ["bsdtar", "xf"], [sys.executable, "-m", "zipfile", "-e"]),
}


@pytest.mark.parametrize("way", ["pack", "create"])
@pytest.mark.parametrize("ending", UNPACKERS)
def test_our_archives(peer: Peer, tmp_path: Path, ending: str, way: str) -> None:
    """What other programs unpack from our archives is the bag, with all names, and valid for both tools."""
    if ending == "tar.zst":
        pytest.importorskip("zstandard")
    names = (b"plain", b"\xc3\xa4.txt", b"x" * 120, b"/".join([b"d" * 90] * 4) + b"/" + b"y" * 200, b"line\nfeed")
    source = make(tmp_path / "s", names)
    (source / "empty").mkdir()
    create(source, tmp_path / "bag", algorithms=["sha512", "md5"])
    file = tmp_path / f"b.{ending}"
    if way == "pack":
        pack(tmp_path / "bag", file)
    else:
        create_archive(source, file, algorithms=["sha512", "md5"])
    bags = []
    for number, program in enumerate(UNPACKERS[ending]):
        if shutil.which(program[0]) is None:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        inside = ["."] if program[0] == sys.executable else []
        subprocess.run([*program, str(file), *inside], cwd=folder, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        bags.append(folder / "b")
        found = tree(folder / "b")
        if way == "create":
            found.update({path: data for path, data in tree(tmp_path / "bag").items() if b"/" not in path})
        # unzip writes another character for a line feed.
        if program[0] != "unzip":
            assert found == tree(tmp_path / "bag"), program
            assert (folder / "b" / "data" / "empty").is_dir()
            assert flaws(folder / "b") == []
    assert bags
    bags = [bag for bag in bags if (bag / "data" / "line\nfeed").exists()]
    assert peer("validate", *bags) == [""] * len(bags)


EXTRACT = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from bdbag import bdbag_api
for path in sys.argv[1:]:
    bdbag_api.validate_bag(bdbag_api.extract_bag(path, output_path=path + " extracted"))
print("valid")
"""


def test_bdbag_extracts_our_archives(tmp_path: Path) -> None:
    """bdbag extracts our archives itself, and calls the bags valid."""
    pytest.importorskip("bdbag")
    bag = create(make(tmp_path / "s", (b"a", b"b c", b"sub/deep/e", "\xe9.txt".encode())), tmp_path / "bag")
    files = [pack(bag, tmp_path / f"b.{ending}") for ending in ("tar", "tgz", "zip")]
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_PRELOAD")}
    run = subprocess.run(
        [sys.executable, "-c", EXTRACT, *files],
        env=variables | {"HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, ["valid"]), run.stderr
