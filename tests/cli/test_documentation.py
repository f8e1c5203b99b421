"""Help and documentation: complete, up to date, with working examples."""

from __future__ import annotations

import ast
import gzip
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import pressmark
from pressmark import layout, stores
from pressmark.bagit import create, create_archive, pack
from pressmark.cli import main
from pressmark.cli.common.help_page import HEADINGS, OTHER, epilog, page_context
from pressmark.option_names import as_flags, option

from .conftest import COMMAND, PROFILE, Run, environment

PYARROW = importlib.util.find_spec("pyarrow") is not None
JINJA2 = importlib.util.find_spec("jinja2") is not None
ZSTANDARD = importlib.util.find_spec("zstandard") is not None
# Options of other programs, and of click.
OTHERS = {"--tag", "--help", "--upgrade", "--scheduler-file", "--zero", "--decrypt"}
ROOT = Path(__file__).resolve().parent.parent.parent


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from commands(subcommand, click.Context(subcommand, info_name=name, parent=context))


COMMANDS = dict(commands(main, click.Context(main, info_name="pressmark", **main.context_settings)))


def examples(command: click.Command) -> list[str]:
    """Return the examples in the help of a command, the two most used first."""
    text = f"{command.help}\n\n{epilog(command, page_context(command))}\n\n"
    parts = (text.partition(f"\b\n{head}:\n")[2].partition("\n\n")[0] for head in ("Examples", "More examples"))
    return [line.strip() for part in parts for line in part.splitlines()]


@pytest.mark.parametrize("path", COMMANDS)
def test_everything_has_help(path: str) -> None:
    """Every command has a description, exit statuses and examples, and every option has help."""
    command = COMMANDS[path]
    assert command.help
    assert command.get_short_help_str(80)
    assert command.epilog
    assert "Exit status:" in command.epilog
    assert examples(command)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("path", COMMANDS)
def test_help_opens_with_examples(path: str, width: int) -> None:
    """Help is one line of purpose, two examples, and at most 60 lines up to the options; it fits 100 columns."""
    done = CliRunner(env={"COLUMNS": str(width)}).invoke(main, [*path.split()[1:], "-h"])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"Usage: {path} [OPTIONS]")
    purpose, before, head, *rest = lines[lines.index("") + 1 :]
    assert purpose.startswith("  ")
    assert (before, head) == ("", "  Examples:")
    first = rest[: rest.index("")]
    assert len(first) == 2
    assert [line.strip() for line in first] == examples(COMMANDS[path])[:2]
    options = next(number for number, line in enumerate(lines) if line and not line.startswith((" ", "Usage:")))
    assert options <= 60
    assert max(map(len, lines)) <= min(width, 100)
    # The pages of the manual have more examples, and the same indent.
    assert [line for line in examples(COMMANDS[path]) if len(line) > 76] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_options_have_headings(path: str) -> None:
    """Every option of a command is below the heading of its group, and only --help is below "Other"."""
    command = COMMANDS[path]
    if isinstance(command, click.Group):
        return
    context = page_context(command, info_name=path, terminal_width=100, **main.context_settings)
    found: dict[str, list[str]] = {}
    formatter = context.make_formatter()
    command.format_options(context, formatter)
    for line in formatter.getvalue().splitlines():
        if line.endswith(":") and not line.startswith(" "):
            found[line.rstrip(":")] = options = []
        elif line.startswith("  -"):
            options.append(line.split("  ")[1])
    records = [one.get_help_record(context) for one in command.get_params(context) if isinstance(one, click.Option)]
    shown = [option for options in found.values() for option in options]
    assert sorted(shown) == sorted(record[0] for record in records if record is not None)
    assert found[OTHER] == ["-h, --help"]
    assert list(found) == [heading for heading in (*HEADINGS, OTHER) if heading in found]


@pytest.mark.parametrize("path", COMMANDS)
def test_help_fits_three_screens(path: str) -> None:
    """Help of the longest commands has three screens of 24 lines; it names every option that it does not describe."""
    command = COMMANDS[path]
    # click leaves two columns of a terminal empty.
    text = CliRunner(env={"COLUMNS": "78"}).invoke(main, [*path.split()[1:], "-h"]).stdout
    lines = text.splitlines()
    names = {name for one in command.params for name in one.opts if name.startswith("--")}
    page_options = getattr(command, "page_options", frozenset())
    assert page_options <= names
    described = {name for name in names if re.search(rf"^  .*{name}\b(?!-)", text, re.MULTILINE)}
    assert names <= described
    if page_options or path in ("pressmark map", "pressmark unmap", "pressmark migrate"):
        assert len(lines) <= 72
        last = " ".join(" ".join(lines).rpartition("  See ")[2].split())
        assert last.startswith(
            f'"man {path.replace(" ", "-")}" and the page "Commands" of the documentation for details'
        )
        assert {name for name in names if name in re.split("[ ,.]+", last)} == page_options
        page = command.get_help(page_context(command, info_name=path, terminal_width=78, **main.context_settings))
        assert all(re.search(rf"^  (-., )?{name}\b", page, re.MULTILINE) for name in names)
        assert '"man ' not in page


