"""OCFL storage roots, versions 1.0 and 1.1."""
