"""The digests of content in a bucket: computed here, kept by the server, or from a report of the provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from pressmark.buckets.checksum_report import ChecksumReport
from pressmark.buckets.requests import PATIENCE, in_order
from pressmark.fixity.bucket_files import hash_key, stored_digests, without_digest
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.names import decode_fs
from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage

__all__ = ["ServerDigests"]

Key = TypeVar("Key")


class ServerDigests:
    """The digests of the content of a storage root.

    :param source: ``read`` the content, use the digests that the server has ``stored``, or neither (empty)
    :param report: used first
    """

    def __init__(self, storage: RemoteStorage, source: str, report: ChecksumReport | None) -> None:
        self._bucket = storage.bucket
        self._storage = storage
        self._source = source
        self._report = report
        if report is not None:
            report.fit(storage.location.listed(b""))

    def hash_tasks(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...]
    ) -> Iterator[tuple[Key, Outcome, str]]:
        """Yield the key and outcome of each file, in order, and where its digests are from: ``read``, ``stored`` or
        ``report``.

        The outcome of a file that is not read may have some of the digests.

        :param tasks: key and path of each file
        """
        looked_up = self._looked_up(tasks, algorithms)
        yield from in_order(lambda task: self._outcome(*task, algorithms), looked_up, patience=PATIENCE)

    def _looked_up(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...]
    ) -> Iterator[tuple[Key, bytes, dict[str, str], str]]:
        """Yield each file with its digests in the report, or why there are none."""
        for key, file in tasks:
            at = self._storage.prefix + file
            digests, why = ({}, "") if self._report is None else self._report.find(at, algorithms)
            yield key, file, digests, why

    def _outcome(
        self, key: Key, file: bytes, digests: dict[str, str], why: str, algorithms: tuple[str, ...]
    ) -> tuple[Key, Outcome, str]:
        path, at = self._storage.path(file), self._storage.prefix + file
        if digests:
            return key, Outcome(decode_fs(path), digests, None, None, None), "report"
        if self._source == "stored":
            return key, stored_digests(self._bucket, at, path, algorithms, every=False), "stored"
        if self._source == "read":
            return key, hash_key(self._bucket, at, path, algorithms), "read"
        return key, without_digest(path, why), "report"
