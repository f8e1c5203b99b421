"""What one small object costs, and one byte on its way: whole commands next to other programs.

Each part runs its subjects in turn, each in a process of its own, and checks what they did. A ratio is the time of the
others divided by the time of Pressmark: two at 2.0 means that Pressmark takes half as long. "+" adds the times of
commands that run one after the other.

``check``   an OCFL root of --count objects of 1 and 10 KB, next to rocfl and ocfl-py
``put``     the same objects from a list into each kind of store, next to ``cp -r``; an object of Vitro is one file
``one``     one object into a store of --count objects, next to an empty one
``hash``    files of 4 KiB, four times --count, and one of --huge bytes, next to command line tools
``bytes``   900 files of 1 MiB on their way into stores and bags, next to ``cp -r`` and ``pressmark hash``
``map``     a table of a hundred times --count rows, next to DuckDB and polars
``plan``    the plan of another layout for the OCFL root, next to parsing its inventories

"-" takes off the time of the same command with nearly nothing to do, which is its start. ``bags --small`` measures
small bags, ``migration`` the migration of small objects. The files are removed at the end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import corpora, processes
from benchmarks.corpora.files import paths_of, write_files
from benchmarks.peers import environments, ocfl_stores
from benchmarks.peers.environments import Unavailable
from benchmarks.report import Report, verdict
from benchmarks.timing import Cost, Failed, Times, take_turns

COUNT, RUNS = 50_000, 5
SMALL, MIB = (1_000, 10_000), 1 << 20
FILES, OF_AN_OBJECT = 900, 3
KINDS = ("pairtree", "ocfl", "vitro", "bags")
NAMESPACE = "http://example.org/individual/"
TOOLS = {
    "sha512": "xargs -0 -n 2000 -P 2 sha512sum",
    "md5": "xargs -0 -n 2000 -P 2 md5sum",
    "blake3": "xargs -0 -n 100000 b3sum --num-threads 2",
    "xxh128": "xargs -0 -n 2000 -P 2 xxhsum -H2",
}
OURS = (sys.executable, "-m", "pressmark")

#: Stores one object again and again, with a store opened for each, and prints the seconds.
_PUT_ONE = """
import json, os, sys, time
from pressmark import stores

store, source, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
times = []
for number in range(rounds):
    begin = time.perf_counter()
    stores.open(store).put(f"PREFIXone-{number}", source)
    times.append(time.perf_counter() - begin)
    stores.open(store).delete(f"PREFIXone-{number}")
