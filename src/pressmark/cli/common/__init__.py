"""What commands share: options, console, progress, streams, tables, signals."""
