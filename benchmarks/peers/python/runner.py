"""Time one Python peer on a file of identifiers, inside its own environment.

    python runner.py PEER CONFIG IDENTIFIERS PATHS ROUNDS

Both files are NUL-delimited UTF-8; a refused identifier has an empty path. Prints one JSON object with the seconds of
the mapping loop in each round.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def pairtree(_config: dict[str, Any]) -> Callable[[str], str]:
    """Return the mapping of benosteen's Pairtree."""
    from pairtree.pairtree_path import id_to_dirpath

    return id_to_dirpath


def ptree(_config: dict[str, Any]) -> Callable[[str], str]:
    """Return the mapping of edsu's ptree."""
    from ptree import id2ptree

    return id2ptree


def pypairtree(_config: dict[str, Any]) -> Callable[[str], str]:
    """Return the two steps of UNT's pypairtree, as its users combine them."""
    from pypairtree.pairtree import pair_tree_creator, sanitizeString

    return lambda identifier: pair_tree_creator(sanitizeString(identifier))


def ocfl_py(config: dict[str, Any]) -> Callable[[str], str]:
    """Return a layout of ocfl-py, whose defaults are the document's."""
    from ocfl.layout_registry import get_layout

    return get_layout(config["extensionName"]).identifier_to_path


def document(config: dict[str, Any]) -> Callable[[str], str]:
    """Return a plain loop from ``document.py``."""
    import document

    return document.mapping(config)


PEERS = {"pairtree": pairtree, "ptree": ptree, "pypairtree": pypairtree, "ocfl-py": ocfl_py, "document": document}


def main() -> None:
    peer, config, source, target, rounds = sys.argv[1:]
    mapping = PEERS[peer](json.loads(Path(config).read_text()))
    ids = Path(source).read_bytes().decode().split("\0")[:-1]
    times = []
    for _ in range(int(rounds)):
        paths = []
        start = time.perf_counter()
        for identifier in ids:
            try:
                paths.append(mapping(identifier))
            except Exception:
                paths.append("")
        times.append(time.perf_counter() - start)
    Path(target).write_bytes(b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in paths))
    print(json.dumps({"seconds": times, "runtime": f"Python {sys.version.split()[0]}"}))


if __name__ == "__main__":
    main()
