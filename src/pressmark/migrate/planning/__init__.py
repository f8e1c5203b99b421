"""Plan a migration: every object with its place, conflicts, warnings."""
