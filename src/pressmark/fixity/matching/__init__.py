"""What became of a list of checksums: moved files and duplicates, and the list with these changes."""
