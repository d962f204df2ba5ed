"""Measurements: Sluice and Pravega's own controller under the same calls on the same data plane, and the journal."""
