"""One slice of an audit in a process of its own, which measures itself: run by test_large_audits.py.

    python audited_slice.py STORE STATE OBJECTS

Prints a JSON object: seconds from the start of the process to the first verification, seconds of the summary, peak
memory in bytes (0 where it is unknown), and the summary itself.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from time import monotonic
from typing import Any

BEGIN = monotonic()


def main() -> None:
    from pressmark import stores
    from pressmark.stores.audits.audit_state import AuditState

    store, state, objects = sys.argv[1:]
    seconds: dict[str, float] = {}
    record, coverage = AuditState.record, AuditState.coverage

    def recorded(self: AuditState, *arguments: Any) -> None:
        seconds.setdefault("first", monotonic() - BEGIN)
        record(self, *arguments)

    def covered(self: AuditState, *arguments: Any) -> Any:
        begin = monotonic()
        result = coverage(self, *arguments)
        seconds["summary"] = monotonic() - begin
        return result

    AuditState.record, AuditState.coverage = recorded, covered  # type: ignore[method-assign]
    report = stores.audit(stores.open(store), state, max_objects=int(objects))
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    memory = int(found[1]) << 10 if found else 0
    print(json.dumps({**seconds, "memory": memory, "report": report.summary()}))


if __name__ == "__main__":
    main()
