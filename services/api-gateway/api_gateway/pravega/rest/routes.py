"""All routes of this interface."""

from api_gateway.pravega.rest import groups, health, root, scale_events, scopes, streams

ROUTERS = (scopes.routes, streams.routes, scale_events.routes, groups.routes, health.routes, root.routes)
