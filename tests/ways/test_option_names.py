"""Messages name an option as the caller spells it: by its keyword in Python, by its flag on the command line."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import bagit, fixity, migrate, stores
from pressmark.errors import PressmarkError
from pressmark.option_names import as_flags, option
from support.trees import write
from ways.stores import KINDS, make_store

SOURCES = Path(__file__).parents[2] / "src" / "pressmark"
FLAG = re.compile(r"(?<![\w/-])(?:--[a-z][a-z-]*|-[0aoqh])(?![\w-])")
KEYWORD = re.compile(r"(?<![\w.])[a-z_]+=")
# Users of Python and of a shell understand a whole command.
COMMAND = re.compile(r"`pressmark [^`]*`|\"pressmark [^\"]*\"|\Apressmark .*|<code>pressmark [^<]*</code>", re.DOTALL)
#: Flags of other programs.
OTHERS = (
    "gpg --output LIST --decrypt FILE",
    "md5sum --tag",
    "start the Dask scheduler with --scheduler-file",
    "write the list without --zero",
)
#: Errors about arguments of Python, which no command passes on.
OF_PYTHON = {"ValueError", "TypeError"}
# The columns of data frames, which no command reads.
NO_COMMANDS = {"arrow.py"}


def _docstrings(tree: ast.AST) -> set[ast.AST]:
    """Return the strings that are statements."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _texts(tree: ast.AST, ignored: set[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the strings that are no docstrings, with their lines; of f-strings, values are ``{}``."""
    for node in ast.iter_child_nodes(tree):
        if node in ignored:
            continue
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not isinstance(tree, ast.JoinedStr):
            yield node.lineno, node.value
        yield from _texts(node, ignored)


def flags_in(text: str) -> list[str]:
    """Return the flags of Pressmark in a text that are not part of a whole command."""
    for other in OTHERS:
        text = text.replace(other, "")
    return FLAG.findall(COMMAND.sub("", text))


