"""Everything that touches a disk safely, and nothing about preservation: locks, private directories, new files."""
