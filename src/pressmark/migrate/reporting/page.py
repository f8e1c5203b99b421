"""The report as an HTML page: the result of a migration, and what to do next. :mod:`pressmark.html` renders it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pressmark.html import render_page
from pressmark.migrate.entry import GOOD, STATUSES
from pressmark.migrate.execution.run_result import FIRST, Outcome, Summary
from pressmark.migrate.options import Options
from pressmark.migrate.planning.conflicts import KINDS
from pressmark.version import __version__

__all__ = ["REMEDIES", "Verdict", "page_text", "remedies_for", "verdict_of"]


# Copy modes and verification in words.
_MODES = {
    "rename": "renamed within the file system",
    "reflink": "cloned: source and copy share blocks until one of them changes",
    "copy": "copied",
    "hardlink": "linked: source and destination are two names of the same file",
}
_VERIFIED = {
    "none": "not verified",
    "copy": "hashed while copied, and compared with recorded digests",
    "reread": "read again in the destination, and compared with the copied or recorded digests",
    "stored": "hashed while copied, and compared with the digests that the server of the destination keeps",
    "moved": "renamed; names and sizes were compared, no file was read",
}
# Options in words; the others have a section of their own.
_OPTIONS = {
    "copy_mode": "Copy mode",
    "verify": "Verification",
    "move": "Remove sources after verification",
    "drop_empty_directories": "Remove sources with empty directories",
    "replace": "Replace existing objects with different content",
    "profile": "Naming rules",
    "links": "Symbolic links in objects",
    "improper": "Invalid source objects",
    "algorithms": "Digest algorithms of bags",
    "source_options": "Options of the source",
    "destination_options": "Options of the destination",
}


class Verdict(NamedTuple):
    """The result of a run in words.

    :ivar kind: ``good``, ``attention`` or ``unfinished``
    :ivar word: a headline
    :ivar text: one or two sentences
    """

    kind: str
    word: str
    text: str


def verdict_of(outcome: Outcome, summary: Summary) -> Verdict:
    """Return the result of a run in words."""
    total, done = summary.whole.objects, summary.done.objects
    what = "read again in the destination" if outcome.verification else "migrated"
    if outcome.state != "finished":
        planned = outcome.plan.objects + outcome.plan.invalid + outcome.plan.missing
        left = max(0, planned - total) if outcome.unread is None else outcome.unread
        planned = total + left
        if left or not outcome.verification:
            text = f"{_objects(left)} of {planned:,} {'has' if left == 1 else 'have'} not been {what} yet."
            if summary.undone:
                text += f" Of the others, {_objects(summary.undone)} {_need(summary.undone)} attention."
            return Verdict("unfinished", "Not finished", f"{text} Resume the run to continue.")
    if not total:
        return Verdict("good", "Nothing to do", "The source has no objects to migrate.")
    if not summary.undone:
        text = "All of them are" if total > 1 else "It is"
        if outcome.verification:
            text = f"{_objects(total)} {_was(total)} {what}. {text} as migrated."
        else:
            text = f"{_objects(total)} {_was(total)} to be migrated. {text} {_in_destination(summary)}"
        word = "Moved, not read" if _unread(summary) else "All is well"
        if summary.noted.objects:
            word = "Done, but some content was not migrated"
            text += (
                f" {_objects(summary.noted.objects)} {_was(summary.noted.objects)} not migrated completely; see below."
            )
        if not summary.kept.objects:
            return Verdict("good", word, text)
        text += f" The source of {_objects(summary.kept.objects)} could not be removed; see below."
        return Verdict("attention", "Done, but some sources remain", text)
    unverified = summary.by_status.get("unverified")
    text = f"{done:,} of {_objects(total)} {'is' if done == 1 else 'are'} {_in_destination(summary)}"
    if unverified is not None and unverified.objects == summary.undone:
        text += f" {_objects(summary.undone)} {_was(summary.undone)} not verified."
        return Verdict("attention", "Not verified", text)
    count = summary.undone + summary.kept.objects
    text += f" {_objects(count)} {_need(count)} attention; see below."
    return Verdict("attention", "Needs attention", text)


def _unread(summary: Summary) -> int:
    """Return the number of objects that were renamed and never read."""
    moved = summary.by_verify.get("moved")
    return 0 if moved is None else moved.objects


def _in_destination(summary: Summary) -> str:
    unread = _unread(summary)
    if not unread:
        return "in the destination, and verified."
    return f"in the destination; {_objects(unread)} {_was(unread)} moved without being read."


def _objects(count: int) -> str:
    return f"{count:,} object{'' if count == 1 else 's'}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _need(count: int) -> str:
    return "needs" if count == 1 else "need"


def page_text(outcome: Outcome, summary: Summary) -> str:
    """Return the page; it needs jinja2, see :meth:`Format.check`."""
    context = _context(outcome, summary)
    return render_page("pressmark.migrate.reporting", "page.html", context, {"duration": _duration, "stamp": _stamp})


def _context(outcome: Outcome, summary: Summary) -> dict[str, Any]:
    """Return the variables of the template."""
    plan = outcome.plan
    options = plan.options
    return {
        "verdict": verdict_of(outcome, summary),
        "outcome": outcome,
        "plan": plan,
        "options": options,
        "summary": summary,
        "undone": {status: group for status, group in summary.by_status.items() if status not in GOOD},
        "statuses": STATUSES,
        "good": GOOD,
        "remedies": remedies_for(outcome.verification),
        "modes": _MODES,
        "verified": _VERIFIED,
        "first": FIRST,
        "warnings": _warnings(outcome),
        "settings": list(_settings(options)),
        "version": __version__,
        "now": datetime.now(UTC),
    }


def _warnings(outcome: Outcome) -> list[tuple[str, int, str, list[str]]]:
    """Return kind, number, meaning and the first objects of the plan's warnings."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for one in outcome.warnings():
        kind = str(one["kind"])
        counts[kind] += 1
        some = examples.setdefault(kind, [])
        sides: Any = one["objects"]
        if len(some) < 5 and sides:
            some.append(" and ".join(side["source_id"] or side["source"] for side in sides[:2]))
    return [(kind, count, KINDS[kind].meaning, examples.get(kind, [])) for kind, count in sorted(counts.items())]


