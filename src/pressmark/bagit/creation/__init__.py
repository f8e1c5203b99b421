"""Create bags: from a directory in place, or from copied files."""
