"""The admin REST API of Pravega's own controller and of Sluice."""
