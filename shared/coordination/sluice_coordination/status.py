"""What the holders of locks report of themselves, for operators: a field beside the lock in its document.

`HeldLock.report` says it. It is written together with the next renewal, so it costs no write of its own, and what a
dead process has said last is known to be old: its lock has run out. Pure functions and values.
"""

from collections.abc import Mapping

import msgspec

from sluice_coordination.document import Document
from sluice_coordination.functions import Json
from sluice_coordination.lease import RELEASED


class Status(msgspec.Struct, frozen=True):
    """What the holder of a lock has reported. `lives`: whether its lock has not run out, by clocks on walls."""

    owner: str
    lives: bool
    report: Json


class _Fields(msgspec.Struct, frozen=True):
    expire: int
    owner: str = ""
    status: Json = None


def status_of(document: Document, wall_ms: int) -> Status | None:
    """Return what a document says; None if there is no lock in it. `wall_ms`: now, in ms since 1970."""
    try:
        found = msgspec.convert(document.body, _Fields)
    except msgspec.ValidationError:
        return None
    return Status(found.owner, found.expire != RELEASED and found.expire > wall_ms, found.status)


def statuses(documents: Mapping[str, Document], wall_ms: int) -> dict[str, Status]:
    """Return what `DocumentStore.under` has found, by id, without what is no lock."""
    found = {id: status_of(document, wall_ms) for id, document in documents.items()}
    return {id: status for id, status in found.items() if status is not None}
