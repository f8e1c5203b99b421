"""Bags that are created for a BagIt Profile: all that is missing is named, defaults are filled, the result conforms.

``profiles`` has the examples of https://github.com/bagit-profiles/bagit-profiles, which are CC0.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark.bagit import Bag, Profile
from pressmark.bagit.profile import IDENTIFIER
from pressmark.errors import BagError
from pressmark.reports import Problem
from support.memory_addresses import use_memory

from ..test_profile import PEER, profile

EXAMPLES = Path(__file__).parent / "profiles"
FOO, BAR = (Profile.load(EXAMPLES / f"bagProfile{name}.json") for name in ("Foo", "Bar"))
FOO_INFO = {"Contact-Phone": "1", "Source-Organization": "York University"}
BAR_INFO = {
    "Source-Organization": "York University",
    "Organization-Address": "4700 Keele Street Toronto, Ontario M3J 1P3 Canada",
    "Contact-Name": "Nick Ruest",
    "Contact-Email": "nick@example.org",
    "External-Description": "Letters",
    "Bag-Count": "1 of 1",
    "Bag-Group-Identifier": "7",
}
DAY = datetime.date(2026, 11, 21)
Create = Callable[..., Bag]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files and two tag files beside it; it is the working directory."""
    (tmp_path / "files" / "d").mkdir(parents=True)
    (tmp_path / "files" / "a").write_bytes(b"a")
    (tmp_path / "files" / "d" / "50%25").write_bytes(b"b")
    for name in ("dpnRegistry", "dpnFirstNode.txt", "note.txt"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_place(**how: Any) -> Bag:
    return pressmark.bagit.make_bag("files", date=DAY, **how)


def elsewhere(**how: Any) -> Bag:
    return pressmark.bagit.create("files", "bag", date=DAY, **how)


def archive(**how: Any) -> Bag:
    return pressmark.bagit.create_archive("files", "bag.zip", date=DAY, **how)


def holey(**how: Any) -> Bag:
    return pressmark.bagit.create_holey("files", "bag", "https://example.org/x/", date=DAY, **how)


def remote(**how: Any) -> Bag:
    return pressmark.bagit.create("files", "s3://memory/bag", date=DAY, **how)


def refusal(create: Create, wanted: Profile, **how: Any) -> str:
    """Return why no bag is created; nothing is changed."""
    before = sorted(Path.cwd().rglob("*"))
    with pytest.raises(BagError) as caught:
        create(profile=wanted, **how)
    assert sorted(Path.cwd().rglob("*")) == before
    start = "the bag would not conform to this profile: "
    assert caught.value.path == wanted.source
    assert caught.value.reason.startswith(start)
    return caught.value.reason.removeprefix(start)


@pytest.mark.parametrize("create", [in_place, elsewhere, archive, holey, remote])
def test_the_bag_conforms(files: Path, monkeypatch: pytest.MonkeyPatch, create: Create) -> None:
    """In each way to create a bag, the result conforms, and has the defaults of the profile."""
    use_memory(monkeypatch)
    wanted = profile(
        Bag_Info={
            "Country": {"required": True, "values": ["CA"]},
            "Region": {"recommended": True, "values": ["Ontario"]},
            "Series": {"values": ["only if given"]},
            "Payload-Oxum": {"required": True},
            "Bagging-Date": {"required": True},
        },
        Manifests_Required=["sha256", "md5"],
        Tag_Manifests_Required=["sha-256"],
        Tag_Files_Required=["in/note.txt"],
        Tag_Files_Allowed=["in/*"],
        Payload_Files_Required=["data/a", "data/d/"],
        Payload_Files_Allowed=["data/*"],
        Serialization="optional",
        Accept_Serialization=["application/zip"],
        Accept_BagIt_Version=["0.95", "0.96"],
    )
    made = create(profile=wanted, tag_files=["note.txt"])
    assert made.version == (0, 96)
    assert made.algorithms == ("md5", "sha256")
    assert made.info["Country"] == "CA"
    assert made.info["Region"] == "Ontario"
    assert made.info[IDENTIFIER] == wanted.identifier
    assert "Series" not in made.info
    again = Bag.open(made.path)
    assert (again.version, again.info.elements) == (made.version, made.info.elements)
    if create is holey:  # its files are not there yet
        assert {found.kind for found in again.check_profile(wanted)} == {"profile-payload-file-missing"}
    else:
        assert again.validate(profile=wanted).problems == []


def test_everything_that_is_missing_is_named_at_once(files: Path) -> None:
    """One error has all missing elements, with the allowed values, and everything else."""
    assert refusal(elsewhere, BAR, info={"Contact-Name": "Me"}) == (
        "bag-info.txt lacks Source-Organization ('Simon Fraser University' or 'York University'), Organization-Address"
        " ('8888 University Drive Burnaby, B.C. V5A 1S6 Canada' or"
        " '4700 Keele Street Toronto, Ontario M3J 1P3 Canada'),"
        " Contact-Email, External-Description, Bag-Count; add each with info=;"
        " required tag files are missing: 'DPN/dpnFirstNode.txt', 'DPN/dpnRegistry'; add each with tag_files=;"
        " value of 'Contact-Name' not allowed by the profile: 'Me'; expected 'Mark Jordan' or 'Nick Ruest'"
    )


ZIP = {"Accept_Serialization": ["application/zip", "application/gzip"]}
REFUSED: list[tuple[dict[str, Any], Create, dict[str, Any], str]] = [
    (
        {"Serialization": "required", **ZIP},
        elsewhere,
        {},
        "profile requires a serialized bag; this one is a directory;"
        " choose a destination that ends with .zip or .tar.gz or .tgz",
    ),
    (
        {"Serialization": "required", "Accept_Serialization": ["application/x-7z-compressed"]},
        archive,
        {},
        "profile does not accept this serialization; Pressmark does not write application/x-7z-compressed",
    ),
    ({"Serialization": "forbidden"}, archive, {}, "profile does not allow serialized bags; choose a directory"),
    (
        {"Accept_BagIt_Version": ["0.93", "2.0"]},
        in_place,
        {},
        "the profile accepts BagIt 0.93, 2.0, and Pressmark writes 1.0, 0.97, 0.96",
    ),
    (
        {"Manifests_Required": ["md5"], "Manifests_Allowed": ["md5"]},
        in_place,
        {"algorithms": "sha256"},
        "'manifest-md5.txt': profile requires a payload manifest;"
        " 'manifest-sha256.txt': profile does not allow a payload manifest",
    ),
    (
        {"Tag_Files_Allowed": ["x"]},
        in_place,
        {"tag_files": ["note.txt"]},
        "'note.txt': profile does not allow a tag file",
    ),
    ({"Allow_Fetch_txt": False}, holey, {}, "'fetch.txt': profile does not allow fetch.txt"),
    ({"Fetch_txt_Required": True}, elsewhere, {}, "'fetch.txt': profile requires fetch.txt"),
    (
        {"Bag_Info": {"X": {"repeatable": False}}},
        elsewhere,
        {"info": {"X": ["1", "2"]}},
        "'bag-info.txt': 'X' occurs 2 times",
    ),
]


@pytest.mark.parametrize(("sections", "create", "how", "reason"), REFUSED)
def test_what_the_profile_does_not_allow(
    files: Path, sections: dict[str, Any], create: Create, how: dict[str, Any], reason: str
) -> None:
    """An option that the profile does not allow is refused before a file is read."""
    assert refusal(create, profile(**sections), **how) == reason


PAYLOADS = [
    ({"Payload_Files_Allowed": ["data/a"]}, "profile-payload-file-forbidden", "data/d/50%25"),
    ({"Payload_Files_Required": ["data/z"]}, "profile-payload-file-missing", "data/z"),
    ({"Payload_Files_Required": ["data/a/"]}, "profile-payload-file-missing", "data/a/"),
    ({"Data_Empty": True}, "profile-data-not-empty", "data"),
]


@pytest.mark.parametrize(("sections", "kind", "path"), PAYLOADS)
@pytest.mark.parametrize("create", [in_place, elsewhere, archive, remote])
def test_the_payload_is_checked_before_it_is_read(
    files: Path, monkeypatch: pytest.MonkeyPatch, create: Create, sections: dict[str, Any], kind: str, path: str
) -> None:
    """A payload that the profile does not allow is refused, and nothing is changed."""
    bucket = use_memory(monkeypatch)
    before = sorted(files.rglob("*"))
    events: list[object] = []
    with pytest.raises(BagError, match="nothing was changed"):
        create(profile=profile(**sections), progress=events.append)
    assert [(one.kind, one.path) for one in events if isinstance(one, Problem)] == [(kind, path)]
    assert sorted(files.rglob("*")) == before
    assert not bucket.keys


@pytest.mark.parametrize("tag_file", ["note.txt", {"z": "note.txt"}])
def test_large_directories_are_checked_too(files: Path, tag_file: Any) -> None:
    """A directory that is not read together with others is checked by a walk."""
    if isinstance(tag_file, str):
        tag_file = [tag_file]
    with pytest.raises(BagError, match="profile does not allow a payload file"):
        in_place(profile=profile(Payload_Files_Allowed=["data/a"]), tag_files=tag_file)
    assert in_place(profile=profile(Payload_Files_Allowed=["data/*"]), tag_files=tag_file).is_valid()


ALGORITHMS = [
    ({}, ("sha512",)),
    ({"Manifests_Allowed": ["md5", "sha256"]}, ("sha256",)),
    ({"Manifests_Allowed": ["md5", "sha256"], "Tag_Manifests_Allowed": ["md5"]}, ("md5",)),
    ({"Manifests_Allowed": ["blake3"]}, ("blake3",)),
    ({"Manifests_Required": ["md5"], "Tag_Manifests_Required": ["sha1"]}, ("md5", "sha1")),
]


@pytest.mark.parametrize(("sections", "algorithms"), ALGORITHMS)
def test_the_algorithms_of_the_profile(files: Path, sections: dict[str, Any], algorithms: tuple[str, ...]) -> None:
    """Without algorithms, the bag has those that are required, or else the best allowed one."""
    wanted = profile(**sections)
    made = elsewhere(profile=wanted)
    assert made.algorithms == algorithms
    assert made.check_profile(wanted) == []


def test_warnings_are_events(files: Path) -> None:
    """What the profile recommends is reported, and does not prevent the bag."""
    events: list[object] = []
    made = elsewhere(profile=profile(Bag_Info={"X": {"recommended": True}}), progress=events.append)
    assert [one.kind for one in events if isinstance(one, Problem)] == ["profile-element-recommended"]
    assert made.is_valid()


def test_given_elements_are_kept(files: Path) -> None:
    """An element that is given is neither repeated nor changed, and a second profile may be named."""
    wanted = profile(Bag_Info={"Contact-Name": {"required": True, "values": ["Ada"]}})
    info = [("contact-name", "Ada"), (IDENTIFIER, "https://other/"), ("Bag-Software-Agent", "Mine")]
    made = elsewhere(profile=wanted, info=info)
    assert made.info["Contact-Name"] == "Ada"
    assert made.info[IDENTIFIER] == ["https://other/", wanted.identifier]
    assert made.info["Bag-Software-Agent"] == "Mine"


def test_another_version_is_another_request(files: Path) -> None:
    """Percent signs are written as the version of the bag requires."""
    old = pressmark.bagit.create("files", "old", profile=profile(Accept_BagIt_Version=["0.97"]))
    new = pressmark.bagit.create("files", "new", profile=profile())
    assert b"data/d/50%25\n" in (files / "old" / "manifest-sha512.txt").read_bytes()
    assert b"data/d/50%2525\n" in (files / "new" / "manifest-sha512.txt").read_bytes()
    assert old.validate().problems == new.validate().problems == []


@pytest.mark.peers
def test_the_peer_accepts_the_bags(request: pytest.FixtureRequest, files: Path) -> None:
    """The specification's own validator accepts bags for its own examples, and for other profiles."""
    made = elsewhere(profile=BAR, info=BAR_INFO, tag_files=["dpnRegistry", "dpnFirstNode.txt"])
    zipped = archive(profile=FOO, info=FOO_INFO)
    assert made.validate(profile=BAR).problems == []
    assert [one.kind for one in zipped.validate(profile=FOO).problems] == ["info-long-line"]
    unpacked = pressmark.bagit.unpack(zipped.path, files / "unpacked")
    tasks = [
        (made.path, json.loads((EXAMPLES / "bagProfileBar.json").read_bytes())),
        (unpacked.path, json.loads((EXAMPLES / "bagProfileFoo.json").read_bytes())),
    ]
    for number, (sections, _algorithms) in enumerate(ALGORITHMS):
        content = json.loads(json.dumps({"BagIt-Profile-Info": dict(profile().about), "Accept-BagIt-Version": ["1.0"]}))
        content |= {"Manifests-Required": [], "Bag-Info": {"Contact-Name": {"required": True, "values": ["Ada"]}}}
        content |= {name.replace("_", "-"): value for name, value in sections.items()}
        wanted = Profile.from_json(json.dumps(content).encode())
        tasks.append((pressmark.bagit.create("files", f"bag-{number}", profile=wanted).path, content))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEER],
        env=environment,
        input=json.dumps([(str(files / path), content) for path, content in tasks]),
        capture_output=True,
        text=True,
        check=False,
    )
    if "ModuleNotFoundError" in run.stderr and not request.config.getoption("--require-peers", default=False):
        pytest.skip(run.stderr.splitlines()[-1])
    assert run.stdout.split() == ["True"] * len(tasks), run.stderr
