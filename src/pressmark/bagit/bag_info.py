"""Bag metadata, bag-info.txt (section 2.2.2): ordered, with repeated elements; unchanged elements keep their bytes.

>>> info, problems = BagInfo.parse(b"Contact-Name: Jane\\r\\nContact-Name: Joe\\r\\n")
>>> info["bagging-date"] = "2008-01-15"
>>> info["contact-name"], info["Bagging-Date"]
(['Jane', 'Joe'], '2008-01-15')
>>> info.to_bytes()
b'Contact-Name: Jane\\r\\nContact-Name: Joe\\r\\nBagging-Date: 2008-01-15\\r\\n'

The line breaks of a value that is folded over several lines are part of the value; the white space before each line is
not. :func:`unfolded` returns a value as one line.
"""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import lru_cache
from typing import NamedTuple

from pressmark.bagit.encodings import LINE_LIMIT, UTF8, Charset, Line, LineReader, find_charset, undecodable
from pressmark.bagit.problems import applies, judge_violation, problem
from pressmark.errors import quoted
from pressmark.reports import Problem

__all__ = [
    "INFO_LIMIT",
    "LINE_LENGTH",
    "NAME",
    "RESERVED",
    "BagInfo",
    "check_elements",
    "element_values",
    "long_line_problem",
    "read_oxum",
    "unfolded",
    "value_lines",
]

NAME = b"bag-info.txt"
# The file is for people; readers should refuse a larger one.
INFO_LIMIT = 16 << 20  # 16 MiB
# Recommended line length, in characters.
LINE_LENGTH = 79

# Reserved labels as section 2.2.2 spells them, and the problem of repeating one where it should not be.
RESERVED: dict[str, str | None] = {
    "Source-Organization": None,
    "Organization-Address": None,
    "Contact-Name": None,
    "Contact-Phone": None,
    "Contact-Email": None,
    "External-Description": None,
    "Bagging-Date": "element-repeated",
    "External-Identifier": None,
    "Bag-Size": "element-repeated",
    "Payload-Oxum": "oxum-repeated",
    "Bag-Group-Identifier": "element-repeated",
    "Bag-Count": "element-repeated",
    "Internal-Sender-Identifier": None,
    "Internal-Sender-Description": None,
}
_RESERVED = {label.lower(): label for label in RESERVED}

_BLANKS = " \t"
_NOT_IN_LABEL = re.compile("[:\r\n]")
_BREAK = re.compile("(\r\n|\r|\n)")


class _Piece(NamedTuple):
    """A part of the file: an element with its folded lines and their line ends, or a malformed line."""

    data: bytes
    label: str | None = None
    value: str = ""


