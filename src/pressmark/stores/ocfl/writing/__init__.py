"""Objects written to a staging directory: new ones, and new versions."""
