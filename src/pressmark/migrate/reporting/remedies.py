"""Remedies for each status."""

from __future__ import annotations

__all__ = ["REMEDIES", "remedies_for"]

#: What to do for each of :data:`pressmark.migrate.entry.STATUSES`.
REMEDIES = {
    "ok": "nothing",
    "exists_same": "nothing",
    "exists_different": "compare both objects; if the one in the source is correct, migrate it again with --replace",
    "collision": "give the object another identifier (--map), choose another layout, or move the other object",
    "refused_name": "rename the file in the source, give the object another identifier (--map), or choose another"
    " layout or --profile",
    "source_missing": "correct the list of identifiers or the --version, or restore the object in the source",
    "source_invalid": "repair the source (pressmark store check lists the problems, pressmark store repair fixes some),"
    " then migrate the object again",
    "digest_mismatch": "the source is damaged or was misread; replace it with an intact copy, then migrate the object"
    " again",
    "copy_failed": "fix the cause of the error (space, permissions, disk, network), then migrate the object again",
    "unverified": "verify the object with --verify-again",
}
# After a verification the destination is at fault.
_VERIFIED = {
    "digest_mismatch": "the object in the destination is damaged; check the disk, then migrate the object again with"
    " --ids and --replace while its source exists",
    "copy_failed": "the object is missing from the destination or unreadable; find the cause, then migrate it"
    " again with --ids",
    "unverified": "the object in the destination cannot be read, or has no recorded digest; compare it with its source",
}


def remedies_for(verification: bool) -> dict[str, str]:
    """Return the remedies for the statuses of a run or a verification."""
    return {**REMEDIES, **_VERIFIED} if verification else REMEDIES
