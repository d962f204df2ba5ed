"""Sluice and everything it needs, embedded, on one machine.

This package exists so that `make run` needs nothing but Python, Java and Maven: it starts a real Kafka broker,
ZooKeeper, BookKeeper, Pravega segment stores and Redis next to the services of Sluice, tells when each is ready, and
leaves no process behind. The same library starts the private systems of the tests.

It knows the services only by name and environment and imports none of them.
"""
