"""Create bags: of a directory where it is, or of files copied to another place."""
