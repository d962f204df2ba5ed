"""Reader groups: list, describe, create or update, delete."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Literal
from uuid import uuid4

from fastapi import Response
from pydantic import Field

from api_gateway.console.etags import SHOWN, IfMatch, config_changed, etag_of, matching
from api_gateway.console.looking_back import At, LookBack
from api_gateway.console.rest.actions import Action, action, judged, why_not_now
from api_gateway.console.rest.base import (
    INT32_MAX,
    INT64_MAX,
    Body,
    Cut,
    GroupName,
    Model,
    Page,
    ScopeName,
    changed,
    cut_of,
    refusals,
    router,
)
from api_gateway.console.rest.listed import WantedNames, listed
from api_gateway.console.rest.replies import done
from api_gateway.console.rest.workflows import on_workflow
from api_gateway.edge.listing import Listing, may_read
from api_gateway.edge.reads import Reads
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedReads, Submit
from sluice.domain.config import GroupRetention, ReaderGroupConfig, check_group_config
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.status import Status
from sluice.insight.groups import GroupDescription, group_shown
from sluice.lookback.describing import GROUP as GROUP_AT
from sluice.lookback.describing import ResourceQuestion
from sluice.security.resources import mapped_resource, reader_group_resource

routes = router("reader groups")

_ONE = "/scopes/{scope}/readergroups/{group}"

_RETENTIONS = {retention.word: retention for retention in GroupRetention}


class GroupStreamBody(Body):
    """From where to where a stream is read."""

    start: Cut | None = Field(default=None, description="Left out: from the head of the stream.")
    end: Cut | None = Field(default=None, description="Left out: for ever.")


class GroupSettings(Body):
    """The configuration of a reader group."""

    streams: dict[str, GroupStreamBody] = Field(
        description="What it reads, by scope/stream.",
        examples=[{"demo/greetings": {}}],
        min_length=1,
        max_length=1000,
        fail_fast=True,
    )
    retention: Literal["none", "manual", "automatic"] = Field(
        default="none", description="Whether streams keep what the group has yet to read, and who says how far it is."
    )
    refresh_ms: int = Field(
        default=3000, ge=0, le=INT64_MAX, description="How often readers look for news of the group."
    )
    checkpoint_interval_ms: int = Field(
        default=30_000, ge=-1, le=INT64_MAX, description="How often it checkpoints by itself; -1: never."
    )
    max_outstanding_checkpoints: int = Field(
        default=3, ge=1, le=INT32_MAX, description="How many checkpoints may be under way."
    )


class GroupBody(Body):
    """A reader group as it shall be."""

    config: GroupSettings
    generation: int | None = Field(
        default=None, ge=0, le=INT64_MAX, description="Only update, and only if the group is at this generation."
    )


class GroupItem(Model):
    """A reader group in a list."""

    name: str = Field(examples=["readers"])
    state: str
    streams: list[str] = Field(description="What it reads, as scope/stream.")


class GroupList(Page[GroupItem]):
    """A page of reader groups, by name."""


@routes.get(
    "/scopes/{scope}/readergroups", operation_id="listGroups", response_model=GroupList, responses=refusals(404)
)
async def list_groups(reads: ServedReads, page: WantedNames, scope: ScopeName) -> Response:
    """List the reader groups of a scope, by name."""
    fetch = partial(reads.groups_in, scope)
    listing = Listing(fetch, lambda one: one.id.name, partial(reader_group_resource, scope), _item)
    return await listed(GroupList, listing, page, scope)


def _item(group: ReaderGroup) -> GroupItem:
    return GroupItem(name=group.id.name, state=group.state.value, streams=sorted(group.config.starts))


@routes.get(_ONE, operation_id="describeGroup", response_model=GroupDescription, responses={**SHOWN, **refusals(404)})
async def describe_group(
    reads: ServedReads, look_back: LookBack, scope: ScopeName, group: GroupName, at: At = None
) -> Response:
    """Describe a reader group. How far it has read stands in the descriptions of its streams."""
    if at is not None:
        shown = await look_back(GROUP_AT, ResourceQuestion(scope, group, look_back.moment(at)))
        return as_json(shown)
    found = await reads.group_or_none(GroupId(scope, group))
    if found is None:
        raise RefusedError(404, f"reader group {scope}/{group} does not exist", Status.RG_NOT_FOUND)
    return as_json(_description(found), headers={"ETag": etag_of(found)})


@routes.put(
    _ONE,
    operation_id="putGroup",
    status_code=201,
    responses={
        200: changed("It was updated.", GroupDescription),
        201: changed("It was created.", GroupDescription),
        **refusals(404, 409, 412, is_change=True),
    },
)
async def put_group(
    reads: ServedReads, submit: Submit, scope: ScopeName, group: GroupName, body: GroupBody, if_match: IfMatch = None
) -> Response:
    """Create a reader group, or give one that is there this configuration instead of the one it has."""
    about = f"reader group {scope}/{group}"
    found = await reads.group_or_none(GroupId(scope, group))
    if if_match is not None:
        found = matching(if_match, found, about)
    if found is None:
        if body.generation is not None:
            raise config_changed(f"{about} does not exist")
        config = _config(body.config, str(uuid4()), 0)
        await _check_streams(reads, about, config.starts)
        done(await submit(CreateReaderGroup(scope=scope, group=group, config=config)), about)
        status = 201
    else:
        generation = found.config.generation if body.generation is None else body.generation
        config = _config(body.config, found.config.id, generation)
        await _check_streams(reads, about, config.starts.keys() - found.config.starts.keys())
        reply = await submit(UpdateReaderGroup(scope=scope, group=group, config=config))
        if if_match is not None and reply.status == Status.INVALID_CONFIG:
            raise config_changed(f"{about}: {reply.reason}")
        done(reply, about)
        status = 200
    stored = reads.known_group(GroupId(scope, group))
    if stored is None or stored.config.id != config.id:
        raise RefusedError(409, f"{about}: another client has created or deleted it this very moment")
    return as_json(_description(stored), status)


@action(
    routes, "delete", "DELETE", _ONE, id="removeGroup", about="reader group {0.scope}/{0.group}", says="It is gone."
)
async def remove_group(reads: ServedReads, scope: ScopeName, group: GroupName) -> DeleteReaderGroup:
    """Delete a reader group."""
    found = await reads.group_or_none(GroupId(scope, group))
    return DeleteReaderGroup(scope, group, creation_id=found.creation_id if found is not None else "")


_ACTIONS = (Action("update", "PUT", _ONE), remove_group)


async def _check_streams(reads: Reads, about: str, names: Iterable[str]) -> None:
    """A group of a stream that is not there would look as if it had read all of it. Raises RefusedError.

    Clients may still create one, as with Pravega's controller. What the caller may not READ is not looked up.
    """
    for id in sorted(map(StreamId.of, names)):
        if may_read(mapped_resource(*id)) and await reads.stream_or_none(id) is None:
            raise RefusedError(409, f"{about}: stream {id} does not exist", Status.STREAM_NOT_FOUND)


def _config(settings: GroupSettings, id: str, generation: int) -> ReaderGroupConfig:
    """Raises InvalidArgumentError."""
    config = ReaderGroupConfig(
        id=id,
        starts={name: cut_of(stream.start or {}) for name, stream in settings.streams.items()},
        ends={name: cut_of(stream.end or {}) for name, stream in settings.streams.items()},
        retention=_RETENTIONS[settings.retention],
        refresh_ms=settings.refresh_ms,
        checkpoint_interval_ms=settings.checkpoint_interval_ms,
        max_outstanding_checkpoints=settings.max_outstanding_checkpoints,
        generation=generation,
    )
    check_group_config(config)
    return config


def _description(group: ReaderGroup) -> GroupDescription:
    on_group = ((action, why_not_now(group.state)) for action in _ACTIONS)
    allowed = judged([*on_group, *on_workflow(group)], {"scope": group.id.scope, "group": group.id.name})
    return replace(group_shown(group), allowed=allowed)
