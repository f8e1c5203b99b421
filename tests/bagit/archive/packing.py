"""Pack bags with Python's own modules, and unpack them independently of the package."""

from __future__ import annotations

import importlib.util
import io
import os
import tarfile
import zipfile
from pathlib import Path

__all__ = ["FORMATS", "HAS_ZSTD", "TARS", "compressed", "pack", "unpacked"]

#: Whether the optional package for zstd is installed.
HAS_ZSTD = importlib.util.find_spec("zstandard") is not None
TARS = ("tar", "tar.gz", "tar.bz2", "tar.xz", *(("tar.zst",) if HAS_ZSTD else ()))
FORMATS = (*TARS, "zip")


def compressed(data: bytes) -> bytes:
    """Return one frame of zstd, with the size and the checksum of the content."""
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def pack(bag: Path, archive: Path, *, name: str = "bag", first: str = "", stored: bool = False) -> Path:
    """Pack a directory in the format of the archive's extension; names starting with ``first`` are packed first.

    :param stored: do not compress the members of a zip file
    """
    found = sorted(bag.rglob("*"), key=lambda path: (not path.name.startswith(first or "?"), path))
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as made:
            for path in (bag, *found):
                made.write(path, Path(name) / path.relative_to(bag))
        return archive
    compression = archive.name.partition(".tar")[2].replace(".", ":").replace(":zst", "")
    with tarfile.open(archive, f"w{compression}") as tar:
        tar.add(bag, name, recursive=False)
        for path in found:
            tar.add(path, os.path.join(name, path.relative_to(bag)), recursive=False)
    if archive.name.endswith(".zst"):
        archive.write_bytes(compressed(archive.read_bytes()))
    return archive


def unpacked(archive: Path) -> dict[str, bytes] | None:
    """Return the files in an archive by name; :data:`None` if Python's modules cannot unpack it, or not completely."""
    try:
        if archive.name.endswith(".zip"):
            with zipfile.ZipFile(archive) as zipped:
                names = [name for name in zipped.namelist() if not name.endswith("/")]
                return {name: zipped.read(name) for name in names} if len(set(names)) == len(names) else None
        data = archive.read_bytes()
        if archive.name.endswith(".zst"):
            import zstandard

            with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                data = reader.read()
            mode = "r:"
        else:
            mode = "r" + (archive.name.partition(".tar")[2].replace(".", ":") or ":")
        with tarfile.open(fileobj=io.BytesIO(data), mode=mode) as tar:  # type: ignore[call-overload]
            members = list(tar)
            files = {one.name: tar.extractfile(one).read() for one in members if one.isreg()}
            return files if all(one.isreg() or one.isdir() for one in members) else None
    except Exception:  # any: a damaged archive
        return None
