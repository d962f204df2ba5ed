"""What a service tells about itself: structured logs, Prometheus metrics, health."""
