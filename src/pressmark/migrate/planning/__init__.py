"""Plan a migration: every object with its path, conflicts, warnings."""
