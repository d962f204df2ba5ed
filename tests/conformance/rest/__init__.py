"""The admin REST API, asked of Pravega's own controller and of Sluice."""
