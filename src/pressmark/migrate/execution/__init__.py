"""Carrying out a plan: the chunks, the merging of their rows, the removal of sources, and verification."""
