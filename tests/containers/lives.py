"""The examples once more: in a scope of their own, and as services of a later version would write them. Pure."""

import time

import msgspec

from sluice.catalog import examples
from sluice.catalog.examples import Example
from sluice.catalog.examples.names import SCOPE, request_id, topic_identity
from sluice.domain.transaction_ids import transaction_id
from sluice.kafka.headers import Headers
from sluice.kafka.topics import TOPICS

_IDS = request_id(0).rpartition("-")[0]
_TRANSACTIONS = [(epoch, request_id(number)) for epoch in (0, 1) for number in range(0x40)]
_OTHER_IDS = {e.header("ce_id") for e in examples.all_examples() if _IDS not in e.header("ce_id")}


def relocated(example: Example, scope: str) -> Example:
    """The same in another scope, under ids of its own; a transaction has the id that follows from its request's.

    Requests stand in topics of their own, so that none is taken for one of another scope.
    The name of the scope must not occur in any other text.
    """
    ids = f"{_IDS}.{scope}"
    names = {SCOPE: scope, _IDS: ids} | {id: f"{id}.{scope}" for id in _OTHER_IDS}
    names |= {topic_identity(t.name): f"{t.name}@{topic_identity(scope + t.name)[-32:]}" for t in TOPICS}
    for epoch, request in _TRANSACTIONS:
        names[transaction_id(epoch, request)] = transaction_id(epoch, request.replace(_IDS, ids))

    def renamed(text: str) -> str:
        for old, new in names.items():
            text = text.replace(old, new)
        return text

    headers: Headers = [(name, renamed(_text(value))) for name, value in example.headers]
    return Example(example.topic, renamed(example.key), headers, renamed(example.value.decode()).encode())


def decided_now(request: Example) -> Example:
    """The same request; what a policy asks for as decided now, for it is refused three minutes later."""
    value = request.json()
    if "policy" not in value["command"]:
        return request
    command = {**value["command"], "at": time.time_ns() // 1_000_000}
    return Example(request.topic, request.key, request.headers, msgspec.json.encode({**value, "command": command}))


def with_id(request: Example, id: str) -> Example:
    """The request under another id."""
    headers: Headers = [(name, id if name == "ce_id" else value) for name, value in request.headers]
    return Example(request.topic, request.key, headers, msgspec.json.encode({**request.json(), "id": id}))


def garbage(example: Example) -> list[Example]:
    """Under its key, bytes that are no message."""
    return [msgspec.structs.replace(example, value=value) for value in (b"", b"{", b"[]", b"\xff\xfe")]


def newer(example: Example) -> Example:
    """As a later version might write it: with unknown fields."""
    return examples.with_unknown_field(example)


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
