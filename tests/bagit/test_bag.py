"""An opened bag: the content of its tag files, without reading its payload."""

from __future__ import annotations

import hashlib
import inspect
import os
from pathlib import Path

import pytest

import pressmark
from pressmark.bagit import Bag, BagInfo, bag_tags
from pressmark.bagit.fetch.fetch_txt import FetchEntry
from pressmark.errors import BagError

from .bags import PAYLOAD, Sketch, digest
from .watching import watched

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


@pytest.mark.parametrize("as_bytes", [False, True])
def test_attributes_of_a_bag(tmp_path: Path, as_bytes: bool) -> None:
    """Version, encoding, elements, manifests and fetch entries are attributes."""
    path = Sketch(
        version="0.97",
        info=b"Contact-Name: A\nContact-Name: B\n",
        algorithms=["sha512", "md5"],
        tag_algorithms=["sha256"],
        manifests={"manifest-tiger.txt": b""},
        fetch=b"https://example.org/a 6 data/a.txt\nnonsense\nhttps://example.org/c - data/b/c.txt\n",
    ).write(tmp_path / "bag")
    opened = Bag.open(os.fsencode(path) if as_bytes else path)
    assert (opened.path, opened.version, opened.encoding) == (str(path), (0, 97), "UTF-8")
    assert opened.info.all("contact-name") == ["A", "B"]
    assert opened.algorithms == ("md5", "sha512")
    assert opened.tag_algorithms == ("sha256",)
    assert [(one.name, one.algorithm, one.known) for one in opened.manifests] == [
        (b"manifest-md5.txt", "md5", True),
        (b"manifest-sha512.txt", "sha512", True),
        (b"manifest-tiger.txt", "tiger", False),
    ]
    assert [one.name for one in opened.tag_manifests] == [b"tagmanifest-sha256.txt"]
    entries = [
        FetchEntry("https://example.org/a", 6, b"data/a.txt", 1),
        FetchEntry("https://example.org/c", None, b"data/b/c.txt", 3),
    ]
    assert (list(opened.fetch), list(opened.fetch), len(opened.fetch)) == (entries, entries, 2)
    assert repr(opened) == f"<Bag {os.fspath(path)!r}: BagIt 0.97, md5, sha512>"


def test_every_bag_has_all_methods(tmp_path: Path) -> None:
    """An opened, created or changed bag is a :class:`Bag` with all methods."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "a.txt").write_bytes(b"a")
    elsewhere = pressmark.bagit.create(tmp_path / "given", tmp_path / "bag", algorithms=["md5"])
    in_place = pressmark.bagit.make_bag(tmp_path / "given", algorithms=["md5"])
    changed = pressmark.bagit.update(tmp_path / "bag", add=["sha512"])
    changed_again = changed.update(drop=["md5"])
    opened = pressmark.bagit.open(os.fsencode(tmp_path / "bag"))
    for one in (elsewhere, in_place, changed, changed_again, opened, Bag.open(tmp_path / "bag")):
        assert type(one) is Bag
        assert one.validate("complete").ok
    assert [one.algorithms for one in (elsewhere, changed, changed_again, opened)] == [
        ("md5",),
        ("md5", "sha512"),
        ("sha512",),
        ("sha512",),
    ]


def test_payload(tmp_path: Path) -> None:
    """Payload entries are read from the manifests on first use, and only once."""
    path = Sketch().write(tmp_path / "bag")
    opened = Bag.open(path)
    assert opened.payload is opened.payload
    assert {one.path: one.digests["sha512"] for one in opened.payload.entries()} == {
        name: digest(data, "sha512") for name, data in PAYLOAD.items()
    }
    opened.payload.close()


def test_minimal(tmp_path: Path) -> None:
    """A bag with only bagit.txt can be opened; everything else is empty."""
    (tmp_path / "bagit.txt").write_bytes(b"")
    opened = Bag.open(tmp_path)
    assert (opened.version, opened.encoding) == ((1, 0), "UTF-8")
    assert isinstance(opened.info, BagInfo)
    assert (opened.info.elements, opened.manifests, opened.tag_manifests) == ([], (), ())
    assert (opened.algorithms, opened.tag_algorithms, list(opened.fetch), len(opened.payload)) == ((), (), [], 0)


def test_directories_that_are_not_bags(tmp_path: Path) -> None:
    """A directory without bagit.txt, or a path that is not a directory, is refused by name."""
    with pytest.raises(BagError, match=r"bagit.txt not found") as caught:
        Bag.open(tmp_path)
    assert caught.value.path == str(tmp_path)
    for name in ("missing", "file"):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(BagError, match=name):
            Bag.open(tmp_path / name)


@posix
def test_tag_files_that_lead_outside(tmp_path: Path) -> None:
    """Opening a bag does not read the targets of links that lead out of it."""
    path = Sketch(fetch=b"https://example.org/a 6 data/a.txt\n").write(tmp_path / "bag")
    for name in ("bag-info.txt", "manifest-sha512.txt", "fetch.txt"):
        (path / name).rename(tmp_path / name)
        (path / name).symlink_to(tmp_path / name)
    with watched(path) as outside:
        opened = Bag.open(path)
        assert (opened.info.elements, list(opened.fetch), len(opened.payload)) == ([], [], 0)
    assert [one for one in outside if one.startswith(str(tmp_path / "bag-info"))] == []
    assert outside == []


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable tag file is an error when it is needed."""
    path = Sketch().write(tmp_path / "bag")
    original = bag_tags.BagDirectory.open

    def broken(self: bag_tags.BagDirectory, name: bytes) -> object:
        if name == failing:
            raise OSError(5, os.strerror(5))
        return original(self, name)

    monkeypatch.setattr(bag_tags.BagDirectory, "open", broken)
    failing = b"bag-info.txt"
    with pytest.raises(BagError, match=r"bag-info\.txt"):
        Bag.open(path)
    failing = b"manifest-sha512.txt"
    opened = Bag.open(path)
    with pytest.raises(BagError, match=r"manifest-sha512\.txt"):
        _ = opened.payload


