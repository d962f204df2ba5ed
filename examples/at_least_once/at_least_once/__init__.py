"""Processing a stream with many workers, at least once, without a coordinator. See `docs/at-least-once.md`."""
