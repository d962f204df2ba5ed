"""The api-gateway: the interfaces of a Pravega controller, at the edge of Sluice."""
