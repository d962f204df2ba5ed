"""Running workflows: what every service needs that has long operations of its own to see through."""
