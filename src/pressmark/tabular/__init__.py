"""Lists and tables of identifiers: one module for each format, with its reader and its writer.

:mod:`pressmark.tabular.formats` determines the format of a file from its name and first bytes, for every command,
migration and job. :mod:`pressmark.tabular.tables` reads and writes tables in blocks.
:mod:`pressmark.tabular.identifiers` reads lists of any format, one identifier after another.
"""
