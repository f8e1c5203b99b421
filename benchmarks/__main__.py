"""Measure Pressmark next to yardsticks and other programs, and check every answer.

    python -m benchmarks SUITE [options]
    python -m benchmarks SUITE --help

A wrong answer fails. A slow one does not: times depend on the machine, so compare ratios.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.report import Report

SUITES = (
    *("mapping", "peers", "lanes", "hashing", "growth", "small_files", "objects"),
    *("bags", "walk", "migration", "compare", "jobs"),
)


def main(arguments: list[str]) -> int:
    """Run a suite; return the exit status."""
    if not arguments or arguments[0] not in SUITES:
        print(__doc__)
        for name in SUITES:
            summary = (importlib.import_module(f"benchmarks.suites.{name}").__doc__ or "").partition("\n")[0]
            print(f"  {name:12} {summary}")
        return 0 if arguments in ([], ["-h"], ["--help"]) else 2
    name, *rest = arguments
    suite = importlib.import_module(f"benchmarks.suites.{name}")
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=suite.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if hasattr(suite, "COUNT"):
        parser.add_argument("--count", type=int, default=suite.COUNT, help="number of items (default %(default)s)")
    if hasattr(suite, "RUNS"):
        parser.add_argument("--runs", type=int, default=suite.RUNS, help="runs of each subject (default %(default)s)")
    parser.add_argument("--folder", type=Path, help="directory for the files of the run")
    parser.add_argument("--record", action="store_true", help="keep the results in benchmarks/record/")
    parser.add_argument("--note", help="a remark for the record")
    suite.add_options(parser)
    options = parser.parse_args(rest)
    report = Report(name, [name, *rest], options.note)
    facts = suite.run(options, report)
    report.finish()
    if options.record:
        report.keep(facts)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
