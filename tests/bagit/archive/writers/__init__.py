"""Programs and libraries that write archives: the table of the documentation, and how to run each.

Command-line programs run where they are installed. Programs over the libraries of other languages are built below
``build/writers``, with the tools and packages of that language. A writer is missing where either is missing.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..handmade import tag_files

__all__ = ["WRITERS", "Missing", "Writer", "new_source"]

HERE = Path(__file__).parent
BUILD = Path(__file__).parents[4] / "build" / "writers"


class Missing(Exception):
    """A writer is not installed, or cannot be built; the message names what is missing."""


class Writer(NamedTuple):
    """A way to write an archive.

    :ivar program: the name in the documentation
    :ivar ending: of the archive
    :ivar how: the options or methods, for the documentation
    :ivar write: packs the directory ``bag`` below a directory into a new file
    :ivar builds: whether it is built first
    """

    program: str
    ending: str
    how: str
    write: Callable[[Path, Path], object]
    builds: bool = False


def new_source(folder: Path, payload: dict[bytes, bytes], *, linked: bool = False) -> Path:
    """Write a bag into the directory ``bag`` of a directory, and return that.

    :param linked: add a hard link to the last file of the payload
    """
    files = dict(payload)
    last = list(payload)[-1]
    if linked:
        files[b"data/linked"] = files[last]
    for name, data in (tag_files(files) | {b"bag/" + name: data for name, data in payload.items()}).items():
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    if linked:
        os.link(os.path.join(os.fsencode(folder), b"bag", last), folder / "bag" / "data" / "linked")
    return folder


def run(*words: str | Path, cwd: Path | None = None, stdout: int | None = None, timeout: int = 900) -> None:
    """Run a command; raises :class:`Missing` without its program."""
    if shutil.which(str(words[0])) is None:
        raise Missing(f"{words[0]} is not installed")
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment, timeout=timeout, check=False,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.stderr.decode(errors='replace')[-2000:]}")


# --- programs ---------------------------------------------------------------------------------------------------------


def command(*words: str) -> Callable[[Path, Path], object]:
    """Return a writer that runs a command in the directory; ``OUT`` is the archive, which is the output without it."""

    def write(source: Path, out: Path) -> None:
        if "OUT" in words:
            run(*(out if word == "OUT" else word for word in words), cwd=source)
        else:
            with open(out, "wb") as file:
                run(*words, cwd=source, stdout=file.fileno())

    return write


def python_tar(form: int) -> Callable[[Path, Path], object]:
    """Return a writer of a format of tarfile."""

    def write(source: Path, out: Path) -> None:
        with tarfile.open(out, "w", format=form) as tar:
            tar.add(source / "bag", "bag")

    return write


def python_zip(source: Path, out: Path) -> None:
    """Write a zip file to a file."""
    shutil.make_archive(str(out.with_suffix("")), "zip", source, "bag")


def python_zip_stream(source: Path, out: Path) -> None:
    """Write a zip file to a pipe."""

    class Pipe:
        def __init__(self, file: object) -> None:
            self.write = file.write  # type: ignore[attr-defined]
            self.flush = file.flush  # type: ignore[attr-defined]

    with open(out, "wb") as file, zipfile.ZipFile(Pipe(file), "w", zipfile.ZIP_DEFLATED) as zipped:  # type: ignore[call-overload]
        for path in sorted((source / "bag").rglob("*")):
            zipped.write(path, path.relative_to(source))


# --- libraries of other languages -------------------------------------------------------------------------------------


def built(make: Callable[[], tuple[str | Path, ...]], mode: str) -> Callable[[Path, Path], object]:
    """Return a writer that runs a mode of a program, which is built once."""
    return lambda source, out: run(*make(), mode, source, out)


def sources(name: str, *files: str) -> Path:
    """Copy source files into the directory of a build."""
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        if not (folder / file).exists() or (folder / file).read_bytes() != (HERE / file).read_bytes():
            shutil.copy(HERE / file, folder)
    return folder


def fetched(*words: str | Path, cwd: Path) -> None:
    """Run a tool that loads packages; without a network, the writer is missing."""
    try:
        run(*words, cwd=cwd)
    except AssertionError as error:
        raise Missing(f"its packages cannot be loaded: {error}") from None


@functools.cache
def go() -> tuple[str | Path, ...]:
    """Build the program over Go's standard library."""
    folder = sources("go", "writer.go")
    run("go", "build", "-o", "writer", "writer.go", cwd=folder)
    return (folder / "writer",)


