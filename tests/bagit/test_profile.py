"""BagIt Profiles: reading a profile, and checking a bag against it."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pressmark.bagit.bag import Bag
from pressmark.bagit.profile import Element, Profile
from pressmark.errors import ProfileError
from pressmark.reports import Problem

from .bags import Sketch

IDENTIFIER = "https://example.org/profiles/one-v1.json"
ABOUT = {
    "BagIt-Profile-Identifier": IDENTIFIER,
    "BagIt-Profile-Version": "1.4.0",
    "Source-Organization": "Example Library",
    "External-Description": "For tests",
    "Version": "1",
}
SMALL = {"BagIt-Profile-Info": ABOUT, "Accept-BagIt-Version": ["1.0"]}
INFO = (
    f"BagIt-Profile-Identifier: {IDENTIFIER}\n"
    "source-organization: Example Library\n"
    "Contact-Name: Ada\n"
    "Contact-Name: Grace\n"
    "Colour: blue\n"
    "Payload-Oxum: 20.2\n"
).encode()


def profile(**sections: Any) -> Profile:
    """The smallest profile with more sections; underscores become hyphens, and a final ``_txt`` .txt."""
    content = copy.deepcopy(SMALL)
    for name, value in sections.items():
        content[name.replace("_txt", ".txt").replace("_", "-")] = value
    return Profile.from_json(json.dumps(content).encode())


def bag(folder: Path, **changes: Any) -> Bag:
    sketch = Sketch(info=INFO)
    for name, value in changes.items():
        setattr(sketch, name, value)
    return Bag.open(sketch.write(folder / "bag"))


def kinds(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.kind, problem.path) for problem in problems]


# --- profiles


def test_a_profile_is_read(tmp_path: Path) -> None:
    """All values of a profile are read, and omitted ones have defaults."""
    content = SMALL | {
        "Bag-Info": {
            "Contact-Name": {"required": True, "repeatable": False, "values": ["Ada"], "description": "Who"},
            "Colour": {"recommended": True},
        },
        "Manifests-Required": ["sha512"],
        "Manifests-Allowed": ["SHA-512", "md5"],
        "Serialization": "optional",
        "Accept-Serialization": ["application/zip"],
        "Tag-Files-Required": ["DPN/registry"],
        "Tag-Files-Allowed": ["DPN/*"],
        "Other-Info": [{}],
    }
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(content))
    found = Profile.load(path)
    assert (found.source, found.identifier, found.version) == (str(path), IDENTIFIER, "1.4.0")
    assert found.elements == (
        Element("Contact-Name", required=True, repeatable=False, values=("Ada",), description="Who"),
        Element("Colour", recommended=True),
    )
    assert found.manifests_required == ("sha512",)
    assert found.tag_manifests_allowed is None
    assert (found.allow_fetch, found.fetch_required, found.data_empty) == (True, False, False)
    assert found.unknown == ("the section 'Other-Info'",)


@pytest.mark.parametrize("version", [None, "1.1.0", "1.2", "1.3.0", "1.4.0"])
def test_versions_of_the_specification(version: str | None) -> None:
    """All versions of the specification are known; without a version, a profile is of the first."""
    about = {name: value for name, value in ABOUT.items() if name != "BagIt-Profile-Version"}
    if version is not None:
        about["BagIt-Profile-Version"] = version
    assert profile(BagIt_Profile_Info=about).version == (version or "1.1.0")


MALFORMED = {
    "[]": "not a JSON object",
    "{": "invalid JSON: Expecting property name",
    '{"a": 1, "a": 2}': "'a' occurs more than once",
    '{"a": NaN}': "invalid JSON: NaN is not a JSON value",
    '"\\ud800"': "invalid JSON: unpaired surrogate",
    "[" * 100_000: "nested too deeply",
    "\ufeff{}": "invalid JSON: Unexpected UTF-8 BOM",
}


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:20])
def test_invalid_json(text: str) -> None:
    """Invalid or ambiguous JSON is refused in one line."""
    with pytest.raises(ProfileError) as caught:
        Profile.from_json(text.encode(), "the source")
    assert str(caught.value).startswith("the source: ")
    assert MALFORMED[text] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_profiles(tmp_path: Path) -> None:
    """A missing file, or one that is not text, is refused by name."""
    with pytest.raises(ProfileError, match=r"nothing\.json: No such file"):
        Profile.load(tmp_path / "nothing.json")
    (tmp_path / "latin").write_bytes(b'"\xff"')
    with pytest.raises(ProfileError, match="latin: invalid JSON: not UTF-8"):
        Profile.load(tmp_path / "latin")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"BagIt-Profile-Info": None}, "BagIt-Profile-Info not found"),
    *(
        ({"BagIt-Profile-Info": ABOUT | {name: value}}, f"BagIt-Profile-Info requires {name}")
        for name in ("Source-Organization", "External-Description", "Version", "BagIt-Profile-Identifier")
        for value in (None, "", 1)
    ),
    (
        {"BagIt-Profile-Info": ABOUT | {"BagIt-Profile-Identifier": "one"}},
        "BagIt-Profile-Identifier is not a URI: 'one'",
    ),
    ({"BagIt-Profile-Info": ABOUT | {"BagIt-Profile-Version": "2.0.0"}}, "expected 1.1, 1.2, 1.3, 1.4"),
    ({"BagIt-Profile-Info": ABOUT | {"BagIt-Profile-Version": 1.3}}, "unsupported BagIt-Profile-Version 1.3"),
    ({"Accept-BagIt-Version": []}, "specify at least one version"),
    ({"Accept-BagIt-Version": None}, "Accept-BagIt-Version is null; expected a list of strings"),
    ({"Accept-BagIt-Version": [1.0]}, "expected a list of strings"),
    ({"Accept-BagIt-Version": ["one"]}, "expected versions such as 1.0"),
    ({"manifests-required": ["md5"]}, "'manifests-required': expected 'Manifests-Required'"),
    ({"Manifests-Required": "md5"}, "Manifests-Required is 'md5'; expected a list of strings"),
    ({"Manifests-Required": [""]}, "expected a list of strings"),
    ({"Manifests-Required": ["md5"], "Manifests-Allowed": ["sha1"]}, "which Manifests-Allowed does not allow"),
    ({"Manifests-Allowed": []}, "Manifests-Allowed is empty"),
    ({"Tag-Manifests-Required": ["md5"], "Tag-Manifests-Allowed": []}, "which Tag-Manifests-Allowed does not allow"),
    ({"Tag-Files-Required": ["a/b"], "Tag-Files-Allowed": ["b/*"]}, "which Tag-Files-Allowed does not allow"),
    ({"Tag-Files-Required": ["../a"]}, "path contains a '..' segment"),
    ({"Tag-Files-Required": ["/a"]}, "absolute path"),
    ({"Tag-Files-Required": ["data/a"]}, "path of a payload file"),
    ({"Payload-Files-Required": ["a"]}, "path not in data/"),
    ({"Payload-Files-Required": ["data/a"], "Payload-Files-Allowed": ["data/b"]}, "does not allow"),
    ({"Allow-Fetch.txt": "true"}, "Allow-Fetch.txt is 'true'; expected true or false, without quotes"),
    ({"Allow-Fetch.txt": False, "Fetch.txt-Required": True}, "change one of them"),
    ({"Data-Empty": 1}, "Data-Empty is 1"),
    ({"Serialization": "maybe"}, "expected forbidden, required, optional"),
    ({"Serialization": "required"}, "Accept-Serialization contains no media type"),
    ({"Accept-Serialization": ["zip"]}, "expected media types such as application/zip"),
    ({"Bag-Info": []}, "Bag-Info is not an object"),
    ({"Bag-Info": {"": {}}}, "Bag-Info contains an empty label"),
    ({"Bag-Info": {"A": {}, "a": {}}}, "Bag-Info contains the label 'a' more than once, also as 'A'"),
    ({"Bag-Info": {"A": True}}, "'A' is not an object"),
    ({"Bag-Info": {"A": {"required": "yes"}}}, "Bag-Info: 'A': required is 'yes'; expected true or false"),
    ({"Bag-Info": {"A": {"values": "x"}}}, "Bag-Info: 'A': values is 'x'; expected a list of strings"),
    ({"Bag-Info": {"A": {"description": 1}}}, "description is not a string"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_inconsistent_profiles(changes: dict[str, Any], words: str) -> None:
    """An incomplete or contradictory profile is refused with the section at fault."""
    with pytest.raises(ProfileError) as caught:
        Profile.from_json(json.dumps(SMALL | changes).encode())
    assert words in str(caught.value)


# --- bags


def test_a_conforming_bag(tmp_path: Path) -> None:
    """A bag that satisfies a profile has no problems."""
    made = bag(
        tmp_path,
        algorithms=["sha512", "md5"],
        fetch=b"https://example.org/a 6 data/a.txt\n",
        tag_files={b"DPN/registry": b"x", b"[1].xml": b"y"},
    )
    wanted = profile(
        Bag_Info={
            "Source-Organization": {"required": True, "values": ["Example Library", "Other"]},
            "CONTACT-NAME": {"required": True, "values": ["Ada", "Grace"]},
            "Colour": {"recommended": True, "repeatable": False},
            "External-Identifier": {"values": ["1"]},
        },
        Manifests_Required=["sha-512"],
        Manifests_Allowed=["sha512", "md5"],
        Tag_Manifests_Required=["sha512"],
        Tag_Manifests_Allowed=["sha512"],
        Tag_Files_Required=["DPN/registry"],
        Tag_Files_Allowed=["D*y", "[1].xml"],
        Payload_Files_Required=["data/a.txt", "data/b/"],
        Payload_Files_Allowed=["data/a.tx?", "data/b/*"],
        Fetch_txt_Required=True,
        Serialization="optional",
        Accept_Serialization=["application/zip"],
    )
    assert wanted.check(made) == []
    assert made.check_profile(wanted) == []


CHECKS: list[tuple[dict[str, Any], dict[str, Any], str, bytes]] = [
    ({"Accept_BagIt_Version": ["0.97"]}, {}, "profile-version", "bagit.txt"),
    (
        {"Serialization": "required", "Accept_Serialization": ["application/zip"]},
        {},
        "profile-serialization",
        "",
    ),
    ({}, {"info": b"Colour: blue\n"}, "profile-identifier", "bag-info.txt"),
    ({}, {"info": None}, "profile-identifier", "bag-info.txt"),
    ({}, {"info": b"BagIt-Profile-Identifier: https://other/\n"}, "profile-identifier", "bag-info.txt"),
    ({"Bag_Info": {"X": {"required": True}}}, {}, "profile-element-missing", "bag-info.txt"),
    ({"Bag_Info": {"colour": {"required": True}}}, {}, "profile-element-missing", "bag-info.txt"),
    ({"Bag_Info": {"X": {"recommended": True}}}, {}, "profile-element-recommended", "bag-info.txt"),
    ({"Bag_Info": {"Contact-Name": {"repeatable": False}}}, {}, "profile-element-repeated", "bag-info.txt"),
    ({"Bag_Info": {"Contact-Name": {"values": ["Ada"]}}}, {}, "profile-element-value", "bag-info.txt"),
    ({"Bag_Info": {"Colour": {"values": ["Blue"]}}}, {}, "profile-element-value", "bag-info.txt"),
    ({"Manifests_Required": ["md5"]}, {}, "profile-manifest-missing", "manifest-md5.txt"),
    ({"Manifests_Allowed": ["md5"]}, {}, "profile-manifest-forbidden", "manifest-sha512.txt"),
    ({"Tag_Manifests_Required": ["md5"]}, {}, "profile-tag-manifest-missing", "tagmanifest-md5.txt"),
    ({"Tag_Manifests_Allowed": []}, {}, "profile-tag-manifest-forbidden", "tagmanifest-sha512.txt"),
    ({"Tag_Files_Required": ["a/b"]}, {}, "profile-tag-file-missing", "a/b"),
    ({"Tag_Files_Required": ["data"]}, {}, "profile-tag-file-missing", "data"),
    ({"Tag_Files_Allowed": []}, {"tag_files": {b"a/b": b""}}, "profile-tag-file-forbidden", "a/b"),
    ({"Tag_Files_Allowed": ["A/*"]}, {"tag_files": {b"a/b": b""}}, "profile-tag-file-forbidden", "a/b"),
    ({"Payload_Files_Required": ["data/x"]}, {}, "profile-payload-file-missing", "data/x"),
    ({"Payload_Files_Required": ["data/a.txt/"]}, {}, "profile-payload-file-missing", "data/a.txt/"),
    ({"Payload_Files_Allowed": ["data/a*"]}, {}, "profile-payload-file-forbidden", "data/b/c.txt"),
    ({"Allow-Fetch.txt": False}, {"fetch": b""}, "profile-fetch-forbidden", "fetch.txt"),
    ({"Fetch.txt-Required": True}, {}, "profile-fetch-missing", "fetch.txt"),
    ({"Data_Empty": True}, {}, "profile-data-not-empty", "data"),
    ({"Data_Empty": True}, {"payload": {b"data/a": b"", b"data/b": b""}}, "profile-data-not-empty", "data"),
    ({"Other-Info": []}, {}, "profile-unknown", ""),
    ({"Bag_Info": {"X": {"regex": "."}}}, {}, "profile-unknown", ""),
]


@pytest.mark.parametrize(("sections", "changes", "kind", "path"), CHECKS)
def test_each_section_is_checked(
    tmp_path: Path, sections: dict[str, Any], changes: dict[str, Any], kind: str, path: str
) -> None:
    """A bag that violates one section has exactly that problem."""
    found = profile(**sections).check(bag(tmp_path, **changes))
    assert kinds(found) == [(kind, path)]
    assert all("\n" not in problem.message and problem.message for problem in found)


def test_all_violations_are_reported(tmp_path: Path) -> None:
    """No problem hides another, and an unaccepted version comes first."""
    wanted = profile(
        Accept_BagIt_Version=["0.97"],
        Bag_Info={"X": {"required": True}, "Y": {"required": True}},
        Manifests_Required=["md5"],
        Tag_Files_Required=["a", "b"],
        Payload_Files_Allowed=[],
    )
    assert [kind for kind, _path in kinds(wanted.check(bag(tmp_path)))] == [
        "profile-version",
        "profile-element-missing",
        "profile-element-missing",
        "profile-manifest-missing",
        "profile-tag-file-missing",
        "profile-tag-file-missing",
        "profile-payload-file-forbidden",
        "profile-payload-file-forbidden",
    ]


@pytest.mark.parametrize("payload", [{}, {b"data/.keep": b""}])
def test_an_empty_payload(tmp_path: Path, payload: dict[bytes, bytes]) -> None:
    """A payload without files, or with one empty file, is empty."""
    assert profile(Data_Empty=True).check(bag(tmp_path, payload=payload)) == []


def test_serialized_bags(tmp_path: Path) -> None:
    """The serialization of an unpacked bag can be given."""
    made = bag(tmp_path)
    wanted = profile(Serialization="required", Accept_Serialization=["application/zip"])
    assert wanted.check(made, "application/zip") == []
    [problem] = wanted.check(made, "application/x-tar")
    assert (problem.kind, problem.section) == ("profile-serialization", "Accept-Serialization")
    [problem] = profile(Serialization="forbidden").check(made, "application/zip")
    assert (problem.kind, problem.section) == ("profile-serialization", "Serialization")


def test_several_profiles(tmp_path: Path) -> None:
    """A bag may name several profiles, with a label in any case."""
    info = b"BagIt-Profile-Identifier: https://other/\nbagit-profile-identifier: " + IDENTIFIER.encode() + b"\n"
    assert profile().check(bag(tmp_path, info=info)) == []


def test_many_problems_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems of a kind beyond the limit are counted."""
    monkeypatch.setattr("pressmark.bagit.profile.PROBLEMS_LIMIT", 2)
    payload = {b"data/%d" % number: b"" for number in range(5)}
    found = profile(Payload_Files_Allowed=[]).check(bag(tmp_path, payload=payload))
    assert [kind for kind, _path in kinds(found)] == ["profile-payload-file-forbidden"] * 2 + ["problems-omitted"]
    assert found[-1].message == "3 more of kind profile-payload-file-forbidden"


