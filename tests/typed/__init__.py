"""Type checks of calls of the library."""
