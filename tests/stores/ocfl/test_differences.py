"""Differences between two versions of an OCFL object."""

from __future__ import annotations

import random

from pressmark.stores.ocfl.differences import Changes, compare_states


def test_each_kind_of_change() -> None:
    before = {"kept": "aa", "edited": "bb", "gone": "cc", "old": "dd"}
    after = {"kept": "aa", "edited": "b2", "new": "ee", "moved": "dd"}
    changes = compare_states(before, after)
    assert changes == Changes(("new",), ("gone",), ("edited",), (("old", "moved"),), ("kept",))
    assert changes.counts() == {"added": 1, "removed": 1, "changed": 1, "renamed": 1, "unchanged": 1}
    assert changes.record()["unchanged"] == 1
    assert not changes.is_empty


def test_equal_states_are_no_change_even_if_digests_differ_in_case() -> None:
    changes = compare_states({"a": "AB", "b": "cd"}, {"b": "CD", "a": "ab"})
    assert changes == Changes(unchanged=("a", "b"))
    assert changes.is_empty
    assert compare_states({}, {}).is_empty


def test_renames_are_found_even_if_digests_differ_in_case() -> None:
    assert compare_states({"a": "AB"}, {"b": "ab"}) == Changes(renamed=(("a", "b"),))


def test_equal_files_are_paired_in_the_order_of_their_paths() -> None:
    before = {"b": "x", "a": "x", "c": "x"}
    assert compare_states(before, {"z": "x", "y": "x"}) == Changes((), ("c",), (), (("a", "y"), ("b", "z")), ())
    assert compare_states({"z": "x"}, before) == Changes(("b", "c"), (), (), (("z", "a"),), ())


def test_a_copy_is_an_added_file_and_an_exchange_two_changed_files() -> None:
    assert compare_states({"a": "x"}, {"a": "x", "b": "x"}) == Changes(added=("b",), unchanged=("a",))
    assert compare_states({"a": "x", "b": "y"}, {"a": "y", "b": "x"}) == Changes(changed=("a", "b"))


def test_random_states_and_any_order_of_their_paths() -> None:
    rng = random.Random(17)
    for _ in range(500):
        before, after = ({name: rng.choice("xyz") for name in rng.sample("abcdefgh", rng.randrange(9))} for _ in "12")
        found = compare_states(before, after)
        old, new = zip(*found.renamed, strict=True) if found.renamed else ((), ())
        assert sorted((*found.removed, *found.changed, *found.unchanged, *old)) == sorted(before)
        assert sorted((*found.added, *found.changed, *found.unchanged, *new)) == sorted(after)
        assert all(before[path] == after[path] for path in found.unchanged)
        assert all(before[path] != after[path] for path in found.changed)
        assert all(before[one] == after[other] for one, other in found.renamed)
        assert not {before[path] for path in found.removed} & {after[path] for path in found.added}
        assert all(files == tuple(sorted(files)) for files in found)
        shuffled = [dict(rng.sample(list(state.items()), len(state))) for state in (before, after)]
        assert compare_states(*shuffled) == found
