"""The alarm clock of leases: timers in Redis, which may be lost at any moment and are filled from the journal again."""
