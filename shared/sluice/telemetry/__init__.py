"""What a service reports about itself: structured logs, Prometheus metrics, health."""
