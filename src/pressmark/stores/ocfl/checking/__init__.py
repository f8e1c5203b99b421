"""The check of one object, whose files are in memory or read one by one."""
