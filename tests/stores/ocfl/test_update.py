"""Changes by what differs: files added, removed and renamed, compared with a naive model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pressmark import DirectClean
from pressmark.errors import IdentifierError, ObjectError, StoreError
from pressmark.fixity import copying
from pressmark.stores.ocfl.root import OcflRoot

from .samples import CREATED, at, create, files_of, kinds, reopened, source, tree
from .test_versions import contents, folder, refused

FILES = {"a": b"one", "b": b"two", "d/c": b"three", "d/e/f": b"one"}

pytestmark = pytest.mark.usefixtures("every_storage")


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    """A root with the object ``x``, and new files in ``in``."""
    root = create(tmp_path / "root", "0002")
    root.put("x", source(tmp_path / "first", FILES), created=CREATED)
    source(tmp_path / "in", {"new": b"new", "one": b"one", "more/x": b"x", "more/y/z": b"new"})
    return root


def new_content(root: OcflRoot, version: str) -> list[str]:
    """Return the content files of a version's directory."""
    return sorted(name for name, data in tree(folder(root) / version / "content").items() if data is not None)


# --- what an update does ----------------------------------------------------------------------------------------------

ALL = {"added": 0, "removed": 0, "changed": 0, "renamed": 0, "unchanged": 0}
#: Arguments of update, with names below ``in``; files afterwards, what is stored, and what is reported.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, bytes | None], list[str], dict[str, int]]] = {
    "add": ({"add": {"n": "new"}}, {"n": b"new"}, ["n"], {"added": 1, "unchanged": 4}),
    "add content that is there": ({"add": {"n": "one"}}, {"n": b"one"}, [], {"added": 1, "unchanged": 4}),
    "add over a file": ({"add": {"a": "new"}}, {"a": b"new"}, ["a"], {"changed": 1, "unchanged": 3}),
    "add a directory": (
        {"add": {"m": "more"}},
        {"m/x": b"x", "m/y/z": b"new"},
        ["m/x", "m/y/z"],
        {"added": 2, "unchanged": 4},
    ),
    "add a directory over another": (
        {"add": {"d": "more"}},
        {"d/x": b"x", "d/y/z": b"new"},
        ["d/x", "d/y/z"],
        {"added": 2, "unchanged": 4},
    ),
    "the same content twice": (
        {"add": {"n": "new", "m": "new"}},
        {"n": b"new", "m": b"new"},
        ["n"],
        {"added": 2, "unchanged": 4},
    ),
    "remove": ({"remove": ["a", "d/c"]}, {"a": None, "d/c": None}, [], {"removed": 2, "unchanged": 2}),
    "remove all": ({"remove": [*FILES]}, dict.fromkeys(FILES), [], {"removed": 4}),
    "rename": ({"rename": {"a": "x/y"}}, {"a": None, "x/y": b"one"}, [], {"renamed": 1, "unchanged": 3}),
    "exchange": ({"rename": {"a": "b", "b": "a"}}, {"a": b"two", "b": b"one"}, [], {"changed": 2, "unchanged": 2}),
    "rename over a removed file": (
        {"rename": {"a": "b"}, "remove": ["b"]},
        {"a": None, "b": b"one"},
        [],
        {"removed": 1, "changed": 1, "unchanged": 2},
    ),
    "rename to a directory that goes": (
        {"rename": {"a": "d"}, "remove": ["d/c", "d/e/f"]},
        {"a": None, "d": b"one", "d/c": None, "d/e/f": None},
        [],
        {"renamed": 1, "removed": 2, "unchanged": 1},
    ),
    "rename below a file that goes": (
        {"rename": {"a": "a/b"}},
        {"a": None, "a/b": b"one"},
        [],
        {"renamed": 1, "unchanged": 3},
    ),
    "all at once": (
        {"add": {"n": "new"}, "remove": ["b"], "rename": {"a": "c"}},
        {"n": b"new", "b": None, "a": None, "c": b"one"},
        ["n"],
        {"added": 1, "removed": 1, "renamed": 1, "unchanged": 2},
    ),
    "without deduplication": (
        {"add": {"n": "one", "m": "new", "o": "new"}, "dedup": False},
        {"n": b"one", "m": b"new", "o": b"new"},
        ["m", "n", "o"],
        {"added": 3, "unchanged": 4},
    ),
}


