"""Calls on key-value tables. Defaults as in `calls`; `kv` is the table."""

from conformance import views
from conformance.case import Step, call
from conformance.run import Run, ScopeName
from sluice.controller_api import controller_pb2 as pb


def _info(run: Run, table: str, scope: ScopeName) -> pb.KeyValueTableInfo:
    return pb.KeyValueTableInfo(scope=run.scope(scope), kvtName=table)


def create_table(
    table: str = "kv",
    scope: ScopeName = "sc",
    *,
    partitions: int = 1,
    primary: int = 8,
    secondary: int = 0,
    rollover: int = 0,
) -> Step:
    def build(run: Run) -> pb.KeyValueTableConfig:
        return pb.KeyValueTableConfig(
            scope=run.scope(scope),
            kvtName=table,
            partitionCount=partitions,
            primaryKeyLength=primary,
            secondaryKeyLength=secondary,
            rolloverSizeBytes=rollover,
        )

    return call("createKeyValueTable", build, views.status)


def table_configuration(table: str = "kv", scope: ScopeName = "sc") -> Step:
    """Gives status, and name, partitions and key lengths."""
    return call("getKeyValueTableConfiguration", lambda run: _info(run, table, scope), views.table)


def table_segments(table: str = "kv", scope: ScopeName = "sc") -> Step:
    return call("getCurrentSegmentsKeyValueTable", lambda run: _info(run, table, scope), views.ranges)


def owners_of_table_segments(table: str = "kv", scope: ScopeName = "sc") -> Step:
    """What the segments say they belong to."""
    return call("getCurrentSegmentsKeyValueTable", lambda run: _info(run, table, scope), views.stream_names)


def delete_table(table: str = "kv", scope: ScopeName = "sc") -> Step:
    return call("deleteKeyValueTable", lambda run: _info(run, table, scope), views.status)
