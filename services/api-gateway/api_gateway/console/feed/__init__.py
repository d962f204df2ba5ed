"""The feed of events: what changes in the journal, pushed to open pages."""
