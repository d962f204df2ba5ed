"""ETag and If-Match (RFC 9110, 8.8.3 and 13.1.1) of what can be updated: streams and reader groups.

A table has an ETag, too, which tells one life of it from the next.

An ETag names a configuration of one life of a resource. The version of its aggregate would not do: that goes up with
every report of a reader or writer, so an update some minutes after the read would never find it. The gateway compares
tags with its view; what the view shows then travels with the command, and the decision compares it once more. Pure
functions.
"""

import hashlib
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Header

from api_gateway.edge.rest.failures import RefusedError
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.status import Status
from sluice.domain.stream.state import Stream
from sluice.domain.table.state import Table

Resource = TypeVar("Resource", Stream, ReaderGroup)

IfMatch = Annotated[
    str | None,
    Header(description="Update only what has one of these ETags; with * only what is there. Else it is 412."),
]

SHOWN: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "Of the configuration, for If-Match.", "schema": {"type": "string"}}}}
}
"""For the description of calls that show what can be updated."""


def etag_of(found: Stream | ReaderGroup | Table) -> str:
    """The ETag of the configuration that it has."""
    facts = msgspec.json.encode((found.creation_id, found.config))
    return f'"{hashlib.sha256(facts).hexdigest()[:32]}"'


def matching(if_match: str, found: Resource | None, about: str) -> Resource:
    """What was found. Raises RefusedError (412) unless the condition holds; `about` names the resource."""
    if found is None:
        raise config_changed(f"{about} does not exist")
    if if_match != "*" and etag_of(found) not in [tag.strip() for tag in if_match.split(",")]:
        raise config_changed(f"{about} has another configuration by now, with the ETag {etag_of(found)}")
    return found


def config_changed(detail: str) -> RefusedError:
    """The refusal of an update whose condition does not hold."""
    return RefusedError(412, detail, Status.CONFIG_CHANGED)
