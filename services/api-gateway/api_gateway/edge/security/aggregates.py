"""Which resource an aggregate of the journal belongs to: who may READ that may see its events. Pure."""

from api_gateway.edge.listing import may_read
from api_gateway.edge.security.rest_resources import CLUSTER as CLUSTER_RESOURCE
from sluice.domain.cluster.state import CLUSTER
from sluice.security.resources import (
    ROOT,
    mapped_resource,
    reader_group_resource,
    scope_resource,
    table_resource,
)

_OF_STREAMS = ("stream", "commits")
_OF_TRANSACTIONS = ("txn", "prepared")


def resource_of(aggregate: str) -> str:
    """The resource by its Pravega name; what is of no scope is the root's, or the cluster's."""
    if aggregate == CLUSTER:
        return CLUSTER_RESOURCE
    kind, _, name = aggregate.partition(":")
    if kind == "scope":
        return scope_resource(name)
    if kind in _OF_TRANSACTIONS:
        name = name.rpartition("/")[0]
    scope, slash, resource = name.partition("/")
    if slash and kind in (*_OF_STREAMS, *_OF_TRANSACTIONS):
        return mapped_resource(scope, resource)
    if slash and kind == "group":
        return reader_group_resource(scope, resource)
    if slash and kind == "table":
        return table_resource(scope, resource)
    return ROOT


def may_see(aggregate: str) -> bool:
    """Whether the caller may see what happened to the aggregate."""
    return may_read(resource_of(aggregate))
