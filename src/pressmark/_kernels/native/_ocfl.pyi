from typing import Any

__all__ = ["scan_ocfl"]

def scan_ocfl(
    top: bytes, place: bytes, names: list[bytes], reads: str, version: str, clashes: bool, budget: int
) -> tuple[int, list[tuple[bytes, Any]]]: ...
