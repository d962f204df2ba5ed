"""What the services that run workflows have in common: the data plane, requests and dead letters, statistics."""