@pytest.mark.parametrize(("change", "files", "stored", "counts"), CHANGES.values(), ids=list(CHANGES))
def test_an_update(
    root: OcflRoot,
    tmp_path: Path,
    change: dict[str, Any],
    files: dict[str, bytes | None],
    stored: list[str],
    counts: dict[str, int],
) -> None:
    """The named files change, all others stay, and only new content is stored."""
    given = {"add": {name: tmp_path / "in" / path for name, path in change.get("add", {}).items()}}
    record = root.update("x", **{**change, **given}, message="why", created=CREATED)
    expected = {name: data for name, data in {**FILES, **files}.items() if data is not None}
    assert contents(root) == expected
    assert new_content(root, "v2") == stored
    assert (record.version, record.changes) == ("v2", {**ALL, **counts})
    assert record.record()["changes"] == record.changes
    block = root.get("x").inventory["versions"]["v2"]
    assert {key: block[key] for key in ("created", "message", "user")} == {
        "created": CREATED,
        "message": "why",
        "user": root.user,
    }
    assert kinds(root.check(digests=True)) == []


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"add": {"a": "one"}},
        {"rename": {"a": "a"}},
        {"add": {"a": "one"}, "dedup": False},
        {"rename": {"a": "d/e/f", "d/e/f": "a"}},
    ],
)
def test_an_update_that_changes_nothing(root: OcflRoot, tmp_path: Path, change: dict[str, Any]) -> None:
    """There is no new version, and the result says so."""
    before = tree(at(root))
    given = {"add": {name: tmp_path / "in" / path for name, path in change.get("add", {}).items()}}
    record = root.update("x", **{**change, **given})
    assert (record.version, record.changes) == ("v1", {**ALL, "unchanged": 4})
    assert tree(at(root)) == before


def test_a_replacement_says_what_it_did(root: OcflRoot, tmp_path: Path) -> None:
    """A replacement is a difference that is computed; content of any earlier version is not stored again."""
    first = tmp_path / "first"
    (first / "a").rename(first / "z")
    (first / "b").write_bytes(b"changed")
    (first / "d/c").unlink()
    (first / "n").write_bytes(b"n")
    record = root.put("x", first, replace=True)
    assert record.version == "v2"
    assert record.changes == {"added": 1, "removed": 1, "changed": 1, "renamed": 1, "unchanged": 1}
    assert new_content(root, "v2") == ["b", "n"]
    record = root.put("x", first, replace=True)
    assert (record.version, record.changes) == ("v2", {**ALL, "unchanged": 4})
    source(first, {"b": b"two", "d/c": b"three"})
    assert root.put("x", first, replace=True).version == "v3"
    assert not (folder(root) / "v3/content").exists()
    assert kinds(root.check(digests=True)) == []


