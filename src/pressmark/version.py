"""The version, apart from everything else, so that a build can read it without importing the package."""

__version__ = "0.1.0"
