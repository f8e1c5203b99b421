"""Whether a server keeps the promises that writing to a bucket relies on: many accept a condition and ignore it."""

from __future__ import annotations

import hashlib
import os
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Barrier
from typing import NamedTuple

from pressmark.buckets.bucket import ANY, NEW, Bucket, KeyChangedError
from pressmark.errors import StoreError
from pressmark.option_names import option

__all__ = ["STAGING", "ProbeLine", "ProbeResult", "probe", "require_fit"]

#: Below the prefix of a store; an OCFL storage root allows a directory for extensions.
STAGING = b"extensions/pressmark-staging/"
# The digests that are tried, the longest first.
TRIED = ("sha512", "sha256")

_REFUSED, _ACCEPTED = "refused", "accepted"
# No version of a key has this token: it is the MD5 digest of no content that is written here.
_STALE = "0" * 32
_WIDTH = 72


class ProbeLine(NamedTuple):
    """One property of a server.

    :ivar name: the attribute of :class:`ProbeResult`, with the algorithm of a digest behind it
    :ivar is_good: whether the server has the property
    :ivar asked: the requests
    :ivar answer: what the server did
    :ivar consequence: what follows for Pressmark
    """

    name: str
    is_good: bool
    asked: str
    answer: str
    consequence: str


# By attribute: the requests; what follows if the server has the property, and if not.
_PROPERTIES = {
    "creates": (
        "create a key that exists",
        "Two writers cannot overwrite each other's files.",
        "Two writers can overwrite each other's files: write with one program at a time.",
    ),
    "replaces": (
        "replace a version of a key, one that is outdated, and one of a missing key",
        "A change of another writer is not lost.",
        "A change of another writer can be lost: write with one program at a time.",
    ),
    "one_winner": (
        "create a key in two threads at once",
        "Of two writers, one wins.",
        "Both writers can win: write with one program at a time.",
    ),
    "lists_at_once": (
        "list a key that was just created",
        "A listing has all keys that other writers created before.",
        "A listing can lack new keys: write with one program at a time.",
    ),
    "completes": (
        "complete an upload in parts over a key that exists",
        "Large files do not overwrite anything either.",
        "An upload in parts is completed only over a key that no other writer can create.",
    ),
    "copies": (
        "copy over a key that exists",
        "A copy on the server does not overwrite anything.",
        "A copy on the server is used only for a key that no other writer can create.",
    ),
    "deletes": (
        "remove an outdated version of a key",
        "A key is removed only if it has not changed.",
        "A key is removed only where no other writer can replace it.",
    ),
    "digests": (
        "write content with a wrong {} digest, and with the right one",
        "The server verifies {} when it stores a file, and returns it: fixity can be checked without a download.",
        "The server does not keep {}: content must be read to check this digest.",
    ),
}
#: What writers rely on; without the others they do more themselves.
_REQUIRED = ("creates", "replaces", "one_winner", "lists_at_once")