print(json.dumps({"seconds": sorted(times)[rounds // 2]}))
"""
#: Plans another layout for an OCFL root, and prints the seconds.
_PLAN = """
import json, sys, time
from pressmark import migrate

if __name__ == "__main__":
    begin = time.perf_counter()
    plan = migrate.plan(sys.argv[1], sys.argv[2], to="ocfl", layout="0004", move=True)
    print(json.dumps({"seconds": time.perf_counter() - begin, "objects": plan.objects}))
"""
#: Parses all inventories of an OCFL root, and prints the seconds.
_PARSE = """
import json, os, sys, time

def places(top):
    with os.scandir(top) as entries:
        below = list(entries)
    if any(entry.name.startswith("0=ocfl_object") for entry in below):
        yield top
        return
    for entry in below:
        if entry.is_dir() and entry.name != "extensions":
            yield from places(entry.path)

begin = time.perf_counter()
count = 0
for place in places(sys.argv[1]):
    with open(place + "/inventory.json", "rb") as file:
        count += json.loads(file.read())["type"].startswith("http")
print(json.dumps({"seconds": time.perf_counter() - begin, "objects": count}))
"""
_DUCKDB = """
import sys, duckdb
source, target = sys.argv[1:]
duckdb.execute("SET threads TO 2")
duckdb.sql(f"SELECT *, upper(id) AS path FROM read_csv('{source}', header=true)").write_csv(target)
"""
_POLARS = """
import sys, polars, pressmark
source, target = sys.argv[1:]
table = polars.read_parquet(source)
paths = pressmark.layout("0003").map_arrow(table["id"])
table.with_columns(polars.Series("path", paths)).write_parquet(target)
"""
Subject = Callable[[], Cost]


class Line(NamedTuple):
    """One ratio of a part.

    :ivar others: the subjects whose times are added; one that begins with ``-`` is taken off
    :ivar ours: as ``others``
    :ivar wanted: the least ratio
    """

    ours: tuple[str, ...]
    others: tuple[str, ...]
    wanted: float | None


class Part(NamedTuple):
    """A measured part: its subjects and their ratios; ``items`` is what each subject works on."""

    name: str
    items: int
    subjects: dict[str, Subject]
    lines: tuple[Line, ...]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", action="append", choices=PARTS, help="measure this part only; repeatable")
    parser.add_argument("--huge", type=int, default=2 << 30, help="bytes of the large file (default %(default)s)")


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    facts: list[dict[str, Any]] = []
    for name in options.part or PARTS:
        folder = Path(tempfile.mkdtemp(prefix="objects-", dir=options.folder))
        try:
            for part in PARTS[name](Bench(folder.resolve(), options.count, options.huge, report)):
                facts.append(measured(part, options.runs, report))
        finally:
            shutil.rmtree(folder)
    return {"parts": facts}


def measured(part: Part, runs: int, report: Report) -> dict[str, Any]:
    """Run the subjects of a part in turn, and print their times and ratios."""
    times = take_turns(part.subjects, runs)
    report.print(f"### {part.name}: {part.items:,}", "")
    rows = [(name, *_figures(part, times, name)) for name in part.subjects]
    report.table(("", "s", "a second", "processor s", "MB"), rows)
    ratios = []
    for line in part.lines:
        ratio = _ratio(times, line)
        met = "not measured" if ratio is None else verdict(round(ratio, 2), line.wanted, at_least=True)
        ratios.append((_sum(line.others), _sum(line.ours), "" if ratio is None else f"**{ratio:.2f}**", met))
    report.table((" others", " ours", "ratio", " wanted"), ratios)
    for name, reason in times.failures.items():
        if name.startswith("pressmark"):
            report.fail(f"{part.name}: {name}: {reason}")
    return {"part": part.name, "items": part.items, **times.facts()}


def _figures(part: Part, times: Times, name: str) -> tuple[str, str, str, str]:
    if name not in times.runs:
        return times.failures[name], "", "", ""
    best = times.best(name)
    return f"{best.seconds:.3f}", f"{part.items / best.seconds:,.0f}", f"{best.cpu:.2f}", f"{best.max_rss >> 20}"


def _sum(names: Sequence[str]) -> str:
    return " ".join(names if len(names) == 1 else [names[0], *(_signed(name) for name in names[1:])])


def _signed(name: str) -> str:
    return f"- {name[1:]}" if name.startswith("-") else f"+ {name}"


def _ratio(times: Times, line: Line) -> float | None:
    sides = []
    for names in (line.others, line.ours):
        if not {name.removeprefix("-") for name in names} <= set(times.runs):
            return None
        seconds = [times.best(name.removeprefix("-")).seconds for name in names]
        sides.append(sum(-one if name.startswith("-") else one for name, one in zip(names, seconds, strict=True)))
    return sides[0] / sides[1]


class Bench:
    """Makes the files of the parts, and the subjects that work on them."""

    def __init__(self, folder: Path, count: int, huge: int, report: Report) -> None:
        self.folder = folder
        self.count = count
        self.huge = huge
        self.report = report

    def sources(self, objects: int, sizes: Sequence[int], kind: str = "", name: str = "sources") -> tuple[Path, Path]:
        """Write the sources of objects, and return their directory and the list for ``put --from``."""
        made, listed = self.folder / name, self.folder / f"{name}-{kind}.txt"
        if not made.exists():
            for number, path in enumerate(_places(made, objects)):
                path.mkdir(parents=True)
                for file, size in enumerate(sizes):
                    block = f"{number} {file} ".encode()
                    (path / f"file-{file}.bin").write_bytes((block * (size // len(block) + 1))[:size])
        # An object of a Vitro store is one file, and its identifier has a namespace.
        begin, end = (NAMESPACE, "/file-0.bin") if kind == "vitro" else ("", "")
        lines = (f"{begin}object-{number:07}\t{path}{end}\n" for number, path in enumerate(_places(made, objects)))
        listed.write_text("".join(lines))
        return made, listed

    def init(self, kind: str, store: Path) -> None:
        """Create an empty store."""
        more = {"ocfl": ("--layout", "0003"), "vitro": ("--namespace", NAMESPACE)}.get(kind, ())
        processes.run([*OURS, "store", "init", kind, store, *more], processes.our_environment())

    def small(self, kind: str = "") -> tuple[Path, Path]:
        """Write the sources of the small objects of a kind of store; as :meth:`sources`."""
        return self.sources(self.count, *((SMALL[1:], kind, "files") if kind == "vitro" else (SMALL, kind)))

    def filled(self, kind: str) -> Path:
        """Return a new store with the small objects."""
        store = self.folder / f"{kind}-store"
        _made, listed = self.small(kind)
        self.init(kind, store)
        self.ours("store", "put", store, "--from", listed)()
        return store

    def ours(self, *arguments: str | Path, fresh: Path | None = None, kind: str = "", lines: int = 0) -> Subject:
        """Return a command of Pressmark as a subject.

        :param fresh: a path that is removed before each run
        :param kind: ``fresh`` is made a store of this kind
        :param lines: the number of lines that the command must print
        """
        return self.command([*OURS, *arguments], fresh=fresh, kind=kind, lines=lines)

    def command(
        self, command: Sequence[str | Path], *, fresh: Path | None = None, kind: str = "", lines: int = 0
    ) -> Subject:
        """Return a command as a subject; its time is that of its process."""

        def run() -> Cost:
            if fresh is not None:
                _removed(fresh)
            if kind and fresh is not None:
                self.init(kind, fresh)
            os.sync()
            done = processes.run(command, processes.our_environment())
            if lines and (found := done.output.count("\n")) != lines:
                raise Failed(f"{found} lines instead of {lines}")
            if fresh is not None:
                _removed(fresh)
            return done.cost

        return run

    def shell(self, command: str, *arguments: str | Path, fresh: Path | None = None) -> Subject:
        """Return a shell command as a subject; ``$0``, ``$1`` … are the arguments."""
        return self.command(["sh", "-c", command, *arguments], fresh=fresh)

    def script(self, code: str, *arguments: str | Path, objects: int = 0, fresh: Path | None = None) -> Subject:
        """Return Python code as a subject that prints its seconds, and its number of objects."""
        path = self.folder / "script.py"

        def run() -> Cost:
            if fresh is not None:
                _removed(fresh)
            path.write_text(code)
            os.sync()
            done = processes.python_script(path, *arguments)
            answer = done.json()
            if answer.get("objects", objects) != objects:
                raise Failed(f"{answer['objects']} objects instead of {objects}")
            return done.cost._replace(seconds=answer["seconds"])

        return run

    def peer(self, make: Callable[[], Sequence[str | Path]], *arguments: str | Path, lines: int = 0) -> Subject:
        """Return the command of a peer as a subject that fails where the peer is not available."""
        try:
            return self.command([*make(), *arguments], lines=lines)
        except (Unavailable, KeyError) as error:
            reason = f"not available: {error}"

            def fail() -> Cost:
                raise Failed(reason)

            return fail


def _places(made: Path, objects: int) -> Iterator[Path]:
    return (made / f"{number // 1000:04}" / f"{number:07}" for number in range(objects))


def _removed(path: Path) -> None:
    for one in (path, path.with_name(f"{path.name}.migration")):
        if one.is_dir():
            shutil.rmtree(one)
        else:
            one.unlink(missing_ok=True)


# --- the parts --------------------------------------------------------------------------------------------------------


def check(bench: Bench) -> Iterator[Part]:
    """Check and list an OCFL root."""
    root, count = bench.filled("ocfl"), bench.count

    def rocfl() -> Sequence[str | Path]:
        return (*ocfl_stores.found()["rocfl"], "--root", root)

    def ocfl_py() -> Sequence[str | Path]:
        python = environments.interpreter("ocfl-py")
        return python, python.with_name("ocfl-validate.py")

    checks = {
        f"pressmark, {number} thread{'s' * (number > 1)}": bench.ours(
            "store", "check", root, "--digests", "--threads", str(number), "--no-progress"
        )
        for number in (1, 2)
    }
    peers = {
        "rocfl validate": bench.peer(rocfl, "validate", "--level", "error"),
        "ocfl-py": bench.peer(ocfl_py, "--quiet", root),
    }
    one, two = checks
    yield Part(
        *("check --digests", count, {**checks, **peers}),
        (Line((two,), ("rocfl validate",), 2.0), Line((two,), ("ocfl-py",), None), Line((two,), (one,), 1.5)),
    )
    lists = {
        one: bench.ours("store", "ls", root, "--threads", "1", lines=count),
        two: bench.ours("store", "ls", root, "--threads", "2", lines=count),
        "rocfl ls": bench.peer(rocfl, "ls", lines=count),
    }
    yield Part("ls", count, lists, (Line((two,), ("rocfl ls",), 1.5), Line((two,), (one,), 1.5)))


def put(bench: Bench) -> Iterator[Part]:
    """Store small objects from a list."""
    store = bench.folder / "store"
    subjects = {}
    for kind, name in (("", "cp -r"), ("vitro", "cp -r, single files")):
        made = bench.small(kind)[0]
        subjects[name] = bench.shell('cp -r "$0" "$1"', made, store, fresh=store)
        subjects[f"{name}, sync"] = bench.shell('cp -r "$0" "$1" && sync -f "$1"', made, store, fresh=store)
    for kind in KINDS:
        listed = bench.small(kind)[1]
        subjects[f"pressmark, {kind}"] = bench.ours(
            "store", "put", store, "--from", listed, "--no-progress", fresh=store, kind=kind, lines=bench.count
        )
    lines = [
        Line(
            (f"pressmark, {kind}",),
            ("cp -r, single files" if kind == "vitro" else "cp -r",),
            0.08 if kind == "bags" else 0.25,
        )
        for kind in KINDS
    ]
    yield Part("put --from", bench.count, subjects, tuple(lines))


def one(bench: Bench) -> Iterator[Part]:
    """Store one object in an empty store, and in one of many."""
    for kind in KINDS:
        source = next(_places(bench.small(kind)[0], 1)) / ("file-0.bin" if kind == "vitro" else "")
        full, empty = bench.filled(kind), bench.folder / f"{kind}-empty"
        bench.init(kind, empty)
        code = _PUT_ONE.replace("PREFIX", NAMESPACE if kind == "vitro" else "")
        subjects = {
            f"pressmark, {name}": bench.script(code, store, source, "15")
            for name, store in (("empty", empty), ("full", full))
        }
        yield Part(f"one put into {kind}", 1, subjects, (Line(("pressmark, full",), ("pressmark, empty",), 1 / 1.2),))
        shutil.rmtree(full)


def hash_(bench: Bench) -> Iterator[Part]:
    """Hash small files, and a large one."""
    files, huge = bench.folder / "files", bench.folder / "huge"
    write_files(files, [4096] * (4 * bench.count))
    for algorithm, tool in TOOLS.items():
        name = tool.split()[-1 if algorithm in ("sha512", "md5") else -3 if algorithm == "blake3" else -2]
        ours = bench.ours("hash", files, "-a", algorithm, "-o", os.devnull, "--no-progress")
        theirs = bench.shell(f'find "$0" -type f -print0 | {tool} > /dev/null', files)
        wanted = 1.5 if algorithm in ("sha512", "md5") else 0.9
        lines = (Line(("pressmark",), (name,), wanted),)
        yield Part(f"hash 4 KiB, {algorithm}", 4 * bench.count, {"pressmark": ours, name: theirs}, lines)
    shutil.rmtree(files)
    write_files(huge, [bench.huge])
    [path] = map(Path, paths_of(huge))
    for algorithm, command in (("blake3", "b3sum --num-threads 2"), ("xxh128", "xxhsum -H2"), ("md5", "md5sum")):
        ours = bench.ours("hash", path, "-a", algorithm, "-o", os.devnull, "--no-progress")
        theirs = bench.shell(f'{command} "$0" > /dev/null', path)
        name = command.split()[0]
        lines = (Line(("pressmark",), (name,), 0.9),)
        yield Part(f"hash one file, {algorithm}, MiB", bench.huge // MIB, {"pressmark": ours, name: theirs}, lines)


def bytes_(bench: Bench) -> Iterator[Part]:
    """Copy files of 1 MiB with their digests."""
    sizes, objects = [MIB] * OF_AN_OBJECT, FILES // OF_AN_OBJECT
    made = bench.sources(objects, sizes)[0]
    little = bench.sources(1, [1], name="little")[0]
    tree, small, target = bench.folder / "tree", bench.folder / "small", bench.folder / "target"
    for store, name in ((tree, "sources"), (small, "little")):
        bench.init("pairtree", store)
        count = objects if store == tree else 1
        bench.ours("store", "put", store, "--from", bench.sources(count, sizes, name=name)[1])()
    hashing = bench.shell('"$0" -m pressmark hash "$1" -o /dev/null', sys.executable, made)
    subjects = {
        "cp -r": bench.shell('cp -r "$0" "$1"', made, target, fresh=target),
        "pressmark hash": hashing,
        "start of hash": bench.shell('"$0" -m pressmark hash "$1" -o /dev/null', sys.executable, little),
        "cp -r and sha512sum": bench.shell(
            'cp -r "$0" "$1" && find "$1" -type f -print0 | xargs -0 -n 100 -P 2 sha512sum > /dev/null',
            *(made, target),
            fresh=target,
        ),
    }
    lines = []
    for kind, more in (("ocfl", ("--layout", "0003")), ("bags", ())):
        name = f"pressmark migrate to {kind}"
        for label, source in ((name, tree), (f"start of it, {kind}", small)):
            subjects[label] = bench.ours(
                "migrate", source, target, "--to", kind, *more, "--workers", "2", "--no-progress", fresh=target
            )
        lines.append(_bytes_line(name, f"start of it, {kind}"))
        lines.append(Line((name,), ("cp -r and sha512sum",), 1.0))
    name = "pressmark bag create -o"
    for label, source in ((name, made), ("start of bag create", little)):
        subjects[label] = bench.ours("bag", "create", source, "-o", target, "--no-progress", fresh=target)
    lines.append(_bytes_line(name, "start of bag create"))
    listed = bench.sources(objects, sizes)[1]
    subjects["pressmark put --from"] = bench.ours(
        "store", "put", target, "--from", listed, "--no-progress", fresh=target, kind="pairtree"
    )
    lines.append(Line(("pressmark put --from",), ("cp -r",), 1 / 1.5))
    yield Part("files of 1 MiB", FILES, subjects, tuple(lines))


def _bytes_line(name: str, start: str) -> Line:
    return Line((name, f"-{start}"), ("cp -r", "pressmark hash", "-start of hash"), 1 / 1.3)


def map_(bench: Bench) -> Iterator[Part]:
    """Map a column of a table."""
    count = 100 * bench.count
    try:
        python = environments.interpreter("tables")
    except Unavailable as error:
        bench.report.print(f"- DuckDB and polars are not available: {error}")
        return
    ids = corpora.load("hathitrust", count, "drawn").ids
    rows, parquet, target = bench.folder / "rows.csv", bench.folder / "rows.parquet", bench.folder / "out"
    with rows.open("w", encoding="utf-8") as file:
        file.write("id,number\n")
        file.writelines(f'"{one}",{number}\n' if "," in one else f"{one},{number}\n" for number, one in enumerate(ids))
    copy = "import sys, duckdb; duckdb.read_csv(sys.argv[1], header=True).write_parquet(sys.argv[2])"
    bench.command([python, "-c", copy, rows, parquet])()
    for form, source, name, code, wanted in (
        ("csv", rows, "DuckDB, upper()", _DUCKDB, 1 / 3),
        ("parquet", parquet, "polars with map_arrow", _POLARS, 1 / 1.3),
    ):
        to = target.with_suffix(f".{form}")
        ours = bench.ours("map", "0003", source, "--column", "id", "-o", to, "--no-progress", fresh=to)
        theirs = bench.command([python, "-c", code, source, to], fresh=to)
        yield Part(f"map {form}", count, {"pressmark": ours, name: theirs}, (Line(("pressmark",), (name,), wanted),))


def plan(bench: Bench) -> Iterator[Part]:
    """Plan another layout for an OCFL root."""
    root, other = bench.filled("ocfl"), bench.folder / "other"
    subjects = {
        "pressmark plan": bench.script(_PLAN, root, other, objects=bench.count, fresh=other),
        "json.loads": bench.script(_PARSE, root, objects=bench.count),
    }
    yield Part("plan of a relayout", bench.count, subjects, (Line(("pressmark plan",), ("json.loads",), 0.4),))


PARTS: dict[str, Callable[[Bench], Iterator[Part]]] = {
    **{"check": check, "put": put, "one": one, "hash": hash_, "bytes": bytes_, "map": map_, "plan": plan}
}
