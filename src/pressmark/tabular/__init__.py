"""Lists of identifiers: detection of formats, CSV and TSV, JSON lines.

:mod:`pressmark.tabular.detection` determines the format of a list from its name and first bytes, for every command,
    migration and job. :mod:`pressmark.tabular.delimited` parses CSV and TSV. :mod:`pressmark.tabular.identifiers` reads
    lists of any format, one identifier after another.
"""
