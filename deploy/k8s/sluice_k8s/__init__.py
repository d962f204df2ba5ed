"""Checks of the Kubernetes manifests: rendered, against schemas and rules, and by a real API server."""
