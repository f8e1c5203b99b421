"""Safe operations on files and directories: atomic writes, locks, staging, walks. Knows nothing of preservation."""
