"""Kafka as the services use it: topics, keys and partitions, requests, producing, polling, keyed consuming."""
