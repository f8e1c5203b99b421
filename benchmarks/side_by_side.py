"""Run the same benchmarks in two environments by turns, and compare them: ``ci/bench``.

    python -m benchmarks.side_by_side OTHER_PYTHON [--hold 0.95] [--pairs 5] [pytest options]

Processes of pytest have collected the benchmarks and wait; one runs a subject while the others wait, A B, then B A, so
that whatever else the machine does meets both. Each side has two, for where memory happens to lie makes one process
slower than another. As a plugin (``-p benchmarks.side_by_side``) this module waits.

A subject has a ratio: the least time of the other environment (A) divided by the least time of this one (B); below 1, B
is slower. Other work only adds to a time, so the least of some turns is near the true one. How near, the turns that
follow the best show: the bounds are the ratios of the best of one side and the second of the other.

What seems faster is measured in more processes as well: all those of A may have been slow, and hide a slower B. What
seems slower is measured anew in pairs of new processes, each of which counts once, with its best turn. Here the bounds
leave out the slowest process of A and the fastest of B, or the other way round: one process that happens to be slow or
fast neither hides a slowdown nor looks like one.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import IO, Any

__all__ = ["Subject", "bounds", "bounds_of_processes", "main"]

_PIPES = "PRESSMARK_BENCH_PIPES"
# Marks of what is not compared: it does not depend on Pressmark, or more on how the system schedules processes.
_LEFT_OUT = "not (yardstick or peers or scale or unsteady)"
# Seconds of a subject in one turn, and when it is measured again. A turn has at least one run.
_SECONDS, _AGAIN = 0.1, 0.5
# Processes of each side; and when it is measured again, pairs of processes at most, and turns of each.
_PROCESSES, _PAIRS_AGAIN, _TURNS_AGAIN = 2, 10, 3


# --- the processes that wait ------------------------------------------------------------------------------------------


def pytest_runtestloop(session: Any) -> bool:
    """Run the subjects that the other end of the pipe names, as often as it names them."""
    commands, answers = (os.fdopen(int(one), mode) for one, mode in zip(os.environ[_PIPES].split(), "rw", strict=True))
    items = {item.nodeid: item for item in session.items}
    failures: list[str] = []
    session.config.pluginmanager.register(_Failures(failures))
    _say(answers, list(items))
    measured = session.config._benchmarksession.benchmarks
    for line in commands:
        item = items[json.loads(line)]
        measured.clear()
        failures.clear()
        session._setupstate.teardown_exact(item)
        # With a next one of the same module, the fixtures of the session and the module stay.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=copy.copy(item))
        if failures or not measured:
            _say(answers, {"failed": failures[0] if failures else "skipped"})
        else:
            _say(answers, {"group": measured[-1].group, "seconds": measured[-1].stats.min})
    return True


class _Failures:
    """Keeps the last line of each failure."""

    def __init__(self, failures: list[str]) -> None:
        self._failures = failures

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failures.append((report.longreprtext.strip().splitlines() or ["failed"])[-1])


def _say(out: IO[str], what: Any) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


# --- the process that compares ----------------------------------------------------------------------------------------


class Subject:
    """One subject in both environments.

    :ivar pairs: the least seconds of A and B in each pair of turns, or if measured again of processes
    :ivar is_anew: whether it was measured again
    :ivar failed: why it is not compared
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.group = ""
        self.pairs: list[tuple[float, float]] = []
        self.is_anew = False
        self.failed = ""

    @property
    def ratio(self) -> float:
        """The least seconds of A divided by those of B."""
        return min(one for one, _ in self.pairs) / min(other for _, other in self.pairs)

    def is_near(self, enough: float) -> bool:
        """Whether no side seems slower than ``enough`` of the other; a slow process of A would hide a slower B."""
        return enough <= self.ratio <= 1 / enough

    def is_settled(self, pairs: int, enough: float) -> bool:
        """Whether it needs no more turns: it failed, or both sides are near each other and it would hardly change.

        :param pairs: the number of pairs that is enough if the times are not steady
        :param enough: the least ratio
        """
        if self.failed:
            return True
        if len(self.pairs) < 2 or not self.is_near(enough):
            return False
        best = [sorted(side)[:2] for side in zip(*self.pairs, strict=True)]
        return len(self.pairs) >= pairs or all(first >= second * enough for first, second in best)

    @property
    def bounds(self) -> tuple[float, float]:
        first, second = zip(*self.pairs, strict=True)
        return (bounds_of_processes if self.is_anew else bounds)(first, second)

    def line(self, hold: float) -> str:
        """Return the row of the table."""
        if self.failed:
            return f"{'':25}  {self.title}: {self.failed}"
        low, high = self.bounds
        sign = "±" if low <= 1 <= high else " "
        slow = f"  SLOWER than {hold:g}" if high < hold else ""
        return f"{self.ratio:6.3f} {sign} {low:6.3f} to {high:5.3f}  {self.title}{slow}"

    @property
    def title(self) -> str:
        case = self.name.partition("::")[2]
        return f"{self.group}: {case}" if self.group else case