def test_methods(tmp_path: Path) -> None:
    """The methods of a bag equal the functions, with their options."""
    path = Sketch().write(tmp_path / "bag")
    assert Bag.open(path).validate().ok
    (path / "data" / "a.txt").write_bytes(b"other\n")
    opened = Bag.open(path)
    assert not opened.validate().ok
    assert opened.validate("complete").ok
    assert not opened.validate("full", threads=1, read="sequential").ok


def test_methods_repeat_the_signatures_of_their_functions() -> None:
    """A method has the parameters of its function, after the bag, and the same result."""
    for name in ("validate", "update", "complete"):
        function, method = (inspect.signature(getattr(one, name)) for one in (pressmark.bagit, Bag))
        assert list(function.parameters.values())[1:] == list(method.parameters.values())[1:], name
        assert function.return_annotation == method.return_annotation, name


def test_entries(tmp_path: Path) -> None:
    """Payload files come first, then tag files; each has a digest of every manifest that lists it."""
    path = Sketch(algorithms=["md5", "sha512"], tag_algorithms=["md5", "sha512"]).write(tmp_path / "bag")
    bag = Bag.open(path)
    payload = sorted(os.fsdecode(name) for name in PAYLOAD)
    assert sorted(list(bag.entries)[: len(payload)]) == payload
    assert set(bag.entries) == {*payload, "bagit.txt", "bag-info.txt", "manifest-md5.txt", "manifest-sha512.txt"}
    for name, digests in bag.entries.items():
        data = (path / name).read_bytes()
        assert digests == {one: hashlib.new(one, data).hexdigest() for one in ("md5", "sha512")}
    (path / "tagmanifest-md5.txt").unlink()
    (path / "tagmanifest-sha512.txt").unlink()
    assert sorted(Bag.open(path).entries) == payload


def test_saving(tmp_path: Path) -> None:
    """Changed, added and deleted elements are written; the payload is only accepted if asked for."""
    path = tmp_path / "bag"
    path.mkdir()
    (path / "a.txt").write_bytes(b"a\n")
    bag = pressmark.bagit.make_bag(path, {"Contact-Name": "Jane Doe", "Note": "x"})
    before = (path / "bag-info.txt").read_bytes()
    bag.save()
    assert (path / "bag-info.txt").read_bytes() == before
    bag.info["Contact-Name"] = ["Joe", "Ann"]
    bag.info["New"] = "1"
    del bag.info["Note"]
    bag.save()
    assert bag.is_valid()
    info = Bag.open(path).info
    assert (info["Contact-Name"], info["New"], "Note" in info) == (["Joe", "Ann"], "1", False)
    assert dict(bag.info) == dict(info)

    (path / "data" / "a.txt").write_bytes(b"b\n")
    bag.info["New"] = "2"
    bag.save()
    assert not bag.is_valid()
    assert Bag.open(path).info["New"] == "2"
    bag.save(manifests=True)
    assert bag.is_valid()
    assert bag.entries["data/a.txt"] == {"sha512": hashlib.sha512(b"b\n").hexdigest()}
    bag.info["Payload-Oxum"] = "1.1"
    with pytest.raises(ValueError, match="Payload-Oxum"):
        bag.save()


def test_public_names() -> None:
    """The package imports its public names on first use, and has no others."""
    assert pressmark.bagit.Bag is Bag
    with pytest.raises(AttributeError, match="nothing"):
        _ = pressmark.bagit.nothing
