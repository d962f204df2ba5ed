"""The segment stores' binary protocol as values and bytes: no sockets, no policy."""
