"""All routes of this interface."""

from api_gateway.rest.sluice_v1 import (
    cluster,
    dead_letters,
    groups,
    scaling,
    scopes,
    statistics,
    streams,
    tables,
    transactions,
    workflows,
)

ROUTERS = (
    scopes.routes,
    streams.routes,
    scaling.routes,
    statistics.routes,
    transactions.routes,
    groups.routes,
    tables.routes,
    workflows.routes,
    cluster.routes,
    dead_letters.routes,
)
