"""The machine and the versions that a result belongs to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path

import pressmark
from pressmark import _kernels

__all__ = ["describe", "short_name"]


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _system() -> str:
    release = getattr(platform, "freedesktop_os_release", dict)
    try:
        name = release().get("PRETTY_NAME", "")
    except OSError:
        name = ""
    return " ".join(filter(None, (platform.system(), platform.release().split("-")[0], platform.machine(), name)))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def short_name() -> str:
    """Return the machine's name for file names, such as ``amd-epyc-2-cores``."""
    return re.sub("[^a-z0-9]+", "-", f"{_processor()} {_cores()} cores".lower()).strip("-")


def describe() -> dict[str, str]:
    """Return what pytest-benchmark does not say of the machine, and the versions."""
    return {
        "name": short_name(),
        "processor": f"{_processor()}, {_cores()} cores",
        "system": _system(),
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "",
        "pressmark": f"{pressmark.__version__}, {pressmark.implementation}, vector level {_kernels.active.LEVEL}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in ("pyarrow", "blake3", "xxhash")),
    }
