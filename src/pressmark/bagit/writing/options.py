"""The options of creating a bag, validated."""

from __future__ import annotations

import datetime
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.bag_info import INFO_LIMIT, BagInfo, element_values
from pressmark.bagit.changes import refusing
from pressmark.bagit.paths import FETCH_TXT, PAYLOAD, canonical, normal_key, why_unsafe
from pressmark.errors import BagError, quoted
from pressmark.fixity.algorithms import algorithm_names
from pressmark.fs.names import glob_matcher
from pressmark.reports import Problem

if TYPE_CHECKING:
    from pressmark.bagit.profile import Profile

__all__ = [
    *("DEFAULT", "TIMESTAMPS", "CreateOptions", "Elements", "Path"),
    *("bagging_date", "checked_elements", "checked_tag_files", "keeps_times", "labelled_values", "source_date_epoch"),
]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Elements = Mapping[str, str | Iterable[str]] | Iterable[tuple[str, str]]

LINKS = ("refuse", "follow")
TIMESTAMPS = ("keep", "bagging-date")
#: The algorithm of the manifests unless others are chosen.
DEFAULT = "sha512"
_END_OF_TIME = 253402300800  # the year 10,000, in seconds since 1970


class CreateOptions(NamedTuple):
    """The options of a new bag, except source and destination: see :func:`pressmark.bagit.make_bag`.

    :ivar version: BagIt version of the bag
    :ivar profile: what the payload has to conform to
    :ivar notices: warnings of the profile
    :ivar one_file_system: leave out directories on other file systems than a source
    """

    algorithms: tuple[str, ...]
    info: list[tuple[str, str]]
    links: str
    tag_files: list[tuple[bytes, bytes]]
    threads: int | None
    read: str
    date: datetime.date
    exclude: tuple[str, ...] = ()
    delete_excluded: bool = False
    fetch_base: str | None = None
    version: tuple[int, int] = (1, 0)
    profile: Profile | None = None
    notices: tuple[Problem, ...] = ()
    one_file_system: bool = False

    @classmethod
    def from_arguments(
        cls,
        algorithms: Iterable[str] | str | None,
        info: Elements | None,
        links: str,
        tag_files: Mapping[str, Path] | Iterable[Path],
        threads: int | None,
        read: str,
        date: datetime.date | None,
        exclude: Sequence[str] | str = (),
        delete_excluded: bool = False,
        fetch_base: str | None = None,
        one_file_system: bool = False,
    ) -> CreateOptions:
        """Validate the arguments of :func:`pressmark.bagit.make_bag`, and raise its errors."""
        if links not in LINKS:
            raise ValueError(f"links={links!r}: expected {', '.join(LINKS)}")
        names = algorithm_names(DEFAULT if algorithms is None else algorithms)
        elements, files = checked_elements(info), checked_tag_files(tag_files)
        globs = (exclude,) if isinstance(exclude, str) else tuple(exclude)
        glob_matcher(globs)  # raises ValueError
        if fetch_base is not None:
            from pressmark.bagit.fetch.fetch_txt import base_url  # few bags are created holey

            fetch_base = base_url(fetch_base)
        day = date or bagging_date()
        return cls(
            names,
            elements,
            links,
            files,
            threads,
            read,
            day,
            globs,
            delete_excluded,
            fetch_base,
            one_file_system=one_file_system,
        )

    @property
    def is_excluded(self) -> Callable[[str], object] | None:
        """A function that returns whether a name is left out; :data:`None` if none is."""
        return glob_matcher(self.exclude) if self.exclude else None

    def request(self, **more: Any) -> dict[str, Any]:
        """Return a JSON-serializable record of the options, from which a later run recognizes the same request."""
        files = [[os.fsdecode(path), os.fsdecode(os.path.abspath(where))] for path, where in self.tag_files]
        elements = [list(element) for element in self.info]
        request = {"algorithms": list(self.algorithms), "info": elements, "links": self.links, "tag_files": files}
        # Absent by default: a journal without them is the same request.
        if self.exclude:
            request |= {"exclude": list(self.exclude), "delete_excluded": self.delete_excluded}
        if self.one_file_system:
            request["one_file_system"] = True
        if self.fetch_base is not None:
            request["fetch_base"] = self.fetch_base
        if self.version != (1, 0):
            request["version"] = list(self.version)
        return {"command": "create", **request, **more}


def bagging_date() -> datetime.date:
    """Return the default Bagging-Date: today, or the day of SOURCE_DATE_EPOCH in UTC.

    :raises BagError: SOURCE_DATE_EPOCH is invalid
    """
    seconds = source_date_epoch()
    if seconds is None:
        return datetime.date.today()
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date()


