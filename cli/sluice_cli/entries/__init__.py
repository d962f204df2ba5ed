"""Entries of key-value tables, read and written through the client library."""
