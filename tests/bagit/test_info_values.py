"""Values of bag-info.txt by every way in and out: none changes a character."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bagit.bags import Sketch
from bagit.naive import flaws
from bagit.test_profile import IDENTIFIER, profile
from cli.conftest import call
from pressmark import stores
from pressmark.bagit.archive.unpack import unpack
from pressmark.bagit.bag import create, create_archive, make_bag, open, update
from pressmark.bagit.validation.validate import validate

__all__ = ["call"]

VALUES = {
    "line feeds": "one\ntwo\n\nfour",
    "carriage returns": "one\rtwo",
    "both": "one\r\ntwo",
    "line breaks at the ends": "\none\n",
    "long": "word " * 60,
    "colon": "a: b\nc: d",
    "space at the end": "a \nb ",
    "empty": "",
}
ELEMENTS = [("X-Text", text) for text in VALUES.values()] + [("X-Text", VALUES["both"])]


def make(folder: Path) -> Path:
    folder.mkdir()
    (folder / "a").write_bytes(b"a")
    return folder


def in_place(folder: Path) -> Path:
    make_bag(make(folder / "s"), info=ELEMENTS)
    return folder / "s"


def elsewhere(folder: Path) -> Path:
    create(make(folder / "s"), folder / "t", info=ELEMENTS)
    return folder / "t"


def archived(folder: Path) -> Path:
    create_archive(make(folder / "s"), folder / "t.zip", info=ELEMENTS)
    unpack(folder / "t.zip")
    return folder / "t"


def updated(folder: Path) -> Path:
    make_bag(make(folder / "s"), info={"X-Text": "one\n two".replace(" ", "")})
    update(folder / "s", info=ELEMENTS)
    return folder / "s"


WAYS = [in_place, elsewhere, archived, updated]


@pytest.mark.parametrize("way", WAYS)
def test_values_are_kept(way: Callable[[Path], Path], tmp_path: Path, call: Any, implementation: Any) -> None:
    """Every way writes the given values; they survive an update of another element."""
    bag = way(tmp_path)
    assert open(bag).info.all("X-Text") == [value for _, value in ELEMENTS]
    update(bag, info={"Title": "x"})
    shown = json.loads(call("bag", "info", f"{bag}", "--json").stdout)
    assert [one["value"] for one in shown["elements"] if one["label"] == "X-Text"] == [text for _, text in ELEMENTS]
    assert open(bag).validate().ok
    assert flaws(bag) == []


def test_options_keep_values(tmp_path: Path, call: Any, implementation: Any) -> None:
    """``--info`` and ``--info-file`` keep values; a value that cannot be kept is refused."""
    for number, text in enumerate(VALUES.values()):
        bag = make(tmp_path / str(number))
        assert call("bag", "create", f"{bag}", "--info", f"X-Text={text}").exit_code == 0
        assert open(bag).info.all("X-Text") == [text]
        again = make(tmp_path / f"again-{number}")
        assert call("bag", "create", f"{again}", "--info-file", f"{bag / 'bag-info.txt'}").exit_code == 0
        assert open(again).info.all("X-Text") == [text]
        assert call("bag", "update", f"{again}", "--info", f"Y={text}", "--metadata-only").exit_code == 0
        assert open(again).info.all("Y") == [text]
        assert call("bag", "validate", f"{again}").exit_code == 0
    bag = make(tmp_path / "s")
    refused = call("bag", "create", f"{bag}", "--info", "X-Text= a")
    assert (refused.exit_code, os.listdir(bag)) == (2, ["a"])
    assert "begins with white space" in refused.stderr


def test_lines_are_shown_below_each_other(tmp_path: Path, call: Any) -> None:
    """The text output indents the further lines of a value."""
    make_bag(make(tmp_path / "s"), info={"X-Text": "one\ntwo\x1b"})
    assert "\nX-Text: one\n  two\\x1b\n" in call("bag", "info", f"{tmp_path / 's'}").stdout


def test_profiles_compare_values(tmp_path: Path, implementation: Any) -> None:
    """An allowed value may be folded, as many programs do, and may contain line breaks."""
    make_bag(make(tmp_path / "s"), info={"X-Text": "one\ntwo"})
    for allowed, kinds in (("one\ntwo", []), ("one two", []), ("one", ["profile-element-value"])):
        checked = profile(Bag_Info={"X-Text": {"values": [allowed]}})
        found = [one.kind for one in open(tmp_path / "s").check_profile(checked)]
        assert [kind for kind in found if kind != "profile-identifier"] == kinds


def test_another_program_reads_values(tmp_path: Path) -> None:
    """bagit reads the lines of our values, and finds the bag valid."""
    pytest.importorskip("bagit")
    make_bag(make(tmp_path / "s"), info={"X-Text": "one\ntwo\n\nfour", "Y": ""})
    script = "import json, sys, bagit; bag = bagit.Bag(sys.argv[1]); bag.validate(); print(json.dumps(bag.info))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, tmp_path / "s"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    found = json.loads(done.stdout)
    assert (found["X-Text"].split(), found["Y"]) == (["one", "two", "four"], "")


def test_folded_values_of_one_line(tmp_path: Path, call: Any, implementation: Any) -> None:
    """A fold or a space at the end changes no verdict: on Payload-Oxum, a profile's identifier, or an identifier."""
    text = (
        b"Payload-Oxum:  20.2 \nExternal-Identifier:\n  a\n  b \nBagIt-Profile-Identifier: "
        + IDENTIFIER.encode()
        + b" \n"
    )
    bag = Sketch(version="0.97", info=text).write(tmp_path / "bags" / "one")
    assert validate(bag).problems == []
    assert json.loads(call("bag", "info", f"{bag}", "--json").stdout)["payload_oxum"] == "20.2"
    checked = profile(Accept_BagIt_Version=["0.97"])
    assert open(bag).check_profile(checked) == []
    assert [one.id for one in stores.open(tmp_path / "bags", "bags").objects()] == ["a b"]


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"Rights": None}, "Rights: expected str or a list of str, not None"),
        ({"Rights": 5}, "Rights: expected str or a list of str, not int"),
        ({"Rights": ["a", ["b"]]}, "Rights: expected str or a list of str, not a list that contains list"),
        ([("Rights", 5)], "Rights: expected str or a list of str, not int"),
        ({5: "a"}, "info: expected labels of type str, not int"),
        ("Rights: free", "info: expected a mapping of labels to values, or pairs of label and value, not str"),
        (
            ["Rights"],
            "info: expected a mapping of labels to values, or pairs of label and value, not items of type str",
        ),
    ],
)
def test_info_of_other_types(tmp_path: Path, info: Any, message: str) -> None:
    """An element of another type is refused in one line that names the label, and nothing is written."""
    source = make(tmp_path / "s")
    for attempt in (lambda: make_bag(source, info), lambda: create(source, tmp_path / "t", info)):
        with pytest.raises(TypeError) as caught:
            attempt()
        assert str(caught.value) == message
    assert sorted(os.listdir(source)) == ["a"]
    bag = make_bag(source, {"Rights": "free"})
    if info != {"Rights": None}:  # removes the element
        with pytest.raises(TypeError) as caught:
            bag.update(info=info)
        assert str(caught.value) == message


def test_an_empty_list_is_no_element(tmp_path: Path) -> None:
    """An empty list adds no element to a new bag, and removes the elements of an existing one."""
    bag = make_bag(make(tmp_path / "s"), {"Rights": [], "Contact-Name": ["Jane", "Joe"]})
    assert ("Rights" in bag.info, bag.info["Contact-Name"]) == (False, ["Jane", "Joe"])
    assert "Contact-Name" not in bag.update(info={"Contact-Name": []}).info