def source_date_epoch() -> int | None:
    """Return the time that the environment sets for reproducible output, in seconds since 1970, or :data:`None`.

    :raises BagError: it is invalid
    """
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if text and not (text.isascii() and text.isdigit() and int(text) < _END_OF_TIME):
        raise BagError("SOURCE_DATE_EPOCH", f"{quoted(text)}: expected a number of seconds since 1970")
    return int(text) if text else None


def keeps_times(timestamps: str | None) -> bool:
    """Return whether an archive has the times and permission bits of the files.

    :param timestamps: ``keep`` or ``bagging-date``; :data:`None` for ``keep``, unless SOURCE_DATE_EPOCH is set
    :raises BagError: SOURCE_DATE_EPOCH is invalid
    """
    if timestamps not in (None, *TIMESTAMPS):
        raise ValueError(f"timestamps={timestamps!r}: expected {', '.join(TIMESTAMPS)}")
    return source_date_epoch() is None if timestamps is None else timestamps == "keep"


def checked_elements(info: Elements | None) -> list[tuple[str, str]]:
    """Return the elements of bag-info.txt as pairs of label and value.

    :raises TypeError: a label is not a text, or a value neither a text nor a list of texts
    :raises ValueError: an element cannot be written, or is Payload-Oxum, which is computed
    """
    if info is None:
        return []
    pairs = [(label, one) for label, value in labelled_values(info) for one in element_values(label, value)]
    if len(BagInfo(pairs).to_bytes()) > INFO_LIMIT - 4096:  # for the computed elements
        raise ValueError(f"bag-info.txt would be larger than {INFO_LIMIT} bytes; put the text into another tag file")
    return pairs


def labelled_values(info: object) -> Iterator[tuple[str, object]]:
    """Yield each label of the argument ``info`` with its value, which is not checked.

    :raises TypeError: ``info`` is neither a mapping nor pairs, or a label is not a text
    :raises ValueError: a label is Payload-Oxum, which is computed
    """
    expected = "info: expected a mapping of labels to values, or pairs of label and value"
    if isinstance(info, str | bytes) or not isinstance(info, Iterable):
        raise TypeError(f"{expected}, not {type(info).__name__}")
    for pair in info.items() if isinstance(info, Mapping) else info:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"{expected}, not items of type {type(pair).__name__}")
        label, value = pair
        if not isinstance(label, str):
            raise TypeError(f"info: expected labels of type str, not {type(label).__name__}")
        if label.lower() == "payload-oxum":
            raise ValueError("Payload-Oxum is computed; omit it")
        yield label, value


def checked_tag_files(tag_files: Mapping[str, Path] | Iterable[Path]) -> list[tuple[bytes, bytes]]:
    """Return the path in the bag and the source of each tag file.

    :raises BagError: a name is not allowed or is repeated, or a source is not a regular file
    """
    if isinstance(tag_files, Mapping):
        files = [(os.fsencode(path), os.fsencode(where)) for path, where in tag_files.items()]
    else:
        files = [(os.path.basename(os.fsencode(where)), os.fsencode(where)) for where in tag_files]
    seen: set[bytes] = set()
    for path, where in files:
        if reason := _why_not_a_tag_file(path):
            raise BagError(path, f"name not allowed for a tag file: {reason}")
        if normal_key(path) in seen:
            raise BagError(path, "two tag files have this path; choose another path for one of them")
        seen.add(normal_key(path))
        with refusing(where):
            if not stat.S_ISREG(os.stat(where).st_mode):
                raise BagError(where, "not a regular file; specify a file to use as tag file")
    return files


def _why_not_a_tag_file(path: bytes) -> str | None:
    first, _, rest = path.partition(b"/")
    if path.endswith(b"/") or b"//" in path or not _is_text(path):
        return "not the path of a file in UTF-8"
    if fault := why_unsafe(path):
        return fault
    # Otherwise ./bagit.txt would not be recognized as bagit.txt.
    if canonical(path)[1]:
        return "path contains a '.' segment; omit it"
    if path[:1] in b" \t*":
        return "path starts with a character that manifests do not preserve"
    if first in (PAYLOAD, STAGING):
        return "tag files are not allowed in this directory"
    names = (b"bagit.txt", b"bag-info.txt", FETCH_TXT)
    described = first.startswith((b"manifest-", b"tagmanifest-"))
    # Directories too: nothing else may have one of these names.
    if first in names or (described and (not rest or first.endswith(b".txt"))):
        return "the name is reserved"
    return None


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
