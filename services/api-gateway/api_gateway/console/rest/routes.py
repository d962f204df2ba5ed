"""All routes of this interface."""

from collections.abc import Mapping

from api_gateway.console.rest import (
    about,
    cluster,
    cluster_history,
    dead_letters,
    demonstration,
    events,
    group_readers,
    groups,
    journal,
    last_hour,
    overview,
    rates,
    requests,
    scaling,
    scopes,
    search,
    statistics,
    stored_data,
    stream_loads,
    stream_search,
    streams,
    tables,
    topology,
    transaction_overviews,
    transactions,
    why,
    workflows,
)
from api_gateway.edge.rest.boundary import GuardedRoute
from api_gateway.edge.security.rules import Rule

ROUTERS = (
    about.routes,
    overview.routes,
    last_hour.routes,
    events.routes,
    scopes.routes,
    streams.routes,
    stream_search.routes,
    stream_loads.routes,
    search.routes,
    scaling.routes,
    topology.routes,
    rates.routes,
    statistics.routes,
    why.routes,
    # Before `transactions/{txn}`, which would take `summary` for an id.
    transaction_overviews.routes,
    transactions.routes,
    groups.routes,
    group_readers.routes,
    tables.routes,
    stored_data.routes,
    workflows.routes,
    cluster.routes,
    cluster_history.routes,
    dead_letters.routes,
    demonstration.routes,
    journal.routes,
    requests.routes,
)

RULES: Mapping[str, Rule | None] = {
    f"{method} {route.path}": route.rule
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, GuardedRoute)
    for method in route.methods or ()
}
"""What their calls need, by method and path."""
