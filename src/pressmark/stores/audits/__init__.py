"""Audits: verify the objects of a store that were verified longest ago, a part in each run."""
