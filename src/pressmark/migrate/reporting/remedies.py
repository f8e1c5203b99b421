"""What to do about each status."""

from __future__ import annotations

__all__ = ["WAYS_OUT", "ways_out"]

#: For each of :data:`pressmark.migrate.rows.STATUSES`, what a person does next.
WAYS_OUT = {
    "ok": "nothing",
    "exists_same": "nothing",
    "exists_different": "compare the two; if the source's is the right one, migrate the object again with --replace",
    "collision": "give the object another identifier (--map), take another layout, or move away what is in its place",
    "refused_name": "rename the file in the source, give the object another identifier (--map), or take another layout"
    " or --profile",
    "source_missing": "correct the list of identifiers, or bring the object back into the source",
    "source_invalid": "repair the source (pressmark store check lists what is wrong, pressmark store repair mends what"
    " it can), then migrate the object again",
    "digest_mismatch": "the source is damaged, or was while it was read: replace it by an intact copy, then migrate the"
    " object again",
    "copy_failed": "mend what the error names (room, permissions, the disk, the network), then migrate the object"
    " again",
    "unverified": "have it read again (--verify-again), and trust it only then",
}
# Where objects were read again, it is the destination that is at fault.
_VERIFIED = {
    "digest_mismatch": "the object is damaged in the destination: look at the disk there, then migrate the object again"
    " with --ids and --replace, as long as its source is there",
    "copy_failed": "the object is gone from the destination, or cannot be read there: find out why, then migrate it"
    " again with --ids",
    "unverified": "the object cannot be read in the destination, or nothing says what it must be: compare it with its"
    " source",
}


def ways_out(verification: bool) -> dict[str, str]:
    """Return what to do about each status of a run, or of a verification."""
    return {**WAYS_OUT, **_VERIFIED} if verification else WAYS_OUT
