"""Long use of the native kernels, including failures, neither leaks memory nor blocks threads."""

from __future__ import annotations

import sys

import pytest

from support.effort import LONG
from support.implementations import Implementation
from support.processes import run_python
from support.samples import CONFIGURATIONS

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the standard library measures no memory there"),
    pytest.mark.long,
]

SCRIPT = """
import io, resource, pickle, sys
import pressmark
from pressmark import *
assert pressmark.implementation == {implementation!r}

ids = ["ark:/13030/xt%d" % n for n in range(300)] + ["", "..", "\\u0100", "\\ud800", b"\\xff", "a:" * 60, "x" * 5000]
layouts = [layout_from_config(config) for config in {configs!r}]
blob = b"\\n".join(i if isinstance(i, bytes) else i.encode("utf-8", "replace") for i in ids)

def once():
    for layout in layouts:
        paths = layout.map_ids(ids, on_error="none")
        layout = pickle.loads(pickle.dumps(layout))  # a new one compiles its kernels anew
        for policy in ("raise", "skip", "none"):
            try:
                layout.map_file(
                    io.BytesIO(blob), io.BytesIO(), crlf="keep", on_error=policy, both=True, threads=2
                )
            except IdentifierError:
                pass
        for wrong in (None, "", "\\ud800"):
            try:
                layout.map_ids([*ids[:9], wrong])
            except (TypeError, IdentifierError):
                pass
        if layout.reversible:
            layout.unmap([path or "" for path in paths] + ["^zz", "%", "=u"], on_error="none")
    Pairtree().unclean("^41" * 500); Vitro().encode_filename("x y" * 60)

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

for _ in range({rounds}):
    once()
before = used()
for _ in range({rounds}):
    once()
print(used() - before)
"""


@pytest.mark.parametrize("rounds", [100 if LONG else 40])
def test_memory_does_not_grow(pair: tuple[Implementation, Implementation], rounds: int) -> None:
    """Rounds of every native kernel do not exceed the peak memory of as many rounds before.

    One leaked column per call would be tens of megabytes; 4 MiB leaves room for allocators.
    """
    configs = [{"extensionName": name, **config} for name, config in CONFIGURATIONS.values()]
    script = SCRIPT.format(implementation="native", rounds=rounds, configs=configs)
    run = run_python(script, implementation="native")
    assert run.stderr == ""
    assert int(run.stdout) < 4 << 20


THREADS = """
import io, threading
from concurrent.futures import ThreadPoolExecutor
import pressmark
layouts = [pressmark.Pairtree(), pressmark.HashAndIdNTuple(), pressmark.DirectClean(), pressmark.FlatDirect()]
blob = b"\\n".join(b"id:%d" % n if n % 500 else b".." for n in range(20_000))
ids = ["id:%d" % n for n in range(3000)]
expected = [layout.map_ids(ids) for layout in layouts]

def work(number):
    layout = layouts[number % len(layouts)]
    sink = io.BytesIO()
    layout.map_file(io.BytesIO(blob), sink, on_error="skip", threads=1 + number % 3)
    assert layout.map_ids(ids) == expected[number % len(layouts)]
    return sink.getvalue()

with ThreadPoolExecutor(8) as executor:
    results = list(executor.map(work, range(24)))
assert all(result == results[number % 12] for number, result in enumerate(results))
print("ok", threading.active_count())
"""


def test_threads_end(implementation: Implementation) -> None:
    """Many threads that use one layout, each with its own threads, get the same result and leave no thread behind."""
    run = run_python(THREADS, implementation=str(implementation), timeout=60)
    assert (run.stdout, run.stderr) == ("ok 1\n", "")