def test_headings_name_options() -> None:
    """Every option in the table of headings is an option of a command, and has one heading."""
    named = [option for options in HEADINGS.values() for option in options.split()]
    given = {name for command in COMMANDS.values() for one in command.params for name in one.opts}
    assert [option for option in named if f"--{option}" not in given] == []
    assert len(named) == len(set(named))


def test_messages_name_options_that_exist() -> None:
    """Every option in a message of the code is an option of a command."""
    known = {
        name for command in COMMANDS.values() for one in command.params for name in (*one.opts, *one.secondary_opts)
    }
    package = Path(pressmark.__file__).parent
    for path in package.rglob("*.py"):
        if path.parent == package / "compare" / "report":
            continue  # --text is a name of its CSS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", node.value))
                assert named <= known | OTHERS, (path, named - known)


def test_messages_name_options_of_both_interfaces() -> None:
    """What ``option`` names is an option of a command, and a parameter of a call in Python."""
    flags = {
        name for command in COMMANDS.values() for one in command.params for name in (*one.opts, *one.secondary_opts)
    }
    parameters, named = set(), set()
    package = Path(pressmark.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if package / "cli" in path.parents or path.name == "option_names.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.arg):
                parameters.add(node.arg)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "option":
                named |= {one.value for one in node.args[:1] if isinstance(one, ast.Constant)}
    assert {"replace", "column", "links"} <= named <= parameters
    with as_flags():
        assert {option(name) for name in named} <= flags


def test_generated_pages_are_up_to_date() -> None:
    """The generated pages are up to date."""
    script = ROOT / "ci" / "docs"
    if not script.exists():
        pytest.skip("the tests stand apart from the documents")
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, env=environment(), check=False)
    assert (done.stderr, done.returncode) == (b"", 0)


@pytest.mark.parametrize("program", [["mandoc", "-T", "lint", "-W", "style"], ["groff", "-ww", "-man", "-T", "utf8"]])
def test_manual_pages_are_correct(program: list[str]) -> None:
    """Every command has a manual page, in which the readers of such pages find no fault."""
    folder = ROOT / "docs" / "man"
    if not folder.exists():
        pytest.skip("the tests stand apart from the documents")
    pages = sorted(folder.iterdir())
    assert [page.name for page in pages] == sorted(f"{path.replace(' ', '-')}.1" for path in COMMANDS)
    if shutil.which(program[0]) is None:
        pytest.skip(f"{program[0]} not found")
    done = subprocess.run([*program, *pages], capture_output=True, check=False)
    assert (done.stderr, done.returncode) == (b"", 0)
    if program[0] == "mandoc":
        assert done.stdout == b""


def installed_files() -> list[importlib.metadata.PackagePath]:
    """Return the files of the installed wheel."""
    try:
        files = importlib.metadata.files("pressmark") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    if not any(file.as_posix() == "pressmark/__init__.py" for file in files):
        pytest.skip("the package is not installed from a wheel")
    return files


def test_links_of_the_package_page_are_absolute() -> None:
    """The page of the package is README.md, and its links lead to the repository."""
    installed_files()
    metadata = importlib.metadata.metadata("pressmark")
    [repository] = [one.split(", ")[1] for one in metadata.get_all("Project-URL") or []]
    page = metadata["Description"]
    targets = re.findall(r"\]\(([^)\s]+)\)", page)
    assert f"{repository}/raw/v{pressmark.__version__}/docs/terminal.svg" in targets
    assert f"{repository}/blob/v{pressmark.__version__}/docs/tutorial.md" in targets
    assert [target for target in targets if not target.startswith("https://")] == []


def test_manual_pages_are_installed() -> None:
    """The wheel has the manual pages, where man finds them."""
    files = installed_files()
    installed = {file.name for file in files if file.parent.as_posix().endswith("share/man/man1")}
    assert installed == {f"{path.replace(' ', '-')}.1" for path in COMMANDS}