class BagInfo(MutableMapping[str, str | list[str]]):
    """The metadata elements of a bag: a mapping of labels to values, in file order.

    A repeated label has the list of its values, which is a copy: ``info["X"].append("y")`` changes nothing. Assign the
    new list instead, or add an element:

    >>> info = BagInfo([("Contact-Name", "Jane"), ("Contact-Name", "Joe")])
    >>> info["Contact-Name"] = [*info["Contact-Name"], "Jim"]
    >>> info.add("Contact-Name", "Jo")
    >>> info["Contact-Name"]
    ['Jane', 'Joe', 'Jim', 'Jo']

    The reserved labels of section 2.2.2 match in any case, other labels exactly. They are Source-Organization,
    Organization-Address, Contact-Name, Contact-Phone, Contact-Email, External-Description, External-Identifier,
    Internal-Sender-Identifier and Internal-Sender-Description, which may be repeated; Bagging-Date, Bag-Size,
    Bag-Group-Identifier and Bag-Count, which should not be repeated; and Payload-Oxum, which must not be repeated and
    is computed.

    :param elements: pairs of label and value, in file order
    :param encoding: the character set that bagit.txt names
    :raises TypeError: a label or a value is not a ``str``
    :raises ValueError: the encoding is unknown, or an element cannot be written
    """

    def __init__(self, elements: Iterable[tuple[str, str]] = (), encoding: str = UTF8.name) -> None:
        charset = find_charset(encoding)
        if charset is None:
            raise ValueError(f"encoding={encoding!r}: unknown")
        self._charset = charset
        # UTF-16 without a stated byte order starts with a byte-order mark.
        self._mark = charset.marks[0][0] if charset.needs_mark else b""
        self._end = charset.encode("\n")
        self._pieces = [self._piece(label, value) for label, value in elements]

    @classmethod
    def parse(
        cls, data: bytes, encoding: str = UTF8.name, version: tuple[int, int] = (1, 0), *, name: bytes = NAME
    ) -> tuple[BagInfo, list[Problem]]:
        """Read bag-info.txt; return its elements and the problems of its lines. :func:`check_elements` checks the
        values.

        :param data: the whole file; callers should read at most :data:`INFO_LIMIT` bytes
        :param name: path of the file, for problems
        :raises ValueError: the encoding is unknown
        """
        info = cls(encoding=encoding)
        return info, info._read(data, version, name)

    def __repr__(self) -> str:
        return f"BagInfo({self.elements!r})"

    def __getitem__(self, label: str) -> str | list[str]:
        """Return the value of an element; of several with this label, the list of their values.

        :raises KeyError: no element has the label
        """
        values = self.all(label)
        if not values:
            raise KeyError(label)
        return values[0] if len(values) == 1 else values

    def __setitem__(self, label: str, value: str | Iterable[str]) -> None:
        """Set the value or the values of a label, at the position of its first element or at the end.

        If the label has these values already, no byte changes.

        :raises TypeError: the value is neither a ``str`` nor a list of ``str``
        :raises ValueError: the label or a value cannot be written, or the list is empty
        """
        values = element_values(label, value)
        if not values:
            raise ValueError(f"{label}: no value; use del for an element without a value")
        key = _key(label)
        indexes = [index for index, piece in enumerate(self._pieces) if piece.label and _key(piece.label) == key]
        if [self._pieces[index].value for index in indexes] == values:
            return
        name = (self._pieces[indexes[0]].label if indexes else None) or label
        new = [_piece(name, one, self._charset, self._end) for one in values]
        if not indexes:
            for one in values:
                self.add(label, one)
            return
        for number, index in enumerate(indexes[: len(new)]):
            if self._pieces[index].value == new[number].value:  # folded in its own way
                new[number] = self._pieces[index]
        for index in reversed(indexes[1:]):
            del self._pieces[index]
        self._pieces[indexes[0] : indexes[0] + 1] = new

    def __delitem__(self, label: str) -> None:
        """Delete all elements with the label.

        :raises KeyError: no element has it
        """
        key = _key(label)
        kept = [piece for piece in self._pieces if piece.label is None or _key(piece.label) != key]
        if len(kept) == len(self._pieces):
            raise KeyError(label)
        self._pieces = kept

    def __iter__(self) -> Iterator[str]:
        """Yield each label once, in file order, as its first element spells it."""
        labels: dict[str, str] = {}
        for label, _value in self.elements:
            labels.setdefault(_key(label), label)
        return iter(labels.values())

    def __len__(self) -> int:
        """Return the number of labels."""
        return len({_key(label) for label, _value in self.elements})

    @property
    def elements(self) -> list[tuple[str, str]]:
        """All elements in order, as pairs of label and value."""
        return [(piece.label, piece.value) for piece in self._pieces if piece.label is not None]

    def all(self, label: str) -> list[str]:
        """Return the values of all elements with the label."""
        key = _key(label)
        return [piece.value for piece in self._pieces if piece.label is not None and _key(piece.label) == key]

    def first(self, label: str) -> str | None:
        """Return the value of the first element with the label; :data:`None` if there is none."""
        return next(iter(self.all(label)), None)

    def add(self, label: str, value: str) -> None:
        """Append an element, even if the label exists.

        The value is folded at its line breaks only, because a fold is a line break of the value.

        :raises TypeError: the label or the value is not a ``str``
        :raises ValueError: the label or value cannot be written, or a line of the value begins with white space, which
            would not be read back
        """
        piece = self._piece(label, value)
        if self._pieces:
            last = self._pieces[-1]
            if last.data and not last.data.endswith(self._charset.line_ends):
                self._pieces[-1] = last._replace(data=last.data + self._end)
        self._pieces.append(piece)

    def to_bytes(self) -> bytes:
        """Return the content of the file; unchanged elements keep their original bytes."""
        return b"".join([self._mark if self._pieces else b"", *(piece.data for piece in self._pieces)])

    def _piece(self, label: str, value: str) -> _Piece:
        if not isinstance(label, str):
            raise TypeError(f"{label!r}: expected a label of type str, not {type(label).__name__}")
        if not isinstance(value, str):
            raise TypeError(f"{label}: expected str, not {_type_name(value)}")
        return _piece(_RESERVED.get(label.lower(), label), value, self._charset, self._end)

    # --- reading

    def _read(self, data: bytes, version: tuple[int, int], name: bytes) -> list[Problem]:
        reader = LineReader(io.BytesIO(data), self._charset, name)
        self._charset, begin = reader.charset, reader.position
        self._mark = data[:begin]
        decode, is_tight = self._charset.decode, applies("labels-tight", version)
        # Problems of lines, which come first, and of elements.
        unreadable: list[Problem] = []
        problems: list[Problem] = []
        long_lines = []
        # The element so far: its label, and the lines of its value with the line ends between them.
        label: str | None = None
        texts: list[str] = []
        line: Line | None = None
        while (found := reader.line()) is not None:
            if not isinstance(found, Line):
                unreadable.append(found)
                continue
            before, line = line, found
            try:
                text = decode(line.data)
            except UnicodeDecodeError as error:
                problems.append(undecodable(line, self._charset, name, error))
                text = None
            if text is not None and len(text) > LINE_LENGTH:
                long_lines.append(line.number)
            if before is None:
                self._end = line.end or self._end
            elif text is not None and label is not None and text.startswith((" ", "\t")):
                texts += (decode(before.end), text.lstrip(_BLANKS))
                continue
            else:
                self._pieces.append(_Piece(data[begin : line.offset], label, "".join(texts)))
                begin = line.offset
            label, value = (None, "") if text is None else _read_element(line.number, text, is_tight, name, problems)
            texts = [value]
        if data:
            # Without a line, a byte-order mark, or an incomplete unit of the character set.
            self._pieces.append(_Piece(data[begin:], label, "".join(texts)))
        if long_lines:
            problems.append(long_line_problem(len(long_lines), long_lines[0], name))
        return unreadable + problems


