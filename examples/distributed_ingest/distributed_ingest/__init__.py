"""`sluice ingest`: brings files, objects, topics, HTTP endpoints or lines into a stream; on one node or on many.

A user of `sluice_coordination`: nodes share the work through documents, and where each part of a source stands is a
document too. So any node may be killed, and another one, or the same one later, goes on. See `docs/ingest.md`.
"""