# --- arbitrary inpu

TEXTS = st.text(max_size=5) | st.sampled_from(
    ["md5", "sha512", "data/a.txt", "*", "a/[", "1.0", "application/zip", "a\0b"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
LISTS_OF_TEXTS = st.lists(TEXTS, max_size=3)
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "required": st.booleans() | VALUES,
        "repeatable": st.booleans(),
        "values": LISTS_OF_TEXTS,
        "description": TEXTS | VALUES,
    },
)
SECTION_NAMES = [name for name in Profile.__dataclass_fields__ if name.endswith(("required", "allowed"))]
SECTIONS = st.dictionaries(
    st.sampled_from([f"{'-'.join(map(str.capitalize, name.split('_')))}" for name in SECTION_NAMES])
    | st.sampled_from(["Accept-BagIt-Version", "Accept-Serialization", "Data-Empty", "Serialization"])
    | TEXTS,
    LISTS_OF_TEXTS | VALUES,
    max_size=4,
)


@given(sections=SECTIONS, elements=st.dictionaries(TEXTS, PARAMETERS, max_size=2) | VALUES)
def test_any_profile(tmp_path_factory: pytest.TempPathFactory, sections: dict[str, Any], elements: Any) -> None:
    """Any profile is refused as such, or can be checked: no other exception is raised."""
    folder = tmp_path_factory.getbasetemp() / "whatever"
    made = Bag.open(folder / "bag") if folder.exists() else bag(folder)
    try:
        found = Profile.from_json(json.dumps(SMALL | sections | {"Bag-Info": elements}).encode())
    except ProfileError as error:
        words = str(error)
    else:
        words = ""
        assert all(problem.kind.startswith("profile-") for problem in found.check(made))
    assert "\n" not in words


