"""The cluster: container map and members."""
