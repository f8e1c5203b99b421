"""Object storage: small objects in a bucket, with 16 requests at a time, beside ocfl-go, s5cmd and rclone.

The server is versitygw on this computer, over a directory in memory. Each subject is a whole command, and is measured
with the server itself, and with a proxy that delays each request. An object is one file of 1 to 10 KB. Each answer is
compared with what was stored.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import processes
from benchmarks.conftest import Measure
from benchmarks.delay import delayed
from benchmarks.peers import environments
from benchmarks.test_stores import available
from buckets.servers import set_variables, user_settings, versitygw
from pressmark.stores.registry import store_class

OBJECTS, SIZES = 500, (1_000, 10_000)
REQUESTS = "16"
DELAYS = {"0 ms": 0.0, "20 ms": 0.02}

pytestmark = pytest.mark.unsteady
peer = functools.partial(pytest.param, marks=pytest.mark.peers)

Words = Sequence[str | Path]


class Books:
    """A bucket ``books`` on a server, and the sources of its objects.

    :ivar folder: the directory in which the server keeps the bucket
    :ivar endpoints: the addresses of the server, by delay
    :ivar files: the directory of the sources
    :ivar list: the list of the objects, for ``put``
    """

    def __init__(self, folder: Path, endpoints: dict[str, str], count: int) -> None:
        self.folder = folder / "data" / "books"
        self.folder.mkdir()
        self.endpoints = endpoints
        self.count = count
        self.files = folder / "sources"
        self.files.mkdir()
        draw = random.Random(1)
        for number in range(count):
            (self.files / f"{number:07}.bin").write_bytes(draw.randbytes(draw.randint(*SIZES)))
        self.ids = {f"info:benchmark/{path.stem}": path for path in sorted(self.files.iterdir())}
        self.list = folder / "objects.tsv"
        self.list.write_text("".join(f"{id}\t{path}\n" for id, path in self.ids.items()))

    def remove(self, name: str) -> None:
        """Remove all keys below a prefix."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def check_root(self, name: str) -> None:
        """Compare a storage root with the sources, as the server keeps it on this computer."""
        root = store_class("ocfl")(self.folder / name)
        assert sorted(record.id for record in root.objects()) == sorted(self.ids)
        report = root.check(digests=True)
        assert report.ok
        id, path = next(reversed(self.ids.items()))
        assert root.get(id).read_bytes(path.name) == path.read_bytes()

    def check_files(self, folder: Path) -> None:
        """Compare files with the sources."""
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
            path.name: path.read_bytes() for path in self.files.iterdir()
        }

    def check_digests(self, output: str) -> None:
        """Compare lines of digests with those of the sources."""
        expected = sorted(hashlib.sha512(path.read_bytes()).hexdigest() for path in self.files.iterdir())
        assert sorted(line.split()[0] for line in output.splitlines()) == expected


@pytest.fixture(scope="session")
def books(
    memory: Path, scaled: Callable[[int], int], tmp_path_factory: pytest.TempPathFactory, pressmark: tuple[str, ...]
) -> Iterator[Books]:
    """A bucket with a storage root ``root`` and a bag ``bag``."""
    pytest.importorskip("botocore")
    folder = memory / "server"
    folder.mkdir()
    with (
        versitygw(folder) as endpoint,
        delayed(endpoint, DELAYS["20 ms"]) as away,
        pytest.MonkeyPatch.context() as patch,
    ):
        made = Books(folder, dict(zip(DELAYS, (endpoint, away), strict=True)), scaled(OBJECTS))
        set_variables({**user_settings(tmp_path_factory.mktemp("aws")), "AWS_ENDPOINT_URL_S3": endpoint}, patch)
        create(pressmark, "root")
        run(*pressmark, "store", "put", "s3://books/root", "--from", made.list)
        run(*pressmark, "bag", "create", made.files, "-o", "s3://books/bag")
        yield made


