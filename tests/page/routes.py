"""The addresses of the page's pages in the sample system, by name."""

PAGES = {
    "overview": "#/",
    "streams": "#/streams",
    "stream": "#/streams/demo/orders",
    "workflows": "#/workflows",
    "decisions": "#/decisions",
    "transactions": "#/transactions",
    "groups": "#/groups",
    "tables": "#/tables",
    "cluster": "#/cluster",
    "dead-letters": "#/dead-letters",
    "journal": "#/journal",
    "requests": "#/requests",
}
OF_AN_EMPTY_SYSTEM = {name: route for name, route in PAGES.items() if name != "stream"}
TABS = ("transactions", "readers", "events", "segments", "configuration")
"""Of a stream's page, besides the first."""
OF_ONE = {
    **{f"stream-{tab}": f"{PAGES['stream']}?tab={tab}" for tab in TABS},
    "group": "#/groups/demo/billing",
    "table": "#/tables/shop/prices",
    "scope": "#/scopes/demo",
}
"""Pages of one thing, and the tabs of a stream."""
