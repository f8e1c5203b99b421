"""Bags on a real server: created, packed, validated, and read as a folder; its directory holds the same bags."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from pressmark import bagit
from pressmark.buckets import address
from pressmark.buckets.bucket import ANY
from pressmark.buckets.s3 import S3Bucket
from pressmark.errors import BagError, StoreError
from pressmark.stores import BagFolder

from .proxy import HALF, LOSE, Fault, Proxy, Request

ENDINGS = ("tar", "tar.gz", "zip")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with many small files, and a large one that is sent in parts."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number:02} ü+&.txt").write_bytes(b"%d\n" % number)
    (folder / "large").write_bytes(random.Random(3).randbytes((20 << 20) + 7))
    (folder / "large").chmod(0o640)
    os.utime(folder / "large", (1_000_000_000, 1_000_000_000))
    return folder


def lead_to(bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "open_bucket", lambda text: (bucket, address.parse(text)[1]))


def test_on_a_server(s3: S3Bucket, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written is valid, in the bucket and as a copy; damage is found."""
    lead_to(s3, monkeypatch)
    bag = bagit.create(files, tmp_path / "bag")
    bagit.create(files, f"{s3.url}/shelf/tree")
    for ending in ENDINGS:
        bagit.pack(bag, f"{s3.url}/shelf/packed.{ending}")
    for level in ("full", "complete"):
        reports = bagit.validate_many(
            [f"{s3.url}/shelf/{one}" for one in ("tree", *(f"packed.{e}" for e in ENDINGS))], level
        )
        for report in reports:
            assert isinstance(report, bagit.BagReport)
            assert report.ok
            assert report.counts["files"] == 41
    assert s3.head(b"shelf/tree/data/00 \xc3\xbc+&.txt").digests.keys() == {"sha512"}
    assert not list(s3.uploads(b""))
    unpacked = bagit.unpack(f"{s3.url}/shelf/packed.zip", tmp_path / "unpacked")
    assert unpacked.is_valid()
    kept = Path(unpacked.path) / "data" / "large"
    assert (kept.stat().st_mtime, kept.stat().st_mode & 0o777) == (1_000_000_000, 0o640)
    folder = BagFolder(f"{s3.url}/shelf")
    assert sorted(str(one.id) for one in folder.objects()) == ["packed", "packed", "packed", "tree"]
    assert folder.get("tree").read_bytes("39 ü+&.txt") == b"39\n"
    s3.put(b"shelf/tree/data/large", b"damaged", over=ANY)
    assert {one.kind for one in bagit.validate(f"{s3.url}/shelf/tree").errors} == {"checksum-mismatch", "oxum-mismatch"}


PROFILE = b"""{
  "BagIt-Profile-Info": {"BagIt-Profile-Identifier": "https://example.org/p.json", "Source-Organization": "x",
                         "External-Description": "x", "Version": "1"},
  "Bag-Info": {"Contact-Name": {"required": true}}, "Manifests-Required": ["sha256"], "Accept-BagIt-Version": ["0.97"]
}"""


def test_by_a_profile(s3: S3Bucket, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag that is created for a profile conforms to it, as keys and as an archive."""
    lead_to(s3, monkeypatch)
    profile = bagit.Profile.from_json(PROFILE)
    with pytest.raises(BagError, match="lacks Contact-Name"):
        bagit.create(files, f"{s3.url}/shelf/tree", profile=profile)
    assert not s3.list(b"shelf/").keys
    bagit.create(files, f"{s3.url}/shelf/tree", {"Contact-Name": "Ada"}, profile=profile)
    bagit.create_archive(files, f"{s3.url}/shelf/packed.zip", {"Contact-Name": "Ada"}, profile=profile)
    for name in ("tree", "packed.zip"):
        bag = bagit.open(f"{s3.url}/shelf/{name}")
        assert (bag.version, bag.algorithms) == ((0, 97), ("sha256",))
        assert bag.validate(profile=profile).problems == []


def test_from_a_table(s3: S3Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag of each row, as keys or as archives; the same call creates none again."""
    lead_to(s3, monkeypatch)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(b"1")
    table = tmp_path / "items.csv"
    table.write_text(f"path,Title\n{tmp_path / 'one'},One\n{tmp_path / 'two'},Two\n")
    for status in ("created", "exists"):
        for archive in (None, "tar.gz"):
            found = list(bagit.create_from_table(table, f"{s3.url}/table", archive=archive, threads=2))
            assert [one.status for one in found] == [status] * 2
            assert all(bagit.validate(one.path).ok for one in found)


@pytest.mark.parametrize("source", ["tree", *ENDINGS])
def test_connections_that_break(
    proxied: S3Bucket, proxy: Proxy, files: Path, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download that breaks in the middle goes on where it broke."""
    lead_to(proxied, monkeypatch)
    where = f"{proxied.url}/x.{source}"
    if source == "tree":
        bagit.create(files, where)
    else:
        bagit.pack(bagit.create(files, tmp_path / "bag"), where)
    broken: list[str] = []

    def plan(request: Request) -> Fault | None:
        is_content = request.method == "GET" and "list-type" not in request.path
        if not is_content or len(broken) >= 3:
            return None
        broken.append(request.path)
        return HALF

    proxy.plan = plan
    assert bagit.validate(where).ok
    assert len(broken) == 3


def test_complete(s3: S3Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holey bag is completed with keys of a bucket: small ones, and one that is read in parts."""
    lead_to(s3, monkeypatch)
    (tmp_path / "files").mkdir()
    contents = {"a b+ü%.txt": b"a", "large": random.Random(5).randbytes((20 << 20) + 7)}
    for name, content in contents.items():
        (tmp_path / "files" / name).write_bytes(content)
        s3.put(f"x/data/{name}".encode(), content)
    bag = bagit.create_holey(tmp_path / "files", tmp_path / "bag", f"{s3.url}/x/data/")
    assert {one.kind for one in bag.complete().errors} == {"fetch-refused"}
    report = bag.complete(allow_buckets=[s3.name])
    assert (report.problems, report.counts["files"]) == ([], 2)
    assert bag.is_valid()


def test_a_table_whose_server_is_gone(
    s3: S3Bucket, proxied: S3Bucket, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends with one error; the bags that are complete stay, and the same call creates the others."""
    monkeypatch.chdir(tmp_path)
    for number in range(40):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "a.txt").write_text(f"{number}")
    (tmp_path / "table.csv").write_text("path\n" + "".join(f"{number}\n" for number in range(40)))
    lead_to(proxied, monkeypatch)
    monkeypatch.setattr("pressmark.buckets.s3.SILENCE", 0.0)
    proxy.reset()
    proxy.plan = lambda request: LOSE if request.number > 150 else None
    results = bagit.create_from_table("table.csv", f"{s3.url}/shelf", threads=2)
    with pytest.raises(StoreError, match=r"no request was answered for more than 0 minutes: no connection to"):
        list(results)
    assert len(proxy.requests) < 150 + 40
    lead_to(s3, monkeypatch)
    results = list(bagit.create_from_table("table.csv", f"{s3.url}/shelf"))
    assert [str(one.error) for one in results if one.error] == []
    assert {one.status for one in results} == {"exists", "created"}