@functools.cache
def rust() -> tuple[str | Path, ...]:
    """Build the program over crates."""
    folder = sources("rust", "Cargo.toml", "writer.rs")
    fetched("cargo", "fetch", "--quiet", cwd=folder)
    run("cargo", "build", "--quiet", "--offline", "--target-dir", "target", cwd=folder)
    return (folder / "target" / "debug" / "writer",)


@functools.cache
def node() -> tuple[str | Path, ...]:
    """Install the packages of Node.js."""
    folder = sources("node", "package.json", "writer.mjs")
    if not (folder / "node_modules").exists():
        fetched("npm", "install", "--silent", "--no-audit", "--no-fund", cwd=folder)
    return "node", folder / "writer.mjs"


@functools.cache
def java() -> tuple[str | Path, ...]:
    """Build the program over the JDK and two libraries."""
    folder = sources("java", "pom.xml", "Writer.java")
    if not (folder / "lib").exists():
        copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        fetched("mvn", "-q", copy, f"-DoutputDirectory={folder / 'lib'}", cwd=folder)
    run("javac", "-cp", "lib/*", "-d", "classes", "Writer.java", cwd=folder)
    return "java", "-Dfile.encoding=UTF-8", "-cp", f"{folder / 'classes'}:{folder / 'lib'}/*", "Writer"


@functools.cache
def php() -> tuple[str | Path, ...]:
    """Return the program over the extensions of PHP."""
    try:
        run("php", "-r", "exit(class_exists('ZipArchive') && class_exists('PharData') ? 0 : 1);")
    except AssertionError:
        raise Missing("PHP lacks its extension zip or phar") from None
    return "php", "-d", "phar.readonly=0", HERE / "writer.php"


def libraries() -> dict[str, Writer]:
    """Return the writers over libraries of other languages, by name."""
    table: list[tuple[Callable[[], tuple[str | Path, ...]], str, str, str, str]] = [
        (go, "Go archive/tar", "tar", "tar", "default format"),
        (go, "Go archive/tar", "tar-pax", "tar", "FormatPAX"),
        (go, "Go archive/tar", "tar-gnu", "tar", "FormatGNU"),
        (go, "Go archive/zip", "zip", "zip", "streamed"),
        (go, "Go archive/zip", "zip-stored", "zip", "stored"),
        (go, "Go archive/zip", "zip-fs", "zip", "AddFS"),
        (rust, "Rust tar", "tar", "tar", "append_dir_all"),
        (rust, "Rust tar", "tar-data", "tar", "append_data"),
        (rust, "Rust zip", "zip", "zip", "file"),
        (rust, "Rust zip", "zip-large", "zip", "large_file"),
        (rust, "Rust zip", "zip-stream", "zip", "new_stream"),
        (java, "Java ZipOutputStream", "jdk", "zip", "streamed"),
        (java, "Java ZipOutputStream", "jdk-stored", "zip", "stored"),
        (java, "Java ZipOutputStream", "jdk-sizes", "zip", "streamed, setSize"),
        (java, "Commons Compress", "commons-zip", "zip", "file"),
        (java, "Commons Compress", "commons-zip-stream", "zip", "streamed"),
        (java, "Commons Compress", "commons-zip-64", "zip", "file, Zip64Mode.Always"),
        (java, "Commons Compress", "commons-zip-stream-64", "zip", "streamed, Zip64Mode.Always"),
        (java, "Commons Compress", "commons-tar", "tar", "LONGFILE_POSIX"),
        (java, "Commons Compress", "commons-tar-gnu", "tar", "LONGFILE_GNU"),
        (java, "Zip4j", "zip4j", "zip", "addFolder"),
        (java, "Zip4j", "zip4j-stream", "zip", "ZipOutputStream"),
        (node, "tar-stream (npm)", "tar-stream", "tar", "pack"),
        (node, "tar (npm)", "tar", "tar", "create"),
        (node, "tar (npm)", "tar-portable", "tar", "create, portable"),
        (node, "archiver (npm)", "archiver", "zip", "directory"),
        (node, "archiver (npm)", "archiver-append", "zip", "append of streams"),
        (node, "archiver (npm)", "archiver-zip64", "zip", "forceZip64"),
        (node, "archiver (npm)", "archiver-tar", "tar", "directory"),
        (node, "yazl (npm)", "yazl", "zip", "addFile"),
        (node, "yazl (npm)", "yazl-stream", "zip", "addReadStream"),
        (node, "JSZip (npm)", "jszip", "zip", "platform UNIX"),
        (node, "JSZip (npm)", "jszip-dos", "zip", "platform DOS"),
        (node, "JSZip (npm)", "jszip-stream", "zip", "streamFiles"),
        (node, "adm-zip (npm)", "adm-zip", "zip", "addFile"),
        (node, "adm-zip (npm)", "adm-zip-folder", "zip", "addLocalFolder"),
        (php, "PHP ZipArchive", "zip", "zip", "addFile"),
        (php, "PHP ZipArchive", "zip-string", "zip", "addFromString"),
        (php, "PHP PharData", "phar", "tar", "buildFromDirectory"),
    ]
    return {
        f"{make.__name__} {mode}": Writer(program, ending, how, built(make, mode), builds=True)
        for make, program, mode, ending, how in table
    }


