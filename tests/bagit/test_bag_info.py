"""Bag metadata: order, repeats, line breaks and unchanged bytes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pressmark.bagit.bag_info import BagInfo, check_elements, read_oxum, unfolded
from pressmark.bagit.problems import KINDS

EXAMPLE = b"""\
Source-Organization: FOO University
Organization-Address: 1 Main St., Cupertino, California, 11111
Contact-Name: Jane Doe
Contact-Phone: +1 111-111-1111
Contact-Email: example@example.com
External-Description: Uncompressed greyscale TIFF images from the
     FOO papers colle...
Bagging-Date: 2008-01-15
External-Identifier: university_foo_001
Payload-Oxum: 279164409832.1198
Bag-Group-Identifier: university_foo
Bag-Count: 1 of 15
Internal-Sender-Identifier: /storage/images/foo
Internal-Sender-Description: Uncompressed greyscale TIFFs created
     from microfilm and are...
"""


def parse(data: bytes, version: tuple[int, int] = (1, 0), encoding: str = "UTF-8") -> tuple[BagInfo, list[str]]:
    info, problems = BagInfo.parse(data, encoding, version)
    assert all("\n" not in one.message and one.path == "bag-info.txt" for one in problems)
    return info, [one.kind for one in problems]


def test_the_example_of_the_draft() -> None:
    """The example of section 2.2.2 is valid, and line breaks are part of the values."""
    info, kinds = parse(EXAMPLE)
    assert kinds == []
    assert check_elements(info) == []
    assert len(info.elements) == 13
    description = "Uncompressed greyscale TIFF images from the\nFOO papers colle..."
    assert info["External-Description"] == description
    assert unfolded(description) == "Uncompressed greyscale TIFF images from the FOO papers colle..."
    assert info["payload-oxum"] == "279164409832.1198"
    assert info.get("nothing") is None
    assert info.get("nothing", "else") == "else"
    assert info.to_bytes() == EXAMPLE


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([*EXAMPLE.split(b" "), b"\r", b"\n", b"\xef\xbb\xbf"])).map(b" ".join)
)
def test_unchanged_bytes_are_kept(data: bytes) -> None:
    """Any content is written back unchanged, and every problem has a known kind."""
    for encoding in ("UTF-8", "UTF-16", "UTF-16LE", "ISO-8859-1"):
        info, kinds = parse(data, encoding=encoding)
        assert info.to_bytes() == data
        assert set(kinds) <= set(KINDS)
        if not encoding.startswith("UTF-16"):
            # A file that ends with half a code unit cannot be extended.
            info.pop("Contact-Name", None)
            info.add("Contact-Name", "x")
            again, _ = parse(info.to_bytes(), encoding=encoding)
            assert again.elements[-1:] == [("Contact-Name", "x")]


words = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), blacklist_characters="\ufeff"),
    min_size=1,
    max_size=30,
)
pieces = words | st.sampled_from(["\n", "\r\n", "\r", " ", ": "])
values = st.lists(pieces, max_size=20).map(lambda found: re.sub("(^|[\r\n])[ \t]+", r"\1", "".join(found)))
labels = st.sampled_from(["Contact-Name", "X", "Bag Count", "\u00e9\u00e8", "External-Description"])


@given(st.lists(st.tuples(labels, values), max_size=8), st.sampled_from(["UTF-8", "UTF-16", "UTF-32BE", "GB18030"]))
def test_elements_are_read_back(elements: list[tuple[str, str]], encoding: str) -> None:
    """Written elements are read back in order, with repeats, and folded if long."""
    info = BagInfo(elements, encoding)
    data = info.to_bytes()
    again, kinds = parse(data, encoding=encoding)
    assert again.elements == elements == info.elements
    assert set(kinds) <= {"info-long-line"}
    assert again.to_bytes() == data


def test_line_breaks_are_kept() -> None:
    """A value is folded at its line breaks, and nowhere else, however long its lines are."""
    text = "one: two\n\nthree\r\nfour\rfive " + "word " * 40 + "end"
    info = BagInfo([("A", text), ("B", "")])
    assert info.to_bytes() == f"A: {text}\nB: \n".encode().replace(b"\n\n", b"\n  \n").replace(
        b"\nthree\r\nfour\rfive", b"\n three\r\n four\r five"
    )
    again, kinds = parse(info.to_bytes())
    assert (again.elements, kinds) == (info.elements, ["info-long-line"])
    again["A"] = text
    assert again.to_bytes() == info.to_bytes()
    windows, _ = parse(b"C: d\r\n")
    windows["C"] = "e\nf"
    assert windows.to_bytes() == b"C: e\n f\r\n"
    assert parse(windows.to_bytes())[0].elements == [("C", "e\nf")]


def test_white_space_before_lines_is_no_part_of_a_value() -> None:
    """White space at the end of a line belongs to the value, and so do lines of white space, which are empty."""
    info, kinds = parse(b"A: \n  b \n \t\r\n\tc\n \nD: e\n")
    assert (info.elements, kinds) == ([("A", "\nb \n\r\nc\n"), ("D", "e")], [])
    assert unfolded(info.first("A") or "") == "b c"
    again = BagInfo(info.elements)
    assert parse(again.to_bytes())[0].elements == info.elements
    old, _ = parse(b"Payload-Oxum:\n 5.1 \n", (0, 97))
    assert check_elements(old, version=(0, 97)) == []


def test_setting_in_place() -> None:
    """A changed element keeps its place, others keep their bytes, and repeats are removed."""
    data = b"A: 1\r\ncontact-name:  Jane\r\nB: 2\r\nContact-Name: Joe\r\n\t more\r\nC : 3"
    info, _ = parse(data)
    info["Contact-Name"] = "Jill"
    assert info.to_bytes() == b"A: 1\r\ncontact-name: Jill\r\nB: 2\r\nC : 3"
    info["A"] = "1"
    info["bagging-date"] = "2020-02-02"
    assert info.to_bytes() == b"A: 1\r\ncontact-name: Jill\r\nB: 2\r\nC : 3\r\nBagging-Date: 2020-02-02\r\n"
    # Other labels are kept, with their case.
    info["a"] = "4"
    assert info.all("A") == ["1"]
    del info["contact-name"]
    with pytest.raises(KeyError, match="Contact-Name"):
        del info["Contact-Name"]
    assert info.elements == [("A", "1"), ("B", "2"), ("C", "3"), ("Bagging-Date", "2020-02-02"), ("a", "4")]
    untouched, _ = parse(b"Bag-Count:  1 of\n 2\n")
    untouched["BAG-COUNT"] = "1 of\n2"
    assert untouched.to_bytes() == b"Bag-Count:  1 of\n 2\n"
    assert check_elements(untouched, version=(0, 97)) == []


@pytest.mark.parametrize(
    ("label", "value"),
    [
        *(("", "x"), ("a:b", "x"), ("a\nb", "x"), (" a", "x"), ("a ", "x"), ("\ufeffa", "x"), ("a", "\ud800")),
        *(("a", value) for value in (" ", "\t", " b", "b\n c", "b\n \nc", "b\r\n ", "x" * 1_100_000)),
    ],
)
def test_refused_elements(label: str, value: str) -> None:
    """A label or value that would not be read back is refused, and nothing changes."""
    info = BagInfo()
    with pytest.raises(ValueError, match=r".+"):
        info.add(label, value)
    with pytest.raises(ValueError, match=r".+"):
        info[label] = value
    with pytest.raises(ValueError, match=r".+"):
        info[label] = ["x", value]
    assert info.to_bytes() == b""


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "not None"),
        (5, "not int"),
        (b"x", "not bytes"),
        ({"x": "y"}, "not dict"),
        ([["x"]], "not a list that contains list"),
        (["x", None], "not a list that contains None"),
    ],
)
def test_values_of_other_types(value: Any, what: str) -> None:
    """A value of another type is refused with its label, and nothing changes."""
    info = BagInfo([("Rights", "free")])
    with pytest.raises(TypeError, match=f"^Rights: expected str or a list of str, {what}$"):
        info["Rights"] = value
    with pytest.raises(TypeError, match=r"^Rights: expected str, not \w+$"):
        info.add("Rights", value)
    with pytest.raises(TypeError, match=r"^5: expected a label of type str, not int$"):
        info.add(5, "x")  # type: ignore[arg-type]
    assert info.to_bytes() == b"Rights: free\n"


def test_a_mapping() -> None:
    """Labels are keys, repeated ones have a list; setting some of its values keeps the bytes of the others."""
    info, _ = parse(b"Contact-Name: Jane\nX: 1\ncontact-name:\n Joe\nx: 2\n")
    assert info["contact-NAME"] == ["Jane", "\nJoe"]
    assert (info["X"], info["x"]) == ("1", "2")
    assert list(info) == ["Contact-Name", "X", "x"]
    assert (len(info), "CONTACT-NAME" in info, "y" in info) == (3, True, False)
    assert dict(info) == {"Contact-Name": ["Jane", "\nJoe"], "X": "1", "x": "2"}
    assert info.first("Contact-Name") == "Jane"
    assert info.first("y") is None
    with pytest.raises(KeyError, match="y"):
        info["y"]
    info["Contact-Name"] = ["Jill", "\nJoe", "Jack"]
    assert info.to_bytes() == b"Contact-Name: Jill\ncontact-name:\n Joe\nContact-Name: Jack\nX: 1\nx: 2\n"
    with pytest.raises(ValueError, match="X: no value; use del for an element without a value"):
        info["X"] = []
    info.update({"X": ("3", "4"), "Y": "5"})
    assert info.elements[3:] == [("X", "3"), ("X", "4"), ("x", "2"), ("Y", "5")]
    assert info.pop("Contact-Name") == ["Jill", "\nJoe", "Jack"]
    info.clear()
    assert info.to_bytes() == b""


def test_encodings() -> None:
    """UTF-16 has one byte-order mark, new elements use the file's byte order, and other character sets are limited."""
    info = BagInfo(encoding="UTF-16")
    assert info.to_bytes() == b""
    info.add("A", "\u00e9")
    assert info.to_bytes() == b"\xfe\xff" + "A: \u00e9\n".encode("utf-16-be")
    little, kinds = parse("A: 1\n".encode("utf-16-le").join([b"\xff\xfe", b""]), encoding="UTF-16")
    little.add("B", "2")
    assert (little.to_bytes(), kinds) == (b"\xff\xfe" + "A: 1\nB: 2\n".encode("utf-16-le"), [])
    with pytest.raises(ValueError, match="cannot be encoded in ISO-8859-1"):
        BagInfo(encoding="ISO-8859-1").add("A", "\u4e00")
    with pytest.raises(ValueError, match="encoding='rot13': unknown"):
        BagInfo(encoding="rot13")


