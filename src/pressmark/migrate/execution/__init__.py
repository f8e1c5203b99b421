"""Running a plan: processing chunks, merging rows, removing sources, and verification."""