def furnish(folder: Path, example: str) -> None:
    """Create all files that an example uses."""
    folder.mkdir()
    (folder / "identifiers.txt").write_text("ark:/13030/b\n" if "prefix=" in example else "a:1\nb:2\n")
    # The paths.txt of each layout's example.
    (folder / "paths.txt").write_text("a=u003A1\n" if "0011" in example else "a+/1\n")
    (folder / "table.csv").write_text("id,title\na:1,one\n")
    (folder / "german.csv").write_text("Signatur;Titel\nRara 1;eins\n")
    (folder / "records.jsonl").write_text('{"id": "a:1"}\n')
    (folder / "windows.txt").write_bytes(b"a:1\r\n")
    (folder / "table.tsv").write_text("ppath\ttitle\na+/1\tone\n")
    (folder / "hathi_full.txt.gz").write_bytes(gzip.compress(b'mdp.1\tallow\t"one"\n'))
    if PYARROW:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"id": ["a:1"]}), folder / "table.parquet")
    (folder / "files").mkdir()
    (folder / "files" / "one").write_text("1")
    (folder / "config.json").write_text('{"extensionName": "0003-hash-and-id-n-tuple-storage-layout"}')
    (folder / "readme.txt").write_text("read me")
    (folder / "bag-info-template.txt").write_text("Source-Organization: Example University\n")
    (folder / "files.txt").write_text("https://example.org/one - data/one\n")
    (folder / "tokens.txt").write_text("repository.example Authorization: Bearer TOKEN\n")
    (folder / "tokens.txt").chmod(0o600)
    (folder / "SHA512SUMS").write_text(f"{'0' * 128}  one\n")
    (folder / "profile.json").write_text(json.dumps(PROFILE))
    for name in ("one.txt", "two.txt"):
        (folder / name).write_text(name)
        if "objects/*" in example:
            (folder / "objects" / name).mkdir(parents=True)
    if " store " in example or " migrate " in example:
        furnish_stores(folder, example)
    (folder / "items.csv").write_text("path,Contact-Name\nfiles,A\n")
    if "-o bag" not in example or " pack " in example or " revert " in example:
        info = {"Contact-Name": "A", "BagIt-Profile-Identifier": "http://example.org/profile.json"}
        create(folder / "files", folder / "bag", info=info, algorithms=["md5", "sha512"])
        if "bag.tar.gz" in example:
            pack(folder / "bag", folder / "bag.tar.gz")
    if " unpack " in example:
        for name in ("delivery.tar.gz", "delivery.zip"):
            create_archive(folder / "files", folder / name)


def furnish_stores(folder: Path, example: str) -> None:
    """Create the stores that an example uses, and their sources."""
    (folder / "scans").mkdir()
    for name in ("scans/page1.tif", "page2.tif", "mets.xml"):
        (folder / name).write_text(name)
    (folder / "lily.jpg").write_text("lily")
    (folder / "objects.tsv").write_text("a:1\tscans\nb:2\tone.txt\n")
    if " init " not in example:
        books = stores.create("pairtree", folder / "books")
        stores.VitroStore.create(folder / "uploads", namespaces=["http://vivo.example.edu/individual/"])
        root = stores.OcflRoot.create(folder / "root", layout("0003"), durable=False)
        if "root ark:/13030/xt12t3" in example and " put " not in example:
            for text in ("one.txt", "two.txt", "readme.txt"):
                root.put("ark:/13030/xt12t3", {"mets.xml": folder / text, "page1.tif": folder / text}, replace=True)
        shutil.copytree(folder / "root", folder / "backup")
        if " object " in example:
            root.put("a:1", folder / "scans")
            shutil.copytree(folder / "root" / root.find("a:1").path, folder / "object")
        if " report " in example:
            root.put("a:1", folder / "scans")
            stores.audit(root, folder / "root.audit")
        for identifier in ("a:1", "b:2", *(["ark:/13030/xt12t3"] if " put " not in example else [])):
            books.put(identifier, folder / "scans")


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize("command", COMMANDS)
def test_examples_work(quick: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Every example of a help text succeeds on files with its names; other tests cover bags and stores."""
    script = tmp_path / "bin" / "pressmark"
    script.parent.mkdir()
    quoted = " ".join(f"'{word}'" for word in COMMAND)
    script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    variables = {**environment(), "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}
    for number, example in enumerate(examples(COMMANDS[command])):
        # tests/buckets/test_command.py starts servers.
        if "s3://" in example:
            continue
        needs = {".parquet": PYARROW, ".html": JINJA2, ".zst": ZSTANDARD}
        if any(word in example and not found for word, found in needs.items()):
            continue
        folder = tmp_path / str(number)
        furnish(folder, example)
        monkeypatch.chdir(folder)
        done: subprocess.CompletedProcess[bytes]
        if set(example) & set("|&;<>*("):
            done = subprocess.run(["sh", "-ec", example], capture_output=True, env=variables, timeout=60, check=False)
        else:
            done = quick(*shlex.split(example, comments=True)[1:])
        assert (example, done.returncode) == (example, 0), done.stderr
        if any(f" {word} " in example for word in ("bag", "store", "migrate")):
            assert all(line.startswith(b"pressmark: ") for line in done.stderr.splitlines())
            assert done.stdout or done.stderr, example
        else:
            summaries = [line for line in done.stderr.splitlines() if re.match(rb"pressmark: \S+: 1 file[,;]? ", line)]
            assert (example, done.stderr.splitlines()) == (example, summaries)
            hashes = "pressmark hash" in example and " -o " in example
            assert (example, len(summaries)) == (example, hashes + ("pressmark verify" in example))
            assert done.stdout or done.stderr or "-o " in example, example
