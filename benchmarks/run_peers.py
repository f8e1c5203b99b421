"""Run the peers on the same identifiers, and tabulate their speed and where their paths differ from Pressmark's.

    python benchmarks/run_peers.py [--count N] [--only NAME ...] [--python-only] [--record] [--note TEXT]

Each peer maps, in its own process and environment, a file of identifiers in a loop that it times itself, after one
round that does not count; the table has the best round. Then each maps a mix of all shapes with hostile identifiers,
and every path that differs from Pressmark's is held against ``peers/differences.py``: what that does not explain is
printed, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import corpora
import pressmark
from peers import differences, environments
from peers.registry import LAYOUTS, PEERS, Peer, Subject
from report import Report

ROUNDS = 4
MIX_OF_EACH = 500
MIX_HOSTILE_SHARE = 0.25
EXAMPLES = 3


class Outcome(NamedTuple):
    """What a peer did on one file."""

    paths: list[str]
    seconds: float
    runtime: str


class Comparison(NamedTuple):
    """How a peer's paths compare with Pressmark's."""

    differing: int
    reasons: Counter[str]
    unexplained: list[tuple[str, str, str]]


def mix() -> list[str]:
    """Return identifiers of every made shape, a quarter of them hostile, all UTF-8 as some peers demand."""
    ids: list[str] = []
    for name in corpora.NAMES:
        if not name.endswith("-real"):
            ids += corpora.load(name, MIX_OF_EACH, "drawn", MIX_HOSTILE_SHARE).ids
    return [identifier for identifier in dict.fromkeys(ids) if not any("\ud800" <= c <= "\udfff" for c in identifier)]


def run(command: environments.Command, subject: Subject, delimiter: str, ids: list[str], rounds: int) -> Outcome:
    """Let a peer map ``ids``."""
    layout = subject.layout(delimiter)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, source, target = folder / "config.json", folder / "identifiers", folder / "paths"
        config.write_text(json.dumps(layout.config()))
        source.write_bytes(b"".join(identifier.encode() + b"\0" for identifier in ids))
        arguments = [*command(config), str(source), str(target), str(rounds)]
        done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        if done.returncode:
            raise environments.Unavailable(f"its run failed: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}")
        said = json.loads(done.stdout.strip().splitlines()[-1])
        paths = target.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
    seconds = said["seconds"]
    return Outcome(paths, min(seconds[1:] or seconds), said["runtime"])


def compare(
    peer: Peer, subject: Subject, delimiter: str, ids: list[str], ours: list[str], theirs: list[str]
) -> Comparison:
    """Hold a peer's paths against ours."""
    if len(theirs) != len(ids):
        raise environments.Unavailable(f"gave {len(theirs)} paths for {len(ids)} identifiers")
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
    """The peers that could be made, and the rows of the tables."""

    def __init__(self, count: int, peers: list[Peer], report: Report) -> None:
        self.report = report
        self.speed = corpora.load(corpora.real_or_made("hathitrust"), count, "drawn")
        self.mix = mix()
        self.missing: dict[str, str] = {}
        self.commands: dict[str, environments.Command] = {}
        self.unexplained: list[str] = []
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
                fast = run(self.commands[peer.name], subject, self.speed.delimiter, self.speed.ids, ROUNDS)
                mixed = run(self.commands[peer.name], subject, ":", self.mix, 1)
                found = compare(peer, subject, self.speed.delimiter, self.speed.ids, ours, fast.paths)
                found_in_mix = compare(peer, subject, ":", self.mix, ours_of_mix, mixed.paths)
            except environments.Unavailable as error:
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
                self.unexplained.append(f"{peer.name} {subject.key}: {len(strange):,}")
        self.report.say(f"### {layout.name}{subject.note}", "")
        heads = ("peer", " runtime", "ns/id", "ids/s", "time / ours", "differ", "differ in mix")
        self.report.table(heads, rows)
        if explanations:
            self.report.say(*explanations, "")


def main() -> int:
    """Make the environments, run, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200_000, help="identifiers to time (default %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="peers to run, beside Pressmark")
    parser.add_argument("--python-only", action="store_true", help="no peers but those of PyPI")
    parser.add_argument("--record", action="store_true", help="keep the tables in benchmarks/record/")
    parser.add_argument("--note", help="what else a reader of the record must know")
    options = parser.parse_args()
    peers = [
        peer
        for peer in PEERS
        if (peer.ours or not options.only or peer.name in options.only)
        and (not options.python_only or peer.language == "Python")
    ]
    # The peers' processes must find the same Pressmark as this one.
    os.environ["PYTHONPATH"] = str(Path(pressmark.__file__).parents[1])
    report = Report("Peers on the same identifiers")
    if options.note:
        report.say(f"Note: {options.note}", "")
    run_of_all = Run(options.count, peers, report)
    report.say(
        f"Time: {len(run_of_all.speed.ids):,} identifiers, {run_of_all.speed.origin}; prefixes end with '.'.",
        f"Mix: {len(run_of_all.mix):,} different identifiers of all made shapes, about a quarter hostile; prefixes end"
        " with ':'.",
        "A peer's time is of its mapping loop alone, one thread, best round of its process. An identifier that one",
        "side refuses and the other maps counts as a difference.",
        "",
    )
    for subject in LAYOUTS:
        run_of_all.subject(subject)
    for name, reason in run_of_all.missing.items():
        report.say(f"- {name} could not be had: {reason}")
    report.say("" if run_of_all.missing else "Every peer could be had.\n")
    for line in run_of_all.unexplained:
        report.say(f"- differences not explained: {line}")
    report.finish()
    if options.record:
        report.keep()
    return 1 if run_of_all.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
