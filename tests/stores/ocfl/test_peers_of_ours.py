"""Other programs validate the storage roots that Pressmark writes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrate.samples import make, objects
from pressmark import DirectClean, migrate
from pressmark.stores.ocfl.root import OcflRoot
from support.effort import LONG
from support.samples import OCFL_WORDS

from .peer_disagreements import DISAGREEMENTS, Disagreement, Subject, unexplained
from .peers import Peer, marks
from .samples import LAYOUTS, USER, create, kinds, source

pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.slow_under_sanitizers]

WORDS = [word for word in LAYOUTS if word in (*OCFL_WORDS, "0003-flat")]
VERSIONS = [("1.0", "sha256"), ("1.1", "sha512")]
KINDS = [
    (word, version, algorithm)
    for word in WORDS
    for version, algorithm in VERSIONS + ([("1.0", "sha512"), ("1.1", "sha256")] if LONG else [])
    if (word, version) != ("0010", "1.0")  # 0010 needs OCFL 1.1
    # The version of OCFL changes nothing in a layout.
    if LONG or version == "1.1" or word in WORDS[:3]
]
CAREFUL = (
    *("with space", " leading", "trailing ", "dot.", ".hidden", "-dash", "~", "CON", "a%20b", "#?*[x]", "apos'"),
    *("caf\u00e9", "cafe\u0301", "\u4f8b/\U0001f600", "\u2028", "\u0130", "\x7f", "n" * 200, "d/e/e/p/f"),
)
ESCAPED = ('quo"te', "back\\slash", "tab\t", "line\nfeed", "\x01")
Files = dict[str, bytes]


def identifier(word: str, number: int) -> str:
    """Return an identifier that every peer that knows the layout maps to the path of the specification."""
    match word[:4]:
        case "0007" | "0010":
            return f"info:{number:03}"
        case "0003" | "0004":
            return f"info:x{number}/\u00e9"
        case "0012":
            return f"info:\u4f8b {number}"
        case _:
            return f"info:x{number}"


class Life:
    """A storage root with objects that have gone through every change."""

    def __init__(self, folder: Path, word: str, version: str, algorithm: str) -> None:
        self.folder = folder / "root"
        self._given = folder / "given"
        self.word = word
        self.root = create(self.folder, word, version=version, algorithm=algorithm)
        self.mapped = OcflRoot(self.folder, content_paths=DirectClean(encode_utf=True), user=USER, durable=False)
        self._number = 0
        for change in CHANGES:
            self._number += 1
            change(self)
        shutil.rmtree(self._given, ignore_errors=True)

    @property
    def id(self) -> str:
        """The identifier of the object that is changed."""
        return identifier(self.word, self._number)

    def source(self, files: Files) -> Path:
        """Return a directory with these files alone."""
        shutil.rmtree(self._given, ignore_errors=True)
        self._given.mkdir()
        return source(self._given, files) if files else self._given

    def put(self, files: Files, **options: Any) -> str:
        """Store the next version of the object, and return its path."""
        store = options.pop("store", self.root)
        return store.put(self.id, self.source(files), message="why", replace=True, **options).path


def _once(life: Life) -> None:
    life.put({"a": b"1", "d/b": b"2", "same": b"1"})


def _with_fixity(life: Life) -> None:
    life.put({"a": b"1", "b": b"2"}, fixity={"md5": {}, "sha1": {}, "sha256": {}, "blake2b-512": {}})
    life.put({"a": b"1", "c": b"3"}, fixity={"md5": {}})


def _with_fixity_of_extension(life: Life) -> None:
    life.put({"a": b"1"}, fixity={"blake2b-160": {}, "blake2b-256": {}, "blake2b-384": {}, "sha512/256": {}})


def _replaced(life: Life) -> None:
    life.put({"a": b"1", "b": b"2", "c": b"3"})
    life.put({"a": b"1 changed", "renamed": b"2", "added": b"4"})
    life.put({"a": b"1"})  # content of the first version
    life.put({"a": b"1", "again/c": b"3", "again/d": b"3"})


def _emptied(life: Life) -> None:
    life.put({})
    life.put({"a": b"1"})
    life.put({})


def _of_careful_names(life: Life) -> None:
    life.put({name: name.encode() for name in CAREFUL})
    life.put({f"moved/{name}": name.encode() for name in CAREFUL})


def _of_escaped_names(life: Life) -> None:
    life.put({name: name.encode() for name in ESCAPED})


def _with_clean_paths(life: Life) -> None:
    life.put({name: name.encode() for name in (*CAREFUL, "a:b", "a*b")}, store=life.mapped)
    life.put({"a:b": b"new", "a?b": b"new too"}, store=life.mapped)


def _of_many_versions(life: Life) -> None:
    for number in range(11):
        life.put({"same": b"same", f"of {number}": b"%d" % number})


def _deleted(life: Life) -> None:
    life.put({"a": b"1"})
    life.root.delete(life.id)


def _stored_again(life: Life) -> None:
    _deleted(life)
    life.put({"a": b"1"})


def _repaired(life: Life) -> None:
    path = life.folder / life.put({"a": b"1"})
    for sidecar in path.glob("inventory.json.*"):
        sidecar.unlink()
    declaration = next(path.glob("0=*"))
    declaration.write_bytes(declaration.read_bytes().strip() + b"\r\n")
    (life.folder / "empty/below").mkdir(parents=True)
    assert kinds(life.root.repair()) == []


def _updated(life: Life) -> None:
    life.put({"a": b"1", "b": b"2", "d/c": b"3", "same": b"1"}, fixity={"md5": {}})
    given = life.source({"a": b"1 changed", "new": b"4", "also new": b"1"})
    how: dict[str, Any] = {"message": "why"}
    life.root.update(life.id, add={"a": given / "a", "e/new": given / "new"}, fixity={"sha1": {}}, **how)
    life.root.update(life.id, remove=["b"], **how)
    life.root.update(life.id, rename={"d/c": "f/c", "a": "same", "same": "a"}, **how)
    life.root.update(life.id, add={"again": given / "also new"}, **how)  # content of the first version
    life.root.update(life.id, add={"copy": given / "also new"}, dedup=False, **how)
    life.root.update(life.id, add={"b": given}, remove=["again"], rename={"f/c": 'quo"te \u00e9'}, **how)
    head = life.root.get(life.id).inventory["head"]
    life.root.update(life.id, add={"e/new": given / "new"}, **how)  # no change, no version
    assert life.root.get(life.id).inventory["head"] == head == "v7"


def _updated_with_clean_paths(life: Life) -> None:
    life.put({name: name.encode() for name in CAREFUL}, store=life.mapped)
    given = life.source({"new": b"new"})
    renamed = {name: f"renamed:{number}" for number, name in enumerate(CAREFUL)}
    life.mapped.update(life.id, add={"a?b": given / "new", "a*b": given / "new"}, message="why")
    life.mapped.update(life.id, rename=renamed, message="why")
    life.root.update(life.id, remove=list(renamed.values()), message="why")


def _restored(life: Life) -> None:
    life.put({"a": b"1", "b": b"2", "d/c": b"3"})
    life.put({"a": b"1 changed", "d/e": b"4"})
    life.root.restore(life.id, "v1", ["a", "d"], message="why")
    life.root.restore(life.id, "v2", message="why")
    life.root.restore(life.id, "v1", message="why")
    assert life.root.get(life.id).inventory["head"] == "v5"


def _restored_from_and_to_nothing(life: Life) -> None:
    life.put({"a": b"1", "same": b"1", "d/also the same": b"1"})
    life.put({})
    life.root.restore(life.id, "v1", message="why")
    life.root.restore(life.id, "v2", message="why")
    life.root.restore(life.id, "v3", ["d"], message="why")
    life.root.update(life.id, add={"again": life.source({"x": b"1"}) / "x"}, dedup=False, message="why")
    life.root.restore(life.id, "v1", message="why")
    assert life.root.get(life.id).inventory["head"] == "v7"


def _restored_with_clean_paths(life: Life) -> None:
    life.put({name: name.encode() for name in CAREFUL}, store=life.mapped)
    life.put({"a:b": b"new"}, store=life.mapped)
    life.mapped.restore(life.id, "v1", CAREFUL[:3], message="why")
    life.root.restore(life.id, "v1", message="why")


def _with_another_algorithm(life: Life) -> None:
    life.put({"a": b"1", "d/b": b"2", "same": b"1"}, fixity={"md5": {}, "sha512": {}, "sha256": {}})
    life.put({"a": b"1", "c": b"3"})
    for algorithm in ("sha256", "sha512", "sha256"):
        [result] = life.root.upgrade([life.id], algorithm=algorithm, message="why")
        assert result.error is None
    life.put({"a": b"1", "c": b"4"})


CHANGES: tuple[Callable[[Life], None], ...] = (
    *(_once, _with_fixity, _with_fixity_of_extension, _replaced, _emptied, _of_careful_names, _of_escaped_names),
    *(_with_clean_paths, _of_many_versions, _deleted, _stored_again, _repaired, _updated, _updated_with_clean_paths),
    *(_restored, _restored_from_and_to_nothing, _restored_with_clean_paths, _with_another_algorithm),
)


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Make a storage root of a layout, OCFL version and digest algorithm."""
    return Life(tmp_path_factory.mktemp("life"), *request.param)


