"""`sluice migrate`: a cluster of the original controller, read, kept as a dump, and brought along."""