@pytest.mark.on_disk
def test_only_what_is_added_is_read(root: OcflRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def copy(tasks: Iterable[Any], *given: Any, **options: Any) -> Any:
        tasks = list(tasks)
        read.extend(os.fsdecode(os.path.basename(source)) for _key, source, _copy in tasks)
        return copying.copy_files(tasks, *given, **options)

    monkeypatch.setattr("pressmark.stores.object_sources.copy_files", copy)
    for path in (folder(root) / "v1/content").rglob("*"):
        if path.is_file():
            path.write_bytes(b"never read")
    root.update("x", add={"n": tmp_path / "in/new"}, rename={"a": "c"}, copy_mode="copy")
    assert read == ["new"]


def test_empty_directories_are_reported(root: OcflRoot, tmp_path: Path) -> None:
    (tmp_path / "in/more/none").mkdir()
    record = root.update("x", add={"m": tmp_path / "in/more"})
    assert [(one.kind, one.severity) for one in record.problems] == [("directory-empty", "warning")]
    assert "'m/none' not stored" in record.problems[0].message


def test_known_digests(root: OcflRoot, tmp_path: Path) -> None:
    """Digests of added files are compared and stored; digests of other files are refused."""
    new = {"n": tmp_path / "in/new"}
    md5 = "22af645d1859cb5ca6da0c484f1f37ea"
    for digest, name, words in [("0" * 32, "n", "differs from the given"), (md5, "a", "not in the source")]:
        error = refused(
            root, lambda name=name, digest=digest: root.update("x", add=new, fixity={"md5": {name: digest}})
        )
        assert error.kind == "mismatch"
        assert words in str(error)
    root.update("x", add=new, fixity={"md5": {"n": md5}, "sha1": {}})
    fixity = root.get("x").inventory["fixity"]
    assert fixity["md5"] == {md5: ["v2/content/n"]}
    assert [*fixity["sha1"].values()] == [["v2/content/n"]]
    root.update("x", add={"m": tmp_path / "in/one"}, fixity={"md5": {}})
    assert ["v1/content/a"] in root.get("x").inventory["fixity"]["md5"].values()
    assert kinds(root.check(digests=True)) == []


def test_content_paths(root: OcflRoot, tmp_path: Path) -> None:
    """Extension 0011 maps the names of added files; names of others stay logical paths."""
    mapped = reopened(root, content_paths=DirectClean())
    mapped.update("x", add={"what?": tmp_path / "in/new"}, rename={"a": "why?"})
    assert new_content(root, "v2") == [DirectClean().map_id("what?")]
    assert contents(root) == {"what?": b"new", "why?": b"one", "b": b"two", "d/c": b"three", "d/e/f": b"one"}
    assert kinds(root.check(digests=True)) == []


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "remove nothing": ({"remove": ["none"]}, "missing", "'none' is not in the object"),
    "remove a directory": ({"remove": ["d"]}, "missing", "'d' is a directory in the object; specify its files"),
    "rename nothing": ({"rename": {"none": "n"}}, "missing", "'none' is not in the object"),
    "rename a directory": ({"rename": {"d/e": "n"}}, "missing", "'d/e' is a directory in the object"),
    "rename over a file": ({"rename": {"a": "b"}}, "collision", "'b' is in the object; rename 'a' to another name"),
    "rename two to one": ({"rename": {"a": "n", "b": "n"}}, "collision", "'n' is specified twice"),
    "add and rename to one": ({"add": {"n": "new"}, "rename": {"a": "n"}}, "collision", "'n' is specified twice"),
    "add and rename one": ({"add": {"a": "new"}, "rename": {"a": "n"}}, "collision", "'a' is specified twice"),
    "add and remove": ({"add": {"a": "new"}, "remove": ["a"]}, "collision", "'a' is specified twice"),
    "remove and rename": ({"remove": ["a"], "rename": {"a": "n"}}, "collision", "'a' is specified twice"),
    "remove twice": ({"remove": ["a", "a"]}, "collision", "'a' is specified twice"),
    "add twice": ({"add": {"m": "more", "m/x": "new"}}, "bad-name", "'m/x' is specified twice"),
    "file and directory": ({"add": {"a/b": "new"}}, "collision", "'a' would be a file and a directory"),
    "directory and file": ({"add": {"d": "new"}}, "collision", "'d' would be a file and a directory"),
    "renamed below a file": ({"rename": {"b": "a/b"}}, "collision", "'a' would be a file and a directory"),
    "added below a renamed file": (
        {"rename": {"b": "n"}, "add": {"n/m": "new"}},
        "collision",
        "'n' would be a file and a directory",
    ),
    "bad name to add": ({"add": {"../n": "new"}}, "bad-name", "'../n' has an element that is empty, '.' or '..'"),
    "bad new name": ({"rename": {"a": "/n"}}, "bad-name", "the path '/n' begins or ends with '/'"),
    "bad name to remove": ({"remove": ["a/"]}, "bad-name", "the path 'a/' begins or ends with '/'"),
    "empty name": ({"add": {"": "new"}}, "bad-name", "begins or ends|empty"),
    "NUL": ({"rename": {"a": "n\0"}}, "bad-name", "contains a NUL character"),
    "not UTF-8": ({"rename": {"a": "\udcff"}}, "bad-name", "is not UTF-8"),
    "no source": ({"add": {"n": "none"}}, "source", "none"),
    "too long": ({"add": {"n" * 256: "new"}}, "bad-name", "too long|name"),
}


