"""Who calls the gateway, and what a caller may do: handlers of credentials, permissions, the guard before all calls."""
