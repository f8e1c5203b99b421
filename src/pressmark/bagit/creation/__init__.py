"""Create bags: of a directory in place, or of copied files."""
