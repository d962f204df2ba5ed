"""What operators use: REST at /sluice/v1, the page and its feed, the past, the demonstration."""
