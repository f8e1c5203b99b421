"""The selection of the implementation, and the detection of broken builds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark
from pressmark import _kernels
from pressmark.cli.common.program import LONG_RUN
from support.implementations import NATIVE, PURE, Implementation, implementations_to_test, native_is_missing, use
from support.processes import PACKAGE, run_python

posix = pytest.mark.skipif(os.name != "posix", reason="needs a terminal of POSIX")

SAY = "import pressmark; print(pressmark.implementation)"

# A finder that precedes all others and fails for all extension modules, as an import may fail: if none is installed,
# the first requested one must fail.
FAIL = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith({modules!r}):
            raise {error}
sys.meta_path.insert(0, Finder())
"""
OURS = "pressmark._kernels.native."
# Broken; with a missing dependency; and failing without a name.
BROKEN = FAIL.format(modules=OURS, error="ImportError('undefined symbol: pm_map')")
FOREIGN = FAIL.format(modules=OURS, error="ModuleNotFoundError(\"No module named 'elsewhere'\", name='elsewhere')")
NAMELESS = FAIL.format(modules=OURS, error="ModuleNotFoundError('No module named something')")


def copy_without(folder: Path, *patterns: str) -> Path:
    """Copy the package into ``folder`` without some files, and return that folder."""
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__", "*.c", *patterns))
    return folder


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with the package as installed without a compiler."""
    return copy_without(tmp_path, "*.so", "*.pyd")


def test_the_environment_selects_the_implementation() -> None:
    """The process runs the implementation that the environment selects; by default the best available one."""
    wanted = os.environ.get("PRESSMARK_IMPLEMENTATION", "auto")
    expected = ("pure" if native_is_missing() else "native") if wanted == "auto" else wanted
    assert pressmark.implementation == expected
    assert str(implementations_to_test()[0]) == expected


def test_native_is_native_and_pure_is_pure(implementation: Implementation) -> None:
    """``[native]`` tests run compiled code, ``[pure]`` tests run Python, with separate kernels for one layout."""
    layout = pressmark.Pairtree()
    assert layout.map_id("abc") == "ab/c"
    kernel = layout._mapping().kernel
    compiled = not hasattr(type(kernel).__init__, "__code__")
    assert compiled == (implementation == NATIVE)
    module = "pure.pairtree" if implementation == PURE else "native._mapping"
    assert type(kernel).__module__ == f"pressmark._kernels.{module}"
    source = sys.modules[type(kernel).__module__].__file__ or ""
    assert source.endswith(".py") == (implementation == PURE)
    assert (implementation.kernels.NAME, _kernels.active) == (implementation.name, implementation.kernels)
    assert (implementation.kernels.LEVEL == "none") == (implementation == PURE)


def test_a_layout_runs_under_either_implementation(pair: tuple[Implementation, Implementation]) -> None:
    """The tests can switch implementations: one layout runs under either, immediately."""
    layout = pressmark.FlatDirect()
    for implementation in (*pair, *pair):
        with use(implementation):
            layout.map_id("a")
            assert str(implementation) in type(layout._mapping().kernel).__module__


def test_pure_is_chosen_by_name() -> None:
    """``PRESSMARK_IMPLEMENTATION=pure`` never looks for the extension, not even a broken one."""
    for code in (SAY, BROKEN + SAY):
        run = run_python(code, implementation="pure")
        assert (run.stdout, run.stderr) == ("pure\n", "")
    run = run_python(f"{SAY}; import sys; print([m for m in sys.modules if 'native' in m])", implementation="pure")
    assert run.stdout == "pure\n[]\n"


def test_native_is_chosen_by_name(pair: tuple[Implementation, Implementation]) -> None:
    """``PRESSMARK_IMPLEMENTATION=native``, and the default, select the installed extension."""
    for value in ("native", "auto", None):
        run = run_python(SAY, implementation=value)
        assert (run.stdout, run.stderr) == ("native\n", "")


def test_auto_falls_back_only_where_the_extension_is_missing(bare: Path) -> None:
    """By default, without an installed extension, the pure implementation runs without a message."""
    for value in ("auto", None, "pure"):
        run = run_python(SAY, implementation=value, folder=bare)
        assert (run.stdout, run.stderr) == ("pure\n", "")


def test_native_raises_where_the_extension_is_missing(bare: Path) -> None:
    """``PRESSMARK_IMPLEMENTATION=native`` does not fall back."""
    run = run_python(SAY, implementation="native", folder=bare)
    assert run.returncode == 1
    assert "ModuleNotFoundError: No module named 'pressmark._kernels.native." in run.stderr.splitlines()[-1]


# Runs the command after all runs have become long ones.
LONG_CALL = """
from pressmark.cli import main
from pressmark.cli.common import program
program.LONG_RUN = -1.0
main({!r})
"""
HINT = "install a C compiler and Python's headers, then reinstall Pressmark with PRESSMARK_BUILD=native"


def stderr_of(call: list[str], folder: Path, value: str = "auto", *, terminal: bool = True) -> str:
    """Return what a long run of the command writes to stderr, in an empty folder."""
    theirs, ours = os.openpty() if terminal else os.pipe()
    environment = {**os.environ, "PYTHONPATH": str(folder), "PRESSMARK_IMPLEMENTATION": value}
    try:
        done = subprocess.run(
            [sys.executable, "-c", LONG_CALL.format(call)],
            env=environment,
            cwd=folder,
            input=b"a\n",
            stdout=subprocess.DEVNULL,
            stderr=ours,
            timeout=120,
            check=True,
        )
        # Something is there to read.
        os.write(ours, b".")
        assert done.returncode == 0
        return os.read(theirs, 1 << 16).decode()
    finally:
        os.close(theirs)
        os.close(ours)


@posix
@pytest.mark.parametrize("call", [["--version"], ["map", "0002"]], ids=["--version", "map"])
def test_the_command_reports_a_missing_extension(bare: Path, call: list[str]) -> None:
    """On a terminal, the version and long runs tell once how to get the native implementation."""
    assert stderr_of(call, bare).count(HINT) == 1
    assert HINT not in stderr_of(call, bare, terminal=False)
    # Someone has chosen it.
    assert HINT not in stderr_of(call, bare, "pure")


@posix
def test_a_missing_extension_is_not_reported_to_a_quiet_or_short_run(bare: Path) -> None:
    """--quiet leaves the hint out, and so does a run of less than ten seconds."""
    assert HINT not in stderr_of(["map", "0002", "--quiet"], bare)
    assert LONG_RUN == 10
    assert HINT in stderr_of(["map", "0002"], bare)


@posix
def test_the_native_implementation_reports_nothing(pair: tuple[Implementation, Implementation]) -> None:
    """Where the extension is installed there is no hint."""
    assert stderr_of(["--version"], PACKAGE.parent) == "."


@pytest.mark.parametrize("name", ["_arrow", "_digests", "_mapping", "_paths", "_trees"])
def test_an_incomplete_extension_is_an_error(
    pair: tuple[Implementation, Implementation], tmp_path: Path, name: str
) -> None:
    """If one of the compiled modules is missing, the build is broken, not pure."""
    folder = copy_without(tmp_path, f"{name}.*.so", f"{name}.*.pyd")
    run = run_python(SAY, folder=folder)
    assert run.returncode == 1
    assert f"No module named 'pressmark._kernels.native.{name}'" in run.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("failure", "message"),
    [(BROKEN, "undefined symbol: pm_map"), (FOREIGN, "No module named 'elsewhere'"), (NAMELESS, "something")],
    ids=["broken", "foreign", "nameless"],
)
@pytest.mark.parametrize("value", ["auto", "native", None])
def test_a_broken_extension_is_an_error(failure: str, message: str, value: str | None) -> None:
    """An installed extension that fails to load is an error; the pure implementation is not selected silently."""
    run = run_python(failure + SAY, implementation=value)
    assert run.returncode == 1
    assert run.stdout == ""
    assert message in run.stderr.splitlines()[-1]


@pytest.mark.parametrize("value", ["nonsense", "", "NATIVE", "c"])
def test_an_unknown_value_is_refused(value: str) -> None:
    """An unknown value is an error that lists the three known ones."""
    run = run_python(SAY, implementation=value)
    assert run.returncode == 1
    line = f"pressmark.errors.PressmarkError: PRESSMARK_IMPLEMENTATION={value}: expected auto, native or pure"
    assert run.stderr.splitlines()[-1] == line


def test_importing_the_package_loads_no_dependency() -> None:
    """``import pressmark`` loads none of the packages that only commands, reports and clusters need."""
    heavy = ("click", "rich", "pyarrow", "matplotlib", "distributed", "numpy", "pandas", "jinja2", "urllib3", "fsspec")
    run = run_python(f"import sys; import pressmark; print([name for name in {heavy} if name in sys.modules])")
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_the_package_is_the_one_installed() -> None:
    """Processes that the tests start run the same package as the tests."""
    run = run_python("import pressmark; print(pressmark.__file__, pressmark.__version__)")
    assert run.stdout.split() == [pressmark.__file__, pressmark.__version__]
