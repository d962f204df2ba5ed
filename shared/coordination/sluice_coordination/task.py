"""Tasks in documents: a lock, the task itself, and whether it is done.

`{"holder", "expire", "lease_ms", "task": <base64 of JSON>, "state": "outstanding" | "done", "outcome"}`. The task is
the name of a function and its arguments. `outcome` of a done task is `{"result"}`, `{"error"}` or `{"cancelled"}`.
`failures` counts how often a task of a source has been begun anew after an error, since it last ran for long.
`creation_id` says of a submitted task which of all under its key it is. Pure functions and values.
"""

import base64
import binascii
from typing import Literal

import msgspec

from sluice_coordination.document import Body, Document
from sluice_coordination.functions import Json
from sluice_coordination.lease import RELEASED

OUTSTANDING: Literal["outstanding"] = "outstanding"
DONE: Literal["done"] = "done"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0


class Task(msgspec.Struct, frozen=True):
    """A call that a node is to make."""

    function: str
    arguments: dict[str, Json] = {}


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a task ended: with its function's result, unless one of the others is set."""

    result: Json = None
    error: str | None = None
    cancelled: bool = False


class _Fields(msgspec.Struct, frozen=True):
    holder: str
    expire: int
    task: str
    state: Literal["outstanding", "done"]
    outcome: Outcome | None = None
    failures: int = 0
    creation_id: str = ""
    lease_ms: int | None = None


class Entry(msgspec.Struct, frozen=True):
    """A task as it stands on the board."""

    id: str
    document: Document
    task: Task
    holder: str
    done: bool
    outcome: Outcome | None
    failures: int
    creation_id: str


def new_body(task: Task, failures: int = 0, creation_id: str = "") -> Body:
    """Return the document of a task that no node has taken yet. Raises TypeError if the arguments are not JSON."""
    text = base64.b64encode(msgspec.json.encode(task)).decode()
    body = {"holder": "", "expire": RELEASED, "lease_ms": 0, "task": text, "state": OUTSTANDING}
    return body | ({"failures": failures} if failures else {}) | ({"creation_id": creation_id} if creation_id else {})


def done_fields(outcome: Outcome, ran_s: float = 0.0) -> Body:
    """Return what changes in the document when the task is done, after so many seconds."""
    fields: Body = msgspec.to_builtins(outcome)
    return {"state": DONE, "outcome": fields} | ({"failures": 0} if ran_s > _LONGEST_PAUSE_S else {})


def restart_pause_s(failures: int) -> float:
    """Return how long a source's task rests after so many errors."""
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(failures, 16))


def entry_of(id: str, document: Document) -> Entry:
    """Return the task in a document; raise ValueError if it holds none."""
    try:
        fields = msgspec.convert(document.body, _Fields)
        task = msgspec.json.decode(base64.b64decode(fields.task, validate=True), type=Task)
    except (binascii.Error, msgspec.MsgspecError) as error:
        raise ValueError(f"not a task: {error}") from error
    done = fields.state == DONE
    outcome = fields.outcome if done else None
    return Entry(id, document, task, fields.holder, done, outcome, fields.failures, fields.creation_id)