@pytest.mark.parametrize(
    ("data", "kinds", "elements"),
    [
        (b"A: b\n\nC: d\n", ["info-blank-line"], [("A", "b"), ("C", "d")]),
        (b"no colon\n", ["info-malformed"], []),
        (b": value\n", ["info-malformed"], []),
        (b" folded: what\nA: b\n", ["info-whitespace"], [("folded", "what"), ("A", "b")]),
        (b"A:b\n", ["info-whitespace"], [("A", "b")]),
        (b"A:  b\n", ["info-whitespace"], [("A", "b")]),
        (b"A : b\n", ["info-whitespace"], [("A", "b")]),
        (b"A:\tb\n", [], [("A", "b")]),
        (b"A: b:c\n", [], [("A", "b:c")]),
        (b"A: \xff\n", ["undecodable"], []),
        (b"A: b", ["line-unterminated"], [("A", "b")]),
        (b"A: b\n \tc\r\n  d\n", [], [("A", "b\nc\r\nd")]),
        (b"A: " + b"x" * 77 + b"\n", ["info-long-line"], [("A", "x" * 77)]),
        (b"A: " + b"x" * 76 + b"\n", [], [("A", "x" * 76)]),
    ],
)
def test_malformed_lines(data: bytes, kinds: list[str], elements: list[tuple[str, str]]) -> None:
    """Each malformed line has exactly its problem, and the others are read."""
    info, found = parse(data)
    assert (found, info.elements) == (kinds, elements)