@pytest.fixture(params=DELAYS)
def delay(request: pytest.FixtureRequest, books: Books, monkeypatch: pytest.MonkeyPatch) -> str:
    """How long each request takes; all commands use the server that delays them."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", books.endpoints[request.param])
    return str(request.param)


def run(*words: str | Path) -> None:
    processes.run(words, processes.our_environment())


def create(pressmark: tuple[str, ...], name: str) -> None:
    """Create an empty storage root."""
    run(*pressmark, "store", "init", "ocfl", f"s3://books/{name}", "--layout", "0003")


def title(subject: str, delay: str) -> str:
    return f"command {subject}, bucket, {delay}"


@pytest.mark.parametrize("program", ["pressmark", peer("ocfl-go"), peer("s5cmd")])
def test_put(measure: Measure, books: Books, pressmark: tuple[str, ...], delay: str, program: str) -> None:
    """Store new objects in an empty root; s5cmd copies their files."""
    words = {
        "pressmark": lambda: (*pressmark, "store", "put", "s3://books/new", "--from", books.list, "--no-progress"),
        "ocfl-go": lambda: ocfl_go("put", "new", books.list),
        "s5cmd": lambda: s5cmd(books, delay, f"{books.files}/", "s3://books/new/"),
    }[program]

    def before() -> None:
        books.remove("new")
        if program == "pressmark":
            create(pressmark, "new")
        elif program == "ocfl-go":
            run(*ocfl_go("init", "new"))

    def check(_output: str) -> None:
        if program == "s5cmd":
            books.check_files(books.folder / "new")
        else:
            books.check_root("new")

    group = title("store put --from", delay)
    measure.command(group, *available(words), before=before, check=check, objects=books.count)


@pytest.mark.parametrize("program", ["pressmark", peer("ocfl-go")])
def test_ls(measure: Measure, books: Books, pressmark: tuple[str, ...], delay: str, program: str) -> None:
    words = {
        "pressmark": lambda: (*pressmark, "store", "ls", "s3://books/root", "--threads", "1", "--no-progress"),
        "ocfl-go": lambda: ocfl_go("ls", "root"),
    }[program]

    def check(output: str) -> None:
        assert sorted(line.partition("\t")[0] for line in output.splitlines()) == sorted(books.ids)

    measure.command(title("store ls", delay), *available(words), check=check, objects=books.count)


@pytest.mark.parametrize(
    ("program", "digests"), [("pressmark", "read"), ("pressmark", "stored"), peer("ocfl-go", "read")]
)
def test_check(
    measure: Measure, books: Books, pressmark: tuple[str, ...], delay: str, program: str, digests: str
) -> None:
    ours = (*pressmark, "store", "check", "s3://books/root", f"--digests={digests}", "--threads", "1", "--json")
    words = {"pressmark": lambda: ours, "ocfl-go": lambda: ocfl_go("check", "root")}[program]

    def check(output: str) -> None:
        if program == "pressmark":
            summary = json.loads(output)["summary"]
            assert summary["ok"]
            assert summary[digests] == books.count
        else:
            assert int(output) == books.count

    group = title(f"store check --digests={digests}", delay)
    measure.command(group, *available(words), check=check, objects=books.count)


def test_validate_bag(measure: Measure, books: Books, pressmark: tuple[str, ...], delay: str) -> None:
    def check(output: str) -> None:
        summary = json.loads(output)["summary"]
        assert summary["ok"]
        assert summary["files"] >= books.count

    words = (*pressmark, "bag", "validate", "s3://books/bag", "--json")
    measure.command(title("bag validate", delay), *words, check=check, files=books.count)


@pytest.mark.parametrize("program", ["pressmark", peer("rclone"), peer("s5cmd")])
def test_hash(
    measure: Measure, books: Books, pressmark: tuple[str, ...], memory: Path, delay: str, program: str
) -> None:
    """Hash all keys below a prefix; s5cmd downloads them."""
    folder = memory / "downloaded"
    words = {
        "pressmark": lambda: (*pressmark, "hash", "s3://books/bag/data", "--no-progress"),
        "rclone": lambda: rclone(books, delay, "hashsum", "sha512", "--download", ":s3:books/bag/data"),
        "s5cmd": lambda: s5cmd(books, delay, "s3://books/bag/data/*", f"{folder}/"),
    }[program]

    def check(output: str) -> None:
        if program == "s5cmd":
            books.check_files(folder)
        else:
            books.check_digests(output)

    before = functools.partial(shutil.rmtree, folder, ignore_errors=True)
    measure.command(title("hash", delay), *available(words), before=before, check=check, files=books.count)


# --- other programs ---------------------------------------------------------------------------------------------------


@functools.cache
def programs() -> Path:
    """Return the directory of an environment with s5cmd and rclone."""
    return environments.interpreter("buckets").parents[1]


@functools.cache
def ocfl_go_program() -> Path:
    environments.go("ocfl-go", "./buckets", "buckets")
    return environments.BUILD / "ocfl-go" / "buckets"


def ocfl_go(do: str, root: str, *arguments: Path) -> Words:
    return ocfl_go_program(), do, "books", root, REQUESTS, *arguments


def s5cmd(books: Books, delay: str, *arguments: str) -> Words:
    # The program itself: the one in bin starts it from Python.
    [program] = programs().glob("lib/*/site-packages/s5cmd/bin/s5cmd")
    return program, "--endpoint-url", books.endpoints[delay], "--numworkers", REQUESTS, "cp", *arguments


def rclone(books: Books, delay: str, *arguments: str) -> Words:
    server = ("--s3-provider", "Other", "--s3-env-auth", "--s3-endpoint", books.endpoints[delay])
    return programs() / "bin" / "rclone", "--config", "", *server, "--checkers", REQUESTS, *arguments
