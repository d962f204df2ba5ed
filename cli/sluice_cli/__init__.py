"""The command line of Sluice."""
