"""Digests that a provider has computed: a report of S3 Batch Operations ("Compute checksum"), or another table.

A report may be larger than memory: a temporary database holds its rows. Only those count that match the keys in the
bucket now.

The report: https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-examples-reports.html
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from pressmark.buckets.bucket import DIGESTS, ListedKey
from pressmark.errors import StoreError
from pressmark.fs.beneath import open_regular
from pressmark.fs.gzipped import GunzippedStream
from pressmark.fs.spilling import TemporaryDatabase
from pressmark.threads import require_use

__all__ = ["ChecksumReport"]

# The columns of a report of S3 Batch Operations, which has no header. S3 writes error and status in either order.
_BATCH = ("bucket", "key", "versionid", "taskstatus", "errorcode", "httpstatuscode", "resultmessage")
_SIZES = {"sha512": 64, "sha256": 32, "sha1": 20, "md5": 16}
_DATES = ("lastmodifieddate", "lastmodified")
# A server may record times in whole seconds.
_SECOND = 1.0
# Rows that are written together, and bytes of the database in memory.
_TOGETHER, _CACHE = 10_000, 32 << 20
_SCHEMA = """
CREATE TABLE row (
    key BLOB, encoded BLOB, algorithm TEXT, digest TEXT, token TEXT, size INTEGER, modified REAL, has_version INTEGER
);
CREATE TABLE fit (key BLOB, algorithm TEXT, digest TEXT, why TEXT, PRIMARY KEY (key, algorithm)) WITHOUT ROWID;
"""
_ROW = tuple[bytes, bytes, str, str, str | None, int | None, float | None, bool]


class _Fit(NamedTuple):
    """A digest of a key; or why the report has none, with an empty algorithm."""

    key: bytes
    algorithm: str
    digest: str | None = None
    why: str | None = None


class ChecksumReport(TemporaryDatabase):
    """The digests of a report, for the keys that have not changed since then; a context manager.

    :param path: a table in CSV: a report of S3 Batch Operations; or one with a header, and the columns ``Key`` and
        ``sha512``, ``sha256``, ``sha1`` or ``md5`` (in hex or base64), and ``Bucket``, ``ETag``, ``Size`` and
        ``LastModifiedDate`` if it has them. If the name ends in ``.gz``, it is decompressed
    :param bucket: name of the bucket
    :param prefix: the beginning of the keys
    :raises StoreError: the file is not such a table
    :raises OSError: it cannot be read
    :raises SpillError: a temporary file cannot be written or read, like all methods
    """

    def __init__(self, path: str | bytes | os.PathLike[str], bucket: str, prefix: bytes) -> None:
        self._name = os.fsdecode(path)
        self._bucket = bucket
        self._prefix = prefix
        super().__init__(_SCHEMA, _CACHE)
        try:
            with open_regular(os.fsencode(path), follow=True) as file:
                #: When the report was written, at the latest.
                self.written = os.fstat(file.fileno()).st_mtime
                is_packed = self._name.lower().endswith(".gz")
                self._read(GunzippedStream(file, self._name) if is_packed else file)
        except BaseException:
            self._base.close()
            raise

    # --- read ---------------------------------------------------------------------------------------------------------

    def _read(self, file: Any) -> None:
        rows = _digests(_records(file, self._name), self._bucket, self._prefix)
        self._write("row", 8, rows)
        self.execute("CREATE INDEX by_key ON row (key)")
        self.execute("CREATE INDEX by_encoded_key ON row (encoded)")

    def _write(self, table: str, columns: int, rows: Iterator[tuple[object, ...]]) -> None:
        while waiting := list(islice(rows, _TOGETHER)):
            require_use()
            self.execute_many(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * columns)})", waiting)

    # --- fit ----------------------------------------------------------------------------------------------------------

    def fit(self, listed: Iterable[ListedKey]) -> None:
        """Keep the digests of keys that have not changed since the report.

        :param listed: all keys below the prefix, as they are now
        """
        self._write("fit", 4, (one for key in listed for one in self._fits(key)))

    def _fits(self, listed: ListedKey) -> Iterator[_Fit]:
        columns = "algorithm, digest, token, size, modified, has_version"
        rows: list[Any] = []
        for column in ("key", "encoded"):
            # A report encodes keys as in a URL; other tables may contain them as they are.
            order = f"SELECT {columns} FROM row WHERE {column} = ? ORDER BY rowid"
            rows = rows or list(self.rows(order, (listed.key,)))
        why = None
        found = False
        for algorithm, digest, token, size, modified, has_version in rows:
            if token is not None and token != listed.token:
                why = "the report has another version of the file (ETag)"
            elif size is not None and size != listed.size:
                why = "the report has another version of the file (size)"
            elif listed.modified > (self.written if modified is None else modified) + _SECOND:
                why = "the report is older than the file"
            elif token is None and has_version:
                why = "the report names a version of the file without an ETag"
            else:
                found = True
                yield _Fit(listed.key, algorithm, digest)
        if why is not None and not found:
            yield _Fit(listed.key, "", None, why)

    def find(self, key: bytes, algorithms: Collection[str]) -> tuple[dict[str, str], str]:
        """Return the digests of a key by algorithm, and why there are none."""
        rows = list(self.rows("SELECT algorithm, digest, why FROM fit WHERE key = ?", (key,)))
        digests = {algorithm: digest for algorithm, digest, _why in rows if algorithm in algorithms}
        if digests:
            return digests, ""
        why = next((why for _algorithm, _digest, why in rows if why), None)
        if why is None:
            has = f"no {' or '.join(algorithms)} digest of the file"
            why = f"the report has {has}" if rows else "the report does not list the file"
        return {}, why


def _records(file: Any, name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table as dictionaries by the name of the column."""
    text = io.TextIOWrapper(io.BufferedReader(_Raw(file)), "utf-8-sig", "surrogateescape", newline="")
    rows = csv.reader(text, skipinitialspace=True)
    try:
        first = next(rows, [])
        columns = [re.sub("[^a-z0-9]", "", cell.lower()) for cell in first]
        if "key" in columns:
            if not any(_algorithm_of(column) or column in ("resultmessage", "checksumalgorithm") for column in columns):
                raise StoreError(name, _refusal("the table has no column with digests"))
        elif len(first) == len(_BATCH) and first[3].lower() in ("succeeded", "failed"):
            columns = list(_BATCH)
            yield dict(zip(columns, first, strict=True))
        else:
            raise StoreError(name, _refusal("the first line is neither a header nor a row of a report"))
        for row in rows:
            if len(row) == len(columns):
                yield dict(zip(columns, row, strict=True))
            elif row:
                raise StoreError(name, f"line {rows.line_num} has {len(row)} columns instead of {len(columns)}")
    except csv.Error as error:
        raise StoreError(name, f"line {rows.line_num}: {error}; specify a table in CSV") from None


