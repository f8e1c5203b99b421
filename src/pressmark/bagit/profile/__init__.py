"""BagIt Profiles: what a receiver requires of the bags it accepts."""
