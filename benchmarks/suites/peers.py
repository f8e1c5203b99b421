"""Map the same identifiers with other programs: speed, and every path that differs from Pressmark's.

Each peer maps a file of identifiers in its own process and environment, in a loop that it times itself; the table has
its best round, without the first. Then each maps a mix of all shapes with hostile identifiers. A path that differs from
Pressmark's needs a reason in ``peers/differences.py``; one without a reason is printed and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks import corpora, processes
from benchmarks.peers import differences, environments
from benchmarks.peers.registry import LAYOUTS, PEERS, Peer, Subject
from benchmarks.report import Report
from benchmarks.timing import Failed

COUNT, RUNS = 200_000, 4
MIX_OF_EACH = 500
MIX_HOSTILE_SHARE = 0.25
EXAMPLES = 3


class Outcome(NamedTuple):
    """The output of a peer for one file."""

    paths: list[str]
    seconds: float
    runtime: str


class Comparison(NamedTuple):
    """The differences of a peer's paths from Pressmark's."""

    differing: int
    reasons: Counter[str]
    unexplained: list[tuple[str, str, str]]


def mix() -> list[str]:
    """Return identifiers of every generated shape, a quarter hostile, all UTF-8 because some peers require it."""
    ids: list[str] = []
    for name in corpora.NAMES:
        if not name.endswith("-real"):
            ids += corpora.load(name, MIX_OF_EACH, "drawn", MIX_HOSTILE_SHARE).ids
    return [identifier for identifier in dict.fromkeys(ids) if not any("\ud800" <= c <= "\udfff" for c in identifier)]


def mapped(command: environments.Command, subject: Subject, delimiter: str, ids: list[str], rounds: int) -> Outcome:
    """Map ``ids`` with a peer.

    :raises Failed: its process failed, or the number of paths is wrong
    """
    layout = subject.layout(delimiter)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, source, target = folder / "config.json", folder / "identifiers", folder / "paths"
        config.write_text(json.dumps(layout.config()))
        source.write_bytes(b"".join(identifier.encode() + b"\0" for identifier in ids))
        answer = processes.run([*command(config), source, target, str(rounds)], environments.with_pressmark()).json()
        paths = target.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
    if len(paths) != len(ids):
        raise Failed(f"{len(paths)} paths for {len(ids)} identifiers")
    seconds = answer["seconds"]
    return Outcome(paths, min(seconds[1:] or seconds), answer["runtime"])


def compare(
    peer: Peer, subject: Subject, delimiter: str, ids: list[str], ours: list[str], theirs: list[str]
) -> Comparison:
    """Compare the paths of a peer with those of Pressmark."""
    reasons: Counter[str] = Counter()
    unexplained = []
    for identifier, our, their in zip(ids, ours, theirs, strict=True):
        if peer.slashes_around:
            their = their.strip("/")
        if our == their:
            continue
        reason = differences.explain(peer.name, subject.key, delimiter, identifier, our, their)
        if reason is None:
            unexplained.append((identifier, our, their))
        else:
            reasons[reason] += 1
    return Comparison(sum(reasons.values()) + len(unexplained), reasons, unexplained)


class Run:
    """The available peers, and the tables."""

    def __init__(self, count: int, runs: int, peers: list[Peer], report: Report) -> None:
        self.report = report
        self.runs = runs
        self.speed = corpora.load(corpora.real_or_made("hathitrust"), count, "drawn")
        self.mix = mix()
        self.missing: dict[str, str] = {}
        self.commands: dict[str, environments.Command] = {}
        for peer in peers:
            try:
                self.commands[peer.name] = peer.environment(peer.name)
            except environments.Unavailable as error:
                self.missing[peer.name] = str(error)
        self.peers = [peer for peer in peers if peer.name in self.commands]

    def subject(self, subject: Subject) -> None:
        """Print the table of one layout."""
        peers = [peer for peer in self.peers if subject.key in peer.subjects]
        if all(peer.ours for peer in peers):
            return
        layout = subject.layout(self.speed.delimiter)
        ours = [path or "" for path in layout.map_ids(self.speed.ids, on_error="none")]
        ours_of_mix = [path or "" for path in subject.layout(":").map_ids(self.mix, on_error="none")]
        rows = []
        reference = 0.0
        explanations: list[str] = []
        for peer in peers:
            try:
                fast = mapped(self.commands[peer.name], subject, self.speed.delimiter, self.speed.ids, self.runs)
                mixed = mapped(self.commands[peer.name], subject, ":", self.mix, 1)
                found = compare(peer, subject, self.speed.delimiter, self.speed.ids, ours, fast.paths)
                found_in_mix = compare(peer, subject, ":", self.mix, ours_of_mix, mixed.paths)
            except Failed as error:
                rows.append((peer.label, str(error), *[""] * 5))
                continue
            rate = len(self.speed.ids) / fast.seconds
            reference = reference or rate
            rows.append(
                (
                    peer.label,
                    fast.runtime,
                    f"{1e9 / rate:,.0f}",
                    f"{rate:,.0f}",
                    f"{reference / rate:.2f}",
                    f"{found.differing:,}",
                    f"{found_in_mix.differing:,}",
                )
            )
            for reason, number in (found.reasons + found_in_mix.reasons).most_common():
                explanations.append(f"- {peer.name} ({number:,}): {reason}")
            strange = found.unexplained + found_in_mix.unexplained
            for identifier, our, their in strange[:EXAMPLES]:
                explanations.append(f"- {peer.name}: NOT EXPLAINED: {identifier!r}: ours {our!r}, theirs {their!r}")
            if strange:
                self.report.fail(f"{peer.name} {subject.key}: {len(strange):,} differences without a known reason")
        self.report.print(f"### {layout.name}{subject.note}", "")
        heads = ("peer", " runtime", "ns/id", "ids/s", "time / ours", "differ", "differ in mix")
        self.report.table(heads, rows)
        if explanations:
            self.report.print(*explanations, "")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", metavar="NAME", help="peers to run, besides Pressmark")
    parser.add_argument("--python-only", action="store_true", help="only the peers of PyPI")


def run(options: argparse.Namespace, report: Report) -> None:
    peers = [
        peer
        for peer in PEERS
        if (peer.ours or not options.only or peer.name in options.only)
        and (not options.python_only or peer.language == "Python")
    ]
    run_of_all = Run(options.count, options.runs, peers, report)
    report.print(
        f"Time: {len(run_of_all.speed.ids):,} identifiers, {run_of_all.speed.origin}; prefixes end with '.'.",
        f"Mix: {len(run_of_all.mix):,} identifiers of all generated shapes, about a quarter hostile; prefixes end"
        " with ':'.",
        "The time is that of the mapping loop, one thread, best round. An identifier that only one side refuses counts",
        "as a difference.",
        "",
    )
    for subject in LAYOUTS:
        run_of_all.subject(subject)
    for name, reason in run_of_all.missing.items():
        report.print(f"- {name} is not available: {reason}")
