"""Transactions: what they are, how they begin and end, in which order they are committed."""
