"""The machine and the versions that a result belongs to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path

import pressmark
from pressmark import _kernels

__all__ = ["OtherWork", "describe", "short_name"]


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


class OtherWork:
    """Measures the share of the cores that other programs use (Linux only)."""

    def __init__(self) -> None:
        self.start = self._read()

    @staticmethod
    def _read() -> tuple[float, float] | None:
        """Return the seconds that all cores worked for other programs, and the seconds that passed on all of them."""
        try:
            fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        except OSError:
            return None
        user, nice, system, idle, wait, interrupts, soft, stolen = (int(field) for field in fields)
        used = os.times()
        own = used.user + used.system + used.children_user + used.children_system
        tick = os.sysconf("SC_CLK_TCK")
        busy = (user + nice + system + interrupts + soft + stolen) / tick
        return busy - own, busy + (idle + wait) / tick

    def share(self) -> float | None:
        """Return the share since the start; :data:`None` where the system does not report it."""
        stop = self._read()
        if self.start is None or stop is None or stop[1] <= self.start[1]:
            return None
        return max(0.0, (stop[0] - self.start[0]) / (stop[1] - self.start[1]))


def short_name() -> str:
    """Return the machine's name for file names, such as ``amd-epyc-2-cores``."""
    return re.sub("[^a-z0-9]+", "-", f"{_processor()} {_cores()} cores".lower()).strip("-")


def describe() -> list[tuple[str, str]]:
    """Return labels and values of machine and versions."""
    load = f", load average {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return [
        ("machine", f"{_processor()}, {_cores()} cores{load}"),
        ("system", _system()),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}"),
        ("pressmark", f"{pressmark.__version__}, {pressmark.implementation}, vector level {_kernels.active.LEVEL}"),
        ("packages", ", ".join(f"{name} {_version(name)}" for name in ("pyarrow", "blake3", "xxhash"))),
    ]
