"""The domain as the engine sees it: what events mean, how records are written, and the rules for workflows.

One instance serves a process; it keeps nothing.
"""

from typing import Any

import msgspec

from sluice.domain import encoding, registry, workflow
from sluice.domain.decision import Context, Decision, Reader, Reply
from sluice.domain.events import Event
from sluice.domain.names import key_of
from sluice.domain.transaction import index
from sluice.engine.formats import FIRST_FORMAT, NewerFormatError, refuse_newer
from sluice.engine.record import Entry, Record

JournalEntry = Entry[Event, Reply]
JournalRecord = Record[Event, Reply]

RECORD_FORMAT = FIRST_FORMAT
"""The newest format of a record that this release folds; docs/releasing.md says when there is a newer one."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(JournalRecord)


def encode_record(record: JournalRecord) -> bytes:
    return _encoder.encode(record)


def decode_record(value: bytes) -> JournalRecord:
    """Raises msgspec.DecodeError or msgspec.ValidationError for what is not a record, or of a newer format."""
    try:
        record = _decoder.decode(value)
    except msgspec.ValidationError:
        refuse_newer(value, RECORD_FORMAT)
        raise
    if record.format > RECORD_FORMAT:
        raise NewerFormatError(record.format, RECORD_FORMAT)
    return record


class DomainModel:
    """See Model and WorkflowRules of the engine."""

    evolve = staticmethod(registry.evolve)
    project = staticmethod(registry.project)

    retire = staticmethod(index.retire)
    retired = staticmethod(index.retired)
    forget = staticmethod(index.forget_old)

    def is_empty(self, projection: Any) -> bool:
        """See Model."""
        return isinstance(projection, index.StreamTransactions) and projection.is_empty

    is_under_way = staticmethod(workflow.is_under_way)

    encode_state = staticmethod(encoding.encode_state)
    decode_state = staticmethod(encoding.decode_state)
    encode_projection = staticmethod(encoding.encode_projection)
    decode_projection = staticmethod(encoding.decode_projection)

    encode = staticmethod(encode_record)
    decode = staticmethod(decode_record)

    def key_of(self, aggregate: str) -> str:
        """See WorkflowRules."""
        return key_of(aggregate)

    def running(self, state: Any) -> workflow.Workflow | None:
        """See WorkflowRules."""
        return workflow.running(state)

    def is_cancelled(self, state: Any) -> bool:
        """See WorkflowRules."""
        return workflow.is_cancelled(state)

    def cancel(self, reader: Reader, context: Context, state: Any) -> Decision:
        """See WorkflowRules."""
        return registry.cancel(reader, context, state)

    def step_failed(
        self, reader: Reader, aggregate: str, kind: workflow.WorkflowKind, step: str, attempts: int, error: str
    ) -> Decision:
        """See WorkflowRules."""
        return workflow.decide_step_failed(reader, aggregate, kind, step, attempts, error)
