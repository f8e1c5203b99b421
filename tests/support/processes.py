"""Run Python in a process of its own, with the tested pressmark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pressmark

PACKAGE = Path(pressmark.__file__).parent


def run_python(
    code: str, *, implementation: str | None = "auto", folder: Path = PACKAGE.parent, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run ``code`` with the package in ``folder``.

    :param implementation: the value of ``PRESSMARK_IMPLEMENTATION``; ``None`` to leave it unset
    """
    environment = {name: value for name, value in os.environ.items() if name != "PRESSMARK_IMPLEMENTATION"}
    if implementation is not None:
        environment["PRESSMARK_IMPLEMENTATION"] = implementation
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), environment.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
