"""Every test of a behaviour runs twice, as ``[native]`` and as ``[pure]``: it uses the fixture ``implementation``.

Tests that compare the two use the fixture ``pair``. Properties with expensive examples use ``implementations`` and try
each example under all of them. ``PRESSMARK_IMPLEMENTATION=pure`` (or ``native``) restricts the run to one of the two.
Without the native extensions only the pure half runs, and the header reports it; ``--require-native`` makes that an
error.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from support.implementations import Implementation

SOURCE = Path(__file__).parents[1] / "src"
PAIRED = {"implementation", "implementations", "pair"}
MISSING = "the native extension of pressmark is not built"

# The fixture `implementation` is the same for every example of a property, so nothing needs a reset.
COMMON = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("dev", COMMON, max_examples=100)
settings.register_profile("ci", COMMON, max_examples=40, derandomize=True)
settings.register_profile("sanitize", COMMON, max_examples=20, derandomize=True)
settings.register_profile("sanitize-long", COMMON, max_examples=1_000)
settings.register_profile("nightly", COMMON, max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-peers", action="store_true", help="fail if a library to compare with is missing")
    parser.addoption("--require-all-peers", action="store_true", help="make the OCFL peers, and fail if one is missing")
    parser.addoption("--unpaired", action="store_true", help="one case of each test that is not run per implementation")
    parser.addoption("--require-native", action="store_true", help=f"fail if {MISSING}")
    parser.addoption("--long", action="store_true", help="run the long form of the proofs that have one")
    parser.addoption("--repeat", type=int, metavar="N", help="repeat the trials of kill and fuzz proofs N times")


def pytest_configure(config: pytest.Config) -> None:
    # Read by support.effort, also in the workers of pytest-xdist.
    if config.getoption("--long"):
        os.environ["PRESSMARK_LONG"] = "1"
    if config.getoption("--repeat") is not None:
        os.environ["PRESSMARK_REPEAT"] = str(config.getoption("--repeat"))
    try:
        from support.implementations import native_is_missing

        missing = native_is_missing()
    except ModuleNotFoundError as error:
        # With PRESSMARK_IMPLEMENTATION=native the package itself cannot be imported without the extension.
        if os.environ.get("PRESSMARK_IMPLEMENTATION") != "native":
            raise
        raise pytest.UsageError(f"PRESSMARK_IMPLEMENTATION=native, but {MISSING} ({error})") from None
    if missing and config.getoption("--require-native"):
        raise pytest.UsageError(f"--require-native: {MISSING} (python setup.py build_ext --inplace)")


def pytest_report_header() -> list[str]:
    from support.implementations import implementations_to_test, native_is_missing

    names = " and ".join(map(str, implementations_to_test()))
    profile = os.environ.get("HYPOTHESIS_PROFILE", "dev")
    lines = [f"pressmark: testing {names}; hypothesis profile {profile}"]
    if native_is_missing():
        lines.append(f"pressmark: {MISSING}: no [native] tests, and none that compare the two")
    return lines


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from support.implementations import implementations_to_test

    if "implementation" in metafunc.fixturenames:
        metafunc.parametrize("implementation", implementations_to_test(), ids=str, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from support.implementations import both_are_testable

    def can_run(item: pytest.Item) -> bool:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "pair" in fixtures and not both_are_testable():
            return False
        if fixtures & PAIRED and config.getoption("--unpaired"):
            return False
        if any(mark.kwargs.get("only") for mark in item.iter_markers("long")) and not config.getoption("--long"):
            return False
        return SOURCE.is_dir() or item.get_closest_marker("repository") is None

    kept = [item for item in items if can_run(item)]
    if config.getoption("--unpaired"):
        kept = list(_one_case_of_each(kept))
    if len(kept) < len(items):
        left = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = kept


def _one_case_of_each(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the first set of parameters of each test, and all sets of a table of verdicts."""
    seen = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test not in seen or item.get_closest_marker("verdicts"):
            seen.add(test)
            yield item


def pytest_collection_finish() -> None:
    """Exclude all modules and tests from garbage collections; they would take a third of the time."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the OCFL peers validated, and what Pressmark read of theirs."""
    counts: Counter[tuple[str, str]] = Counter()
    disagreements: dict[str, set[str]] = defaultdict(set)
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties if report.when == "call" else ():
            if name == "ocfl peer":
                peer, direction, objects, reasons = json.loads(str(value))
                counts[peer, direction] += objects
                disagreements[peer] |= set(reasons)
    if counts:
        terminalreporter.section("OCFL peers")
    for peer in sorted({peer for peer, _direction in counts}):
        validated, read = counts[peer, "ours"], counts[peer, "theirs"]
        terminalreporter.line(f"{peer}: validated {validated} objects of Pressmark; {read} of its objects were read")
        for reason in sorted(disagreements[peer]):
            terminalreporter.line(f"{peer}: {reason}")


@pytest.fixture
def implementation(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    """Run the test under one implementation."""
    from support.implementations import use

    with use(request.param):
        yield request.param


@pytest.fixture
def implementations() -> list[Implementation]:
    """Return all implementations, for tests that run under each in turn."""
    from support.implementations import implementations_to_test

    return implementations_to_test()


@pytest.fixture
def pair() -> tuple[Implementation, Implementation]:
    """Return the native and the pure implementation, for tests that compare them."""
    from support.implementations import NATIVE, PURE

    return NATIVE, PURE


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can read; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="pressmark-"))
    folder.chmod(0o755)
    if any(not above.stat().st_mode & 0o001 for above in folder.parents):
        shutil.rmtree(folder)
        pytest.skip("the directory of temporary files is closed to other users")
    yield folder
    shutil.rmtree(folder)
