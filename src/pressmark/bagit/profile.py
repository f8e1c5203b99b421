"""BagIt Profiles: a receiver's requirements for bags beyond validity, in a JSON file.

https://bagit-profiles.github.io/bagit-profiles-specification/, versions 1.1.0 to 1.4.0.

A profile is checked when it is loaded: one that contradicts itself, or has an invalid value, raises
:class:`~pressmark.errors.ProfileError`. Sections that the specification does not define are ignored with a warning. All
other sections are checked, even if they were introduced after the version that the profile names.

Where the specification leaves a choice:

- In a pattern, ``*`` matches any characters, including slashes: the default ``*`` means all tag files. ``?`` and
  ``[…]`` are those of glob(7). A pattern always matches the name that is spelled like it.
- Tag-Files-Allowed applies to tag files that the BagIt draft does not describe.
- Labels are compared as in bag-info.txt: reserved ones in any case, others exactly. Values are compared exactly.
- A payload is empty if it has no file, or a single empty one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, NoReturn

from pressmark.bagit import bag_info, bagit_txt
from pressmark.bagit.bag_directory import BagFiles
from pressmark.bagit.bag_tags import BagTags, ManifestFile
from pressmark.bagit.fetch.fetch_txt import is_absolute_uri
from pressmark.bagit.manifest_format import bag_name, official_name
from pressmark.bagit.paths import BELOW_PAYLOAD, FETCH_TXT, PAYLOAD, why_unsafe
from pressmark.bagit.problems import problem
from pressmark.bagit.walk import walk
from pressmark.errors import ProfileError, quoted, quoted_value
from pressmark.reports import Problem

__all__ = ["Element", "Profile"]

LARGEST = 16 << 20  # 16 MiB
VERSIONS = ("1.1", "1.2", "1.3", "1.4")
# Of each kind; further ones are only counted.
PROBLEMS_LIMIT = 100_000

IDENTIFIER = "BagIt-Profile-Identifier"
INFO = "BagIt-Profile-Info"
BAG_INFO = "Bag-Info"
_INFO_REQUIRED = ("Source-Organization", "External-Description", "Version", IDENTIFIER)
_LISTS = (
    "Manifests-Required",
    "Manifests-Allowed",
    "Tag-Manifests-Required",
    "Tag-Manifests-Allowed",
    "Tag-Files-Required",
    "Tag-Files-Allowed",
    "Payload-Files-Required",
    "Payload-Files-Allowed",
)
_SECTIONS = (
    INFO,
    BAG_INFO,
    *_LISTS,
    "Allow-Fetch.txt",
    "Fetch.txt-Required",
    "Data-Empty",
    "Serialization",
    "Accept-Serialization",
    "Accept-BagIt-Version",
)
_SERIALIZATIONS = ("forbidden", "required", "optional")
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*")
# Names of the same serialization.
_SAME_TYPES = (
    {"application/zip", "application/x-zip-compressed"},
    {"application/x-tar", "application/tar"},
    {"application/gzip", "application/x-gzip", "application/x-compressed-tar", "application/tar+gzip"},
    {"application/x-bzip2", "application/x-bzip", "application/x-bzip-compressed-tar"},
    {"application/x-xz", "application/x-xz-compressed-tar"},
    {"application/zstd", "application/x-zstd-compressed-tar"},
)
_VERSION = re.compile(r"[0-9]+\.[0-9]+")
_KindOf = Callable[[bytes], str]
# Tag files with their own sections, or that always exist.
_DESCRIBED = re.compile(rb"bagit\.txt|bag-info\.txt|fetch\.txt|(?:tag)?manifest-[^/]*\.txt", re.DOTALL)


@dataclass(frozen=True)
class Element:
    """A profile's requirements for an element of bag-info.txt.

    :ivar label: as the profile spells it
    :ivar required: the element must be present
    :ivar recommended: the element should be present
    :ivar repeatable: the element may occur more than once
    :ivar values: the allowed values; empty for any
    :ivar description: a human-readable description
    """

    label: str
    required: bool = False
    recommended: bool = False
    repeatable: bool = True
    values: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class Profile:
    """A BagIt Profile; :meth:`load` reads one.

    Lists are :data:`None` if the profile does not have the section.

    :ivar source: origin of the profile, for messages
    :ivar identifier: the URI that bags use to refer to it
    :ivar version: version of the specification
    :ivar about: metadata of the profile
    :ivar elements: the elements of bag-info.txt that it describes
    :ivar accept_bagit_version: the allowed versions of BagIt, such as ``1.0``
    :ivar manifests_required: algorithms of the payload manifests that a bag must have
    :ivar manifests_allowed: algorithms of the payload manifests that a bag may have
    :ivar tag_manifests_required: algorithms of the tag manifests that a bag must have
    :ivar tag_manifests_allowed: algorithms of the tag manifests that a bag may have
    :ivar tag_files_required: paths of the tag files that a bag must have
    :ivar tag_files_allowed: globs of the paths of the tag files that a bag may have
    :ivar payload_files_required: paths of the payload files that a bag must have
    :ivar payload_files_allowed: globs of the paths of the payload files that a bag may have
    :ivar allow_fetch: a bag may have fetch.txt
    :ivar fetch_required: a bag must have fetch.txt
    :ivar data_empty: the payload is empty, or a single file of zero bytes
    :ivar serialization: ``forbidden``, ``required`` or ``optional``: whether a bag is an archive
    :ivar accept_serialization: the allowed media types of archives
    :ivar unknown: sections and parameters that the specification does not define
    """

    source: str
    identifier: str
    version: str
    about: Mapping[str, object]
    elements: tuple[Element, ...]
    accept_bagit_version: tuple[str, ...]
    manifests_required: tuple[str, ...] | None = None
    manifests_allowed: tuple[str, ...] | None = None
    tag_manifests_required: tuple[str, ...] | None = None
    tag_manifests_allowed: tuple[str, ...] | None = None
    tag_files_required: tuple[str, ...] | None = None
    tag_files_allowed: tuple[str, ...] | None = None
    payload_files_required: tuple[str, ...] | None = None
    payload_files_allowed: tuple[str, ...] | None = None
    allow_fetch: bool = True
    fetch_required: bool = False
    data_empty: bool = False
    serialization: str = "optional"
    accept_serialization: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> Profile:
        """Read a profile from a file.

        :raises ProfileError: the file cannot be read, is not JSON, or contains a malformed profile
        """
        source = os.fsdecode(path)
        try:
            with open(path, "rb") as file:
                data = file.read(LARGEST + 1)
        except (OSError, ValueError) as error:
            raise ProfileError(source, getattr(error, "strerror", None) or str(error)) from None
        if len(data) > LARGEST:
            raise ProfileError(source, f"larger than {LARGEST} bytes; not a profile")
        return cls.from_json(data, source)

    @classmethod
    def from_json(cls, data: bytes, source: str = "profile") -> Profile:
        """Read a profile from JSON in UTF-8.

        :param source: name of the source in messages
        :raises ProfileError: the data is not JSON, or a malformed profile
        """

        def pairs(found: list[tuple[str, Any]]) -> dict[str, object]:
            document = dict(found)
            if len(document) < len(found):
                names = [name for name, _ in found]
                twice = next(name for name in names if names.count(name) > 1)
                raise ProfileError(source, f"{quoted(twice)} occurs more than once")
            return document

        def constant(name: str) -> NoReturn:
            raise ValueError(f"{name} is not a JSON value")

        try:
            content = json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
            # Refuse unpaired surrogates, which escapes can contain.
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        except ProfileError:
            raise
        except UnicodeDecodeError:
            raise ProfileError(source, "invalid JSON: not UTF-8") from None
        except UnicodeEncodeError:
            raise ProfileError(source, "invalid JSON: unpaired surrogate") from None
        except RecursionError:
            raise ProfileError(source, "invalid JSON: nested too deeply") from None
        except ValueError as error:
            raise ProfileError(source, f"invalid JSON: {error}") from None
        return _Reader(source).profile(content)

    def check(self, bag: BagTags, serialization: str | None = None) -> list[Problem]:
        """Return the violations of the profile in ``bag``, with kinds that start with ``profile-``.

        :param serialization: media type of the archive that contained the bag; :data:`None` for a directory
        """
        with bag.files() as base:
            return self.check_files(bag, base, serialization)

    def check_files(self, bag: BagTags, base: BagFiles, serialization: str | None = None) -> list[Problem]:
        """As :meth:`check`, of a bag whose files are open."""
        found: list[Problem] = []
        counts: dict[str, int] = {}
        for one in self._problems(bag, base, serialization):
            counts[one.kind] = counts.get(one.kind, 0) + 1
            if counts[one.kind] <= PROBLEMS_LIMIT:
                found.append(one)
        for kind, count in counts.items():
            if count > PROBLEMS_LIMIT:
                found.append(problem("problems-omitted", b"", f"{count - PROBLEMS_LIMIT} more of kind {kind}"))
        return found

    def check_new(
        self, bag: BagTags, tag_files: Collection[bytes], serialization: str | None = None
    ) -> Iterator[Problem]:
        """Yield the violations of the profile in a bag that is being created, except those of its payload.

        :param bag: its tag files as they will be
        :param tag_files: paths of all its tag files
        """
        yield from self._check_tags(bag, _kinds_of(tag_files), serialization)
        yield from self._check_files((path, 0) for path in tag_files)

    def check_payload(self, files: Iterable[tuple[bytes, int]]) -> Iterator[Problem]:
        """Yield the violations of the profile in the payload of a bag that is being created.

        :param files: path in the bag and size of each payload file; not read if the profile allows any payload
        """
        required = list(map(os.fsencode, self.payload_files_required or ()))
        if not (required or self.payload_files_allowed is not None or self.data_empty):
            return
        found: set[bytes] = set()

        def noted() -> Iterator[tuple[bytes, int]]:
            for path, size in files:
                found.update(one for one in required if path == one or (one[-1:] == b"/" and path.startswith(one)))
                yield path, size

        yield from self._check_files(noted())
        yield from _check_required(_kinds_of(found), "profile-payload-file-missing", self.payload_files_required)

    def _problems(self, bag: BagTags, base: BagFiles, serialization: str | None) -> Iterator[Problem]:
        def kind_of(path: bytes) -> str:
            return base.resolve(path).kind

        yield from self._check_tags(bag, kind_of, serialization)
        yield from _check_required(kind_of, "profile-payload-file-missing", self.payload_files_required)
        yield from self._check_files((found.path, found.size) for found in walk(base) if found.kind == "file")

    def _check_tags(self, bag: BagTags, kind_of: _KindOf, serialization: str | None) -> Iterator[Problem]:
        """Check everything except the payload and the names of tag files.

        :param kind_of: returns the kind of the file at a path in the bag
        """
        for name in self.unknown:
            yield problem("profile-unknown", b"", f"profile contains {name}, which the specification does not define")
        # Fundamental violations first.
        yield from self._check_version(bag)
        yield from self._check_serialization(serialization)
        yield from self._check_identifier(bag)
        for element in self.elements:
            yield from _check_element(bag, element)
        yield from _check_manifests(bag.manifests, b"manifest", self.manifests_required, self.manifests_allowed)
        yield from _check_manifests(
            bag.tag_manifests, b"tagmanifest", self.tag_manifests_required, self.tag_manifests_allowed
        )
        yield from self._check_fetch(kind_of)
        yield from _check_required(kind_of, "profile-tag-file-missing", self.tag_files_required)

    def _check_version(self, bag: BagTags) -> Iterator[Problem]:
        version = "{}.{}".format(*bag.version)
        if version not in self.accept_bagit_version:
            accepted = ", ".join(self.accept_bagit_version)
            yield problem("profile-version", bagit_txt.NAME, expected=accepted, found=version)

    def _check_serialization(self, serialization: str | None) -> Iterator[Problem]:
        if serialization is None:
            if self.serialization == "required":
                yield problem(
                    "profile-serialization", b"", "profile requires a serialized bag; this one is a directory"
                )
        elif self.serialization == "forbidden":
            yield problem("profile-serialization", b"", "profile does not allow serialized bags", found=serialization)
        elif self.accept_serialization and not self.accepts(serialization):
            accepted = ", ".join(self.accept_serialization)
            yield problem(
                "profile-serialization",
                b"",
                "profile does not accept this serialization",
                section="Accept-Serialization",
                expected=accepted,
                found=serialization,
            )

    def accepts(self, serialization: str) -> bool:
        """Return whether a media type is among the allowed ones, also by another name."""
        same = next((types for types in _SAME_TYPES if serialization in types), {serialization})
        return not same.isdisjoint(self.accept_serialization or ())

    def _check_identifier(self, bag: BagTags) -> Iterator[Problem]:
        elements = bag.info.elements
        named = [bag_info.unfolded(value) for label, value in elements if label.lower() == IDENTIFIER.lower()]
        if self.identifier not in named:
            message = f"{IDENTIFIER} refers to other profiles" if named else f"{IDENTIFIER} not found"
            found = ", ".join(named) or None
            yield problem("profile-identifier", bag_info.NAME, message, expected=self.identifier, found=found)

    def _check_fetch(self, kind_of: _KindOf) -> Iterator[Problem]:
        exists = kind_of(FETCH_TXT) == "file"
        if exists and not self.allow_fetch:
            yield problem("profile-fetch-forbidden", FETCH_TXT)
        if self.fetch_required and not exists:
            yield problem("profile-fetch-missing", FETCH_TXT)

    def _check_files(self, files: Iterable[tuple[bytes, int]]) -> Iterator[Problem]:
        """Check every file, if the profile restricts files.

        :param files: path in the bag and size of each
        """
        tag_files = _matcher(self.tag_files_allowed)
        payload_files = _matcher(self.payload_files_allowed)
        if tag_files is None and payload_files is None and not self.data_empty:
            return
        count = nbytes = 0
        for path, size in files:
            if path.startswith(BELOW_PAYLOAD):
                count += 1
                nbytes += max(0, size)
                if payload_files is not None and not payload_files(path):
                    yield problem("profile-payload-file-forbidden", path)
            elif tag_files is not None and not _DESCRIBED.fullmatch(path) and not tag_files(path):
                yield problem("profile-tag-file-forbidden", path)
        if self.data_empty and (count > 1 or nbytes):
            yield problem("profile-data-not-empty", PAYLOAD, f"{count} files with {nbytes} bytes")


def _check_element(bag: BagTags, element: Element) -> Iterator[Problem]:
    """Check an element of bag-info.txt."""
    values = bag.info.all(element.label)
    label = quoted(element.label)
    if not values and element.required:
        yield problem("profile-element-missing", bag_info.NAME, f"{label} not found", expected=element.label)
    elif not values and element.recommended:
        yield problem("profile-element-recommended", bag_info.NAME, f"{label} not found", expected=element.label)
    if len(values) > 1 and not element.repeatable:
        yield problem("profile-element-repeated", bag_info.NAME, f"{label} occurs {len(values)} times")
    for value in values:
        # Many programs fold long values where the profile has a space.
        if element.values and not {value, bag_info.unfolded(value)} & set(element.values):
            expected = ", ".join(element.values)
            message = f"value of {label} not allowed by the profile"
            yield problem("profile-element-value", bag_info.NAME, message, expected=expected, found=value)


def _check_manifests(
    manifests: Iterable[ManifestFile], what: bytes, required: Iterable[str] | None, allowed: Iterable[str] | None
) -> Iterator[Problem]:
    """Check the payload manifests, or the tag manifests."""
    kind = "profile-manifest" if what == b"manifest" else "profile-tag-manifest"
    there = {_algorithm(manifest.algorithm): manifest.name for manifest in manifests}
    for name in required or ():
        if _algorithm(name) not in there:
            yield problem(f"{kind}-missing", b"%b-%b.txt" % (what, bag_name(name).encode()), algorithm=_algorithm(name))
    if allowed is not None:
        permitted = set(map(_algorithm, allowed))
        for algorithm, name_there in there.items():
            if algorithm not in permitted:
                yield problem(f"{kind}-forbidden", name_there, algorithm=algorithm)


def _check_required(kind_of: _KindOf, kind: str, required: Iterable[str] | None) -> Iterator[Problem]:
    for text in required or ():
        path = os.fsencode(text)
        wanted = "directory" if path.endswith(b"/") else "file"
        if kind_of(path) != wanted:
            yield problem(kind, path)


def _kinds_of(names: Collection[bytes]) -> _KindOf:
    """Return a function that returns the kind of the file at a path, of a bag with these files and directories; those
    end with a slash.
    """

    def kind_of(path: bytes) -> str:
        if path[-1:] == b"/":
            return "directory" if any(name.startswith(path) for name in names) else ""
        return "file" if path in names else ""

    return kind_of


def _algorithm(name: str) -> str:
    return official_name(name) or bag_name(name)


def _matcher(patterns: Iterable[str] | None) -> Callable[[bytes], bool] | None:
    """Return a function that returns whether a path matches a pattern; :data:`None` if all paths match."""
    if patterns is None:
        return None
    listed = tuple(patterns)
    if "*" in listed:
        return None
    names = frozenset(map(os.fsencode, listed))
    matches = re.compile("|".join(map(translate, listed)) or "(?!)").match
    return lambda path: path in names or matches(os.fsdecode(path)) is not None


# --- reading ---------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads the JSON of a profile, and refuses invalid values."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._unknown: list[str] = []

    def profile(self, content: Any) -> Profile:
        """Return the profile of a parsed JSON file; raises :class:`ProfileError` if it is invalid."""
        if not isinstance(content, dict):
            self._refuse("not a JSON object with the sections of a profile")
        for name in content:
            if name not in _SECTIONS:
                known = next((section for section in _SECTIONS if section.lower() == name.lower()), None)
                if known is not None:
                    self._refuse(f"{quoted(name)}: expected '{known}'")
                self._unknown.append(f"the section {quoted(name)}")
        about, version = self._about(content)
        lists = {name: self._list(content, name) for name in _LISTS}
        for what in ("Manifests", "Tag-Manifests"):
            self._covers(what, lists, _same_algorithm)
        for what in ("Tag-Files", "Payload-Files"):
            self._paths(f"{what}-Required", lists[f"{what}-Required"])
            self._covers(what, lists, _matches)
        if lists["Manifests-Allowed"] == ():
            self._refuse("Manifests-Allowed is empty, but every bag has a manifest; omit it to allow all")
        allow_fetch = self._truth(content, "Allow-Fetch.txt", True)
        fetch_required = self._truth(content, "Fetch.txt-Required", False)
        if fetch_required and not allow_fetch:
            self._refuse("Fetch.txt-Required is true, but Allow-Fetch.txt is false; change one of them")
        serialization, accepted = self._serialization(content)
        return Profile(
            source=self._source,
            identifier=str(about[IDENTIFIER]),
            version=version,
            about=about,
            elements=tuple(self._elements(content)),
            accept_bagit_version=self._accepted_versions(content),
            manifests_required=lists["Manifests-Required"],
            manifests_allowed=lists["Manifests-Allowed"],
            tag_manifests_required=lists["Tag-Manifests-Required"],
            tag_manifests_allowed=lists["Tag-Manifests-Allowed"],
            tag_files_required=lists["Tag-Files-Required"],
            tag_files_allowed=lists["Tag-Files-Allowed"],
            payload_files_required=lists["Payload-Files-Required"],
            payload_files_allowed=lists["Payload-Files-Allowed"],
            allow_fetch=allow_fetch,
            fetch_required=fetch_required,
            data_empty=self._truth(content, "Data-Empty", False),
            serialization=serialization,
            accept_serialization=accepted,
            unknown=tuple(self._unknown),
        )

    def _refuse(self, reason: str) -> NoReturn:
        raise ProfileError(self._source, reason)

    def _about(self, content: dict[str, object]) -> tuple[dict[str, object], str]:
        about = content.get(INFO)
        if not isinstance(about, dict):
            self._refuse(f"{INFO} not found; add the metadata of the profile")
        for name in _INFO_REQUIRED:
            if not isinstance(about.get(name), str) or not about[name].strip():
                self._refuse(f"{INFO} requires {name}, as a string")
        if not is_absolute_uri(about[IDENTIFIER].partition("#")[0]):
            self._refuse(f"{IDENTIFIER} is not a URI: {quoted(about[IDENTIFIER])}")
        # The first version did not define this element.
        version = about.get("BagIt-Profile-Version", "1.1.0")
        known = isinstance(version, str) and re.fullmatch(r"([0-9]+\.[0-9]+)(?:\.[0-9]+)?", version)
        if not known or known[1] not in VERSIONS:
            self._refuse(f"unsupported BagIt-Profile-Version {quoted_value(version)}; expected {', '.join(VERSIONS)}")
        return about, version

    def _elements(self, content: dict[str, object]) -> Iterator[Element]:
        section = content.get(BAG_INFO, {})
        if not isinstance(section, dict):
            self._refuse(f"{BAG_INFO} is not an object that maps labels to parameters")
        folded: dict[str, str] = {}
        for label, element in section.items():
            if not label.strip():
                self._refuse(f"{BAG_INFO} contains an empty label")
            if folded.setdefault(label.lower(), label) != label:
                self._refuse(
                    f"{BAG_INFO} contains the label {quoted(label)} more than once, also as"
                    f" {quoted(folded[label.lower()])}"
                )
            if not isinstance(element, dict):
                self._refuse(f"{BAG_INFO}: {quoted(label)} is not an object with parameters such as required")
            where = f"{BAG_INFO}: {quoted(label)}: "
            for name in element:
                if name not in ("required", "recommended", "repeatable", "values", "description"):
                    self._unknown.append(f"the parameter {quoted(name)} of {quoted(label)}")
            description = element.get("description", "")
            if not isinstance(description, str):
                self._refuse(f"{where}description is not a string")
            yield Element(
                label,
                required=self._truth(element, "required", False, where),
                recommended=self._truth(element, "recommended", False, where),
                repeatable=self._truth(element, "repeatable", True, where),
                values=self._list(element, "values", where) or (),
                description=description,
            )

    def _truth(self, mapping: dict[str, object], name: str, default: bool, where: str = "") -> bool:
        value = mapping.get(name, default)
        if not isinstance(value, bool):
            self._refuse(f"{where}{name} is {quoted_value(value)}; expected true or false, without quotes")
        return value

    def _list(self, mapping: dict[str, object], name: str, where: str = "") -> tuple[str, ...] | None:
        if name not in mapping:
            return None
        value = mapping[name]
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            self._refuse(f"{where}{name} is {quoted_value(value)}; expected a list of strings")
        return tuple(value)

    def _covers(
        self, what: str, lists: dict[str, tuple[str, ...] | None], matches: Callable[[str, tuple[str, ...]], bool]
    ) -> None:
        """Refuse required names that are not allowed."""
        allowed = lists[f"{what}-Allowed"]
        for one in lists[f"{what}-Required"] or ():
            if allowed is not None and not matches(one, allowed):
                self._refuse(f"{what}-Required contains {quoted(one)}, which {what}-Allowed does not allow")

    def _paths(self, name: str, paths: tuple[str, ...] | None) -> None:
        for path in paths or ():
            fault = why_unsafe(os.fsencode(path))
            if fault is None and path.startswith("data/") != name.startswith("Payload"):
                fault = "path of a payload file" if name.startswith("Tag") else "path not in data/"
            if fault is not None:
                self._refuse(f"{name} contains {quoted(path)}: {fault}")

    def _accepted_versions(self, content: dict[str, object]) -> tuple[str, ...]:
        versions = self._list(content, "Accept-BagIt-Version")
        if not versions:
            self._refuse("Accept-BagIt-Version is missing or empty; specify at least one version")
        for version in versions:
            if not _VERSION.fullmatch(version):
                self._refuse(f"Accept-BagIt-Version contains {quoted(version)}; expected versions such as 1.0")
        return versions

    def _serialization(self, content: dict[str, object]) -> tuple[str, tuple[str, ...]]:
        serialization = content.get("Serialization", "optional")
        if serialization not in _SERIALIZATIONS:
            self._refuse(f"Serialization is {quoted_value(serialization)}; expected {', '.join(_SERIALIZATIONS)}")
        accepted = self._list(content, "Accept-Serialization") or ()
        for one in accepted:
            if not _MEDIA_TYPE.fullmatch(one):
                self._refuse(
                    f"Accept-Serialization contains {quoted(one)}; expected media types such as application/zip"
                )
        if "Serialization" in content and serialization != "forbidden" and not accepted:
            self._refuse(f"Serialization is {serialization}, but Accept-Serialization contains no media type")
        return serialization, accepted


def _same_algorithm(name: str, allowed: tuple[str, ...]) -> bool:
    return _algorithm(name) in map(_algorithm, allowed)


def _matches(path: str, allowed: tuple[str, ...]) -> bool:
    matches = _matcher(allowed)
    # Tag files with their own sections are always allowed.
    return matches is None or _DESCRIBED.fullmatch(os.fsencode(path)) is not None or matches(os.fsencode(path))
