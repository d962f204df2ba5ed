"""Compares what the journal says of segments with what the segment stores have; see docs/verify.md."""
