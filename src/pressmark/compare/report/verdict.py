"""What the numbers say, in plain words: rules, and nothing that is not in the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pressmark.compare.result import ComparisonData, Group, LayoutResult
from pressmark.errors import quoted
from pressmark.html import number, rounded

__all__ = ["BILLION", "STRUCTURES", "SYSTEMS", "Statement", "Verdict", "faults", "verdict"]

#: Objects for which the growth is told.
BILLION = 10**9
#: The kinds of systems that paths are held against, as people call them.
SYSTEMS = {"unix": "Unix", "windows": "Windows", "azure": "Azure", "s3": "S3"}
#: The structures of objects, as people call them.
STRUCTURES = {"ocfl": "OCFL", "pairtree": "Pairtree", "vitro": "Vitro"}
# As many layouts are named in one sentence.
_NAMED = 6


class Statement(NamedTuple):
    """One sentence of a verdict.

    :ivar rule: which rule of :func:`verdict` it comes from, a stable word
    :ivar text: the sentence
    """

    rule: str
    text: str


class Verdict(NamedTuple):
    """What to make of a comparison.

    :ivar kind: ``good``, ``attention`` or ``bad``
    :ivar word: in a few words
    :ivar statements: why
    """

    kind: str
    word: str
    statements: tuple[Statement, ...]


def verdict(comparison: ComparisonData) -> Verdict:
    """Say in plain words what a comparison found, by these rules, in this order.

    ``empty``
        There was no identifier: nothing can be said (``attention``).
    ``duplicates``
        Identifiers that occur more than once share a path under every layout. They are told once, as a matter of the
        input, and count against no layout.
    ``safe``
        Layouts without :func:`faults`: every identifier has a path of its own, which no other is inside of unless it
        may be. If there is none, the verdict is ``bad``; if there are some, but not all are, it is ``attention``.
    ``shared``, ``inside``, ``unmapped``, ``refused``
        For each layout that is not safe, how many identifiers share a path (with the first such group), are inside
        another's directory, have no path, or have one that no POSIX file system takes.
    ``folded``, ``profile``
        For each safe layout, how many identifiers would share a path where case or normal forms are not told apart, and
        how many paths other kinds of systems refuse, of the profile that was chosen. Either makes a ``good`` verdict
        ``attention``.
    ``nested``
        For each safe layout whose objects may be inside another's directory, how many are. That is no remark.
    ``limit``
        For each safe layout, how many directories have more entries than the user's limit, which makes a ``good``
        verdict ``attention``; without a limit, the layout with the largest directory.
    ``inodes``
        Of several safe layouts for the same structure of objects, the one with the fewest inodes an object and the one
        with the most.
    ``reversible``
        Which of the safe layouts do not let every identifier be told from its path.
    ``growth``
        Of several safe layouts, those with the fewest and the most directories at a billion objects, as predicted;
        fitted models are left out that were more than a tenth off for what was held out, or had nothing to be held
        against.
    """
    if not comparison.identifiers:
        empty = Statement("empty", "There was no identifier, so nothing can be said of any layout.")
        return Verdict("attention", "Nothing to compare", (empty,))
    duplicates = comparison.duplicates
    safe = [one for one in comparison.layouts if not faults(one, duplicates)]
    statements: list[Statement] = []
    if duplicates:
        text = f"{_identifiers(duplicates)} of {number(comparison.identifiers)} {_is(duplicates)} in the input more"
        statements.append(Statement("duplicates", f"{text} than once: the same identifier has one path in any layout."))
    statements.append(_safe(comparison.layouts, safe))
    for one in comparison.layouts:
        if one not in safe:
            statements += _unsafe(one, duplicates)
    notes = [note for one in safe for note in _elsewhere(one, comparison)]
    over = [one for one in safe if one.fan_out.over_limit]
    statements += notes
    statements += _nested(safe)
    statements += _limits(safe, over, comparison.directory_limit)
    statements += _inodes(safe)
    statements += _irreversible(safe)
    statements += _growth(safe)
    kind, word = _kind(comparison, safe, bool(notes or over or duplicates))
    return Verdict(kind, word, tuple(statements))


def faults(layout: LayoutResult, duplicates: int = 0) -> tuple[str, ...]:
    """Return what keeps objects from having places of their own: rules of :func:`verdict`, none for a safe layout.

    :param duplicates: how many identifiers are the same octets as another one
    """
    found = []
    if layout.clashes.equal > duplicates:
        found.append("shared")
    if layout.clashes.inside_exact and not layout.nesting:
        found.append("inside")
    if layout.unmapped.count:
        found.append("unmapped")
    unix = layout.refused.get("unix")
    if unix is not None and unix.count:
        found.append("refused")
    return tuple(found)


def _kind(comparison: ComparisonData, safe: Sequence[LayoutResult], noted: bool) -> tuple[str, str]:
    count = len(comparison.layouts)
    if not safe:
        return "bad", "This layout loses objects" if count == 1 else "Every one of these layouts loses objects"
    if len(safe) < count:
        lost = count - len(safe)
        return "attention", f"{lost} of {count} layouts {'loses' if lost == 1 else 'lose'} objects"
    if noted:
        return "attention", "No layout loses objects, but look at the remarks" if count > 1 else "Look at the remarks"
    return "good", "This layout suits" if count == 1 else "Each of these layouts has a place for every object"


def _safe(layouts: Sequence[LayoutResult], safe: Sequence[LayoutResult]) -> Statement:
    own = "gives every identifier a path of its own"
    if not safe:
        return Statement(
            "safe", f"None of these layouts {own}." if len(layouts) > 1 else f"It does not {own[:4]}{own[5:]}."
        )
    if len(layouts) == 1:
        return Statement("safe", f"{_name(safe[0])} {own}.")
    if len(safe) == 1:
        return Statement("safe", f"Only {_name(safe[0])} {own}.")
    many = own.replace("gives", "give")
    if len(safe) == len(layouts):
        return Statement("safe", f"{'Both' if len(safe) == 2 else f'All {len(safe)}'} layouts {many}.")
    return Statement("safe", f"{len(safe)} of {len(layouts)} layouts {many}: {_names(safe)}.")


def _unsafe(layout: LayoutResult, duplicates: int) -> Iterator[Statement]:
    found = faults(layout, duplicates)
    clashes, name = layout.clashes, _name(layout)
    if "shared" in found:
        groups = clashes.groups.get("equal", 0)
        where = "all the same one" if groups == 1 else f"{number(groups)} paths in all"
        text = f"{name}: {_identifiers(clashes.equal)} share a path with another, {where}"
        yield Statement(
            "shared", f"{text}{_example(clashes.first.get('equal', ()))}. One object would replace another."
        )
    if "inside" in found:
        exact = [group for group in clashes.first.get("inside", ()) if group.exact]
        text = f"{name}: {_identifiers(clashes.inside_exact)} {_is(clashes.inside_exact)} within another's directory"
        yield Statement("inside", f"{text}, or hold another's in their own{_example(exact)}.")
    if "unmapped" in found:
        count = layout.unmapped.count
        first = layout.unmapped.first[:1]
        example = f", the first of them {quoted(first[0].identifier)} ({first[0].reason})" if first else ""
        yield Statement("unmapped", f"{name}: {_identifiers(count)} {_has(count)} no path{example}.")
    if "refused" in found:
        refused = layout.refused["unix"]
        example = f" ({refused.first[0].reason})" if refused.first else ""
        yield Statement("refused", f"{name}: no file system takes {_paths(refused.count)}{example}.")


def _elsewhere(layout: LayoutResult, comparison: ComparisonData) -> Iterator[Statement]:
    name = _name(layout)
    more = layout.clashes.folded - layout.clashes.equal
    if more:
        where = "where a file system does not tell case and forms of characters apart (Windows, macOS)"
        kind = "case" if layout.clashes.first.get("case") else "normalization"
        text = f"{name}: {_identifiers(layout.clashes.folded)} would share a path {where}"
        yield Statement("folded", f"{text}{_example(layout.clashes.first.get(kind, ()))}.")
    counts = {
        profile: refused.count
        for profile, refused in layout.refused.items()
        if refused.count and profile != "unix" and comparison.profile in ("all", profile)
    }
    if counts:
        words = ", ".join(f"{SYSTEMS.get(profile, profile)} {number(count)}" for profile, count in counts.items())
        yield Statement("profile", f"{name}: other systems refuse some of its paths: {words}.")


def _nested(safe: Sequence[LayoutResult]) -> Iterator[Statement]:
    for one in safe:
        count = one.clashes.inside_exact
        if count:
            text = f"{_name(one)}: {_identifiers(count)} {_is(count)} within another's directory, or hold another's in"
            yield Statement("nested", f"{text} their own, which this kind of store allows.")


def _limits(safe: Sequence[LayoutResult], over: Sequence[LayoutResult], limit: int | None) -> Iterator[Statement]:
    if limit is None:
        if safe:
            one = max(safe, key=lambda one: one.fan_out.max)
            text = f"The largest directory is in the tree of {_name(one)}, with {_entries(one.fan_out.max)}"
            yield Statement("limit", f"{text}; no limit was given (--directory-limit).")
        return
    for one in over:
        count = one.fan_out.over_limit
        text = f"{_name(one)}: {number(count)} {'directory has' if count == 1 else 'directories have'} more entries"
        yield Statement("limit", f"{text} than your limit of {number(limit)}, the largest {number(one.fan_out.max)}.")
    if safe and not over:
        text = "No directory of it has" if len(safe) == 1 else "No directory of these has"
        yield Statement("limit", f"{text} more entries than your limit of {number(limit)}.")


def _inodes(safe: Sequence[LayoutResult]) -> Iterator[Statement]:
    structures = list(dict.fromkeys(one.costs.structure for one in safe))
    for structure in structures:
        some = [one for one in safe if one.costs.structure == structure]
        least = min(some, key=lambda one: one.costs.inodes_per_object)
        most = max(some, key=lambda one: one.costs.inodes_per_object)
        fewest, highest = least.costs.inodes_per_object, most.costs.inodes_per_object
        if highest - fewest >= 0.05:
            of = f"With {STRUCTURES[structure]} objects, " if len(structures) > 1 else ""
            text = f"{of}{_name(least)} takes the fewest inodes, {fewest:.1f} an object; {_name(most)} takes the most"
            yield Statement("inodes", f"{text}, {highest:.1f}.")


def _irreversible(safe: Sequence[LayoutResult]) -> Iterator[Statement]:
    some = [one for one in safe if one.irreversible > one.clashes.equal]
    if some:
        verb = "does" if len(some) == 1 else "do"
        text = f"{_names(some)} {verb} not let every identifier be told from its path"
        yield Statement("reversible", f"{text}: keep it with the object, as an OCFL inventory does.")


def _growth(safe: Sequence[LayoutResult]) -> Iterator[Statement]:
    points = []
    for one in safe:
        if one.growth.model == "fitted" and (one.growth.error is None or one.growth.error > 0.1):
            continue
        total = next((total for objects, _, total in one.growth.points if objects == BILLION), None)
        if total is not None:
            points.append((total, one))
    if len(points) > 1:
        points.sort(key=lambda point: point[0])
        (least, first), (most, last) = points[0], points[-1]
        if most > 1.05 * least:
            text = f"At a billion objects {_name(first)} would have about {rounded(least)} directories"
            yield Statement("growth", f"{text}, {_name(last)} about {rounded(most)}.")


def _example(groups: Iterable[Group]) -> str:
    for group in groups:
        one = group.members[0]
        # The same identifier twice is no example.
        two = next((other for other in group.members if other.identifier != one.identifier), None)
        if two is not None:
            at = f", at {quoted(one.path)}" if one.path == two.path else ""
            return f", such as {quoted(one.identifier)} and {quoted(two.identifier)}{at}"
    return ""


def _name(layout: LayoutResult) -> str:
    return layout.name


def _names(layouts: Sequence[LayoutResult]) -> str:
    names = [_name(one) for one in layouts[:_NAMED]]
    if len(layouts) > _NAMED:
        return f"{', '.join(names)} and {len(layouts) - _NAMED} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _identifiers(count: int) -> str:
    return f"{number(count)} identifier{'' if count == 1 else 's'}"


def _paths(count: int) -> str:
    return f"{number(count)} of its paths" if count > 1 else "one of its paths"


def _entries(count: int) -> str:
    return f"{number(count)} entr{'y' if count == 1 else 'ies'}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
