"""Requests that workflows send to other keys: their ids name the workflow, and so the request it was begun for. Pure.

`sluice.engine.dependencies` makes the ids: the workflow's id, a token of the process, a number.
"""

import re

from sluice.domain.workflow import WorkflowKind

# The longest first: one kind's name begins with another's.
_KINDS = "|".join(sorted((kind.value for kind in WorkflowKind), key=len, reverse=True))
_SENT = re.compile(rf"(?:{_KINDS})-(?P<request>.+)-[^-]+-[0-9]+")

_REPLAYED = "~"
"""Added to a request's id whenever it is replayed as a dead letter."""


def depth_below(id: str, request: str) -> int | None:
    """How many workflows lie between the two: 0 for the request itself, None if it has nothing to do with the other."""
    depth, wanted = 0, request.rstrip(_REPLAYED)
    while True:
        origin = id.rstrip(_REPLAYED)
        if origin == wanted:
            return depth if len(id) >= len(request) else None
        sent = _SENT.fullmatch(origin)
        if sent is None:
            return None
        depth, id = depth + 1, sent["request"]
