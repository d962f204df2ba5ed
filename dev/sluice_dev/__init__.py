"""`sluice dev`: a whole Pravega in one process, in memory: for tests, and to try things out."""
