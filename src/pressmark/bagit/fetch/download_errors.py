"""The error of a failed download."""

from __future__ import annotations

__all__ = ["DownloadError"]


class DownloadError(Exception):
    """A failed request.

    :ivar again: whether a retry can succeed
    :ivar wait: seconds that the server asks to wait first
    """

    def __init__(self, kind: str, reason: str, again: bool = False, wait: float | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.again = again
        self.wait = wait