def test_every_object_is_valid(life: Life, peer: Peer, record_property: Callable[[str, object], None]) -> None:
    """A peer finds every object valid: by its path, by its identifier if it knows the layout, and in the whole root."""
    report = life.root.check(digests=True)
    assert kinds(report) == []
    advice = {problem.code for problem in report.problems}
    objects = {record.path: str(record.id) for record in life.root.objects()}
    assert len(objects) == len(CHANGES) - 1  # one is deleted
    subjects = {path: Subject(LAYOUTS[life.word], name, life.folder / path) for path, name in objects.items()}
    asked = {path: (path, subject) for path, subject in subjects.items()}
    verdicts = peer.validate(life.folder, paths=list(objects))
    if peer.knows(LAYOUTS[life.word]):
        asked |= {subject.identifier: (path, subject._replace(by_id=True)) for path, subject in subjects.items()}
        verdicts |= peer.validate(life.folder, ids=list(objects.values()))
    assert verdicts.keys() == asked.keys()
    reasons: set[str] = set()
    for name, verdict in verdicts.items():
        for texts, known in ((verdict.errors, set()), (verdict.warnings, advice)):
            left, used = unexplained(peer.name, asked[name][1], texts)
            assert [text for text in left if text.strip("[")[:4] not in known] == [], name
            reasons |= used
    for error in peer.validate_root(life.folder) or ():
        assert any(unexplained(peer.name, subject, [error])[1] for subject in subjects.values()), error
    record_property("ocfl peer", json.dumps([peer.name, "ours", len(objects), sorted(reasons)]))