WRITERS: dict[str, Writer] = {
    **{
        f"gnu tar {form}": Writer("GNU tar", "tar", f"-H{form}", command("tar", f"-H{form}", "-cf", "OUT", "bag"))
        for form in ("gnu", "oldgnu", "pax", "ustar", "v7")
    },
    "gnu tar pipe": Writer("GNU tar", "tar.gz", "-cz to a pipe", command("tar", "-cz", "bag")),
    "gnu tar volume": Writer("GNU tar", "tar", "-V LABEL", command("tar", "-cf", "OUT", "-V", "label", "bag")),
    "gnu tar attributes": Writer(
        "GNU tar", "tar", "--xattrs --acls", command("tar", "--xattrs", "--acls", "-cf", "OUT", "bag")
    ),
    **{
        f"bsdtar {form}": Writer(
            "bsdtar (libarchive)", "tar", f"--format {form}", command("bsdtar", "--format", form, "-cf", "OUT", "bag")
        )
        for form in ("ustar", "pax", "paxr", "gnutar", "v7")
    },
    "bsdtar zip": Writer(
        "bsdtar (libarchive)", "zip", "--format zip", command("bsdtar", "--format", "zip", "-cf", "OUT", "bag")
    ),
    "bsdtar zip pipe": Writer(
        "bsdtar (libarchive)", "zip", "--format zip to a pipe", command("bsdtar", "--format", "zip", "-c", "bag")
    ),
    **{
        f"zip {name}": Writer("Info-ZIP", "zip", how, command("zip", "-qr", *options, "bag"))
        for name, how, options in (
            ("file", "file", ("OUT",)),
            ("stored", "-0", ("-0", "OUT")),
            ("pipe", "to a pipe", ("-",)),
            ("descriptors", "-fd", ("-fd", "OUT")),
            ("large", "-fz", ("-fz", "OUT")),
            ("unicode", "-UN=UTF8", ("-UN=UTF8", "OUT")),
            ("no extra fields", "-X", ("-X", "OUT")),
        )
    },
    "7z zip": Writer("7-Zip", "zip", "-tzip", command("7z", "a", "-tzip", "OUT", "bag")),
    "7z zip pipe": Writer("7-Zip", "zip", "-tzip -so", command("7z", "a", "-tzip", "-so", "dummy", "bag")),
    "7z tar": Writer("7-Zip", "tar", "-ttar", command("7z", "a", "-ttar", "OUT", "bag")),
    **{
        f"python {name}": Writer("Python tarfile", "tar", name, python_tar(form))
        for name, form in (
            ("USTAR_FORMAT", tarfile.USTAR_FORMAT),
            ("GNU_FORMAT", tarfile.GNU_FORMAT),
            ("PAX_FORMAT", tarfile.PAX_FORMAT),
        )
    },
    "python zip": Writer("Python zipfile", "zip", "file", python_zip),
    "python zip pipe": Writer("Python zipfile", "zip", "to a pipe", python_zip_stream),
    **libraries(),
}
