"""Map the same identifiers with other programs, by ``-m peers``: speed, and every path that differs from Pressmark's.

Each program maps a file of identifiers in a process and an environment of its own, in a loop that it times itself. Then
each maps a mix of all shapes with hostile identifiers. A path that differs from Pressmark's needs a reason in
``peers/differences.py``; one without a reason fails.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks import corpora, processes
from benchmarks.conftest import Measure
from benchmarks.peers import differences, environments
from benchmarks.peers.registry import LAYOUTS, PEERS, Peer, Subject

MIX_OF_EACH, MIX_HOSTILE_SHARE = 500, 0.25
ROUNDS = 4
CASES = [(subject, peer) for subject in LAYOUTS for peer in PEERS if subject.key in peer.subjects]


class Clock:
    """A clock that advances by the seconds that the other programs report."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()
pytestmark = [pytest.mark.peers, pytest.mark.benchmark(timer=CLOCK)]


class Outcome(NamedTuple):
    """The output of a program for one file."""

    paths: list[str]
    seconds: float
    runtime: str


@functools.cache
def mix() -> list[str]:
    """Return identifiers of every generated shape, a quarter hostile, all UTF-8 because some peers require it."""
    ids: list[str] = []
    for name in corpora.NAMES:
        if not name.endswith("-real"):
            ids += corpora.load(name, MIX_OF_EACH, "drawn", MIX_HOSTILE_SHARE).ids
    return [identifier for identifier in dict.fromkeys(ids) if not any("\ud800" <= c <= "\udfff" for c in identifier)]


@functools.cache
def command_of(peer: Peer) -> environments.Command | str:
    try:
        return peer.environment(peer.name)
    except environments.Unavailable as error:
        return str(error)


def mapped(
    folder: Path, command: environments.Command, subject: Subject, delimiter: str, ids: list[str], rounds: int
) -> Outcome:
    """Map ``ids`` with a program."""
    config, source, target = folder / "config.json", folder / "identifiers", folder / "paths"
    config.write_text(json.dumps(subject.layout(delimiter).config()))
    source.write_bytes(b"".join(identifier.encode() + b"\0" for identifier in ids))
    answer = processes.run([*command(config), source, target, str(rounds)], environments.with_pressmark()).json()
    paths = target.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
    assert len(paths) == len(ids)
    seconds = answer["seconds"]
    return Outcome(paths, min(seconds[1:] or seconds), answer["runtime"])


@pytest.mark.parametrize(("subject", "peer"), CASES, ids=[f"{one.key}-{peer.label}" for one, peer in CASES])
def test_map(measure: Measure, tmp_path: Path, subject: Subject, peer: Peer, count: int) -> None:
    command = command_of(peer)
    if isinstance(command, str):
        pytest.skip(f"{peer.name} is not available: {command}")
    corpus = corpora.load(corpora.real_or_made("hathitrust"), 10 * count, "drawn")

    def run() -> Outcome:
        found = mapped(tmp_path, command, subject, corpus.delimiter, corpus.ids, ROUNDS)
        CLOCK.now += found.seconds
        return found

    def check(found: Any) -> None:
        reasons: Counter[str] = Counter()
        strange = compare(peer, subject, corpus.delimiter, corpus.ids, found.paths, reasons)
        in_mix = mapped(tmp_path, command, subject, ":", mix(), 1)
        strange += compare(peer, subject, ":", mix(), in_mix.paths, reasons)
        measure.note(runtime=found.runtime, differences=dict(reasons.most_common()))
        assert not strange, f"{len(strange):,} differences without a known reason, such as {strange[0]}"

    measure.once(f"programs map {subject.key}", run, check=check, rounds=1, ids=len(corpus.ids))


def compare(
    peer: Peer, subject: Subject, delimiter: str, ids: list[str], theirs: list[str], reasons: Counter[str]
) -> list[tuple[str, str, str]]:
    """Return the paths of a program that differ from Pressmark's without a known reason; count the reasons."""
    unexplained = []
    ours = subject.layout(delimiter).map_ids(ids, on_error="none")
    for identifier, our, their in zip(ids, ours, theirs, strict=True):
        if peer.slashes_around:
            their = their.strip("/")
        if (our or "") == their:
            continue
        reason = differences.explain(peer.name, subject.key, delimiter, identifier, our or "", their)
        if reason is None:
            unexplained.append((identifier, our or "", their))
        else:
            reasons[reason] += 1
    return unexplained
