"""``pressmark store``: the commands for the versions of OCFL objects."""