@lru_cache(maxsize=2048)  # of new bags, most elements are the same, and each element is checked, then written
def _piece(label: str, value: str, charset: Charset, end: bytes) -> _Piece:
    """Return a new element."""
    fault = _fault_of_label(label)
    if fault is not None:
        raise ValueError(f"label {quoted(label)}: {fault}")
    first, *others = value_lines(value)
    if any(line.startswith((" ", "\t")) for line in (first, *others[1::2])):
        reason = "a line of the value begins with white space, which would not be part of the value; omit it"
        raise ValueError(f"{label}: {reason}")
    # By the grammar (7.3), no line is a single space.
    lines = [f"{label}: {first}", *(f" {line or ' '}" for line in others[1::2])]
    try:
        encoded = [charset.encode(line) for line in lines]
        endings = [*map(charset.encode, others[::2]), end]
    except UnicodeEncodeError:
        raise ValueError(f"{label}: {quoted(value)} cannot be encoded in {charset.name}") from None
    if max(map(len, encoded)) > LINE_LIMIT:
        raise ValueError(f"{label}: a line of the value is longer than {LINE_LIMIT} bytes; insert line breaks")
    return _Piece(b"".join(map(bytes.__add__, encoded, endings)), label, value)


def long_line_problem(count: int, first: int, name: bytes = NAME) -> Problem:
    """Return the problem of lines that are longer than :data:`LINE_LENGTH`; ``first`` is the number of the first."""
    message = f"{count} lines are longer than {LINE_LENGTH} characters; the first is line {first}"
    return problem("info-long-line", name, message)


@lru_cache(1024)  # most bags of a collection have the same labels
def _key(label: str) -> str:
    # Only reserved labels are case-insensitive.
    lower = label.lower()
    return lower if lower in _RESERVED else label


def _fault_of_label(label: str) -> str | None:
    if not label:
        return "label is empty"
    if _NOT_IN_LABEL.search(label):
        return "label contains a colon or a line break"
    return "label starts or ends with white space" if label != label.strip("\ufeff \t").strip() else None


def element_values(label: str, value: object) -> list[str]:
    """Return the values of a label, given as one text or as a list of texts.

    :raises TypeError: it is neither
    """
    if isinstance(value, str):
        return [value]
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{label}: expected str or a list of str, not {_type_name(value)}")
    values = list(value)
    for one in values:
        if not isinstance(one, str):
            raise TypeError(f"{label}: expected str or a list of str, not a list that contains {_type_name(one)}")
    return values


def _type_name(value: object) -> str:
    return "None" if value is None else type(value).__name__


def value_lines(value: str) -> list[str]:
    """Return the lines of a value and the line breaks between them, in order."""
    return _BREAK.split(value)


