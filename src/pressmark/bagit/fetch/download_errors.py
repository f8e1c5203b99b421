"""What ends a download."""

from __future__ import annotations

__all__ = ["DownloadError"]


class DownloadError(Exception):
    """A request that came to nothing.

    :ivar again: whether another try may do better
    :ivar wait: seconds that the server asks to wait before
    """

    def __init__(self, kind: str, reason: str, again: bool = False, wait: float | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.again = again
        self.wait = wait