@pytest.mark.parametrize(("change", "kind", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_refused(root: OcflRoot, tmp_path: Path, change: dict[str, Any], kind: str, words: str) -> None:
    """A contradiction is refused in one line, and nothing changes."""
    given = {"add": {name: tmp_path / "in" / path for name, path in change.get("add", {}).items()}}
    error = refused(root, lambda: root.update("x", **{**change, **given}))
    assert error.kind == kind
    assert any(word in str(error) for word in words.split("|"))


def test_names_are_judged_before_anything_is_read(
    root: OcflRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: Any, **_options: Any) -> None:
        raise AssertionError("a file was copied")

    monkeypatch.setattr("pressmark.stores.object_sources.copy_files", fail)
    for change in ({"remove": ["none"]}, {"rename": {"a": "b"}}, {"rename": {"a": "n/x"}}, {"remove": ["n"]}):
        assert refused(root, lambda change=change: root.update("x", add={"n": tmp_path / "in/new"}, **change))


def test_objects_that_cannot_be_updated(root: OcflRoot, tmp_path: Path) -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: root.update("none", remove=["a"]), "missing"),
        (lambda: root.update("extensions", remove=["a"]), "reserved"),
    ]
    for call, kind in calls:
        assert refused(root, call).kind == kind
    with pytest.raises(IdentifierError):
        root.update("", remove=["a"])
    for options, words in [
        ({"created": "yesterday"}, "created is 'yesterday'; specify an RFC 3339 date and time"),
        ({"created": "2026-02-30T00:00:00Z"}, "RFC 3339"),
        ({"user": {"address": "mailto:a@example.org"}}, "invalid user; specify a name"),
        ({"user": {"name": "A", "phone": "1"}}, "invalid user; specify a name"),
    ]:
        for change in (root.update, lambda identifier, **options: root.put(identifier, tmp_path / "in", **options)):
            with pytest.raises(StoreError, match=words):
                change("x", **options)
    with pytest.raises(TypeError, match="expected a list of logical paths"):
        root.update("x", remove="a")
    with pytest.raises(StoreError, match="forbids hard links"):
        root.update("x", add={"n": tmp_path / "in/new"}, copy_mode="hardlink")


def test_a_mutable_head(root: OcflRoot, tmp_path: Path) -> None:
    """An object with staged changes is listed with a warning, read without them, and not changed."""
    assert not root.get("x").has_mutable_head()
    save = folder(root) / "extensions/0005-mutable-head/head/inventory.json"
    save.parent.mkdir(parents=True)
    save.write_bytes(b"{}")
    for change in (
        lambda: root.update("x", remove=["a"]),
        lambda: root.put("x", tmp_path / "in", replace=True),
        lambda: root.restore("x", "v1", ["a"]),
        lambda: root.delete("x"),
    ):
        error = refused(root, change)
        assert error.kind == "mutable-head"
        assert "commit it with ocfl-java first" in str(error)
    assert root.get("x").has_mutable_head()
    expected = [("mutable-head", "warning", "x/extensions/0005-mutable-head")]
    for ignore in ((), ("junk",)):
        [record] = root.objects(ignore=ignore)
        assert [(one.kind, one.severity, one.path) for one in record.problems] == expected
        assert record.proper
    report = root.check()
    found = [(one.kind, one.severity, one.path) for one in report.problems if one.kind != "inventory-advice"]
    assert found == expected
    assert report.ok


