"""What every benchmark uses: options, the files to work on, and the fixture ``measure``."""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import checksums, machine, processes
from pressmark import _kernels

# Seconds for each subject, and its least number of runs, unless the options of pytest-benchmark say otherwise.
SECONDS, ROUNDS = 0.3, 5
RECORDS = Path(__file__).with_name("record")
# Marks that only ``-m`` selects.
CHOSEN = ("peers", "scale")
# For the server of object storage and the library of lanes, which the tests also use.
sys.path.append(str(Path(__file__).parents[1] / "tests"))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pressmark")
    group.addoption("--count", type=int, default=20_000, help="identifiers to map (default %(default)s)")
    group.addoption(
        "--scale", type=float, default=1.0, help="share of the usual files and objects (default %(default)s)"
    )
    group.addoption("--record", action="store_true", help="keep the results in benchmarks/record")
    group.addoption("--disk", type=Path, default=Path("build/bench"), help="directory on a disk (default %(default)s)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    option = config.option
    if "--benchmark-max-time" not in str(config.invocation_params.args):
        option.benchmark_max_time = SECONDS
    option.benchmark_min_rounds = min(option.benchmark_min_rounds, ROUNDS)
    option.benchmark_disable_gc = True
    option.benchmark_sort = "fullname"
    option.benchmark_columns = ["min", "median", "stddev", "rounds"]
    if option.record:
        name = machine.short_name() + (f"-{option.markexpr}" if option.markexpr in CHOSEN else "")
        option.benchmark_json = RECORDS / f"{name}.json"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.markexpr:
        return
    left_out = [item for item in items if any(map(item.get_closest_marker, CHOSEN))]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    machine_info.update(machine.describe())


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    """Leave out the time of each run, and what only names this machine."""
    for one in output_json["benchmarks"]:
        one["stats"].pop("data", None)
        del one["options"], one["params"]
    for name in ("project", "branch"):
        output_json["commit_info"].pop(name, None)
    output_json["machine_info"].pop("node", None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Measure both implementations."""
    if "implementation" in metafunc.fixturenames:
        metafunc.parametrize("implementation", _kernels.IMPLEMENTATIONS, indirect=True)


@pytest.fixture
def implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    with checksums.implementation(request.param):
        yield request.param


@pytest.fixture
def pure() -> Iterator[None]:
    with checksums.implementation("pure"):
        yield


@pytest.fixture(scope="session")
def count(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.option.count)


@pytest.fixture(scope="session")
def scaled(pytestconfig: pytest.Config) -> Callable[[int], int]:
    """Return a number of files or objects for this run."""
    return lambda usual: max(2, int(usual * pytestconfig.option.scale))


@pytest.fixture(scope="session")
def memory() -> Iterator[Path]:
    """A directory on a file system in memory, where there is one."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made = Path(tempfile.mkdtemp(prefix="pressmark-bench-", dir=parent))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def disk(pytestconfig: pytest.Config) -> Iterator[Path]:
    """A directory on a disk."""
    pytestconfig.option.disk.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=pytestconfig.option.disk)).resolve()
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def library(memory: Path) -> Any:
    """The vector lanes alone."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    from native_lanes.lanes_library import build

    folder = memory / "lanes"
    folder.mkdir()
    return build("gcc", ("-O3",), str(folder))


@pytest.fixture(scope="session")
def places(memory: Path, disk: Path) -> Mapping[str, Path]:
    return {"memory": memory, "disk": disk}


class Measure:
    """Measures one subject of a group.

    :param benchmark: the fixture of pytest-benchmark
    :param most_rounds: 1 if the measurement is repeated by turns
    """

    def __init__(self, benchmark: Any, most_rounds: int) -> None:
        self._benchmark = benchmark
        self._most_rounds = most_rounds

    def call(self, group: str, action: Callable[[], Any], *, check: Callable[[Any], object], **amounts: float) -> None:
        """Measure a call in this process.

        :param check: raises an error if the answer is wrong; it is not timed
        :param amounts: what one call handles, by unit: ``ids=1000`` adds the rate ``ids/s``
        """
        self._benchmark.group = group
        check(action())
        check(self._benchmark(action))
        self._note(amounts)

    def once(
        self,
        group: str,
        action: Callable[[], Any],
        *,
        before: Callable[[], object] = lambda: None,
        check: Callable[[Any], object],
        rounds: int = 5,
        **amounts: float,
    ) -> None:
        """Measure a call that needs a new state each time.

        :param before: makes that state; it is not timed
        :param rounds: number of runs; of several, one more comes first
        """
        self._benchmark.group = group
        rounds = min(rounds, self._most_rounds)
        answers: list[Any] = []

        def fresh() -> None:
            answers.clear()
            before()

        def run() -> None:
            answers.append(action())

        self._benchmark.pedantic(run, setup=fresh, rounds=rounds, warmup_rounds=int(rounds > 1))
        check(answers[-1])
        self._note(amounts)

    def command(
        self,
        group: str,
        *words: str | Path,
        before: Callable[[], object] = lambda: None,
        check: Callable[[str], object] = lambda _output: None,
        rounds: int = 3,
        **amounts: float,
    ) -> None:
        """Measure a whole command, from its start to its end.

        :param words: the command
        :param check: called with the standard output of the last run
        """
        most, least = 0, math.inf

        def run() -> str:
            nonlocal most, least
            done = processes.run(words, processes.our_environment())
            most, least = max(most, done.max_rss), min(least, done.cpu)
            return done.output

        self.once(group, run, before=before, check=check, rounds=rounds, **amounts)
        self.note(**{"processor s": least}, **({"MB": most >> 20} if most else {}))

    def note(self, **facts: Any) -> None:
        """Add facts to ``extra_info``."""
        self._benchmark.extra_info.update(facts)

    def _note(self, amounts: Mapping[str, float]) -> None:
        """Add the rates of the best run."""
        if self._benchmark.stats is not None:
            best = self._benchmark.stats.stats.min
            for unit, amount in amounts.items():
                self._benchmark.extra_info[f"{unit}/s"] = round(amount / best, 1)


@pytest.fixture
def measure(benchmark: Any, request: pytest.FixtureRequest) -> Measure:
    made = Measure(benchmark, request.config.option.benchmark_min_rounds)
    if request.node.get_closest_marker("yardstick"):
        made.note(yardstick=True)
    return made


@pytest.fixture(scope="session")
def pressmark() -> tuple[str, ...]:
    """The command of this Pressmark."""
    return (sys.executable, "-m", "pressmark")