@given(st.binary(max_size=50) | TEXTS.map(str.encode))
def test_any_bytes(data: bytes) -> None:
    """Any bytes raise at most the one error."""
    with pytest.raises(ProfileError):
        Profile.from_json(data)


# --- the peer


AGREED = [
    (sections, changes)
    for sections, changes, kind, _path in CHECKS
    # It knows version 1.3; reports repeated elements with allowed values as wrong in any case; checks
    # serialization by file name; recommends nothing; and stops at a directory in place of a file.
    if kind
    not in (
        "profile-serialization",
        "profile-element-recommended",
        "profile-payload-file-missing",
        "profile-payload-file-forbidden",
        "profile-fetch-missing",
        "profile-data-not-empty",
        "profile-unknown",
    )
    and sections != {"Tag_Files_Required": ["data"]}
]


# In its own process, where bagit is that library and not these tests.
PEER = """
import json, logging, sys
import bagit, bagit_profile
logging.disable()
for path, content in json.load(sys.stdin):
    identifier = content["BagIt-Profile-Info"]["BagIt-Profile-Identifier"]
    print(bagit_profile.Profile(identifier, content).validate(bagit.Bag(path)))
"""


@pytest.mark.peers
def test_the_peer_agrees(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The specification's own validator agrees on the bags that it can check."""
    ours = []
    tasks = []
    for number, (sections, changes) in enumerate([({}, {}), *AGREED]):
        made = bag(tmp_path / str(number), **changes)
        content: dict[str, Any] = SMALL | {"Manifests-Required": [], "Bag-Info": {}}
        content |= {name.replace("_", "-"): value for name, value in sections.items()}
        ours.append(str(Profile.from_json(json.dumps(content).encode()).check(made) == []))
        tasks.append((made.path, content))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-W", "ignore", "-c", PEER]
    run = subprocess.run(
        command, env=environment, input=json.dumps(tasks), capture_output=True, text=True, cwd=tmp_path, check=False
    )
    if "ModuleNotFoundError" in run.stderr and not request.config.getoption("--require-peers", default=False):
        pytest.skip(run.stderr.splitlines()[-1])
    assert run.stdout.split() == ours, run.stderr