def unfolded(value: str) -> str:
    """Return a value as one line, with a space for each line break: for identifiers and other values of one line, which
    many programs fold because they are long.
    """
    if "\n" not in value and "\r" not in value:
        return value.strip(_BLANKS)
    return " ".join(filter(None, (line.strip(_BLANKS) for line in value_lines(value)[::2])))


def _read_element(
    number: int, text: str, is_tight: bool, name: bytes, problems: list[Problem]
) -> tuple[str | None, str]:
    """Return label and value of a line, and add its problems.

    :param is_tight: whether the version allows no white space around the label
    """
    label, colon, rest = text.partition(":")
    stripped, value = label.strip(), rest.lstrip(_BLANKS)
    if not text.strip(_BLANKS):
        problems.append(problem("info-blank-line", name, f"line {number}"))
        return None, ""
    if not colon or not stripped:
        what = f"expected a label, a colon and a value: {quoted(text)}"
        problems.append(problem("info-malformed", name, f"line {number}: {what}"))
        return None, ""
    if is_tight:
        if stripped != label:
            reason = f"white space around the label {quoted(stripped)}"
            problems.append(problem("info-whitespace", name, f"line {number}: {reason}"))
        elif not rest.startswith((" ", "\t")) or (rest[1:2] and rest[1] in _BLANKS):
            reason = f"expected a single space after the colon of {quoted(stripped)}"
            problems.append(problem("info-whitespace", name, f"line {number}: {reason}"))
    elif label.lstrip() != label:
        problems.append(problem("info-whitespace", name, f"line {number}: the label {quoted(stripped)} is indented"))
    return stripped, value


# --- values of elements -------------------------------------------------------------------------------------------

_OXUM = re.compile(r"([0-9]{1,30})\.([0-9]{1,30})")
_SIZE = re.compile(r"~? ?[0-9]*[.,]?[0-9]+(?:[.,][0-9]+)* ?(?:[KMGTPEZY]i?)?B(?:ytes?)?", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]+ of (?:[0-9]+|\?)")


def read_oxum(value: str) -> tuple[int, int] | None:
    """Return the number of bytes and files in a Payload-Oxum; :data:`None` if it is malformed."""
    found = _OXUM.fullmatch(unfolded(value))
    return None if found is None else (int(found[1]), int(found[2]))


def check_elements(info: BagInfo, name: bytes = NAME, version: tuple[int, int] = (1, 0)) -> list[Problem]:
    """Return the problems of values and repetitions of reserved elements.

    The validation checks whether Payload-Oxum matches the payload.

    :param name: path of the file, for problems
    :param version: BagIt version of the bag
    """
    problems = []
    by_label: dict[str, list[str]] = {}
    for label, value in info.elements:
        if (key := label.lower()) in _RESERVED:
            by_label.setdefault(key, []).append(unfolded(value))
    for key in filter(by_label.__contains__, _RESERVED):
        label, values = _RESERVED[key], by_label[key]
        repeated = RESERVED[label]
        if repeated is not None and len(values) > 1:
            rule = "oxum-once" if repeated == "oxum-repeated" else "elements-once"
            problems += judge_violation(rule, version, problem(repeated, name, f"{label} occurs {len(values)} times"))
        for value in values:
            if label == "Payload-Oxum" and read_oxum(value) is None:
                problems.append(problem("oxum-malformed", name, found=value))
            form = _malformed(label, value)
            if form is not None:
                problems.append(
                    problem("element-malformed", name, f"{label} is not {form}: {quoted(value)}", found=value)
                )
    if "bag-count" in by_label and "bag-group-identifier" not in by_label:
        problems += judge_violation("elements-once", version, problem("element-alone", name))
    return problems


@lru_cache(maxsize=1024)  # many bags have the same dates and sizes
def _malformed(label: str, value: str) -> str | None:
    """Return the expected form of a malformed value; :data:`None` if it is well-formed."""
    if label == "Bagging-Date":
        try:
            return None if str(datetime.date.fromisoformat(value)) == value else "a date, YYYY-MM-DD"
        except ValueError:
            return "a date, YYYY-MM-DD"
    if label == "Bag-Size":
        return None if _SIZE.fullmatch(value) else "a number and an abbreviation such as MB"
    if label == "Bag-Count":
        return None if _COUNT.fullmatch(value) else "two numbers with 'of' between them, such as '1 of 2' or '3 of ?'"
    return None
