"""The options of a new bag that conforms to a BagIt Profile.

Defaults are filled, and everything that is missing is named before a file is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from pressmark.bagit import bag_info, bagit_txt
from pressmark.bagit.archive.reader import MEDIA_TYPES
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bag_tags import BagTags, new_manifests
from pressmark.bagit.bagit_txt import Declaration
from pressmark.bagit.manifest_format import manifest_name, official_name
from pressmark.bagit.paths import FETCH_TXT, archive_ending
from pressmark.bagit.profile import IDENTIFIER, Element, Profile
from pressmark.bagit.writing.options import DEFAULT, CreateOptions
from pressmark.bagit.writing.tag_writer import computed_info
from pressmark.errors import BagError, quoted, quoted_path
from pressmark.fixity.algorithms import algorithm_names
from pressmark.option_names import option
from pressmark.reports import ERROR, Problem

__all__ = ["add_elements", "fit_profile", "profile_algorithms"]

# The versions that can be written, the preferred one first.
VERSIONS = ((1, 0), (0, 97), (0, 96))
# Without required algorithms, the first allowed one of these.
ALGORITHMS = (DEFAULT, "sha256", "sha1", "md5")
# The media type of an archive by its ending.
_TYPES = {
    b".zip": MEDIA_TYPES["zip"],
    b".tar": MEDIA_TYPES["tar"],
    b".tar.gz": MEDIA_TYPES["gzip"],
    b".tgz": MEDIA_TYPES["gzip"],
    b".tar.zst": MEDIA_TYPES["zstd"],
    b".tzst": MEDIA_TYPES["zstd"],
}


def fit_profile(options: CreateOptions, profile: Profile, destination: bytes | None) -> CreateOptions:
    """Return the options of a bag that conforms to a profile, except for its payload, which is checked later.

    :param destination: of the bag; :data:`None` if it is created in place
    :raises BagError: the profile requires more, or does not allow an option
    """
    fitted = options._replace(
        info=[*options.info, *_defaults(options.info, profile)],
        tag_files=list(_tag_files(options.tag_files, profile)),
        version=next((one for one in VERSIONS if "{}.{}".format(*one) in profile.accept_bagit_version), VERSIONS[0]),
        profile=profile,
    )
    names = {path for path, _source in fitted.tag_files} | {bagit_txt.NAME, bag_info.NAME}
    names |= {manifest_name(name, tag=tag) for name in options.algorithms for tag in (False, True)}
    if options.fetch_base is not None:
        names.add(FETCH_TXT)
    given = {label.lower() for label, _value in fitted.info}
    computed = ((label.decode(), value.decode()) for label, value in computed_info(options.date, 0, 0))
    info = BagInfo([*fitted.info, *(element for element in computed if element[0].lower() not in given)])
    bag = BagTags(b"", Declaration(fitted.version), info, *new_manifests(options.algorithms))
    ending = None if destination is None else archive_ending(destination)
    serialization = None if ending is None else _TYPES.get(ending.lower(), os.fsdecode(ending))
    found = list(profile.check_new(bag, names, serialization))
    if errors := [one for one in found if one.severity == ERROR]:
        reasons = "; ".join(_reasons(errors, profile))
        raise BagError(profile.source, f"the bag would not conform to this profile: {reasons}")
    return fitted._replace(notices=tuple(found))


def profile_algorithms(profile: Profile) -> tuple[str, ...]:
    """Return the algorithms that a profile requires, or else the best one that it allows.

    :raises AlgorithmError: a required algorithm is unknown or not available
    """
    required = [*(profile.manifests_required or ()), *(profile.tag_manifests_required or ())]
    if required:
        return algorithm_names([official_name(name) or name for name in required])
    lists = [one for one in (profile.manifests_allowed, profile.tag_manifests_allowed) if one is not None]
    allowed = [{official_name(name) for name in one} for one in lists]
    further = [name for name in map(official_name, lists[0] if lists else ()) if name is not None]
    return (next((name for name in (*ALGORITHMS, *further) if all(name in one for one in allowed)), DEFAULT),)


def _defaults(info: Sequence[tuple[str, str]], profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the elements that are missing, and have only one allowed value."""
    there = BagInfo(info)
    named = [bag_info.unfolded(value) for label, value in info if label.lower() == IDENTIFIER.lower()]
    if profile.identifier not in named:
        yield IDENTIFIER, profile.identifier
    for element in profile.elements:
        is_wanted = element.required or element.recommended
        if is_wanted and len(element.values) == 1 and element.label not in there and element.label != IDENTIFIER:
            yield element.label, element.values[0]


def _tag_files(tag_files: Sequence[tuple[bytes, bytes]], profile: Profile) -> Iterator[tuple[bytes, bytes]]:
    """Yield path and source of each tag file: one that is required in a directory goes there."""
    required = set(map(os.fsencode, profile.tag_files_required or ()))
    missing = {os.path.basename(path): path for path in sorted(required - {path for path, _source in tag_files})}
    for path, source in tag_files:
        yield path if path in required else missing.pop(path, path), source


def _reasons(errors: Sequence[Problem], profile: Profile) -> Iterator[str]:
    """Yield what prevents the bag, and what to do about it."""
    missing = {one.expected for one in errors if one.kind == "profile-element-missing"}
    if missing:
        labels = [_with_values(element) for element in profile.elements if element.label in missing]
        yield f"bag-info.txt lacks {', '.join(labels)}; {add_elements()}"
    files = [quoted_path(one.path) for one in errors if one.kind == "profile-tag-file-missing"]
    if files:
        yield f"required tag files are missing: {', '.join(files)}; add each with {option('tag_files')}"
    for one in errors:
        if one.kind == "profile-element-value":
            values = next(element.values for element in profile.elements if ", ".join(element.values) == one.expected)
            yield f"{one.message}: {quoted(str(one.found))}; expected {_choice(values)}"
        elif one.kind == "profile-version":
            yield f"the profile accepts BagIt {one.expected}, and Pressmark writes {', '.join(_versions())}"
        elif one.kind == "profile-serialization" and profile.serialization != "forbidden":
            yield f"{one.message}; {_other_destination(profile)}"
        elif one.kind == "profile-serialization":
            yield f"{one.message}; choose a directory"
        elif one.kind not in ("profile-element-missing", "profile-tag-file-missing"):
            where = f"{quoted_path(one.path)}: " if one.path else ""
            yield f"{where}{one.message}"


def add_elements() -> str:
    """Return the advice about elements that a profile requires."""
    return f"add each with {option('info')}"


def _with_values(element: Element) -> str:
    return f"{element.label} ({_choice(element.values)})" if element.values else element.label


def _choice(values: Sequence[str]) -> str:
    return " or ".join(map(quoted, values))


def _versions() -> Iterator[str]:
    return ("{}.{}".format(*version) for version in VERSIONS)


def _other_destination(profile: Profile) -> str:
    endings = [os.fsdecode(ending) for ending, name in _TYPES.items() if profile.accepts(name)]
    if not endings:
        return f"Pressmark does not write {', '.join(profile.accept_serialization)}"
    return f"choose a destination that ends with {' or '.join(endings)}"
