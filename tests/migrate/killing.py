"""A migration to be killed: run by test_killed.py.

    python killing.py OPTIONS

OPTIONS is a file with the options in JSON. Objects are moved a few at a time until none is left.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from migrate.samples import entries
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.object_transfer import transfer_chunk


def main() -> None:
    options = Options.from_record(json.loads(Path(sys.argv[1]).read_text()))
    plan = entries(options)
    os.write(1, b"ready\n")
    for start in range(0, len(plan), 7):
        transfer_chunk(options, plan[start : start + 7])


if __name__ == "__main__":
    main()