def library_modules() -> Iterator[tuple[str, ast.AST]]:
    """Yield the modules that Python users and commands call, with their names."""
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        if not name.startswith("cli/") and name != "option_names.py":
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def test_no_message_has_a_flag() -> None:
    """Messages name options by ``option``; a table of remedies has whole commands only."""
    found = [
        f"{name}:{line}: {flag}"
        for name, tree in library_modules()
        for line, text in _texts(tree, _docstrings(tree))
        for flag in flags_in(text)
    ]
    for path in sorted(SOURCES.rglob("*.html")):
        found += [f"{path.name}: {flag}" for flag in flags_in(path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


def test_no_error_of_a_command_has_a_keyword() -> None:
    """Errors that a command reports name options by ``option``."""
    found = []
    for name, tree in library_modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or name in NO_COMMANDS:
                continue
            if ast.unparse(node.exc.func) not in OF_PYTHON:
                found += [f"{name}:{line}: {text}" for line, text in _texts(node, set()) if KEYWORD.search(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("use --replace", ["--replace"]),
        ("end items with NUL (-0)", ["-0"]),
        ("run `pressmark bag update --accept removed`", []),
        ("accept it (--accept removed); see `pressmark bag update --help`", ["--accept"]),
        ("<p>Run <code>--resume</code>.</p>", ["--resume"]),
        ("<p>Run <code>pressmark migrate --resume</code>.</p>", []),
        ("a well-known name; ark:/--x", []),
        ("format of BSD tools (md5sum --tag), not of BagIt", []),
    ],
)
def test_flags_are_found(text: str, flags: list[str]) -> None:
    assert flags_in(text) == flags


def test_flags_are_named_until_the_last_command_ends() -> None:
    """Workers in threads begin and end in any order, and no flag remains."""
    second_began, first_ended = threading.Event(), threading.Event()
    seen: list[str] = []

    def second() -> None:
        with as_flags():
            second_began.set()
            first_ended.wait(10)
            seen.append(option("kind"))

    thread = threading.Thread(target=second)
    with as_flags():
        thread.start()
        second_began.wait(10)
    first_ended.set()
    thread.join()
    assert seen == ["--kind"]
    assert option("kind") == "kind="
    with as_flags(False):
        assert option("kind") == "kind="


# --- the same wrong call in Python and on the command line ------------------------------------------------------------


def _bag(folder: Path, change: bool = False) -> Path:
    """Create a bag; with ``change``, add a file that its manifests do not list."""
    write(folder / "bag", {"a.txt": b"a"})
    bagit.make_bag(folder / "bag")
    if change:
        (folder / "bag" / "data" / "new.txt").write_bytes(b"")
    return folder / "bag"


def _written(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


def _list_of(folder: Path) -> str:
    return _written(folder, "list", b"%b  a\n%b  b\n" % (b"0" * 32, b"0" * 40))


def _read_list(path: str) -> None:
    with open(path, "rb") as file:
        list(fixity.read_manifest(file, path))


def _with_link(folder: Path) -> Path:
    write(folder / "files", {"a.txt": b"a"})
    (folder / "files" / "link").symlink_to("a.txt")
    return folder / "files"


def _root(folder: Path) -> Path:
    return make_store("ocfl", folder / "root", {"one": {"a.txt": b"a"}})


def _pairtree(folder: Path) -> Path:
    return make_store("pairtree", folder / "pairtree", {"one": {"a.txt": b"a"}})


Wrong = tuple[Callable[[Path], object], Callable[[Path], list[str]], str, str]
WRONG: dict[str, Wrong] = {
    "kind": (
        lambda folder: stores.open(folder),
        lambda folder: ["store", "ls", f"{folder}"],
        "specify the kind (kind=)",
        "specify the kind (--kind)",
    ),
    "kind of a source": (
        lambda folder: migrate.plan(folder, folder / "bags", to="bags"),
        lambda folder: ["migrate", f"{folder}", f"{folder / 'bags'}", "--to", "bags"],
        "specify the kind (source_kind=)",
        "specify the kind (--source-kind)",
    ),
    "links of an object": (
        lambda folder: stores.open(_root(folder)).put("two", _with_link(folder)),
        lambda folder: ["store", "put", f"{_root(folder)}", "two", f"{_with_link(folder)}"],
        "follow links (links='follow')",
        "follow links (--links follow)",
    ),
    "column": (
        lambda folder: pressmark.layout("pairtree").map_file(_written(folder, "t.csv", b"id\na\n"), folder / "out"),
        lambda folder: ["map", "pairtree", _written(folder, "t.csv", b"id\na\n")],
        "CSV needs column=; use format='lines' for a list",
        "CSV needs --column; use --format lines for a list",
    ),
    "header": (
        lambda folder: pressmark.layout("pairtree").map_file(
            _written(folder, "t.csv", b"id\na\n"), folder / "out", column=1
        ),
        lambda folder: ["map", "pairtree", _written(folder, "t.csv", b"id\na\n"), "--column", "1"],
        "use header=True if that is a column name, header=False if it is data",
        "use --header if that is a column name, --no-header if it is data",
    ),
    "name of the new column": (
        lambda folder: pressmark.layout("pairtree").map_file(
            _written(folder, "t.csv", b"id,path\na,b\n"), folder / "out", column="id"
        ),
        lambda folder: ["map", "pairtree", _written(folder, "t.csv", b"id,path\na,b\n"), "--column", "id"],
        "choose another name (result=)",
        "choose another name (--as)",
    ),
    "delimiter": (
        lambda folder: pressmark.layout("pairtree").map_file(
            _written(folder, "t.csv", b"id;n\na;b\n"), folder / "out", column="id"
        ),
        lambda folder: ["map", "pairtree", _written(folder, "t.csv", b"id;n\na;b\n"), "--column", "id"],
        "use delimiter=';', or delimiter=',' if",
        "use --delimiter ';', or --delimiter ',' if",
    ),
    "carriage returns": (
        lambda folder: pressmark.layout("pairtree").map_file(_written(folder, "ids", b"a\r\nb\r\n"), folder / "out"),
        lambda folder: ["map", "pairtree", _written(folder, "ids", b"a\r\nb\r\n")],
        "use crlf='strip' to remove it, crlf='keep' to keep it",
        "use --crlf strip to remove it, --crlf keep to keep it",
    ),
    "NUL": (
        lambda folder: pressmark.layout("pairtree").map_file(_written(folder, "ids", b"a\0b\nc\n"), folder / "out"),
        lambda folder: ["map", "pairtree", _written(folder, "ids", b"a\0b\nc\n")],
        "use null=True if items end with NUL, crlf='keep' if",
        "use -0 if items end with NUL, --crlf keep if",
    ),
    "JSON lines": (
        lambda folder: pressmark.layout("pairtree").map_file(_written(folder, "ids", b'{"id": "a"}\n'), folder / "out"),
        lambda folder: ["map", "pairtree", _written(folder, "ids", b'{"id": "a"}\n')],
        "select a key (format='jsonl', column=), or use format='lines'",
        "select a key (--format jsonl, --column), or use --format lines",
    ),
    "spreadsheet": (
        lambda folder: pressmark.layout("pairtree").map_file(_written(folder, "t.xlsx", b""), folder / "out"),
        lambda folder: ["map", "pairtree", _written(folder, "t.xlsx", b"")],
        "select its column (column=)",
        "select its column (--column)",
    ),
    "algorithm of a list": (
        lambda folder: _read_list(_list_of(folder)),
        lambda folder: ["verify", _list_of(folder)],
        "choose one of the algorithms (algorithms=)",
        "choose one of the algorithms (-a)",
    ),
    "nested bag": (
        lambda folder: bagit.make_bag(_bag(folder)),
        lambda folder: ["bag", "create", f"{_bag(folder)}"],
        "create a nested bag (nested=True)",
        "create a nested bag (--nested)",
    ),
    "accepted changes": (
        lambda folder: bagit.update(_bag(folder, change=True)),
        lambda folder: ["bag", "update", f"{_bag(folder, change=True)}"],
        "if this is intended, use accept=['added']",
        "if this is intended, use --accept added",
    ),
    "links of a bag": (
        lambda folder: bagit.create(_with_link(folder), folder / "new"),
        lambda folder: ["bag", "create", f"{_with_link(folder)}", "-o", f"{folder / 'new'}"],
        "include its target with links='follow'",
        "include its target with --links follow",
    ),
    "version of a migration": (
        lambda folder: migrate.plan(_pairtree(folder), folder / "bags", to="bags", version="v1"),
        lambda folder: ["migrate", f"{_pairtree(folder)}", f"{folder / 'bags'}", "--to", "bags", "--version", "v1"],
        "has no versions; omit version=",
        "has no versions; omit --version",
    ),
    "copy mode of a migration": (
        lambda folder: migrate.plan(_pairtree(folder), folder / "bags", to="bags", copy_mode="rename"),
        lambda folder: [
            *("migrate", f"{_pairtree(folder)}", f"{folder / 'bags'}", "--to", "bags", "--copy-mode", "rename")
        ],
        "use copy_mode='auto'",
        "use --copy-mode auto",
    ),
    "parameter of a layout": (
        lambda _folder: pressmark.layout("0004", tuple_size=32, number_of_tuples=4),
        lambda _folder: ["map", "0004", "--set", "tupleSize=32", "--set", "numberOfTuples=4"],
        "tuple_size: 32 times number_of_tuples 4 exceeds",
        "tupleSize: 32 times numberOfTuples 4 exceeds",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_caller_reads_its_own_spelling(name: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """Python names no flag, and the command no keyword."""
    in_python, arguments, keyword, flag = WRONG[name]
    for number, folder in enumerate((tmp_path / "python", tmp_path / "shell")):
        folder.mkdir()
        if number == 0:
            with pytest.raises((PressmarkError, ExceptionGroup)) as caught:
                in_python(folder)
            assert keyword in str(caught.value)
            assert not flags_in(str(caught.value))
        else:
            result = call(*arguments(folder))
            assert result.exit_code in (1, 2)
            assert flag in result.stderr
            assert keyword not in result.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_an_existing_object(kind: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    store = make_store(kind, tmp_path / "store", {"one": {"a.txt": b"a"}})
    new = _written(tmp_path, "new.txt", b"new")
    with pytest.raises(PressmarkError, match="use another identifier, or replace=True"):
        stores.open(store).put("one", new)
    assert "use another identifier, or --replace" in call("store", "put", f"{store}", "one", new).stderr
