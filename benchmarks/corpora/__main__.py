"""List the corpora, or print one.

python -m benchmarks.corpora                 names, lengths in bytes and an example
python -m benchmarks.corpora NAME COUNT      identifiers, one per line
"""

from __future__ import annotations

import statistics
import sys

from benchmarks.corpora import NAMES, available, load

if sys.argv[1:]:
    name, count = sys.argv[1], int(sys.argv[2])
    sys.stdout.writelines(f"{identifier}\n" for identifier in load(name, count, "drawn").ids)
    sys.exit()
print(f"{'corpus':16} {'bytes: p5':>9} {'p50':>4} {'p95':>4} {'max':>4}  example")
for name in NAMES:
    if not available(name):
        print(f"{name:16} not found: PRESSMARK_CORPORA")
        continue
    ids = load(name, 10_000, "drawn").ids
    lengths = sorted(len(identifier.encode()) for identifier in ids)
    cuts = statistics.quantiles(lengths, n=20)
    print(f"{name:16} {cuts[0]:9.0f} {cuts[9]:4.0f} {cuts[18]:4.0f} {lengths[-1]:4}  {ids[0]}")
