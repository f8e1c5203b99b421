"""One run of an audit in a process of its own, which kills itself: run by test_audit_slices.py.

    python audited.py KIND STORE STATE LAST

The process ends, as if killed, after LAST verifications. Each problem is a line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from pressmark.progress_event import EventListener
from pressmark.reports import Problem
from pressmark.stores.audits import audit
from pressmark.stores.audits.audit_state import AuditState, KnownObject, Verification
from pressmark.stores.registry import store_class


def main() -> None:
    kind, path, state, last = sys.argv[1:]
    record = AuditState.record
    left = int(last)

    def counted(self: AuditState, one: KnownObject, result: Verification) -> None:
        nonlocal left
        record(self, one, result)
        self.commit()
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def report(event: object) -> None:
        if isinstance(event, Problem):
            os.write(1, json.dumps(event.record()).encode() + b"\n")

    AuditState.record = counted  # type: ignore[method-assign]
    audit.LISTED_EVERY = 0
    audit.audit(store_class(kind)(path), state, progress=EventListener(report))


if __name__ == "__main__":
    main()
