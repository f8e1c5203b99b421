"""The algorithms to compute for the members of an archive, before all of its manifests are known."""

from __future__ import annotations

from collections.abc import Iterable

from pressmark.bagit.manifest_format import official_name, split_manifest_name

__all__ = ["USUAL", "DigestChoice", "manifest_algorithms"]

# The usual algorithms of bags, for payload before the first manifest.
USUAL = ("md5", "sha1", "sha256", "sha512")


def manifest_algorithms(names: Iterable[bytes]) -> tuple[str, ...]:
    """Return the known algorithms of those names that are names of manifests."""
    found = {official_name(parts[1]) for parts in map(split_manifest_name, names) if parts is not None}
    return tuple(sorted(name for name in found if name is not None))


class DigestChoice:
    """Chooses the algorithms for each file, and tells at the end whether they were enough.

    :param names: the algorithms of all manifests; :data:`None` if they are not known yet
    :param is_pipe: the archive is read once, and a manifest may follow the payload
    :ivar has_links: a file can be both tag file and payload
    """

    def __init__(self, names: tuple[str, ...] | None, *, is_pipe: bool = False) -> None:
        self.has_links = False
        self._names = names
        self._is_pipe = is_pipe
        self._seen: set[str] = set()
        self._of_payload: tuple[str, ...] | None = None
        # Those of tag files and of payload files.
        self._used: tuple[set[tuple[str, ...]], set[tuple[str, ...]]] = (set(), set())

    def add_tag_file(self, name: bytes) -> None:
        """Record the name of a tag file, which may be a manifest."""
        self._seen.update(manifest_algorithms([name]))

    def algorithms(self, is_payload: bool) -> tuple[str, ...]:
        """Return the algorithms for the next file, as far as they are known."""
        if self._names is not None:
            names = self._names
        elif not is_payload or self._is_pipe:
            names = tuple(sorted({*USUAL, *self._seen}))
        else:
            if self._of_payload is None:
                self._of_payload = tuple(sorted(self._seen)) or USUAL
            names = self._of_payload
        self.use(is_payload, names)
        return names

    def use(self, is_payload: bool, names: tuple[str, ...]) -> None:
        """Record the algorithms of a file."""
        self._used[is_payload].add(names)

    def lacking(self, names: Iterable[bytes]) -> tuple[str, ...]:
        """Return all needed algorithms if some digests are missing, otherwise ``()``.

        :param names: names in the base directory
        """
        needed: tuple[set[str], set[str]] = (set(), set())
        for parts in map(split_manifest_name, names):
            if parts is not None and (name := official_name(parts[1])) is not None:
                needed[not parts[0]].add(name)
        if self.has_links:
            needed = (needed[0] | needed[1],) * 2
        for wanted, used in zip(needed, self._used, strict=True):
            if any(not wanted <= set(known) for known in used):
                return tuple(sorted(needed[0] | needed[1]))
        return ()
