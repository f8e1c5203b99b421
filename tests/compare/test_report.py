"""The report: its verdict, and a self-contained, safe and accessible page."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import html as pages
from pressmark.compare import Comparison, LayoutResult, compare, hashed_directories
from pressmark.compare.remarks import REMARKS
from pressmark.compare.report import check_report, find_defects, judge, page_text, safety_of
from pressmark.compare.result import CollisionGroup, Collisions, Costs, Depth, Example, FanOut, Occurrences, Remark
from pressmark.errors import ReportError
from pressmark.layouts import HashAndIdNTuple, HashAndNoPrefixIdNTuple, HashedNTuple, Layout

from . import samples

HAS_REPORT = all(importlib.util.find_spec(package) for package in ("matplotlib", "jinja2"))
needs_report = pytest.mark.skipif(not HAS_REPORT, reason="the extra report is not installed")

IMAGE = "data:image/svg+xml;base64,"

HOSTILE = [
    "</script><script>alert(1)</script>",
    '<img src="http://example.org/x.png" onerror=alert(1)>',
    "\u202eabc\u2066def",
    "a\x1b[31mb\x07\x7f\u2028",
    "&amp;&lt;",
    "אבג-1",
    b"\xff\xfe\x80".decode("utf-8", "surrogateescape"),
    "'\"><svg/onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "x" * 5000,
]


# --- the verdict ------------------------------------------------------------------------------------------------------


def layout(name: str = "one", **numbers: Any) -> LayoutResult:
    """Return a layout without defects, with some fields replaced."""
    one = HashedNTuple()
    return replace(LayoutResult(name, one.name, one.config(), mapped=100, reversible="always"), **numbers)


def comparison(*layouts: LayoutResult, **numbers: Any) -> Comparison:
    return Comparison(
        **{"identifiers": 100, "distinct": 100, "duplicates": 0, "layouts": layouts, "directory_limit": 1000, **numbers}
    )


def clash(kind: str, count: int, *pairs: tuple[str, str]) -> CollisionGroup:
    members = tuple(Example(number, identifier, path) for number, (identifier, path) in enumerate(pairs))
    return CollisionGroup(kind, count, True, members)


SHARED = Collisions(
    equal=78,
    folded=78,
    groups={"equal": 1},
    first={"equal": (clash("equal", 78, ("a.001", "f/001"), ("b.001", "f/001")),)},
)


def rules(found: Comparison) -> dict[str, str]:
    """Return the sentences of a verdict by rule, with the reservations of recommended layouts."""
    verdict = judge(found)
    statements = [statement for one in verdict.recommendations for statement in one.reservations]
    statements += [statement for group in verdict.groups for statement in group.statements]
    return {statement.rule: statement.text for statement in statements}


def recommended(found: Comparison) -> dict[str, str]:
    """Return the recommended layouts by structure."""
    return {one.structure: one.layout for one in judge(found).recommendations}


def test_nothing_to_compare() -> None:
    found = judge(comparison(layout(), identifiers=0))
    assert (found.kind, found.word, found.recommendations) == ("attention", "No identifiers to compare", ())


def test_good_verdict() -> None:
    """A good verdict is a recommendation without reservations."""
    found = judge(comparison(layout("a"), layout("b")))
    assert (found.kind, found.heading) == ("good", "Recommended")
    assert [(one.layout, one.reservations) for one in found.recommendations] == [("a", ())]
    assert [group.title for group in found.groups] == ["As safe as the recommended layout"]
    assert judge(comparison(layout("a"))).groups == ()


def test_each_layout_is_recommended_or_has_a_statement() -> None:
    """No layout is without a reason."""
    worse: list[dict[str, Any]] = [
        {},
        {"collisions": SHARED},
        {"collisions": Collisions(inside_exact=2)},
        {"collisions": Collisions(inside_exact=2), "nesting": True},
        {"collisions": Collisions(folded=2)},
        {"unmapped": Occurrences(1, (Example(0, ".."),))},
        {"refused": {"unix": Occurrences(60, (Example(0, "a", "b", "too long"),))}},
        {"refused": {"windows": Occurrences(1)}},
        {"irreversible": 1},
        {"fan_out": FanOut(max=1001)},
        {"fan_out": FanOut(max=1001, over_limit=1)},
        {"costs": Costs(inodes_per_object=99.0)},
    ]
    names = [f"<{number}>" for number in range(len(worse))]
    layouts = [layout(name, **numbers) for name, numbers in zip(names, worse, strict=True)]
    for some in (layouts, layouts[1:], layouts[::-1]):
        found = judge(comparison(*some))
        heads = [statement.text.partition(": ")[0] for group in found.groups for statement in group.statements]
        [best] = found.recommendations
        assert [one.name for one in some if one.name not in "".join(heads)] == [best.layout]
        titles = [group.title for group in found.groups]
        assert len(titles) == len(set(titles))


def test_layouts_share_a_statement() -> None:
    bad = layout("b", irreversible=100)
    found = comparison(layout("a"), bad, replace(bad, name="c"), replace(bad, name="d", irreversible=7))
    [group] = judge(found).groups
    assert [statement.text for statement in group.statements] == [
        "b and c: 100 identifiers cannot be restored from paths.",
        "d: 7 identifiers cannot be restored from paths.",
    ]


def test_one_layout_loses_objects() -> None:
    found = comparison(layout("a"), layout("b", collisions=SHARED))
    assert judge(found).kind == "attention"
    assert judge(found).word == "1 of 2 layouts has path collisions"
    assert rules(found)["shared"] == "b: 78 identifiers share 1 path, for example 'a.001' and 'b.001' ('f/001')."
    assert [group.title for group in judge(found).groups] == ["Objects would overwrite each other"]


def test_every_layout_loses_objects() -> None:
    found = judge(comparison(layout("a", collisions=SHARED), layout("b", collisions=SHARED)))
    assert (found.kind, found.word) == ("bad", "All layouts have path collisions")
    assert judge(comparison(layout(collisions=SHARED))).word == "This layout has path collisions"


def test_collisions_are_kept_apart_from_missing_paths() -> None:
    """Layouts with collisions and layouts that cannot map an identifier are counted separately."""
    unmapped = Occurrences(60, (Example(0, "..", "", "not allowed"),))
    a, b, c = layout("a", collisions=SHARED), layout("b", unmapped=unmapped), layout("c")
    assert judge(comparison(b)).word == "This layout cannot map all identifiers"
    assert judge(comparison(b, b)).word == "No layout can map all identifiers"
    assert judge(comparison(b, c)).word == "1 of 2 layouts cannot map all identifiers"
    words = "1 of 3 layouts has path collisions, 1 of 3 layouts cannot map all identifiers"
    assert judge(comparison(a, b, c)).word == words


def test_recommendation() -> None:
    """The criteria come in their order; the reasons are those of the layout."""
    folded = Collisions(folded=2)
    good = layout("good", fan_out=FanOut(max=7), costs=Costs(inodes_per_object=9.0))
    cheap = layout("cheap", fan_out=FanOut(max=7), costs=Costs(inodes_per_object=3.0))
    assert judge(comparison(good)).heading == "Suitable"
    [found] = judge(comparison(good, replace(cheap, collisions=folded))).recommendations
    assert (found.structure, found.layout) == ("ocfl", "good")
    assert found.text == (
        "Every identifier has a unique path, also on file systems that ignore case; no directory has more than 7"
        " entries."
    )
    # The number of inodes is a reason only if it decides between equals.
    found = judge(comparison(good, cheap)).recommendations[0]
    assert (found.layout, found.reasons[1:]) == (
        "cheap",
        ("it needs the fewest inodes (files and directories), 3.0 per object",),
    )
    assert rules(comparison(good, cheap))["equal"] == (
        "good: needs 9.0 inodes (files and directories) per object, cheap needs 3.0."
    )
    assert "fewest" not in judge(comparison(good, replace(good, name="same"))).recommendations[0].text
    for worse in (
        {"collisions": SHARED},
        {"irreversible": 100},
        {"fan_out": FanOut(max=1001)},
        {"refused": {"windows": Occurrences(1)}},
    ):
        assert recommended(comparison(good, replace(cheap, **worse))) == {"ocfl": "good"}
    # The second reason is what the other layout lacks.
    [found] = judge(comparison(good, replace(cheap, irreversible=100))).recommendations
    assert found.reasons[1:] == ("identifiers can be restored from paths",)
    flat = replace(cheap, depth=Depth(max=1))
    assert recommended(comparison(good, flat)) == {"ocfl": "cheap"}
    assert recommended(comparison(good, flat, distinct=2000)) == {"ocfl": "good"}
    assert rules(comparison(good, flat, distinct=2000))["limit"] == "cheap: all objects are in one directory."
    assert recommended(comparison(flat, replace(good, collisions=SHARED), distinct=2000)) == {"ocfl": "cheap"}
    assert recommended(comparison(layout("a", collisions=SHARED), layout("b", collisions=SHARED))) == {}


def test_a_recommendation_for_each_kind() -> None:
    """Objects of different structures do not compare: each kind of store has its own recommendation."""
    ocfl = layout("0003", fan_out=FanOut(max=7), costs=Costs(inodes_per_object=9.0))
    cheap = Costs("pairtree", inodes_per_object=3.0)
    nested = Collisions(inside=2, inside_exact=2)
    tree = layout("pairtree", fan_out=FanOut(max=7), costs=cheap, collisions=nested, nesting=True)
    first, second = judge(comparison(tree, ocfl)).recommendations
    assert [(one.structure, one.layout) for one in (first, second)] == [("ocfl", "0003"), ("pairtree", "pairtree")]
    assert second.text.endswith(". But 2 identifiers have nested paths, which this kind of store allows.")
    assert first.command.startswith("pressmark store init ocfl STORE --layout ")
    assert second.command == "pressmark store init pairtree STORE"
    # Not with nested paths, if another layout has none.
    flat = replace(tree, name="other", collisions=Collisions(), costs=replace(cheap, inodes_per_object=4.0))
    assert recommended(comparison(tree, flat)) == {"pairtree": "other"}
    assert judge(comparison(tree)).recommendations[0].command == "pressmark store init pairtree STORE"


def test_the_plain_layout_is_preferred() -> None:
    """Layout 0003 with its defaults is recommended among layouts that are equally good, except for their inodes."""

    def result(made: Layout, inodes: float, **numbers: Any) -> LayoutResult:
        costs = Costs(inodes_per_object=inodes)
        return layout(made.name, layout=made.name, config=made.config(), costs=costs, **numbers)

    plain = result(HashAndIdNTuple(), 10.0)
    small = result(HashAndIdNTuple(tuple_size=2, number_of_tuples=2), 5.0)
    [found] = judge(comparison(small, plain)).recommendations
    assert found.command == "pressmark store init ocfl STORE --layout 0003"
    assert found.text.endswith("; layout 0003 with its defaults suits all kinds of identifiers.")
    command = "pressmark store init ocfl STORE --layout 0003:tupleSize=2,numberOfTuples=2"
    assert judge(comparison(small, replace(plain, irreversible=1))).recommendations[0].command == command
    assert judge(comparison(small)).recommendations[0].command == command
    quoted = result(HashAndNoPrefixIdNTuple(delimiters=("/", "$")), 8.0)
    assert (
        judge(comparison(quoted)).recommendations[0].command
        == """pressmark store init ocfl STORE --layout '0012:delimiters=["/", "$"]'"""
    )
    assert recommended(comparison(replace(plain, collisions=SHARED))) == {}


def test_duplicates_count_against_no_layout() -> None:
    found = comparison(layout("a"), duplicates=2, repeated=1)
    assert judge(found).kind == "attention"
    assert rules(found)["duplicates"] == "1 identifier occurs 2 times in the input; it counts once."
    found = comparison(layout("a"), duplicates=7, repeated=3)
    text = "3 identifiers occur more than once in the input, 7 times in total; each counts once."
    assert rules(found)["duplicates"] == text


def test_objects_within_others() -> None:
    """Nesting is a defect unless the store format allows it."""
    inside = Collisions(
        inside=2,
        inside_exact=2,
        groups={"inside": 1},
        first={"inside": (clash("inside", 2, ("a", "a"), ("b", "a/b")),)},
    )
    assert "'a' and 'b'" in rules(comparison(layout(collisions=inside)))["inside"]
    allowed = comparison(layout(collisions=inside, nesting=True))
    assert "which this kind of store allows" in rules(allowed)["nested"]
    assert judge(allowed).kind == "good"


def test_identifiers_without_a_path() -> None:
    refused = Occurrences(3, (Example(0, "..", reason="a segment is '..'"),))
    text = rules(comparison(layout(unmapped=refused)))["unmapped"]
    assert text == "3 identifiers have no path, for example '..' (item 1, a segment is '..')"


def test_a_few_bad_identifiers_do_not_prevent_a_recommendation() -> None:
    """They are named once for all layouts, and the rest is recommended for."""
    bad = Occurrences(1, (Example(6, "", reason="identifier is empty"),))
    a, b = layout("a", unmapped=bad, irreversible=1), layout("b", unmapped=bad)
    found = judge(comparison(a, b))
    assert (found.kind, found.word) == ("attention", "All layouts are safe for all but 1 identifier")
    [best] = found.recommendations
    assert (best.layout, best.reservations) == ("b", ())
    assert best.text.startswith("All but 1 identifier has a unique path,")
    unmapped = "1 identifier has no path: '' (item 7, identifier is empty)"
    assert rules(comparison(a, b))["unmapped"] == f"{unmapped} under any layout."
    assert found.groups[0].title == "In the list of identifiers"
    # The remark on a blank identifier is enough.
    blank = (Remark("blank", 1, (Example(6, ""),)),)
    assert "unmapped" not in rules(comparison(a, b, remarks=blank))
    assert "unmapped" not in rules(comparison(a, remarks=blank))
    assert "unmapped" in rules(comparison(a, layout("c"), remarks=blank))
    [best] = judge(comparison(a)).recommendations
    assert (judge(comparison(a)).word, best.command) == (
        "This layout is safe for all but 1 identifier",
        "pressmark store init ocfl STORE --layout 0004",
    )
    assert best.reservations[0] == ("unmapped", unmapped)
    # A layout that maps everything comes first, and one that leaves out fewer.
    c = layout("c", unmapped=Occurrences(2, (Example(6, ""), Example(8, ".."))))
    assert recommended(comparison(a, layout("d", irreversible=1))) == {"ocfl": "d"}
    found = judge(comparison(a, c))
    assert found.word == "All layouts are safe for all but a few identifiers"
    assert recommended(comparison(a, c)) == {"ocfl": "a"}
    assert [safety_of(one, comparison(a)) for one in (a, c)] == ["all but 1", "all but 2"]


@pytest.mark.parametrize(
    "numbers",
    [
        {"unmapped": Occurrences(11)},
        {"refused": {"unix": Occurrences(11)}},
        {"unmapped": Occurrences(1), "collisions": SHARED},
    ],
)
def test_many_bad_identifiers_prevent_a_recommendation(numbers: dict[str, Any]) -> None:
    """So do collisions."""
    found = judge(comparison(layout(**numbers)))
    assert (found.kind, found.recommendations) == ("bad", ())


REMARKED = {
    "blank": Remark("blank", 3, (Example(4, ""),)),
    "setting": Remark("setting", 1, (Example(0, "sep=;"),)),
    "encoding": Remark("encoding", 2, (Example(1, "caf\udce9"),), detail="windows-1252"),
    "ends": Remark("ends", 1, (Example(2, "a "),)),
    "invisible": Remark("invisible", 2000, (Example(3, "a\u200bb"),)),
    "spelling": Remark("spelling", 2, (Example(5, "doi:10.1000/A"), Example(8, "10.1000/a")), 1),
}
SENTENCES = {
    "blank": "3 identifiers in the input are empty, the first is item 5; leave them out.",
    "setting": "The first item 'sep=;' is a setting of Excel, not an identifier; leave it out.",
    "encoding": "2 identifiers are not UTF-8, for example 'caf\\xe9' (item 2); the input looks like Windows-1252;"
    " convert it to UTF-8 (iconv -f WINDOWS-1252 -t UTF-8).",
    "ends": "1 identifier starts or ends with a blank: 'a ' (item 3); strip it, or it becomes part of the path.",
    "invisible": "2,000 identifiers contain no-break or zero-width characters, for example 'a\\u200bb' (item 4);"
    " remove or replace them.",
    "spelling": "2 identifiers are 1 DOI or ARK in several spellings, for example 'doi:10.1000/A' and '10.1000/a';"
    " use one spelling, or each becomes an object of its own.",
}


@pytest.mark.parametrize("kind", REMARKS)
def test_remarks_on_the_input(kind: str) -> None:
    """Each has a sentence that names an identifier, and asks for attention."""
    found = comparison(layout(), remarks=(REMARKED[kind],))
    assert rules(found)[kind] == SENTENCES[kind]
    assert judge(found).kind == "attention"


def test_a_name_that_ends_with_a_colon() -> None:
    """The name of a layout is quoted if it ends with the colon of its parameter."""
    text = rules(comparison(layout("0012:delimiters=:", collisions=SHARED)))["shared"]
    assert text.startswith("'0012:delimiters=:': 78 identifiers share 1 path")
    assert rules(comparison(layout("a", collisions=SHARED)))["shared"].startswith("a: 78 identifiers")


def test_paths_that_systems_refuse() -> None:
    """A path not allowed by Unix is a defect; by other systems of the profile, a remark."""
    refused = {"unix": Occurrences(1, (Example(0, "a", "b", "too long"),)), "windows": Occurrences(5)}
    assert find_defects(layout(refused=refused)) == ("refused",)
    other = {"unix": Occurrences(), "windows": Occurrences(5)}
    found = comparison(layout(refused=other))
    assert judge(found).kind == "attention"
    assert rules(found)["profile"] == "some paths are not allowed on other systems: Windows 5"
    assert "profile" not in rules(replace(found, profile="unix"))


def test_paths_that_differ_in_case_only() -> None:
    collisions = Collisions(case=4, folded=4, first={"case": (clash("case", 2, ("A", "A"), ("a", "a")),)})
    found = comparison(layout(collisions=collisions))
    assert judge(found).kind == "attention"
    assert "4 identifiers would share a path" in rules(found)["folded"]
    assert "'A' and 'a'" in rules(found)["folded"]


def test_large_directories() -> None:
    fan_out = FanOut(max=5000, limit=1000, over_limit=1)
    found = comparison(layout(fan_out=fan_out))
    assert rules(found)["limit"] == "1 directory has more entries than your limit of 1,000; the largest has 5,000"
    assert judge(found).kind == "attention"
    without = replace(found, directory_limit=None, layouts=(layout(fan_out=FanOut(max=5000)),))
    assert (rules(without), judge(without).kind) == ({}, "good")
    large = replace(without, layouts=(layout(fan_out=FanOut(max=50_000)),))
    assert rules(large) == {"limit": "the largest directory has 50,000 entries"}


# --- the page ---------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page; checks that tags are nested correctly."""

    VOID = frozenset({"meta", "br", "wbr", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == tag)


@pytest.fixture(scope="module")
def found() -> Comparison:
    """A comparison of malicious identifiers with every kind of problem."""
    ids = [*HOSTILE, "A", "a", "é", "e\u0301", "..", "", *(f"miun.{number}.001" for number in range(40)), "b", "b/c"]
    layouts = [
        pressmark.layout("0002"),
        pressmark.layout("0012", delimiters=["."]),
        pressmark.layout("0004"),
        pressmark.layout("pairtree"),
        pressmark.layout("0007", delimiter="<"),
    ]
    names = ["0002", "0012:delimiters=.", "0004", "pairtree", "0007:delimiter=<\u202e"]
    return compare(ids, layouts, names=names, directory_limit=10, source="<b>\u202eids</b>.txt")


@pytest.fixture(scope="module")
def text(found: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    found.report(path)
    return path.read_text(encoding="utf-8")


@needs_report
def test_the_page_is_well_formed(text: str) -> None:
    """Correct nesting, unique ids, working links and labels, no external resources."""
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for reference in (attributes.get("aria-labelledby") or "").split():
            assert reference in ids
        href = attributes.get("href")
        assert href is None or (href.startswith("#") and href[1:] in ids)
        assert not {"srcset", "action", "data", "poster"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
    assert all((attributes.get("src") or IMAGE).startswith(IMAGE) for _, attributes in page.elements)
    assert not re.search(r"url\(|@import", text)
    assert not {"iframe", "link", "object", "embed", "form", "audio", "video"} & {tag for tag, _ in page.elements}


@needs_report
def test_the_page_runs_no_script(text: str) -> None:
    """The only script is data, and the policy blocks everything but the style sheet."""
    page = Page(text)
    assert [attributes.get("type") for attributes in page.all("script")] == ["application/json"]
    policy = next(one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@needs_report
def test_the_data_are_complete(text: str, found: Comparison) -> None:
    [data] = Page(text).texts["script"]
    assert json.loads(data) == json.loads(json.dumps(found.record()))
    assert not set(data) & set("<>&")


@needs_report
def test_texts_are_escaped(text: str) -> None:
    """Texts never become markup; unprintable characters are escaped."""
    page = Page(text)
    assert "alert" not in "".join(tag for tag, _ in page.elements)
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "\\u202eabc\\u2066def" in shown
    assert "\\udcff\\udcfe\\udc80" in shown
    assert "{{ 7 * 7 }}" in shown
    unseen = [one for one in shown if not one.isprintable() and one not in "\n\u00a0\u2002"]
    assert unseen == []


@needs_report
def test_the_page_is_accessible(text: str) -> None:
    """Heading levels, table captions and scopes, texts beside images."""
    page = Page(text)
    assert next(page.all("html"))["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    tables = list(page.all("table"))
    assert len(page.texts["caption"]) == len(tables)
    assert all(page.texts["caption"])
    assert all(attributes.get("scope") for attributes in page.all("th"))
    images = list(page.all("img"))
    assert len(images) == len(page.texts["figcaption"]) == 15
    assert all(attributes["alt"] for attributes in images)
    assert all(words.strip() for words in page.texts["figcaption"])


@needs_report
def test_tables_of_paths_inodes_and_growth() -> None:
    """Numbers without a figure are in tables; a layout without paths has no prediction."""
    names = ["pairtree", "0003", "0010"]
    layouts = [pressmark.layout("pairtree"), pressmark.layout("0003"), samples.layouts()["0010"]]
    found = compare([f"ab{number:02d}" for number in range(40)], layouts, names=names)
    rows: dict[str, list[list[str]]] = {name: [] for name in names}
    for name, row in re.findall(
        r'<tr><th scope="row"><bdi class="layout">(\w+)</bdi></th>(.*?)</tr>', page_text(found), re.DOTALL
    ):
        rows[name].append(re.findall(r"<td[^>]*>(.*?)</td>", row))
    assert rows["pairtree"][1:] == [
        ["1", "40", "100\u00a0%", "1"],
        ["Pairtree", "0.03", "2.00", "1", "3.02", "121"],
        ["1.02 million", "1.02 billion", "1.02 trillion", "as many per object as now"],
    ]
    closed = [pages.format_large_number(10**power + hashed_directories(10**power, 16**3, 3)) for power in (6, 9, 12)]
    assert rows["0003"][-1] == [*closed, "closed form"]
    assert set(rows["0010"][-1]) == {"\u2013"}


def commands(text: str) -> list[str]:
    """Return the commands of a page."""
    return [re.sub(r"<[^>]*>", "", code) for code in re.findall(r"<code>(pressmark.*|<span>.*)</code>", text)]


@needs_report
def test_the_page_begins_with_its_recommendations() -> None:
    """Each kind of store has its layout and command, before anything else."""
    names = ["0003", "0004", "pairtree"]
    found = compare(["ab", "cd"], names, names=names)
    text = page_text(found)
    begin = re.sub(r"<[^>]*>", "", text[text.index("</h1>") : text.index("<h2")])
    lines = [line for line in begin.splitlines() if line]
    assert lines[0] == "Recommended for an OCFL storage root: 0003"
    assert lines[2:4] == ["pressmark store init ocfl STORE --layout 0003", "Recommended for a Pairtree: pairtree"]
    assert lines[5:7] == ["pressmark store init pairtree STORE", "✓ All layouts are safe"]
    assert lines[7:9] == [
        "Paths that do not contain the identifier",
        "0004: 2 identifiers cannot be restored from paths.",
    ]
    assert "Suitable for an OCFL storage root: <bdi" in page_text(replace(found, layouts=found.layouts[:1]))


@needs_report
def test_names_of_layouts_break_before_parameters_only() -> None:
    text = page_text(compare(["ab"], ["0003"], names=["0003:tupleSize=2,numberOfTuples=2"]))
    names = re.findall(r"<bdi[^>]*>0003:[^/]*</bdi>", text)
    assert len(names) >= 6
    assert set(names) == {'<bdi class="layout">0003:tupleSize=2,<wbr>numberOfTuples=2</bdi>'}


@needs_report
def test_first_collisions_are_listed(text: str) -> None:
    """Each kind of problem has a table with a count."""
    captions = [" ".join(caption.split()) for caption in Page(text).texts["caption"]]
    for begin in (
        "The same path: 1 group",
        "The same path if case is ignored: 1 group",
        "The same path if Unicode normalization (NFC, NFD) is ignored: 1 group",
        "One object inside another: 1 group",
        "Identifiers without a path: ",
        "Paths not allowed by Windows: ",
    ):
        assert any(caption.startswith(begin) for caption in captions), begin


def test_colours_have_contrast() -> None:
    """Text has a contrast of at least 4.5 in light and dark mode."""
    style = (Path(pages.__file__).parent / "style.css").read_text(encoding="utf-8")
    for block in re.findall(r":root \{([^}]*)\}", style)[:2]:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", block))
        for name, behind, least in (
            *((name, behind, 4.5) for name in ("text", "soft", "link", "good", "bad") for behind in ("back",)),
            ("text", "band", 4.5),
            ("text", "wait-back", 4.5),
            ("wait", "wait-back", 4.5),
            ("good", "good-back", 4.5),
            ("bad", "bad-back", 4.5),
        ):
            assert contrast(colours[name], colours[behind]) >= least, (name, behind)


def contrast(one: str, two: str) -> float:
    lights = sorted(map(luminance, (one, two)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    shares = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- errors -----------------------------------------------------------------------------------------------------------


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ReportError, match=r'matplotlib is not installed; run: pip install "pressmark\[report\]"'):
        check_report(tmp_path / "report.html")


@needs_report
def test_an_unwritable_report(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path, reason in (
        (tmp_path / "nowhere" / "report.html", "parent directory not found"),
        (tmp_path / "folder", "is a directory"),
    ):
        with pytest.raises(ReportError, match=reason):
            check_report(path)


@needs_report
@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="this user can write everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(ReportError, match="cannot be written"):
        check_report(tmp_path / "report.html")
    tmp_path.chmod(0o755)


@needs_report
def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write keeps the old report and leaves no temporary file."""
    path = tmp_path / "report.html"
    path.write_text("old")

    def replace(_source: str, _target: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(ReportError, match=r"cannot be written \(Permission denied\)"):
        pages.write_page(str(path), "new")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"


@needs_report
@pytest.mark.parametrize("ids", [[], ["one"], ["same"] * 50])
def test_few_identifiers(ids: list[str]) -> None:
    """No identifiers, one identifier, and duplicates."""
    from pressmark.compare.report import page_text

    found = compare(ids, [pressmark.layout("0004"), pressmark.layout("0002")])
    page = page_text(found)
    assert Page(page).texts["h1"][0].startswith("2 layouts compared on")
    assert len(commands(page)) == bool(ids)
