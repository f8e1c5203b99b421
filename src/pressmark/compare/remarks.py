"""What is doubtful about identifiers under every layout: invisible characters, encodings, two spellings of a name."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from pressmark.arrow import PackedColumn
from pressmark.compare.result import FIRST, Example, Remark
from pressmark.layouts.blocks import Block
from pressmark.paths import PathIndex

__all__ = ["REMARKS", "RemarkFinder", "canonical_name"]

#: The kinds of remarks, in report order.
REMARKS = ("blank", "setting", "encoding", "ends", "invisible", "spelling")

# White space except no-break spaces.
_ASCII_BLANKS = (b" ", b"\t", b"\r", b"\v", b"\f")
_OTHER_BLANKS = "\x85\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
_BLANKS = f" \t\n\r\v\f{_OTHER_BLANKS}"
# No-break spaces and hyphen, soft hyphen, zero-width space, word joiner, byte-order mark. Joiners are part of the
# spelling between letters of Persian and Indian scripts, and in emoji; next to ASCII they are not.
_INVISIBLE = re.compile(
    "[\xa0\xad\u2007\u200b\u2011\u202f\u2060\ufeff]|(?<![^\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f])"
)
_DOUBTFUL = frozenset(f"{_OTHER_BLANKS}\xa0\xad\u2007\u200b\u200c\u200d\u2011\u202f\u2060\ufeff")
_SETTING = re.compile(rb"(?i)sep=.")
# Punctuation of Windows-1252 outside ASCII that titles contain.
_PUNCTUATION = frozenset(
    b"\x80\x82\x84\x85\x91\x92\x93\x94\x96\x97\xa0\xa1\xa3\xa7\xa9\xab\xae\xb0\xb7\xbb\xbf".decode("cp1252")
)

_DOI = re.compile(
    rb"(?is)(?:doi: ?|urn:doi:|info:doi/|(https?://(?:www\.|dx\.)?doi\.org/))?(10\.[0-9]{4,9}(?:\.[0-9]+)*(?:/|%2f).+)"
)
_ARK = re.compile(rb"(?is)(?:https?://[^/]+/)?ark:/?([0-9a-z]{5,})/(.+)")
_ESCAPE = re.compile(rb"(?i)%([0-9a-f]{2})")
# Where these are not in a block, in lower case, it has no DOIs and ARKs.
_HINTS = (b"\n10.", b"doi", b"\nark:", b"/ark:")
# If all DOIs and ARKs have at most one of these, and neither upper case, hyphens nor resolvers, each has one spelling.
_FORMS = (
    b"\n10.",
    b"\ndoi:1",
    b"\ndoi: ",
    b"urn:doi:",
    b"info:doi/",
    b"//doi.org/",
    b"//www.doi.org/",
    b"//dx.",
    b"\nark:/",
)
_LOOK, _NAMES = 1, 2


def canonical_name(identifier: bytes) -> bytes | None:
    """Return the same bytes for all spellings of one DOI or ARK; :data:`None` for other identifiers.

    DOIs ignore the case of ASCII letters (DOI Handbook); ARKs ignore hyphens, the slash after ``ark:`` and the resolver
    (draft-kunze-ark, on normalization).

    >>> canonical_name(b"https://doi.org/10.1000/ABC"), canonical_name(b"ark:/12345/x5-4xz-321")
    (b'doi:10.1000/abc', b'ark:12345/x54xz321')
    """
    found = _DOI.fullmatch(identifier)
    if found is not None:
        name = found[2]
        if found[1]:  # a URL
            name = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), name)
        return b"doi:" + name.lower()
    found = _ARK.fullmatch(identifier)
    return None if found is None else b"ark:%b/%b" % (found[1].lower(), found[2].replace(b"-", b""))


class RemarkFinder:
    """Finds what is doubtful about identifiers; a context manager.

    The blocks come twice. :meth:`screen` searches each as a whole, so that :meth:`look` takes up single identifiers
    only where something may be found: most inputs have nothing of the kind, and take no time.

    :param folder: folder for temporary files; by default that of the system
    :param memory: bytes for sorting
    """

    def __init__(self, folder: Path | None, memory: int) -> None:
        self._folder, self._memory = folder, memory
        self._resources = ExitStack()
        self._screened = bytearray()  # for each block, what to look for
        self._forms: set[bytes] = set()
        self._is_varied = False
        self._names: PathIndex | None = None
        self._block = self._number = 0
        self._counts = dict.fromkeys(REMARKS, 0)
        self._first: dict[str, list[Example]] = {kind: [] for kind in REMARKS}
        # Identifiers that look like Windows-1252, and whether others are UTF-8 beyond ASCII.
        self._windows = 0
        self._has_utf8 = False

    def __enter__(self) -> RemarkFinder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def screen(self, count: int, lines: bytes) -> None:
        """Search a block of identifiers.

        :param count: number of identifiers
        :param lines: the identifiers, each between line feeds
        """
        flags = 0
        if (
            lines.count(b"\n") != count + 1
            or any(one in lines and (one + b"\n" in lines or b"\n" + one in lines) for one in _ASCII_BLANKS)
            or (not lines.isascii() and self._is_doubtful(lines))
        ):
            flags |= _LOOK
        lower = lines.lower()
        hints = [hint in lower for hint in _HINTS]
        if any(hints):
            flags |= _NAMES
            self._forms.update(form for form in _FORMS if form in lower)
            is_ark, is_resolved = hints[2:]
            if is_ark and lower.count(b"\nark:") != lower.count(b"\nark:/"):
                self._forms.add(b"\nark:")
            # Spellings of a URL differ in escapes and scheme, too.
            is_varied = is_resolved or (is_ark and b"-" in lines) or (hints[1] and (b"%" in lines or b"http:" in lower))
            self._is_varied |= is_varied or len(self._forms) > 1 or lower != lines
        self._screened.append(flags)

    def _is_doubtful(self, lines: bytes) -> bool:
        """Return whether to look at single identifiers of a block beyond ASCII."""
        try:
            text = lines.decode()
        except UnicodeDecodeError:
            return True
        self._has_utf8 = True
        return any(character in text for character in _DOUBTFUL)

    def look(self, block: Block) -> None:
        """Look at the identifiers of a block, in the order of :meth:`screen`; nulls are left out."""
        column, flags = block.column, self._screened[self._block]
        absent = set(column.nulls)
        if not self._number and len(column) and not absent.intersection([0]) and _SETTING.fullmatch(column[0]):
            self._note("setting", 0, block.text(0))
        for index in range(len(column)) if flags & _LOOK else ():
            item = column[index]
            if index in absent:
                continue
            if not item.isascii():
                self._look_beyond_ascii(index, item)
            elif item.strip() != item:
                self._note("ends", index, block.text(index))
        if self._is_varied:
            self._add_names(block, bool(flags & _NAMES))
        self._block += 1
        self._number += len(column)

    def remarks(self, label: Callable[[int], str], blank: int, first_blank: int | None) -> tuple[Remark, ...]:
        """Return the remarks.

        :param label: returns the identifier with a number
        :param blank: how many identifiers are empty
        :param first_blank: number of the first of them; :data:`None` if there are none
        :raises SpillError: a temporary file cannot be read
        """
        if first_blank is not None:
            self._counts["blank"] = blank
            self._first["blank"] = [Example(first_blank, "")]
        groups = 0
        for numbers in () if self._names is None else self._names.repetitions():
            groups += 1
            self._counts["spelling"] += len(numbers)
            for number in numbers[: FIRST - len(self._first["spelling"])]:
                identifier = label(number)
                name = canonical_name(identifier.encode("utf-8", "surrogateescape")) or b""
                self._first["spelling"].append(Example.of(number, identifier, name.decode("utf-8", "surrogateescape")))
        detail = ""
        if self._windows and self._windows == self._counts["encoding"]:
            detail = "mixed" if self._has_utf8 else "windows-1252"
        return tuple(
            Remark(
                kind,
                self._counts[kind],
                tuple(self._first[kind]),
                groups if kind == "spelling" else 0,
                detail if kind == "encoding" else "",
            )
            for kind in REMARKS
            if self._counts[kind]
        )

    @property
    def spilled(self) -> int:
        """Bytes written to temporary files."""
        return 0 if self._names is None else self._names.spilled

    def _note(self, kind: str, index: int, identifier: str) -> None:
        self._counts[kind] += 1
        if len(self._first[kind]) < FIRST:
            self._first[kind].append(Example.of(self._number + index, identifier))

    def _look_beyond_ascii(self, index: int, item: bytes) -> None:
        try:
            text = item.decode()
        except UnicodeDecodeError:
            self._windows += _is_windows(item)
            self._note("encoding", index, item.decode("utf-8", "surrogateescape"))
            return
        self._has_utf8 = True
        if _INVISIBLE.search(text):
            self._note("invisible", index, text)
        if text.strip(_BLANKS) != text:
            self._note("ends", index, text)

    def _add_names(self, block: Block, has_names: bool) -> None:
        """Add the names of a block to the index, which has the numbers of the input."""
        column = block.column
        if self._names is None:
            self._names = self._resources.enter_context(PathIndex(self._folder, memory=self._memory))
        absent = set(column.nulls)
        names: list[bytes | None] = [None] * len(column)
        if has_names:
            names = [None if index in absent else canonical_name(column[index]) for index in range(len(column))]
        batch, _ = column.kernels.ByteColumn.from_texts([name or b"" for name in names])
        nulls = [index for index, name in enumerate(names) if name is None]
        self._names.add(PackedColumn(column.kernels, batch, nulls))


def _is_windows(item: bytes) -> bool:
    """Return whether bytes look like Windows-1252: mostly ASCII, with letters and punctuation of Western Europe."""
    try:
        text = item.decode("cp1252")
    except UnicodeDecodeError:
        return False
    other = [character for character in text if not character.isascii()]
    return (
        2 * len(other) <= len(text)
        and all(character.isalpha() or character in _PUNCTUATION for character in other)
        and any(character >= "\xc0" for character in other)
    )
