"""Lists of identifiers: which format a file has, what its first bytes tell, and JSON lines.

:mod:`pressmark.tabular.detection` decides by name and first bytes what a list is, for every command, migration and job
that reads one. CSV and TSV are in :mod:`pressmark.tabular.delimited`; :mod:`pressmark.tabular.identifiers` reads lists
of any format, one identifier after another.
"""
