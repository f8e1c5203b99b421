"""Code shared by commands: options, console, progress, streams, tables, signals."""
