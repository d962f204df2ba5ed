"""Scopes: what they are, how they are created and deleted."""
