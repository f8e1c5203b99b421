"""The report of a migration: all rows as a machine-readable file, or an HTML page."""
