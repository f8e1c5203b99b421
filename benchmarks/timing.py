"""Time several subjects in turn, round by round, and compare their best runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

__all__ = ["Cost", "Failed", "Times", "take_turns", "timed"]


class Failed(Exception):
    """A subject cannot finish its run: it is not run again, and the table contains the message instead."""


class Cost(NamedTuple):
    """The cost of one run.

    :ivar seconds: duration of the operation in seconds
    :ivar whole: duration of the whole process in seconds, including its start and imports
    :ivar cpu: processor seconds of the process
    :ivar max_rss: peak memory of the process and its children in bytes
    """

    seconds: float
    whole: float = 0.0
    cpu: float = 0.0
    max_rss: int = 0


class Times:
    """The runs of each subject, round by round.

    :ivar runs: costs by subject
    :ivar failures: the message of each subject that failed
    """

    def __init__(self) -> None:
        self.runs: dict[str, list[Cost]] = {}
        self.failures: dict[str, str] = {}

    def best(self, subject: str) -> Cost:
        """Return the least of each field."""
        return Cost(*map(min, zip(*self.runs[subject], strict=True)))

    def ratio(self, subject: str, yardstick: str, field: str = "seconds") -> float:
        """Return the best of ``subject`` divided by the best of ``yardstick``."""
        return float(getattr(self.best(subject), field) / getattr(self.best(yardstick), field))

    def median(self, subject: str, yardstick: str) -> float:
        """Return the median of the ratios of the rounds; far from :meth:`ratio`, it shows a noisy machine."""
        rounds = zip(self.runs[subject], self.runs[yardstick], strict=False)
        return statistics.median(one.seconds / other.seconds for one, other in rounds)

    def facts(self) -> dict[str, Any]:
        """Return all runs for a JSON record."""
        runs = {subject: [cost._asdict() for cost in costs] for subject, costs in self.runs.items()}
        return {"runs": runs, "failures": self.failures}


def timed(action: Callable[[], Any]) -> Callable[[], Cost]:
    """Return a subject that runs ``action`` in this process; its result is freed after the clock has stopped."""

    def run() -> Cost:
        begin = time.perf_counter()
        result = action()
        seconds = time.perf_counter() - begin
        del result
        return Cost(seconds)

    return run


def take_turns(
    subjects: Mapping[str, Callable[[], Cost]],
    rounds: int,
    seconds: float = 0.0,
    once: Collection[str] = (),
    warm_up: bool = False,
) -> Times:
    """Run all subjects in turn.

    :param rounds: minimum number of rounds
    :param seconds: rounds continue until this time has passed
    :param once: subjects that run in the first round only
    :param warm_up: run each once before the rounds
    """
    if warm_up:
        for run in subjects.values():
            run()
    times = Times()
    begin = time.perf_counter()
    number = 0
    while number < rounds or time.perf_counter() - begin < seconds:
        # The order alternates, so that no subject always runs after the same other one.
        for name, run in list(subjects.items())[:: -1 if number % 2 else 1]:
            if name in times.failures or (number and name in once):
                continue
            try:
                cost = run()
            except Failed as error:
                times.failures[name] = str(error)
            else:
                times.runs.setdefault(name, []).append(cost)
        number += 1
    return times
