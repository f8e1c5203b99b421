"""BagIt Profiles: the requirements of a receiver for the bags it accepts."""