def test_two_runs_update_one_object(root: OcflRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update that another run has overtaken starts again, from what is there now."""
    other = reopened(root, user=root.user)
    real = root.refuse_too_long
    changes: list[Callable[[], object]] = [
        lambda: other.update("x", add={"theirs": tmp_path / "in/one"}),
        lambda: other.update("x", rename={"theirs": "a/theirs"}, remove=["a"]),
    ]

    def overtaken(*given: Any) -> None:
        if changes:
            changes.pop(0)()
        real(*given)

    monkeypatch.setattr(root, "refuse_too_long", overtaken)
    assert root.update("x", add={"ours": tmp_path / "in/new"}).version == "v4"
    expected = {name: data for name, data in FILES.items() if name != "a"}
    assert contents(root) == {**expected, "a/theirs": b"one", "ours": b"new"}
    changes.append(lambda: other.update("x", remove=["b"]))
    assert refused_after(lambda: root.update("x", rename={"b": "c"})).kind == "missing"
    # Another object with the same identifier and version.
    changes.append(lambda: (other.delete("x"), other.put("x", tmp_path / "in/more")))
    assert root.update("x", add={"mine": tmp_path / "in/new"}).version == "v2"
    assert contents(root) == {"x": b"x", "y/z": b"new", "mine": b"new"}
    assert kinds(root.check(digests=True)) == []
    changes.append(lambda: other.delete("x"))
    assert refused_after(lambda: root.update("x", rename={"mine": "c"})).kind == "missing"


def refused_after(change: Callable[[], object]) -> ObjectError:
    with pytest.raises(ObjectError) as caught:
        change()
    return caught.value


# --- against a model --------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "a/b", "a/b/c", "c", "d/e"])
CONTENTS = st.sampled_from([b"", b"1", b"2"])


def updated(
    before: dict[str, bytes], add: dict[str, bytes], remove: list[str], rename: dict[str, str]
) -> dict[str, bytes] | None:
    """Return the files after an update; :data:`None` if it must be refused."""
    after = dict(before)
    named = [*remove, *rename, *add]
    if len(set(named)) < len(named) or not {*remove, *rename} <= before.keys():
        return None
    for name in (*remove, *rename):
        del after[name]
    for name in add:
        after.pop(name, None)
    for name, data in [*((new, before[old]) for old, new in rename.items()), *add.items()]:
        if name in after:
            return None
        after[name] = data
    if any(other.startswith(f"{name}/") for name in after for other in after):
        return None
    return after


def test_changes_that_are_meant_for_another_version(tmp_path: Path) -> None:
    """With ``base``, an object that has another newest version stays as it is."""
    root = create(tmp_path / "root", "0002")
    (tmp_path / "f").write_bytes(b"1")
    root.put("x", {"one": tmp_path / "f"})
    assert root.update("x", add={"two": tmp_path / "f"}, base="v1").version == "v2"
    for base in ("v1", "v3", "v0002", ""):
        with pytest.raises(ObjectError, match="is not the newest version") as caught:
            root.update("x", remove=["one"], base=base)
        assert caught.value.kind == "changed"
    assert root.update("x", remove=["one"], base="v2").version == "v3"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.dictionaries(NAMES, CONTENTS, max_size=3),
            st.lists(NAMES, max_size=2),
            st.dictionaries(NAMES, NAMES, max_size=2),
            st.booleans(),
        ),
        max_size=5,
    )
)
def test_updates_follow_the_model(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    """After any updates, every version holds what the model says, and the object is valid."""
    folder = tmp_path_factory.mktemp("model")
    root = create(folder / "root", "0002")
    for data in (b"", b"1", b"2"):
        (folder / f"f{data.decode()}").write_bytes(data)
    root.put("x", {})
    states: list[dict[str, bytes]] = [{}]
    for add, remove, rename, dedup in steps:
        expected = updated(states[-1], add, remove, rename)
        sources = {name: folder / f"f{data.decode()}" for name, data in add.items()}
        if expected is None:
            with pytest.raises(ObjectError):
                root.update("x", add=sources, remove=remove, rename=rename, dedup=dedup)
            continue
        record = root.update("x", add=sources, remove=remove, rename=rename, dedup=dedup)
        if expected != states[-1]:
            states.append(expected)
        assert record.version == f"v{len(states)}"
    for number, files in enumerate(states, 1):
        found = root.get("x", version=number)
        assert files_of(found) == files
    assert kinds(root.check(digests=True)) == []