def test_blanks_before_1_0() -> None:
    """Up to 0.97, blanks around the colon are allowed, and not part of label or value."""
    info, kinds = parse(b"A \t:  b\nC:d\n", (0, 97))
    assert (info.elements, kinds) == ([("A", "b"), ("C", "d")], [])


@pytest.mark.parametrize(
    ("elements", "kinds"),
    [
        ([("Payload-Oxum", "1.2")], []),
        ([("Payload-Oxum", "1")], ["oxum-malformed"]),
        ([("Payload-Oxum", "1.2.3")], ["oxum-malformed"]),
        ([("payload-oxum", "\u00b2.1")], ["oxum-malformed"]),
        ([("Payload-Oxum", "\uff11.1")], ["oxum-malformed"]),
        ([("Payload-Oxum", "1.2"), ("PAYLOAD-OXUM", "1.2")], ["oxum-repeated"]),
        ([("Bagging-Date", "2008-01-15")], []),
        ([("Bagging-Date", "2008-02-30")], ["element-malformed"]),
        ([("Bagging-Date", "20080115")], ["element-malformed"]),
        ([("Bagging-Date", "2008-W03-2")], ["element-malformed"]),
        ([("Bagging-Date", "15 Jan 2008")], ["element-malformed"]),
        ([("Bagging-Date", "2008-01-15"), ("bagging-date", "2008-01-16")], ["element-repeated"]),
        ([("Bag-Size", "42600 MB")], []),
        ([("Bag-Size", "42.6 GB")], []),
        ([("Bag-Size", ".043 TB")], []),
        ([("Bag-Size", "260GB"), ("Bag-Size", "1 kB")], ["element-repeated"]),
        ([("Bag-Size", "much")], ["element-malformed"]),
        ([("Bag-Group-Identifier", "x"), ("Bag-Count", "89 of 145")], []),
        ([("Bag-Group-Identifier", "x"), ("Bag-Count", "3 of ?")], []),
        ([("Bag-Group-Identifier", "x"), ("Bag-Count", "3 of many")], ["element-malformed"]),
        ([("Bag-Group-Identifier", "x"), ("Bag-Group-Identifier", "y")], ["element-repeated"]),
        ([("Bag-Count", "1 of 2")], ["element-alone"]),
        ([("Contact-Name", "a"), ("Contact-Name", "b"), ("Own", "c"), ("Own", "c")], []),
    ],
)
def test_reserved_elements(elements: list[tuple[str, str]], kinds: list[str]) -> None:
    """Reserved elements follow the rules of section 2.2.2 on values and repeats."""
    assert [one.kind for one in check_elements(BagInfo(elements))] == kinds


def test_oxum() -> None:
    """Payload-Oxum is a byte count and a file count in ASCII digits."""
    assert read_oxum("279164409832.1198") == (279164409832, 1198)
    assert read_oxum("1" * 5000 + ".1") is None
