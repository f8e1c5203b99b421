"""Every rule of the draft, under every implementation: each bag of the table has exactly its problems."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pressmark.bagit import KINDS, validate
from pressmark.bagit.problems import REMEDIES
from support.implementations import Implementation

from .rules import RULES, Case

CASES = {f"{number}: {case.words}": case for number, rule in enumerate(RULES, 1) for case in rule.cases}


@pytest.mark.parametrize("name", CASES)
def test_rule(implementation: Implementation, tmp_path: Path, name: str) -> None:
    """The full validation finds exactly the expected problems."""
    case: Case = CASES[name]
    report = validate(case.write(tmp_path / "bag"))
    assert {found.kind for found in report.problems} == case.kinds, report.problems
    assert report.ok == all(KINDS[kind].severity != "error" for kind in case.kinds)
    for found in report.problems:
        assert found.message
        assert "\n" not in found.message


@pytest.mark.verdicts
@pytest.mark.parametrize("name", CASES)
def test_levels(tmp_path: Path, name: str) -> None:
    """Less thorough levels find a part of those problems."""
    bag = CASES[name].write(tmp_path / "bag")
    complete = validate(bag, "complete")
    assert {found.kind for found in complete.problems} == CASES[name].kinds - {"checksum-mismatch", "file-changing"}
    oxum = validate(bag, "oxum")
    assert {found.kind for found in oxum.problems} - {"oxum-missing"} <= CASES[name].kinds


def test_every_rule_is_covered() -> None:
    """A rule has bags, or states how it is implemented; a MUST that can be violated has a violating bag."""
    sections = []
    for rule in RULES:
        assert rule.cases or rule.how, rule.words
        assert re.fullmatch(r"MUST|MUST NOT|REQUIRED|SHOULD|SHOULD NOT|RECOMMENDED|MAY", rule.keyword)
        assert rule.words.endswith(".")
        sections.append([int(part) for part in rule.section.split(".")])
    assert len(CASES) == sum(len(rule.cases) for rule in RULES), "two bags of a rule have the same words"


def test_every_kind_is_tested() -> None:
    """Every kind of problem occurs in a bag of the table or in another test."""
    found = {kind for case in CASES.values() for kind in case.kinds}
    assert found <= set(KINDS)
    tests = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py")]
    untested = [kind for kind in KINDS if kind not in found and not any(f'{kind}"' in text for text in tests)]
    assert untested == []


def test_every_kind_has_a_remedy() -> None:
    """The documentation states what to do about each kind of problem, in the order of the kinds."""
    assert list(REMEDIES) == list(KINDS)
    assert all(clause and "|" not in clause and not clause.endswith(".") for clause in REMEDIES.values())
