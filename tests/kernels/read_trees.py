"""Reads the trees of a directory under one implementation in a process of its own, and prints what it read."""

from __future__ import annotations

import json
import os
import sys
from time import monotonic

from pressmark import _kernels
from pressmark._kernels.records import Wanted


def main(implementation: str, top: str, options: str) -> None:
    read_trees = _kernels.load(implementation).read_trees
    names = sorted(os.listdir(os.fsencode(top)))
    while names:
        begin = monotonic()
        batch = read_trees(os.fsencode(top), names, Wanted(**json.loads(options)))
        line = {
            "begun": batch.begun,
            "seconds": monotonic() - begin,
            "trees": [
                [
                    tree.path.decode(),
                    tree.state,
                    [
                        [
                            path.decode(),
                            batch.states[number],
                            batch.errors[number],
                            (batch.content(number) or b"").decode(),
                        ]
                        for path, number in tree.files.items()
                    ],
                    [path.decode() for path in tree.directories],
                    [[other.path.decode(), other.kind] for other in tree.others],
                ]
                for tree in batch.trees
            ],
        }
        print(json.dumps(line))
        names = names[batch.begun :]


main(*sys.argv[1:])
