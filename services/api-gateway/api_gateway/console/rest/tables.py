"""Key-value tables: list, describe, create, delete."""

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import Response
from pydantic import Field

from api_gateway.console.etags import SHOWN, etag_of
from api_gateway.console.looking_back import At, LookBack
from api_gateway.console.rest.actions import action, judged, why_not_now
from api_gateway.console.rest.base import (
    INT64_MAX,
    Body,
    Model,
    Page,
    ScopeName,
    TableName,
    Taken,
    changed,
    refusals,
    router,
)
from api_gateway.console.rest.listed import WantedNames, listed
from api_gateway.console.rest.replies import done
from api_gateway.console.rest.workflows import on_workflow
from api_gateway.console.table_sizes import TableSizes
from api_gateway.edge.listing import Listing
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedContainers, ServedReads, Submit, served
from sluice.domain.config import MAX_KEY_LENGTH, MAX_SEGMENTS, TableConfig, check_table_config
from sluice.domain.ids import TableId
from sluice.domain.status import Status
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.insight.tables import TableDescription, TableItem, table_item, table_shown
from sluice.lookback.describing import TABLE as TABLE_AT
from sluice.lookback.describing import ResourceQuestion
from sluice.security.resources import table_resource

routes = router("key-value tables")

_ONE = "/scopes/{scope}/tables/{table}"


class TableSettings(Body):
    """The configuration of a key-value table; it never changes."""

    partition_count: int = Field(ge=1, le=MAX_SEGMENTS, description="How many partitions it has.", examples=[4])
    primary_key_length: int = Field(ge=1, le=MAX_KEY_LENGTH, description="Bytes of a primary key.", examples=[16])
    secondary_key_length: int = Field(
        default=0,
        ge=0,
        le=MAX_KEY_LENGTH,
        description=f"Bytes of a secondary key; 0: there is none. With the primary one at most {MAX_KEY_LENGTH}.",
    )
    rollover_size_bytes: int = Field(
        default=0, ge=0, le=INT64_MAX, description="Of parts of segments; 0: as stores do."
    )


class TableList(Page[TableItem]):
    """A page of key-value tables, by name."""


@routes.get("/scopes/{scope}/tables", operation_id="listTables", response_model=TableList, responses=refusals(404))
async def list_tables(
    reads: ServedReads,
    page: WantedNames,
    containers: ServedContainers,
    scope: ScopeName,
) -> Response:
    """List the key-value tables of a scope, by name."""
    fetch = partial(reads.tables_in, scope)
    shown = partial(table_item, placement=containers.placement())
    listing = Listing(fetch, lambda one: one.id.name, partial(table_resource, scope), shown)
    return await listed(TableList, listing, page, scope)


@routes.get(_ONE, operation_id="describeTable", response_model=TableDescription, responses={**SHOWN, **refusals(404)})
async def describe_table(
    reads: ServedReads,
    containers: ServedContainers,
    look_back: LookBack,
    scope: ScopeName,
    table: TableName,
    at: At = None,
) -> Response:
    """Describe a key-value table."""
    if at is not None:
        shown = await look_back(TABLE_AT, ResourceQuestion(scope, table, look_back.moment(at)))
        return as_json(shown)
    found = await reads.table_or_none(TableId(scope, table))
    if found is None:
        raise RefusedError(404, f"key-value table {scope}/{table} does not exist", Status.TABLE_NOT_FOUND)
    names = {"scope": scope, "table": table}
    allowed = judged([(remove_table, why_not_now(found.state)), *on_workflow(found)], names)
    shown = table_shown(found, containers.placement())
    return as_json(replace(shown, allowed=allowed), headers={"ETag": etag_of(found)})


class PartitionSize(Model):
    """How many entries a partition has."""

    id: int
    entries: int


class TableSizeModel(Model):
    """How many entries a table has, as segment stores count them: their counts lag behind what is written."""

    entries: int | None = Field(default=None, description="In the partitions that are known; left out if none is.")
    partitions: list[PartitionSize] = Field(description="Those whose segment stores answer, by key range.")
    complete: bool = Field(description="Whether that is all of them.")


@routes.get(f"{_ONE}/size", operation_id="getTableSize", response_model=TableSizeModel, responses=refusals(404))
async def table_size(
    reads: ServedReads, sizes: Annotated[TableSizes, served(TableSizes)], scope: ScopeName, table: TableName
) -> Response:
    """Say how many entries a key-value table has, as of some seconds ago at most."""
    found = await reads.table_or_none(TableId(scope, table))
    if found is None:
        raise RefusedError(404, f"key-value table {scope}/{table} does not exist", Status.TABLE_NOT_FOUND)
    segments = [segment.id for segment in found.segments]
    entries = (await sizes.find(found)).entries
    known = [PartitionSize(id=id, entries=entries[id]) for id in segments if id in entries]
    return as_json(
        TableSizeModel(
            entries=sum(one.entries for one in known) if known else None,
            partitions=known,
            complete=len(known) == len(segments),
        )
    )


@routes.put(
    _ONE,
    operation_id="putTable",
    status_code=201,
    responses={
        200: changed("It was there already, with this configuration.", Taken),
        201: changed("It was created.", Taken),
        **refusals(404, 409, is_change=True),
    },
)
async def put_table(
    reads: ServedReads, submit: Submit, scope: ScopeName, table: TableName, body: TableSettings
) -> Response:
    """Create a key-value table if it is not there."""
    config = TableConfig(
        partitions=body.partition_count,
        primary_key_length=body.primary_key_length,
        secondary_key_length=body.secondary_key_length,
        rollover_size_bytes=body.rollover_size_bytes,
    )
    check_table_config(config)
    reply = await submit(CreateTable(scope=scope, table=table, config=config))
    if reply.status == Status.TABLE_EXISTS:
        found = await reads.table_or_none(TableId(scope, table))
        if found is not None and found.config == config:
            return as_json(Taken(status=reply.status))
    return as_json(Taken(status=done(reply, f"key-value table {scope}/{table}").status), 201)


@action(
    routes, "delete", "DELETE", _ONE, id="removeTable", about="key-value table {0.scope}/{0.table}", says="It is gone."
)
async def remove_table(reads: ServedReads, scope: ScopeName, table: TableName) -> DeleteTable:
    """Delete a key-value table with all that is in it."""
    id = TableId(scope, table)
    return DeleteTable(*id, await reads.creation_id(id.aggregate))
