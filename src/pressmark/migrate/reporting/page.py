"""One page for people: what became of a migration, and what to do about the rest.

What all pages have in common is in :mod:`pressmark.html`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, NamedTuple

from pressmark.html import render_page
from pressmark.migrate.options import Options
from pressmark.migrate.planning.conflicts import KINDS
from pressmark.migrate.reporting.outcome import Outcome
from pressmark.migrate.reporting.remedies import remedies_for
from pressmark.migrate.reporting.summary import FIRST, Summary
from pressmark.migrate.rows import GOOD, STATUSES
from pressmark.version import __version__

__all__ = ["Verdict", "page_text", "verdict_of"]

_TEMPLATE = "page.html"

# How an object's files came, and how they were verified, in words.
_MODES = {
    "rename": "moved, without touching a byte",
    "reflink": "cloned: source and copy share blocks on the disk until one of them changes",
    "copy": "copied",
    "hardlink": "linked: source and destination are the same file under two names",
}
_VERIFIED = {
    "none": "not verified",
    "copy": "hashed while they were copied, and compared with the digests that were known",
    "reread": "read in the destination, and compared with what was copied or with what is said of them",
    "moved": "moved as they were, with names and sizes compared; no byte was read",
}
# What was asked for, in words; what is not here has its own part of the page.
_OPTIONS = {
    "copy_mode": "How files are to come",
    "verify": "How they are to be verified",
    "move": "Remove sources after verification",
    "drop_empty_directories": "Remove sources although their empty directories have no place",
    "replace": "Replace objects that are there and different",
    "profile": "Names must suit",
    "links": "Symbolic links in objects",
    "improper": "Objects of the source that are not as they should be",
    "algorithms": "Digest algorithms of bags",
    "source_options": "Options of the source",
    "destination_options": "Options of the destination",
}


class Verdict(NamedTuple):
    """How it went, in plain words.

    :ivar kind: ``good``, ``attention`` or ``unfinished``
    :ivar word: in one word
    :ivar text: in a sentence or two
    """

    kind: str
    word: str
    text: str


def verdict_of(outcome: Outcome, summary: Summary) -> Verdict:
    """Say in plain words how a run went."""
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
            return Verdict("unfinished", "Not finished", f"{text} Nothing is lost: the run can be resumed.")
    if not total:
        return Verdict("good", "Nothing to do", "There was no object to migrate.")
    if not summary.undone:
        text = "All of them are" if total > 1 else "It is"
        if outcome.verification:
            text = f"{_objects(total)} {_was(total)} {what}. {text} as migrated."
        else:
            text = f"{_objects(total)} {_was(total)} to be migrated. {text} {_in_destination(summary)}"
        word = "Moved, not read" if _unread(summary) else "All is well"
        if summary.noted.objects:
            word = "Done, but something was left out"
            text += f" Something of {_objects(summary.noted.objects)} has no place there: it is named below."
        if not summary.kept.objects:
            return Verdict("good", word, text)
        text += f" The source of {_objects(summary.kept.objects)} could not be removed: why is said below."
        return Verdict("attention", "Done, but sources are left", text)
    unverified = summary.by_status.get("unverified")
    text = f"{done:,} of {_objects(total)} {'is' if done == 1 else 'are'} {_in_destination(summary)}"
    if unverified is not None and unverified.objects == summary.undone:
        text += f" {_objects(summary.undone)} {_was(summary.undone)} not verified: whether all arrived is not known."
        return Verdict("attention", "Not verified", text)
    count = summary.undone + summary.kept.objects
    text += f" {_objects(count)} {_need(count)} attention: what to do is said below."
    return Verdict("attention", "Needs attention", text)


def _unread(summary: Summary) -> int:
    """Return how many objects were moved as they were: whether they are damaged is not known."""
    moved = summary.by_verify.get("moved")
    return 0 if moved is None else moved.objects


def _in_destination(summary: Summary) -> str:
    unread = _unread(summary)
    if not unread:
        return "in the destination, and verified."
    return f"in the destination; {_objects(unread)} {_was(unread)} moved there without a byte being read."


def _objects(count: int) -> str:
    return f"{count:,} object{'' if count == 1 else 's'}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _need(count: int) -> str:
    return "needs" if count == 1 else "need"


def page_text(outcome: Outcome, summary: Summary) -> str:
    """Return the page; jinja2 must be there, see :meth:`Format.check`."""
    template = files("pressmark.migrate.reporting").joinpath(_TEMPLATE).read_text(encoding="utf-8")
    return render_page(template, _context(outcome, summary), {"duration": _duration, "stamp": _stamp})


def _context(outcome: Outcome, summary: Summary) -> dict[str, Any]:
    """Return all that the page says."""
    plan = outcome.plan
    options = plan.options
    busy = summary.clock.busy
    return {
        "verdict": verdict_of(outcome, summary),
        "outcome": outcome,
        "plan": plan,
        "options": options,
        "summary": summary,
        "undone": {status: group for status, group in summary.by_status.items() if status not in GOOD},
        "statuses": STATUSES,
        "good": GOOD,
        "ways": remedies_for(outcome.verification),
        "modes": _MODES,
        "verified": _VERIFIED,
        "first": FIRST,
        "busy": busy,
        "rate": summary.done.objects / busy if busy >= 1 else None,
        "speed": summary.done.bytes / busy if busy >= 1 else None,
        "warnings": _warnings(outcome),
        "settings": list(_settings(options)),
        "version": __version__,
        "now": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _warnings(outcome: Outcome) -> list[tuple[str, int, str, list[str]]]:
    """Return kind, number, meaning and the first few of what the plan warns of."""
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
    """Give what was asked for: its name and its value."""
    yield "Layout of the source", _layout(options.source_layout, "its own")
    own = "none: bags are called by their identifiers" if options.to == "bags" else "that of its kind"
    yield "Layout of the destination", _layout(options.layout, own)
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
            yield words, ", ".join(value) if name == "algorithms" else json.dumps(value, ensure_ascii=False)


def _layout(config: Mapping[str, Any] | None, own: str) -> str:
    if config is None:
        return own
    more = ", ".join(
        f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in config.items() if key != "extensionName"
    )
    return f"{config.get('extensionName', '')}{f' ({more})' if more else ''}"


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


def _stamp(moment: str | None) -> str:
    """Return a time of RFC 3339 as people write it."""
    return "" if moment is None else datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%S UTC")
