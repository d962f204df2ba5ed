"""Processing a stream with many workers, at least once, with nobody in the middle. See `docs/at-least-once.md`."""
