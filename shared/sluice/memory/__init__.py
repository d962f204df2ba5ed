"""The ports in memory and in virtual time: the twin of Kafka that tests and simulations use.

Records are lists; time is that of the event loop. Whatever Kafka may do to a process is done to it here on request:
delays, outages, lost acknowledgements, rebalances, members that freeze, offsets that are not committed.
"""
