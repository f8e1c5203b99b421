"""The verdict on a comparison: sentences that follow from the numbers by fixed rules."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pressmark.compare.result import CollisionGroup, ComparisonData, LayoutResult, Remark
from pressmark.errors import quoted
from pressmark.html import format_large_number, format_number
from pressmark.layouts import HashAndIdNTuple, find_layout

__all__ = [
    "BILLION",
    "CROWDED",
    "STORES",
    "STRUCTURES",
    "SYSTEMS",
    "Statement",
    "Verdict",
    "find_defects",
    "judge",
    "safety_of",
]

#: The number of objects for which growth is reported.
BILLION = 10**9
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


class Verdict(NamedTuple):
    """The verdict on a comparison.

    :ivar kind: ``good``, ``attention`` or ``bad``
    :ivar word: the verdict in a few words
    :ivar statements: the reasons
    :ivar recommended: name of the first recommended layout; :data:`None` if a single layout was compared, or none is
        safe
    :ivar recommendations: name of the recommended layout for each object structure: ``ocfl``, ``pairtree``, ``vitro``
    :ivar next: the first of :attr:`commands`; :data:`None` if no layout is safe
    :ivar commands: the command that creates a store with the recommended or only layout, for each object structure
    """

    kind: str
    word: str
    statements: tuple[Statement, ...]
    recommended: str | None = None
    recommendations: Mapping[str, str] = {}
    next: str | None = None
    commands: Mapping[str, str] = {}

    def record(self) -> dict[str, Any]:
        """Return the JSON representation."""
        return {**self._asdict(), "statements": [statement._asdict() for statement in self.statements]}


def judge(comparison: ComparisonData) -> Verdict:
    """Return the verdict on a comparison by these rules, in this order.

    ``empty``
        There are no identifiers (``attention``).
    ``duplicates``
        Identifiers that occur more than once are reported as a property of the input. They count once, not as
        collisions.
    ``blank``, ``setting``, ``encoding``, ``ends``, ``invisible``, ``spelling``
        The remarks on the input: empty identifiers; a line ``sep=`` of Excel; identifiers that are not UTF-8, with
        blanks at the ends, with no-break or zero-width characters; and spellings of the same DOI or ARK. Each turns
        ``good`` into ``attention``.
    ``safe``
        The layouts without :func:`find_defects`: each identifier has a unique path, and no path is inside another,
        unless the store format allows it. A layout whose only defects are a few identifiers without an allowed path
        (one, or at most one in ten) is safe for all but these. The verdict is ``bad`` if no layout is safe even so, and
        ``attention`` if only some are, or some with exceptions.
    ``recommended``
        Among several layouts, for each object structure, the safe one that comes first by these criteria: fewest
        exceptions; no collisions
        on file systems that ignore case; no paths that other systems, of the chosen profile, do not allow; no nested
        paths; no directory with more entries than the user's limit or :data:`CROWDED`, and not all objects in one
        directory; identifiers can be restored from paths; layout 0003 with its defaults; fewest inodes per object.
    ``shared``, ``inside``, ``unmapped``, ``refused``
        For each layout with defects, the number of identifiers that share a path, with an example; whose path is inside
        another; that have no path; or whose path no POSIX file system allows. Layouts that cannot map the same
        identifiers share a sentence.
    ``folded``, ``profile``
        For each safe layout, the number of identifiers that share a path on a file system that ignores case or Unicode
        normalization, and the number of paths that other systems do not allow, for the chosen profile. Either turns
        ``good`` into ``attention``.
    ``nested``
        For each safe layout, the number of objects inside another object, where the store format allows it. This does
        not change the verdict.
    ``limit``
        For each safe layout, the number of directories with more entries than the user's limit, which turns ``good``
        into ``attention``. Without a limit, the layout with the largest directory.
    ``inodes``
        Among several safe layouts with the same object structure, the one with the fewest inodes per object and the one
        with the most.
    ``reversible``
        The safe layouts under which some identifiers cannot be restored from their paths.
    ``growth``
        Among several safe layouts, the ones with the fewest and the most directories predicted for a billion objects.
        Layouts whose growth depends on the identifiers are left out.
    """
    if not comparison.identifiers:
        empty = Statement("empty", "The input contains no identifiers.")
        return Verdict("attention", "Nothing to compare", (empty,))
    duplicates = comparison.duplicates
    safe = [one for one in comparison.layouts if not find_defects(one)]
    usable = [one for one in comparison.layouts if _is_usable(one, comparison)]
    statements: list[Statement] = []
    if duplicates:
        statements.append(Statement("duplicates", _duplicates(comparison)))
    statements += [Statement(one.kind, _remark(one)) for one in comparison.remarks]
    statements.append(_safe(comparison.layouts, safe, usable))
    best = _recommended(comparison, usable)
    if len(comparison.layouts) > 1:
        statements += [Statement("recommended", _recommendation(one, usable, comparison)) for one in best.values()]
    for one in comparison.layouts:
        statements += _unsafe(one, comparison.layouts)
    notes = [note for one in usable for note in _elsewhere(one, comparison)]
    over = [one for one in usable if one.fan_out.over_limit]
    statements += notes
    statements += _nested(usable)
    statements += _limits(usable, over, comparison.directory_limit)
    statements += _inodes(usable)
    statements += _irreversible(usable)
    statements += _growth(usable)
    kind, word = _kind(comparison, safe, usable, bool(notes or over or duplicates or comparison.remarks))
    names = {structure: one.name for structure, one in best.items()} if len(comparison.layouts) > 1 else {}
    commands = {structure: _init_command(one) for structure, one in best.items()}
    first, command = (next(iter(found.values()), None) for found in (names, commands))
    return Verdict(kind, word, tuple(statements), first, names, command, commands)


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


def _recommendation(layout: LayoutResult, usable: Sequence[LayoutResult], comparison: ComparisonData) -> str:
    """Return the sentence that recommends one of the safe layouts, with its reasons."""
    left_out = _left_out(layout)
    own = "every identifier has a unique path"
    if left_out:
        own = f"all but {_identifiers(left_out)} {_has(left_out)} a unique path"
    if not layout.collisions.folded:
        own += ", also on file systems that ignore case"
    reasons = [own]
    if not _is_crowded(layout, comparison):
        reasons.append(f"no directory has more than {_entries(layout.fan_out.max)}")
    if not layout.irreversible:
        reasons.append("identifiers can be restored from paths")
    others = [one for one in usable if one is not layout and one.costs.structure == layout.costs.structure]
    if others and _is_plain(layout):
        reasons.append("layout 0003 with its defaults suits all kinds of identifiers")
    inodes = _rounded_inodes(layout)
    if any(
        (_left_out(one), *_criteria(one, comparison)) == (left_out, *_criteria(layout, comparison))
        and _rounded_inodes(one) > inodes
        for one in others
    ):
        reasons.append(f"of the layouts with these properties, it needs the fewest {_INODES}, {inodes:.1f} per object")
    text = f"Recommended for {STORES[layout.costs.structure]}: {layout.name}. Reasons: {'; '.join(reasons)}."
    nested = layout.collisions.inside_exact
    if nested:
        text += f" But {_identifiers(nested)} {_has(nested)} nested paths."
    return text


def _init_command(layout: LayoutResult) -> str:
    """Return the command that creates a store with this layout."""
    structure = layout.costs.structure
    if structure != "ocfl":
        return f"pressmark store init {structure} STORE"
    layout_class = find_layout(layout.layout)
    settings = []
    for parameter in layout_class.parameters():
        value = layout.config[parameter.key]
        if parameter.required or value != parameter.check.to_json(parameter.default):
            settings.append(f"{parameter.key}={value if isinstance(value, str) else json.dumps(value)}")
    name = layout_class.alias or layout_class.name
    return (
        f"pressmark store init ocfl STORE --layout {shlex.quote(':'.join([name, *filter(None, [','.join(settings)])]))}"
    )


def _duplicates(comparison: ComparisonData) -> str:
    total = f"{format_number(comparison.duplicates)} times"
    if comparison.repeated == 1:
        return f"1 identifier occurs {total} in the input; it counts once."
    repeated = _identifiers(comparison.repeated)
    return f"{repeated} occur more than once in the input, {total} in total; each counts once."


def _remark(remark: Remark) -> str:
    """Return the sentence of a remark: which identifiers, what is doubtful, and what to do."""
    count, first = remark.count, remark.first[0]
    example = f"{quoted(first.identifier)} (item {format_number(first.number + 1)})"
    example = f": {example}" if count == 1 else f", for example {example}"
    subject = _identifiers(count)
    if remark.kind == "blank":
        where = f"item {format_number(first.number + 1)}"
        if count == 1:
            return f"1 identifier in the input is empty, {where}; leave it out."
        return f"{subject} in the input are empty, the first is {where}; leave them out."
    if remark.kind == "setting":
        return f"The first item {quoted(first.identifier)} is a setting of Excel, not an identifier; leave it out."
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
    both = " and ".join(quoted(one.identifier) for one in remark.first[:2])
    text = f"{subject} {'is' if count == 1 else 'are'} {names} in several spellings, for example {both}"
    return f"{text}; use one spelling, or each becomes an object of its own."


def _safe(layouts: Sequence[LayoutResult], safe: Sequence[LayoutResult], usable: Sequence[LayoutResult]) -> Statement:
    own = "every identifier a unique path"
    count = len(layouts)
    if not safe:
        text = f"No layout gives {own}." if count > 1 else f"{layouts[0].name} does not give {own}."
        if usable:
            fewest = min(map(_left_out, usable))
            some = [one for one in usable if _left_out(one) == fewest]
            who = f"{'Both' if count == 2 else f'All {count}'} layouts" if len(some) == count > 1 else _names(some)
            own = f"all but {_identifiers(fewest)} a unique path"
            text = f"{who} {'gives' if len(some) == 1 else 'give'} {own}."
    elif len(safe) == 1:
        text = f"{safe[0].name if count == 1 else f'Only {safe[0].name}'} gives {own}."
    elif len(safe) == count:
        text = f"{'Both' if count == 2 else f'All {count}'} layouts give {own}."
    else:
        text = f"{len(safe)} of {count} layouts give {own}: {_names(safe)}."
    return Statement("safe", text)


def _unsafe(layout: LayoutResult, layouts: Sequence[LayoutResult]) -> Iterator[Statement]:
    found = find_defects(layout)
    collisions, head = layout.collisions, _head(layout)
    if "shared" in found:
        groups = collisions.groups.get("equal", 0)
        where = "1 path" if groups == 1 else f"{format_number(groups)} paths"
        text = f"{head}{_identifiers(collisions.equal)} share {where}"
        yield Statement(
            "shared", f"{text}{_example(collisions.first.get('equal', ()))}. One object would overwrite another."
        )
    if "inside" in found:
        exact = [group for group in collisions.first.get("inside", ()) if group.exact]
        text = f"{head}{_identifiers(collisions.inside_exact)} have nested paths: one object is inside another"
        yield Statement("inside", f"{text}{_example(exact)}.")
    alike = [one for one in layouts if one.unmapped.count and _unmapped(one) == _unmapped(layout)]
    if "unmapped" in found and alike[0] is layout:
        count = layout.unmapped.count
        example = "".join(
            f"{':' if count == 1 else ', for example'} {quoted(one.identifier)} (item {format_number(one.number + 1)},"
            f" {one.reason})"
            for one in layout.unmapped.first[:1]
        )
        if len(alike) > 1:
            head = "All layouts: " if len(alike) == len(layouts) else f"{_names(alike)}: "
        yield Statement("unmapped", f"{head}{_identifiers(count)} {_has(count)} no path{example}.")
    if "refused" in found:
        refused = layout.refused["unix"]
        example = f" ({refused.first[0].reason})" if refused.first else ""
        yield Statement("refused", f"{head}{_paths(refused.count)} not allowed by any file system{example}.")


def _unmapped(layout: LayoutResult) -> tuple[int, tuple[int, ...]]:
    """Return what is the same for layouts that cannot map the same identifiers."""
    return layout.unmapped.count, tuple(one.number for one in layout.unmapped.first)


def _elsewhere(layout: LayoutResult, comparison: ComparisonData) -> Iterator[Statement]:
    head = _head(layout)
    if layout.collisions.folded:
        where = "on file systems that ignore case or Unicode normalization (Windows, macOS)"
        kind = "case" if layout.collisions.first.get("case") else "normalization"
        text = f"{head}{_identifiers(layout.collisions.folded)} would share a path {where}"
        yield Statement("folded", f"{text}{_example(layout.collisions.first.get(kind, ()))}.")
    counts = _refused_elsewhere(layout, comparison)
    if counts:
        words = ", ".join(
            f"{SYSTEMS.get(profile, profile)} {format_number(count)}" for profile, count in counts.items()
        )
        yield Statement("profile", f"{head}paths not allowed by other systems: {words}.")


def _nested(safe: Sequence[LayoutResult]) -> Iterator[Statement]:
    for one in safe:
        count = one.collisions.inside_exact
        if count:
            text = f"{_head(one)}{_identifiers(count)} have nested paths: one object is inside another"
            yield Statement("nested", f"{text}, which this kind of store allows.")


def _limits(safe: Sequence[LayoutResult], over: Sequence[LayoutResult], limit: int | None) -> Iterator[Statement]:
    if limit is None:
        if safe:
            one = max(safe, key=lambda one: one.fan_out.max)
            text = f"{one.name} has the largest directory, with {_entries(one.fan_out.max)}"
            yield Statement("limit", f"{text} (no --directory-limit was given).")
        return
    for one in over:
        count, largest = one.fan_out.over_limit, format_number(one.fan_out.max)
        noun = "directory has" if count == 1 else "directories have"
        text = f"{_head(one)}{format_number(count)} {noun} more entries"
        yield Statement("limit", f"{text} than your limit of {format_number(limit)}; the largest has {largest}.")
    if safe and not over:
        yield Statement("limit", f"No directory has more entries than your limit of {format_number(limit)}.")


def _inodes(safe: Sequence[LayoutResult]) -> Iterator[Statement]:
    structures = list(dict.fromkeys(one.costs.structure for one in safe))
    for structure in structures:
        some = [one for one in safe if one.costs.structure == structure]
        least = min(some, key=lambda one: one.costs.inodes_per_object)
        most = max(some, key=lambda one: one.costs.inodes_per_object)
        fewest, highest = least.costs.inodes_per_object, most.costs.inodes_per_object
        if highest - fewest >= 0.05:
            of = f"With {STRUCTURES[structure]} objects, " if len(structures) > 1 else ""
            text = f"{of}{least.name} needs the fewest {_INODES}, {fewest:.1f} per object; {most.name} needs the most"
            yield Statement("inodes", f"{text}, {highest:.1f}.")


def _irreversible(safe: Sequence[LayoutResult]) -> Iterator[Statement]:
    some = [one for one in safe if one.irreversible]
    if some:
        text = f"Under {_names(some)}, some identifiers cannot be restored from their paths"
        yield Statement("reversible", f"{text}; store the identifier with the object, as OCFL inventories do.")


def _growth(safe: Sequence[LayoutResult]) -> Iterator[Statement]:
    points = []
    for one in safe:
        if one.growth.model != "count":
            points += [(total, one) for objects, _, total in one.growth.points if objects == BILLION]
    if len(points) > 1:
        points.sort(key=lambda point: point[0])
        (least, first), (most, last) = points[0], points[-1]
        if most > 1.05 * least:
            text = f"With a billion objects, {first.name} would have about {format_large_number(least)} directories"
            yield Statement("growth", f"{text}, {last.name} about {format_large_number(most)}.")


def _example(groups: Iterable[CollisionGroup]) -> str:
    for group in groups:
        one = group.members[0]
        # An example needs two different identifiers.
        two = next((other for other in group.members if other.identifier != one.identifier), None)
        if two is not None:
            path = f" ({quoted(one.path)})" if one.path == two.path else ""
            return f", for example {quoted(one.identifier)} and {quoted(two.identifier)}{path}"
    return ""


def _head(layout: LayoutResult) -> str:
    """Return the name of a layout and a colon; a name that ends with a colon is quoted."""
    return f"{quoted(layout.name) if layout.name.endswith(':') else layout.name}: "


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
