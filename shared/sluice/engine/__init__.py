"""Event sourcing on a log, for any domain: the journal, its fold rule, proposals, requests by key.

Nothing here knows a command, an event or Kafka. What is outside comes in by `ports`; what is true, by a `Model`.
"""
