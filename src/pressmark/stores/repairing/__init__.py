"""Repairs of stores of every kind: the run of a repair, and mending from a good copy."""