def _refusal(what: str) -> str:
    advice = "specify a completion report of S3 Batch Operations (Compute checksum), or a table with Key and sha512"
    return f"{what}; {advice}. S3 Inventory contains no digests" if "column" in what else f"{what}; {advice}"


class _Raw(io.RawIOBase):
    """A stream of bytes as a file."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _digests(records: Iterable[Mapping[str, str]], bucket: str, prefix: bytes) -> Iterator[_ROW]:
    """Yield the digests of whole contents in a report, of keys in a bucket."""
    for record in records:
        if record.get("bucket", bucket) != bucket or record.get("taskstatus", "succeeded").lower() != "succeeded":
            continue
        encoded = record["key"].encode("utf-8", "surrogateescape")
        key = unquote_to_bytes(encoded.replace(b"+", b" "))
        if not (key.startswith(prefix) or encoded.startswith(prefix)):
            continue
        record = {**record, **_result(record.get("resultmessage", ""))}
        token = record.get("etag", "").strip('"') or None
        size = int(record["size"]) if record.get("size", "").isdecimal() else None
        modified = next((_seconds(record[name]) for name in _DATES if record.get(name)), None)
        has_version = record.get("versionid", "").lower() not in ("", "null")
        for algorithm, digest in _record_digests(record):
            yield key, encoded, algorithm, digest, token, size, modified, has_version


def _result(message: str) -> dict[str, str]:
    """Return the result of a task of S3 Batch Operations: a JSON object."""
    try:
        found = json.loads(message)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {name.lower().replace("_", ""): text for name, text in found.items() if isinstance(text, str)}


def _record_digests(record: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    # Of an upload in parts, it may be a digest of digests.
    if record.get("checksumtype", "FULL_OBJECT").upper() not in ("FULL_OBJECT", ""):
        return
    named = record.get("checksumalgorithm", "").lower().replace("-", "")
    for name in ("checksumhex", "checksumbase64", "checksum"):
        digest = _digest(record.get(name, ""), named)
        if digest is not None:
            yield named, digest
            break
    for column, text in record.items():
        algorithm = _algorithm_of(column)
        digest = _digest(text, algorithm)
        if digest is not None:
            yield algorithm, digest


def _algorithm_of(column: str) -> str:
    """Return the algorithm of a column with digests; empty for other columns."""
    name = column.removeprefix("xamz").removeprefix("checksum")
    return name if name in DIGESTS else ""


def _digest(text: str, algorithm: str) -> str | None:
    """Return a digest in lower-case hex; :data:`None` if the text is not a digest."""
    size = _SIZES.get(algorithm)
    text = text.strip()
    if size is None or not text:
        return None
    if len(text) == 2 * size:
        return text.lower() if re.fullmatch("[0-9A-Fa-f]+", text) else None
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return None
    return data.hex() if len(data) == size else None


def _seconds(text: str) -> float | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
