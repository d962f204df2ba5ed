"""The HTTP interfaces of the gateway: Pravega's admin REST API under /v1, Sluice's own under /sluice/v1, and health."""