def _settings(options: Options) -> Iterator[tuple[str, str]]:
    """Yield the names and values of options."""
    yield "Layout of the source", _layout(options.source_layout, "as declared by the source")
    own = "none; bags are named by their identifiers" if options.to == "bags" else "fixed by the kind of store"
    yield "Layout of the destination", _layout(options.layout, own)
    if options.source_kind == "ocfl":
        yield "Versions of OCFL objects", options.version or ("all" if options.to == "ocfl" else "newest")
    record = options.record()
    for name, words in _OPTIONS.items():
        value = record.get(name, False)
        if name == "algorithms" and options.to != "bags":
            continue
        if isinstance(value, bool):
            yield words, "yes" if value else "no"
        elif isinstance(value, str):
            yield words, value
        elif value:
            yield (
                words,
                ", ".join(options.algorithms) if name == "algorithms" else json.dumps(value, ensure_ascii=False),
            )


def _layout(config: Mapping[str, Any] | None, own: str) -> str:
    if config is None:
        return own
    more = ", ".join(
        f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in config.items() if key != "extensionName"
    )
    return f"{config.get('extensionName', '')}{f' ({more})' if more else ''}"


# --- remedies ---------------------------------------------------------------------------------------------------------


#: What to do for each of :data:`pressmark.migrate.entry.STATUSES`.
REMEDIES = {
    "ok": "nothing",
    "exists_same": "nothing",
    "exists_different": "compare both objects; if the one in the source is correct, migrate it again and replace the"
    " other one",
    "collision": "map the object to another identifier, choose another layout, or move the other object",
    "refused_name": "rename the file in the source, map the object to another identifier, or choose another layout or"
    " profile",
    "source_missing": "correct the list of identifiers or the version, or restore the object in the source",
    "source_invalid": "repair the source (pressmark store check lists the problems, pressmark store repair fixes some),"
    " then migrate the object again",
    "digest_mismatch": "the source is damaged or was misread; replace it with an intact copy, then migrate the object"
    " again",
    "copy_failed": "fix the cause of the error (space, permissions, disk, network), then migrate the object again",
    "unverified": "verify the objects again",
}
# After a verification the destination is at fault.
_AFTER_VERIFICATION = {
    "digest_mismatch": "the object in the destination is damaged; check the disk, then migrate the object again while"
    " its source exists, and replace the damaged one",
    "copy_failed": "the object is missing from the destination or unreadable; find the cause, then migrate it again",
    "unverified": "the object in the destination cannot be read, or has no recorded digest; compare it with its source",
}


def remedies_for(verification: bool) -> dict[str, str]:
    """Return the remedies for the statuses of a run or a verification."""
    return {**REMEDIES, **_AFTER_VERIFICATION} if verification else REMEDIES


# --- filters ----------------------------------------------------------------------------------------------------------


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "under 1 s"
    words = []
    rest = round(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words[:2])


def _stamp(moment: datetime) -> str:
    """Return a time in UTC without T and offset."""
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
