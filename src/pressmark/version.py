"""The version, in a separate module, so a build can read it without importing the package."""

__version__ = "0.1.0"
