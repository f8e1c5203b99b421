"""A migration of one chunk in its own process, with a preloaded fault library.

    python faulty.py OPTIONS [CHANGE ERRNO]

OPTIONS is a file with the options in JSON. CHANGE is the number of the first change of the disk that fails after the
destination exists (see disk_faults.c); with a negative ERRNO, all later changes fail as well. The rows are printed.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

from migrate.samples import entries
from pressmark.migrate.options import Options
from pressmark.migrate.transfer import object_transfer as transfer


def main() -> None:
    options = Options.from_record(json.loads(Path(sys.argv[1]).read_text()))
    options.create_destination()
    plan = entries(options)
    transfer.WAITS = (0.001, 0.001, 0.001)
    library = ctypes.CDLL(None)
    flush = transfer.flush_filesystem

    def flush_at_the_end(directory: bytes) -> None:
        # A full disk keeps what was written.
        if len(sys.argv) > 2:
            library.disk_arm(0, 0, 0)
        flush(directory)

    transfer.flush_filesystem = flush_at_the_end
    if len(sys.argv) > 2:
        library.disk_arm(0, int(sys.argv[2]), int(sys.argv[3]))
    rows = transfer.transfer_chunk(options, plan)
    if len(sys.argv) > 2:
        library.disk_arm(0, 0, 0)
    sys.stdout.buffer.writelines(row.line() for row in rows)


if __name__ == "__main__":
    main()
