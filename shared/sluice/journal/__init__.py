"""The journal: the event log that is the only truth, folded by every service into the same view."""
