"""retention-spark: decides on scaling and retention of streams from reports, and says why."""
