"""The verdict on a comparison: sentences that follow from the numbers by fixed rules."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pressmark.compare.result import CollisionGroup, ComparisonData, LayoutResult, Remark
from pressmark.errors import quoted
from pressmark.html import format_number
from pressmark.layouts import HashAndIdNTuple, find_layout

__all__ = [
    "CROWDED",
    "STORES",
    "STRUCTURES",
    "SYSTEMS",
    "Group",
    "Recommendation",
    "Statement",
    "Verdict",
    "find_defects",
    "judge",
    "safety_of",
]

#: Entries of a directory that many tools handle slowly.
CROWDED = 10_000
#: Display names of the profiles.
SYSTEMS = {"unix": "Unix", "windows": "Windows", "azure": "Azure", "s3": "S3"}
#: Display names of the object structures.
STRUCTURES = {"ocfl": "OCFL", "pairtree": "Pairtree", "vitro": "Vitro"}
#: Display names of the stores with objects of these structures.
STORES = {"ocfl": "an OCFL storage root", "pairtree": "a Pairtree", "vitro": "a Vitro store"}
# Not everyone knows the word.
_INODES = "inodes (files and directories)"
# The most layouts to name in one sentence.
_MOST_NAMES = 6
# A layout is recommended for the rest if it leaves out one identifier, or one in ten at most.
_FEW = 10


class Statement(NamedTuple):
    """One sentence of a verdict.

    :ivar rule: the rule of :func:`judge` that produced it; stable
    :ivar text: the sentence
    """

    rule: str
    text: str


class Recommendation(NamedTuple):
    """The layout to choose for one kind of store.

    :ivar structure: the object structure: ``ocfl``, ``pairtree`` or ``vitro``
    :ivar layout: the name of the layout in the comparison
    :ivar reasons: one or two properties of the layout: the first, and the one that another layout lacks
    :ivar reservations: what speaks against the layout nevertheless
    :ivar command: the command that creates a store with this layout
    """

    structure: str
    layout: str
    reasons: tuple[str, ...]
    reservations: tuple[Statement, ...]
    command: str

    @property
    def text(self) -> str:
        """The reasons and the reservations in two sentences."""
        reservations = "; ".join(statement.text for statement in self.reservations)
        text = f"{'; '.join(self.reasons)}."
        return text[0].upper() + text[1:] + (f" But {reservations}." if reservations else "")


class Group(NamedTuple):
    """Statements of the same kind.

    :ivar title: what the statements have in common
    :ivar statements: the statements
    """

    title: str
    statements: tuple[Statement, ...]


class Verdict(NamedTuple):
    """The verdict on a comparison.

    :ivar kind: ``good``, ``attention`` or ``bad``
    :ivar word: the verdict in a few words
    :ivar recommendations: the recommended layout, or the only one, for each object structure; empty if no layout is
        safe
    :ivar groups: what is doubtful about the identifiers, and what speaks against the layouts that are not recommended
    :ivar heading: the word before each recommendation: ``Recommended``, or ``Suitable`` for a single layout
    """

    kind: str
    word: str
    recommendations: tuple[Recommendation, ...] = ()
    groups: tuple[Group, ...] = ()
    heading: str = "Recommended"

    def record(self) -> dict[str, Any]:
        """Return the JSON representation."""
        recommendations = [
            {**one._asdict(), "reservations": [statement._asdict() for statement in one.reservations]}
            for one in self.recommendations
        ]
        groups = [
            {"title": group.title, "statements": [statement._asdict() for statement in group.statements]}
            for group in self.groups
        ]
        return {"kind": self.kind, "word": self.word, "recommendations": recommendations, "groups": groups}


# The groups of statements, in their order.
_INPUT = "In the list of identifiers"
_TITLES = {
    "shared": "Objects would overwrite each other",
    "inside": "One object would be inside another",
    "nested": "One object would be inside another",
    "unmapped": "Identifiers without a path",
    "refused": "Paths that no file system allows",
    "folded": "Paths on other systems",
    "profile": "Paths on other systems",
    "limit": "Large directories",
    "reversible": "Paths that do not contain the identifier",
    "equal": "As safe as the recommended layout",
}


def judge(comparison: ComparisonData) -> Verdict:
    """Return the verdict on a comparison by these rules.

    A layout is *safe* without :func:`find_defects`: each identifier has a unique path, and no path is inside another,
    unless the store format allows it. A layout whose only defects are a few identifiers without an allowed path (one,
    or at most one in ten) is safe for all but these. The verdict is ``bad`` if no layout is safe even so, and
    ``attention`` if only some are, or some with exceptions, or if a rule below turns ``good`` into ``attention``.

    Among several layouts, the verdict recommends for each object structure the safe one that comes first by these
    criteria: fewest exceptions; no collisions on file systems that ignore case; no paths that other systems, of the
    chosen profile, do not allow; no nested paths; no directory with more entries than the user's limit or
    :data:`CROWDED`, and not all objects in one directory; identifiers can be restored from paths; layout 0003 with its
    defaults; fewest inodes per object.

    The first group is about the identifiers:

    ``duplicates``
        Identifiers that occur more than once are a property of the input (``attention``). They count once, not as
        collisions.
    ``blank``, ``setting``, ``encoding``, ``ends``, ``invisible``, ``spelling``
        The remarks on the input (``attention``): empty identifiers; a line ``sep=`` of Excel; identifiers that are not
        UTF-8, with blanks at the ends, with no-break or zero-width characters; and spellings of the same DOI or ARK.
    ``unmapped``
        The identifiers that have no path under any layout. ``blank`` covers an empty one.

    The other groups name what speaks against each layout; for a recommended layout, these are its reservations.
    Layouts with the same statement share it. For a layout that is not safe, only its defects count.

    ``shared``, ``inside``, ``unmapped``, ``refused``
        The number of identifiers that share a path, with an example; whose path is inside another; that have no path;
        or whose path no POSIX file system allows.
    ``folded``, ``profile``
        The number of identifiers that share a path on a file system that ignores case or Unicode normalization, and the
        number of paths that other systems do not allow, for the chosen profile (``attention`` for a safe layout).
    ``nested``
        The number of objects inside another object, where the store format allows it.
    ``limit``
        The number of directories with more entries than the user's limit (``attention`` for a safe layout); without a
        limit, the largest directory if it has more than :data:`CROWDED` entries, or all objects.
    ``reversible``
        The number of identifiers that cannot be restored from their paths.
    ``equal``
        The inodes per object of a safe layout to which the recommended one is preferred only as the default, or for its
        inodes.
    """
    if not comparison.identifiers:
        return Verdict("attention", "No identifiers to compare")
    layouts = comparison.layouts
    safe = [one for one in layouts if not find_defects(one)]
    usable = [one for one in layouts if _is_usable(one, comparison)]
    best = _recommended(comparison, usable)
    everywhere = len(layouts) > 1 and layouts[0].unmapped.count > 0 and len(set(map(_unmapped, layouts))) == 1
    recommendations = []
    others: dict[Statement, list[LayoutResult]] = {}
    for one in layouts:
        facts = [*_facts(one, comparison)]
        if everywhere or _is_only_blank(one, comparison):
            facts = [fact for fact in facts if fact.rule != "unmapped"]
        preferred = best.get(one.costs.structure)
        if one is preferred:
            reasons = _reasons(one, usable, comparison)
            recommendation = Recommendation(one.costs.structure, one.name, reasons, tuple(facts), _init_command(one))
            recommendations.append(recommendation)
            continue
        if preferred is not None and _is_usable(one, comparison) and _is_equal(one, preferred, comparison):
            facts.append(_equal(one, preferred))
        for fact in facts:
            others.setdefault(fact, []).append(one)
    recommendations.sort(key=lambda one: list(STRUCTURES).index(one.structure))
    statements = {_INPUT: [*_input(comparison, everywhere)], **{title: [] for title in _TITLES.values()}}
    for fact, some in others.items():
        statements[_TITLES[fact.rule]].append(Statement(fact.rule, f"{_head(some)}{fact.text}."))
    noted = bool(statements[_INPUT]) or any(
        one.fan_out.over_limit or one.collisions.folded or _refused_elsewhere(one, comparison) for one in usable
    )
    kind, word = _kind(comparison, safe, usable, noted)
    groups = tuple(Group(title, tuple(some)) for title, some in statements.items() if some)
    return Verdict(kind, word, tuple(recommendations), groups, "Recommended" if len(layouts) > 1 else "Suitable")


def find_defects(layout: LayoutResult) -> tuple[str, ...]:
    """Return the rules of :func:`judge` that a layout violates; empty for a safe layout."""
    found = []
    if layout.collisions.equal:
        found.append("shared")
    if layout.collisions.inside_exact and not layout.nesting:
        found.append("inside")
    if layout.unmapped.count:
        found.append("unmapped")
    unix = layout.refused.get("unix")
    if unix is not None and unix.count:
        found.append("refused")
    return tuple(found)


def safety_of(layout: LayoutResult, comparison: ComparisonData) -> str:
    """Return whether a layout is safe: ``yes``, ``no``, or for which identifiers, as ``all but 1``."""
    if not find_defects(layout):
        return "yes"
    return f"all but {format_number(_left_out(layout))}" if _is_usable(layout, comparison) else "no"


def _left_out(layout: LayoutResult) -> int:
    """Return the number of identifiers without a path that POSIX file systems allow."""
    unix = layout.refused.get("unix")
    return layout.unmapped.count + (0 if unix is None else unix.count)


def _is_usable(layout: LayoutResult, comparison: ComparisonData) -> bool:
    """Return whether a layout is safe, if not for a few identifiers without a path."""
    defects, left_out = find_defects(layout), _left_out(layout)
    if "shared" in defects or "inside" in defects:
        return False
    return not defects or (2 * left_out < comparison.distinct and left_out <= max(comparison.distinct // _FEW, 1))


def _kind(
    comparison: ComparisonData, safe: Sequence[LayoutResult], usable: Sequence[LayoutResult], noted: bool
) -> tuple[str, str]:
    count = len(comparison.layouts)
    if len(safe) < count:
        if len(usable) == count:
            numbers = set(map(_left_out, usable))
            rest = f"safe for all but {_identifiers(*numbers) if len(numbers) == 1 else 'a few identifiers'}"
            return "attention", f"This layout is {rest}" if count == 1 else f"All layouts are {rest}"
        return "attention" if usable else "bad", _failures(comparison)
    if noted:
        return "attention", "All layouts are safe, but see the remarks" if count > 1 else "Safe, but see the remarks"
    return "good", "This layout is safe" if count == 1 else "All layouts are safe"


def _failures(comparison: ComparisonData) -> str:
    """Return how many layouts have collisions, and how many others cannot map all identifiers."""
    defects = [find_defects(one) for one in comparison.layouts]
    colliding = sum("shared" in found or "inside" in found for found in defects)
    unmapped = sum(bool(found) for found in defects) - colliding
    count = len(defects)
    if count == 1:
        return f"This layout {'has path collisions' if colliding else 'cannot map all identifiers'}"
    if colliding == count:
        return "All layouts have path collisions"
    if unmapped == count:
        return "No layout can map all identifiers"
    pieces = []
    if colliding:
        pieces.append(f"{colliding} of {count} layouts {'has' if colliding == 1 else 'have'} path collisions")
    if unmapped:
        pieces.append(f"{unmapped} of {count} layouts cannot map all identifiers")
    return ", ".join(pieces)


def _is_crowded(layout: LayoutResult, comparison: ComparisonData) -> bool:
    """Return whether a directory has too many entries, or will have when the store grows."""
    is_flat = layout.depth.max == 1 and comparison.distinct > CROWDED // 10
    return is_flat or layout.fan_out.max > (comparison.directory_limit or CROWDED)


def _refused_elsewhere(layout: LayoutResult, comparison: ComparisonData) -> dict[str, int]:
    """Return the number of paths that systems of the chosen profile do not allow, without Unix."""
    return {
        profile: refused.count
        for profile, refused in layout.refused.items()
        if refused.count and profile != "unix" and comparison.profile in ("all", profile)
    }


def _recommended(comparison: ComparisonData, usable: Sequence[LayoutResult]) -> dict[str, LayoutResult]:
    """Return the layout to recommend for each object structure: stores of different structures do not compare."""
    of = {structure: [one for one in usable if one.costs.structure == structure] for structure in STRUCTURES}
    return {
        structure: min(some, key=lambda one: (_left_out(one), *_criteria(one, comparison), _rounded_inodes(one)))
        for structure, some in of.items()
        if some
    }


def _criteria(layout: LayoutResult, comparison: ComparisonData) -> tuple[bool, ...]:
    """Return what counts against a layout, the most important first; the number of inodes decides between equals."""
    return (
        bool(layout.collisions.folded),
        bool(_refused_elsewhere(layout, comparison)),
        bool(layout.collisions.inside_exact),
        _is_crowded(layout, comparison),
        bool(layout.irreversible),
        not _is_plain(layout),
    )


def _rounded_inodes(layout: LayoutResult) -> float:
    return round(layout.costs.inodes_per_object, 1)


def _is_plain(layout: LayoutResult) -> bool:
    """Return whether a layout is 0003 with its defaults."""
    return layout.layout == HashAndIdNTuple.name and layout.config == HashAndIdNTuple().config()


def _reasons(layout: LayoutResult, usable: Sequence[LayoutResult], comparison: ComparisonData) -> tuple[str, ...]:
    """Return two reasons for a safe layout: unique paths, and the first property that another layout lacks."""
    left_out = _left_out(layout)
    own = "every identifier has a unique path"
    if left_out:
        own = f"all but {_identifiers(left_out)} {_has(left_out)} a unique path"
    if not layout.collisions.folded:
        own += ", also on file systems that ignore case"
    others = [one for one in usable if one is not layout and one.costs.structure == layout.costs.structure]
    reasons = []
    if not _is_crowded(layout, comparison):
        entries = f"no directory has more than {_entries(layout.fan_out.max)}"
        reasons.append((entries, any(_is_crowded(one, comparison) for one in others)))
    if not layout.irreversible:
        reasons.append(("identifiers can be restored from paths", any(one.irreversible for one in others)))
    if others and _is_plain(layout):
        reasons.append(("layout 0003 with its defaults suits all kinds of identifiers", True))
    inodes = _rounded_inodes(layout)
    if any(_is_equal(one, layout, comparison) and _rounded_inodes(one) > inodes for one in others):
        reasons.append((f"it needs the fewest {_INODES}, {inodes:.1f} per object", True))
    # The first one that distinguishes the layout.
    reasons.sort(key=lambda reason: not reason[1])
    return (own, *(text for text, _ in reasons[:1]))


def _is_equal(one: LayoutResult, other: LayoutResult, comparison: ComparisonData) -> bool:
    """Return whether only the number of inodes decides between two layouts, or that one is the default."""
    # The last criterion is the default.
    first, second = ((_left_out(each), *_criteria(each, comparison)[:-1]) for each in (one, other))
    return first == second


def _equal(layout: LayoutResult, best: LayoutResult) -> Statement:
    needs = f"needs {layout.costs.inodes_per_object:.1f} {_INODES} per object"
    return Statement("equal", f"{needs}, {best.name} needs {best.costs.inodes_per_object:.1f}")


def _init_command(layout: LayoutResult) -> str:
    """Return the command that creates a store with this layout."""
    structure = layout.costs.structure
    layout_class = find_layout(layout.layout)
    settings = []
    for parameter in layout_class.parameters():
        value = layout.config[parameter.key]
        if parameter.required or value != parameter.check.to_json(parameter.default):
            settings.append(f"{parameter.key}={value if isinstance(value, str) else json.dumps(value)}")
    if structure != "ocfl" and not settings:
        return f"pressmark store init {structure} STORE"
    chosen = ":".join([layout_class.alias or layout_class.name, *filter(None, [",".join(settings)])])
    return f"pressmark store init {structure} STORE --layout {shlex.quote(chosen)}"


def _input(comparison: ComparisonData, everywhere: bool) -> Iterator[Statement]:
    """Return what is doubtful about the identifiers; ``everywhere``: some have no path under any layout."""
    if comparison.duplicates:
        yield Statement("duplicates", _duplicates(comparison))
    for one in comparison.remarks:
        yield Statement(one.kind, _remark(one))
    if everywhere and not _is_only_blank(comparison.layouts[0], comparison):
        yield Statement("unmapped", f"{_without_path(comparison.layouts[0])} under any layout.")


def _duplicates(comparison: ComparisonData) -> str:
    total = f"{format_number(comparison.duplicates)} times"
    if comparison.repeated == 1:
        return f"1 identifier occurs {total} in the input; it counts once."
    repeated = _identifiers(comparison.repeated)
    return f"{repeated} occur more than once in the input, {total} in total; each counts once."


def _remark(remark: Remark) -> str:
    """Return the sentence of a remark: which identifiers, what is doubtful, and what to do."""
    count, first = remark.count, remark.first[0]
    example = f"{quoted(first.id)} (item {format_number(first.number + 1)})"
    example = f": {example}" if count == 1 else f", for example {example}"
    subject = _identifiers(count)
    if remark.kind == "blank":
        where = f"item {format_number(first.number + 1)}"
        if count == 1:
            return f"1 identifier in the input is empty, {where}; leave it out."
        return f"{subject} in the input are empty, the first is {where}; leave them out."
    if remark.kind == "setting":
        return f"The first item {quoted(first.id)} is a setting of Excel, not an identifier; leave it out."
    if remark.kind == "encoding":
        advice = {
            "windows-1252": "the input looks like Windows-1252; convert it to UTF-8 (iconv -f WINDOWS-1252 -t UTF-8)",
            "mixed": "they look like Windows-1252, others are UTF-8; convert these items to UTF-8",
        }.get(remark.detail, "convert the input to UTF-8, unless these are names on a disk")
        return f"{subject} {'is' if count == 1 else 'are'} not UTF-8{example}; {advice}."
    if remark.kind == "ends":
        verb = "starts or ends" if count == 1 else "start or end"
        return f"{subject} {verb} with a blank{example}; strip it, or it becomes part of the path."
    if remark.kind == "invisible":
        verb = "contains" if count == 1 else "contain"
        return f"{subject} {verb} no-break or zero-width characters{example}; remove or replace them."
    names = "1 DOI or ARK" if remark.groups == 1 else f"{format_number(remark.groups)} DOIs or ARKs"
    both = " and ".join(quoted(one.id) for one in remark.first[:2])
    text = f"{subject} {'is' if count == 1 else 'are'} {names} in several spellings, for example {both}"
    return f"{text}; use one spelling, or each becomes an object of its own."


def _is_only_blank(layout: LayoutResult, comparison: ComparisonData) -> bool:
    """Return whether the one identifier without a path is the empty one, which a remark names for all layouts."""
    is_blank = layout.unmapped.count == 1 and not any(one.id for one in layout.unmapped.first)
    named = any(one.kind == "blank" for one in comparison.remarks)
    return is_blank and named and all(one.unmapped.count for one in comparison.layouts)


def _facts(layout: LayoutResult, comparison: ComparisonData) -> Iterator[Statement]:
    """Return what speaks against a layout, the worst first, without its name."""
    found = find_defects(layout)
    collisions = layout.collisions
    if "shared" in found:
        groups = collisions.groups.get("equal", 0)
        where = "1 path" if groups == 1 else f"{format_number(groups)} paths"
        text = f"{_identifiers(collisions.equal)} share {where}"
        yield Statement("shared", f"{text}{_example(collisions.first.get('equal', ()))}")
    if collisions.inside_exact:
        exact = [group for group in collisions.first.get("inside", ()) if group.exact]
        text = f"{_identifiers(collisions.inside_exact)} {_has(collisions.inside_exact)} nested paths"
        if layout.nesting:
            yield Statement("nested", f"{text}, which this kind of store allows")
        else:
            yield Statement("inside", f"{text}{_example(exact)}")
    if "unmapped" in found:
        yield Statement("unmapped", _without_path(layout))
    if "refused" in found:
        refused = layout.refused["unix"]
        example = f" ({refused.first[0].reason})" if refused.first else ""
        yield Statement("refused", f"{_paths(refused.count)} not allowed{example}")
    if not _is_usable(layout, comparison):
        return
    if collisions.folded:
        where = "on file systems that ignore case or Unicode normalization (Windows, macOS)"
        kind = "case" if collisions.first.get("case") else "normalization"
        text = f"{_identifiers(collisions.folded)} would share a path {where}"
        yield Statement("folded", f"{text}{_example(collisions.first.get(kind, ()))}")
    counts = _refused_elsewhere(layout, comparison)
    if counts:
        words = ", ".join(
            f"{SYSTEMS.get(profile, profile)} {format_number(count)}" for profile, count in counts.items()
        )
        yield Statement("profile", f"some paths are not allowed on other systems: {words}")
    yield from _large_directories(layout, comparison)
    if layout.irreversible:
        yield Statement("reversible", f"{_identifiers(layout.irreversible)} cannot be restored from paths")


def _large_directories(layout: LayoutResult, comparison: ComparisonData) -> Iterator[Statement]:
    count, largest = layout.fan_out.over_limit, layout.fan_out.max
    if count:
        noun = "directory has" if count == 1 else "directories have"
        limit = f"your limit of {format_number(comparison.directory_limit or 0)}"
        text = f"{format_number(count)} {noun} more entries than {limit}; the largest has {format_number(largest)}"
        yield Statement("limit", text)
    elif _is_crowded(layout, comparison):
        is_flat = layout.depth.max == 1
        text = "all objects are in one directory" if is_flat else f"the largest directory has {_entries(largest)}"
        yield Statement("limit", text)


def _without_path(layout: LayoutResult) -> str:
    """Return how many identifiers have no path, with an example."""
    count = layout.unmapped.count
    example = "".join(
        f"{':' if count == 1 else ', for example'} {quoted(one.id)} (item {format_number(one.number + 1)},"
        f" {one.reason})"
        for one in layout.unmapped.first[:1]
    )
    return f"{_identifiers(count)} {_has(count)} no path{example}"


def _unmapped(layout: LayoutResult) -> tuple[int, tuple[int, ...]]:
    """Return what is the same for layouts that cannot map the same identifiers."""
    return layout.unmapped.count, tuple(one.number for one in layout.unmapped.first)


def _example(groups: Iterable[CollisionGroup]) -> str:
    for group in groups:
        one = group.members[0]
        # An example needs two different identifiers.
        two = next((other for other in group.members if other.id != one.id), None)
        if two is not None:
            path = f" ({quoted(one.path)})" if one.path == two.path else ""
            return f", for example {quoted(one.id)} and {quoted(two.id)}{path}"
    return ""


def _head(layouts: Sequence[LayoutResult]) -> str:
    """Return the names of layouts and a colon; a name that ends with a colon is quoted."""
    names = _names(layouts)
    return f"{quoted(names) if names.endswith(':') else names}: "


def _names(layouts: Sequence[LayoutResult]) -> str:
    names = [one.name for one in layouts[:_MOST_NAMES]]
    if len(layouts) > _MOST_NAMES:
        return f"{', '.join(names)} and {len(layouts) - _MOST_NAMES} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _identifiers(count: int) -> str:
    return f"{format_number(count)} identifier{'' if count == 1 else 's'}"


def _paths(count: int) -> str:
    return f"{format_number(count)} paths are" if count > 1 else "1 path is"


def _entries(count: int) -> str:
    return f"{format_number(count)} entr{'y' if count == 1 else 'ies'}"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
