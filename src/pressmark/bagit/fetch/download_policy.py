"""The rules of downloads."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DownloadPolicy"]


@dataclass(frozen=True)
class DownloadPolicy:
    """The rules of downloads: allowed URLs, limits, timeouts and retries.

    :ivar allow_http: allow unencrypted HTTP, also in redirects
    :ivar allow_private: allow hosts with any address
    :ivar allow_hosts: names of hosts that may have any address
    :ivar maximum: size limit in bytes for files of unknown length; :data:`None` for no limit
    :ivar retries: number of retries of a request, counted from 0 again after each mebibyte
    :ivar timeout: seconds without data after which a connection fails
    :ivar pause: seconds before the first retry, doubled each time
    :ivar certificates: a file with the certificates to trust instead of the system's
    :raises ValueError: a number is out of range
    """

    allow_http: bool = False
    allow_private: bool = False
    allow_hosts: frozenset[str] = frozenset()
    maximum: int | None = None
    retries: int = 4
    timeout: float = 60.0
    pause: float = 0.5
    certificates: str | None = None

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries={self.retries}: expected 0 or more")
        if self.timeout <= 0:
            raise ValueError(f"timeout={self.timeout}: expected more than 0")
        if self.maximum is not None and self.maximum < 0:
            raise ValueError(f"maximum={self.maximum}: expected 0 or more")