def test_a_damaged_object_is_reported(tmp_path: Path, peer: Peer) -> None:
    """A peer reads the content: it reports a changed byte by path, by identifier, and in the whole root."""
    root = create(tmp_path / "root")
    path = root.put("info:x", source(tmp_path / "in", {"a": b"1"}), message="why").path
    (tmp_path / "root" / path / "v1/content/a").write_bytes(b"2")
    assert kinds(root.check(digests=True)) == ["content-mismatch"]
    for verdicts in (
        peer.validate(tmp_path / "root", paths=[path]),
        peer.validate(tmp_path / "root", ids=["info:x"]),
    ):
        [verdict] = verdicts.values()
        assert verdict.errors
    assert peer.validate_root(tmp_path / "root") != []


@pytest.fixture(scope="module", params=["pairtree", "bags", "ocfl"])
def migrated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OcflRoot:
    """Return a root with the objects of another store, hostile identifiers and names, and of a run that catches up."""
    folder = tmp_path_factory.mktemp("migrated")
    given = objects()
    store = make(request.param, folder / "source", given, folder / "given")
    plan = migrate.plan(folder / "source", folder / "root", to="ocfl", layout="0003", verify="reread")
    assert migrate.run(plan, processes=False).by_status == {"ok": len(given)}
    for number, (identifier, files) in enumerate(list(given.items())[::3]):
        changed = source(folder / f"changed {number}", {**files, "added": b"new", "same": b"changed"})
        store.put(identifier, changed, replace=True)
    assert migrate.run(migrate.catch_up(plan), processes=False).by_status == {"ok": number + 1}
    root = OcflRoot(folder / "root")
    assert kinds(root.check(digests=True)) == []
    return root


def test_every_migrated_object_is_valid(
    migrated: OcflRoot, peer: Peer, record_property: Callable[[str, object], None]
) -> None:
    """A peer finds the objects of a migration valid, which are written many at once."""
    every_object_is_valid(migrated, peer, record_property)


#: Upgrades of roots: layout, digest algorithm before, and the form that is asked for.
UPGRADES: list[tuple[str, str, dict[str, str]]] = [
    ("0003", "sha256", {"to": "1.1", "algorithm": "sha512"}),
    ("0004", "sha512", {"to": "1.1"}),
    ("0007", "sha512", {"algorithm": "sha256"}),
    *((one, "sha256", {"to": "1.1", "algorithm": "sha512"}) for one in WORDS if LONG and one not in ("0003", "0010")),
]


def _named(upgrade: tuple[str, str, dict[str, str]]) -> str:
    return "-".join([upgrade[0], *upgrade[2].values()])


def states(root: OcflRoot, identifier: str) -> list[Files]:
    """Return the files of each version of an object."""
    versions = [root.get(identifier, one.version) for one in root.versions(identifier)]
    return [{name: Path(path).read_bytes() for name, path in found.files()} for found in versions]


