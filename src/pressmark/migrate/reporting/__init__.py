"""The report of a migration: all rows as a table or a file for programs, or one page for people."""