@dataclass(frozen=True)
class ProbeResult:
    """What a server does with the requests of a probe.

    :ivar url: of the bucket and prefix
    :ivar creates: a key that exists is not created again
    :ivar replaces: a version of a key is replaced, and no other version
    :ivar one_winner: of two threads that create a key, one succeeds
    :ivar lists_at_once: a new key is listed
    :ivar completes: an upload in parts does not overwrite a key
    :ivar copies: a copy on the server does not overwrite a key
    :ivar deletes: an outdated version is not removed
    :ivar digests: algorithms of the digests that the server verifies, keeps and returns
    :ivar answers: what the server did, by attribute; for a digest by its algorithm
    :ivar left: the keys that could not be removed
    :ivar requests: number of requests
    """

    url: str
    creates: bool
    replaces: bool
    one_winner: bool
    lists_at_once: bool
    completes: bool
    copies: bool
    deletes: bool
    digests: tuple[str, ...]
    answers: dict[str, str]
    left: tuple[bytes, ...]
    requests: int

    @property
    def is_safe(self) -> bool:
        """Whether several programs can write at once."""
        return all(getattr(self, name) for name in _REQUIRED)

    def lines(self) -> Iterator[ProbeLine]:
        """Yield the properties, the required ones first."""
        for name, (asked, good, bad) in _PROPERTIES.items():
            if name == "digests":
                for algorithm in TRIED:
                    is_good, shown = algorithm in self.digests, _shown(algorithm)
                    text = (good if is_good else bad).format(shown)
                    yield ProbeLine(algorithm, is_good, asked.format(shown), self.answers[algorithm], text)
            else:
                is_good = getattr(self, name)
                yield ProbeLine(name, is_good, asked, self.answers[name], good if is_good else bad)

    def advice(self) -> str:
        """Return what to do."""
        if not self.is_safe:
            return f"not safe for several writers; for an OCFL storage root, {self.replacements()}"
        if not self.digests:
            return "safe for several writers"
        return f"safe for several writers; for stored digests, create OCFL storage roots with {self.digests[0]}"

    def replacements(self) -> str:
        """Return what to do where conditions are ignored."""
        single = f"{option('single_writer', True)} if only this run does"
        if not self.lists_at_once:
            return f"use {single.replace('does', 'writes to the root')}"
        return f"use {option('claims', True)} if only Pressmark writes to the root, or {single}"

    def __str__(self) -> str:
        missing = [line.name for line in self.lines() if not line.is_good]
        return f"{self.url}: {self.advice()}" + (f" (missing: {', '.join(missing)})" if missing else "")

    def table(self) -> str:
        """Return the lines as text: what was asked, what the server did, and below it what follows."""
        lines = []
        for line in self.lines():
            lines.append(f"{'yes' if line.is_good else 'NO':<4}{line.name}: {line.asked}: {line.answer}")
            lines += textwrap.wrap(line.consequence, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        return "\n".join(lines)


def probe(bucket: Bucket, prefix: bytes) -> ProbeResult:
    """Try what writing to a bucket relies on, with about thirty small requests; ``bucket.accepted`` is set.

    The keys are in a new directory below ``extensions/pressmark-staging``, and are removed at the end.

    :param prefix: of the store; empty, or with ``/`` at its end
    :raises OSError: the bucket cannot be written to or listed
    """
    return _Probe(bucket, prefix).run()


def require_fit(bucket: Bucket, prefix: bytes) -> ProbeResult:
    """Probe a server, and return the result.

    :param prefix: as for :func:`probe`
    :raises StoreError: it does not decide between writers
    :raises OSError: the bucket cannot be written to or listed
    """
    found = probe(bucket, prefix)
    if not found.is_safe:
        what = "the server ignores conditions, so that writers can overwrite each other's files"
        raise StoreError(found.url.rstrip("/"), f"{what}; see pressmark store probe, and use another server")
    return found


class _Probe:
    def __init__(self, bucket: Bucket, prefix: bytes) -> None:
        self._bucket = bucket
        self._url = f"{bucket.url}/{prefix.decode()}"
        self._base = prefix + STAGING + b"probe-" + os.urandom(8).hex().encode() + b"/"
        self._uploads: list[tuple[bytes, str]] = []

    def run(self) -> ProbeResult:
        before, accepted = self._bucket.requests, self._bucket.accepted
        first = self._bucket.put(self._base + b"key", b"1", over=ANY)
        try:
            answers = self._answers(first)
        except Exception:
            self._remove()
            raise
        finally:
            self._bucket.accepted = accepted
        left = self._remove()
        digests = tuple(name for name in TRIED if answers[name] == "verified and kept")
        self._bucket.accepted = set(digests)
        return ProbeResult(
            self._url,
            creates=answers["creates"] == _REFUSED,
            replaces=answers["replaces"] == f"{_ACCEPTED}, {_REFUSED}, {_REFUSED}",
            one_winner=answers["one_winner"] == "one succeeded",
            lists_at_once=answers["lists_at_once"] == "listed",
            completes=answers["completes"] == _REFUSED,
            copies=answers["copies"] == _REFUSED,
            deletes=answers["deletes"] == _REFUSED,
            digests=digests,
            answers=answers,
            left=left,
            requests=self._bucket.requests - before,
        )

    def _answers(self, first: str) -> dict[str, str]:
        bucket, key, other = self._bucket, self._base + b"key", self._base + b"other"
        answers = {"lists_at_once": "listed" if self._keys() == [key] else "not listed"}
        answers["creates"] = self._refusal(key, first, lambda: bucket.put(key, b"2"))
        token = bucket.head(key).token
        replaced = _answer(lambda: bucket.put(key, b"3", over=token))
        if replaced == _REFUSED and bucket.head(key).token != token:
            replaced = _ACCEPTED  # the answer was lost, and the request repeated
        outdated = _answer(lambda: bucket.put(key, b"4", over=token))
        missing = _answer(lambda: bucket.put(self._base + b"missing", b"5", over=token))
        answers["replaces"] = f"{replaced}, {outdated}, {missing}"
        answers["one_winner"] = self._race(self._base + b"race")
        for name in TRIED:
            answers[name] = self._digest(self._base + name.encode(), name)
        for name, call in (
            ("completes", lambda: self._upload(other)),
            ("copies", lambda: bucket.copy(key, other)),
            ("deletes", lambda: bucket.delete([other], token=_STALE)),
        ):
            answers[name] = self._refusal(other, bucket.put(other, name.encode(), over=ANY), call)
        return answers

    def _refusal(self, key: bytes, token: str, call: Callable[[], object]) -> str:
        """Return what the server did with a request that must not change a key."""
        answer = _answer(call)
        if answer == _REFUSED:
            with suppress(FileNotFoundError):
                if self._bucket.head(key).token == token:
                    return _REFUSED
            return "refused, but done"
        return answer

    def _keys(self) -> list[bytes]:
        return [one.key for one in self._bucket.list(self._base).keys]

    def _race(self, key: bytes) -> str:
        barrier = Barrier(2)

        def create(content: bytes) -> str:
            barrier.wait()
            return _answer(lambda: self._bucket.put(key, content))

        with ThreadPoolExecutor(2) as pool:
            winners = list(pool.map(create, (b"1", b"2"))).count(_ACCEPTED)
        if not winners:
            with suppress(FileNotFoundError):
                self._bucket.head(key)
                winners = 1  # its answer was lost, and the request repeated
        return ("none succeeded", "one succeeded", "both succeeded")[winners]

    def _digest(self, key: bytes, name: str) -> str:
        bucket = self._bucket
        bucket.accepted = {name}
        right, wrong = (hashlib.new(name, content).hexdigest() for content in (b"right", b"wrong"))
        if _answer(lambda: bucket.put(key, b"right", over=ANY, digests={name: wrong})) == _ACCEPTED:
            return "accepted the wrong one"
        answer = _answer(lambda: bucket.put(key, b"right", over=ANY, digests={name: right}))
        if answer != _ACCEPTED:
            return answer
        return "verified and kept" if bucket.head(key).digests.get(name) == right else "verified, not returned"

    def _upload(self, key: bytes) -> None:
        upload = self._bucket.start(key)
        self._uploads.append((key, upload))
        self._bucket.complete(key, upload, [self._bucket.part(key, upload, 1, b"part")], over=NEW)

    def _remove(self) -> tuple[bytes, ...]:
        """Remove everything, as far as the user may, and return the keys that are left."""
        keys: list[bytes] = []
        with suppress(OSError):
            for key, upload in self._uploads:
                self._bucket.abort(key, upload)
        with suppress(OSError):
            keys = self._keys()
            if keys:
                self._bucket.delete(keys)
                keys = self._keys()
        return tuple(keys)


def _answer(call: Callable[[], object]) -> str:
    """Return what the server did with a request.

    :raises OSError: it cannot be reached
    """
    try:
        call()
    except (FileExistsError, KeyChangedError):
        return _REFUSED
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        return error.strerror or str(error)
    return _ACCEPTED


def _shown(algorithm: str) -> str:
    return {"sha512": "SHA-512", "sha256": "SHA-256"}[algorithm]