def stored(root: OcflRoot) -> dict[Path, tuple[int, bytes]]:
    """Return the inode and the content of each content file."""
    paths = [path for path in Path(root.root).glob("**/content/**/*") if path.is_file()]
    return {path: (path.stat().st_ino, path.read_bytes()) for path in paths}


@pytest.fixture(scope="module", params=UPGRADES, ids=_named)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OcflRoot:
    """Return a root of OCFL 1.0 whose objects have another form since, and then came back to older states.

    Nothing is copied: each content file stays, and each version keeps its files.
    """
    word, algorithm, form = request.param
    root = Life(tmp_path_factory.mktemp("upgraded"), word, "1.0", algorithm).root
    before = {str(record.id): states(root, str(record.id)) for record in root.objects()}
    content = stored(root)
    for result in root.upgrade(message="why", **form):
        assert result.record is not None, result.error
        earlier = before[str(result.id)]
        assert states(root, str(result.id)) == earlier + ([] if result.record.exists_same else earlier[-1:])
    for identifier, earlier in before.items():
        first, last = earlier[0], earlier[-1]
        root.restore(identifier, 1, message="why")
        for name in sorted(last)[:1]:
            root.restore(identifier, len(earlier), [name], message="why")
            assert states(root, identifier)[-1] == {**first, name: last[name]}
        root.restore(identifier, len(earlier), message="why")
        found = states(root, identifier)
        assert (found[: len(earlier)], found[-1]) == (earlier, last)
    assert stored(root) == content
    assert kinds(root.check(digests=True)) == []
    return root


def test_every_upgraded_object_is_valid(
    upgraded: OcflRoot, peer: Peer, record_property: Callable[[str, object], None]
) -> None:
    """A peer finds the objects of an upgraded root valid, and the root."""
    every_object_is_valid(upgraded, peer, record_property)
    folder = Path(upgraded.root)
    assert upgraded.layout is not None
    subjects = [Subject(upgraded.layout, str(one.id), folder / one.path) for one in upgraded.objects()]
    for error in peer.validate_root(folder) or ():
        assert any(unexplained(peer.name, subject, [error])[1] for subject in subjects), error


def every_object_is_valid(root: OcflRoot, peer: Peer, record_property: Callable[[str, object], None]) -> None:
    folder = Path(root.root)
    assert root.layout is not None
    subjects = {record.path: Subject(root.layout, str(record.id), folder / record.path) for record in root.objects()}
    verdicts = peer.validate(folder, paths=list(subjects))
    assert verdicts.keys() == subjects.keys()
    found = {path: unexplained(peer.name, subjects[path], verdict.errors) for path, verdict in verdicts.items()}
    assert {path: left for path, (left, _used) in found.items() if left} == {}
    reasons = sorted({reason for _left, used in found.values() for reason in used})
    record_property("ocfl peer", json.dumps([peer.name, "ours", len(subjects), reasons]))


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        pytest.param(name, entry, id=f"{name} {entry.what}", marks=marks(name))
        for entry in DISAGREEMENTS
        for name in entry.peers
    ],
)
def test_every_disagreement_is_still_there(
    tmp_path: Path,
    name: str,
    entry: Disagreement,
    peer_named: Callable[[str], Peer],
    record_property: Callable[[str, object], None],
) -> None:
    """A peer reports the example of an entry, which is valid here, and does not report its control."""
    peer = peer_named(name)
    for number, example in enumerate((entry.example, entry.control)):
        folder = tmp_path / str(number)
        create(folder, example.layout)
        root = OcflRoot(folder, user=USER, content_paths=DirectClean() if example.is_mapped else None, durable=False)
        given = source(tmp_path / f"given {number}", {example.name: b"1"})
        fixity: dict[str, dict[str, str]] = {algorithm: {} for algorithm in example.fixity}
        path = root.put(example.identifier, given, message="why", fixity=fixity).path
        if example.is_upgraded:
            copy = Path(given, example.name)
            root.update(example.identifier, add={"copy": copy}, message="why", dedup=example.dedup)
            assert [one.error for one in root.upgrade(message="why", algorithm="sha256")] == [None]
        report = root.check(digests=True)
        assert kinds(report) == []
        subject = Subject(LAYOUTS[example.layout], example.identifier, folder / path, by_id=True)
        asked = (peer.validate(folder, paths=[path]), peer.validate(folder, ids=[example.identifier]))
        texts = [text for found in asked for verdict in found.values() for text in verdict.errors + verdict.warnings]
        left, used = unexplained(name, subject, texts)
        assert {text.strip("[")[:4] for text in left} <= {problem.code for problem in report.problems}
        assert used == ({entry.what} if example is entry.example else set())
    record_property("ocfl peer", json.dumps([name, "ours", 2, [entry.what]]))
