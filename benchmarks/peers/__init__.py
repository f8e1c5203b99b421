"""The other programs: their environments, their commands, and the known differences of their paths."""
