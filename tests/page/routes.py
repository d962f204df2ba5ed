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
