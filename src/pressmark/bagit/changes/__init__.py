"""Shared by creating, updating and completing a bag: events, errors, and changes that are made whole or not at all."""
