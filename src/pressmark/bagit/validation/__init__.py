"""Validate bags: tag files, payload, digests."""