def bounds(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the bounds of the ratio of two least times: with the least of one side, and the second of the other."""
    one, other = sorted(first), sorted(second)
    return one[0] / other[:2][-1], one[:2][-1] / other[0]


def bounds_of_processes(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the bounds of the ratio of two sides, of the best times of several processes each.

    Of ten processes, three at each end are left out.
    """
    end = 3 * len(first) // 10
    one, other = (sorted(side)[end : len(side) - end] for side in (first, second))
    return one[0] / other[-1], one[-1] / other[0]


class _Side:
    """A process of pytest that waits for names of subjects.

    :param what: to collect: a file, a directory, or a name
    :param seconds: of a subject in one turn
    """

    def __init__(self, python: str, options: Sequence[str], what: str, seconds: float) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        words = ("-m", "pytest", what, "-q", "-p", "benchmarks.side_by_side", "-p", "no:cacheprovider")
        few = (f"--benchmark-max-time={seconds}", "--benchmark-min-rounds=1", "-m", _LEFT_OUT)
        self._process = subprocess.Popen(
            [python, *words, *few, *options],
            # The order of sets makes one process slower than the other.
            env={**os.environ, "PYTHONHASHSEED": "0", _PIPES: f"{to_read} {from_write}"},
            pass_fds=(to_read, from_write),
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        os.close(to_read)
        os.close(from_write)
        self._commands, self._answers = os.fdopen(to_write, "w"), os.fdopen(from_read)
        self.names: list[str] = self._answer()

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line:
            self._process.wait()
            self._output.seek(0)
            raise SystemExit(f"pytest has ended:\n{self._output.read().decode()}")
        return json.loads(line)

    def run(self, name: str) -> dict[str, Any]:
        _say(self._commands, name)
        return dict(self._answer())

    def end(self) -> None:
        self._commands.close()
        self._process.wait()


def take_turns(subject: Subject, processes: Sequence[Sequence[_Side]]) -> None:
    """Run a subject once in each environment, in the next process of each."""
    found = [0.0, 0.0]
    turns, number = divmod(len(subject.pairs), len(processes))
    for index in (1, 0) if (turns + number) % 2 else (0, 1):
        answer = processes[number][index].run(subject.name)
        subject.group = answer.get("group", subject.group)
        if "failed" in answer:
            subject.failed = f"{'AB'[index]}: {answer['failed']}"
            return
        found[index] = answer["seconds"]
    subject.pairs.append((found[0], found[1]))


def measure(subject: Subject, processes: Sequence[Sequence[_Side]], pairs: int, enough: float) -> None:
    """Run a subject by turns: less often if its times are steady, up to three times as often while the sides differ."""
    while len(subject.pairs) < 3 * pairs and not subject.is_settled(pairs, enough):
        take_turns(subject, processes)


def measure_in_more(subject: Subject, start: Callable[[str, float], Sequence[_Side]], pairs: int) -> None:
    """Run what seems faster in more processes: those of A may all have been slow."""
    processes = [start(subject.name, _SECONDS) for _one in range(_PROCESSES)]
    for _turn in range(pairs):
        if not subject.failed:
            take_turns(subject, processes)
    for side in itertools.chain(*processes):
        side.end()


def measure_again(subject: Subject, start: Callable[[str, float], Sequence[_Side]], enough: float) -> None:
    """Measure anew what seems slower, in pairs of new processes: at least two, and ten if it still seems slower.

    Fewer did not do on a disk that other programs write to: flushing takes a second more while they do.
    """
    found: list[tuple[float, float]] = []
    while len(found) < _PAIRS_AGAIN:
        sides = start(subject.name, _AGAIN)
        subject.pairs.clear()
        for _turn in range(_TURNS_AGAIN):
            take_turns(subject, [sides])
        for side in sides:
            side.end()
        if subject.failed:
            return
        first, second = map(min, zip(*subject.pairs, strict=True))
        found.append((first, second))
        subject.pairs, subject.is_anew = list(found), True
        if len(found) > 1 and subject.ratio >= enough:
            return


def main(arguments: Sequence[str]) -> int:
    """Print one line a subject; return 1 if one is slower than allowed."""
    parser = argparse.ArgumentParser(prog="ci/bench", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("other", help="the Python of the other environment: A")
    parser.add_argument("--hold", type=float, default=0.95, help="least ratio (default %(default)s)")
    parser.add_argument(
        "--pairs", type=int, default=5, help="turns of each subject that is not steady (default %(default)s)"
    )
    options, others = parser.parse_known_args(arguments)

    def start(what: str, seconds: float) -> list[_Side]:
        return [_Side(python, others, what, seconds) for python in (options.other, sys.executable)]

    processes = [start("benchmarks", _SECONDS) for _one in range(_PROCESSES)]
    of_a, of_b = (side.names for side in processes[0])
    names = [name for name in of_b if name in of_a]
    print(f"{len(names)} subjects; ratio: time of A by time of B, and its bounds; ±: no difference is seen", flush=True)
    slow, ratios, failed = [], [], 0
    # In a few turns, a slow subject may seem to be half as slow.
    enough = (1 + options.hold) / 2
    for subject in map(Subject, names):
        measure(subject, processes, options.pairs, enough)
        if not subject.failed and subject.ratio > 1 / enough:
            measure_in_more(subject, start, options.pairs)
        if not subject.failed and subject.ratio < enough:
            measure_again(subject, start, enough)
        print(subject.line(options.hold), flush=True)
        if subject.failed:
            # What only A cannot do is new in B.
            failed += subject.failed.startswith("B") and "skipped" not in subject.failed
            continue
        ratios.append(subject.ratio)
        slow += [subject] if subject.bounds[1] < options.hold else []
    for side in itertools.chain(*processes):
        side.end()
    if ratios:
        mean = statistics.geometric_mean(ratios)
        print(f"{mean:6.3f}   mean of {len(ratios)}; {len(slow)} slower than {options.hold:g}")
    for subject in slow:
        print(subject.line(options.hold))
    return 1 if slow or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
