"""One step of a stateful query: what is remembered of a key and the reports on it become decisions. Pure.

A step depends on nothing but what it is given. The ids of its requests follow from what was decided: what is decided
again, because it was sent and not saved yet, is the same request. Its reason is reported a second time.

A key holds a stream and its mark stream. A decision that equals the last one is not reported anew, or only now and
then.

A report that cannot be decided on, be it unreadable or at odds with itself, is a dead letter, and its stream is left as
it was: were it to end the step, it would end the batch, and so all batches after it.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import msgspec

from sluice.domain.commands import Command
from sluice.domain.stream.commands import RecordDecision
from sluice.exceptions import in_words
from sluice.kafka.dead_letters import dead_letter_headers, fitting
from sluice.kafka.headers import Headers, as_text, cloud_event_headers
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import DEAD_LETTERS, topic_of
from sluice.policies.memory import StreamMemory
from sluice.policies.reported import HistoryRow, LastReported, history_row, is_news
from sluice.policies.rules import Rule, Verdict

SERVICE = "retention-spark"
LONGEST_WAIT_MS = 30 * 24 * 3600 * 1000
"""A stream is woken up after so long at the latest: what reports say of times need not fit into a timer of Spark's."""

S = TypeVar("S")


class Known(msgspec.Struct, Generic[S]):
    """What is remembered of a stream: the rule's state and the last reported decision, with passing ones and not."""

    state: S
    last_reported: LastReported | None = None
    recorded: LastReported | None = None


class ReportRecord(msgspec.Struct, frozen=True):
    """A record of a topic of reports."""

    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    headers: str = ""
    """As Spark writes them in JSON, values in Base64; "" if there are none."""


class OutgoingRecord(msgspec.Struct, frozen=True):
    """A record to send; an empty value is none."""

    topic: str
    key: str
    value: bytes
    headers: list[tuple[str, str]]


class Decided(msgspec.Struct):
    """`memory` None: nothing need be remembered; `wake_at` None: nothing is to be decided before the next report.

    `acts`: something is requested.
    """

    memory: bytes | None = None
    wake_at: int | None = None
    sendings: list[OutgoingRecord] = []
    rows: list[HistoryRow] = []
    acts: bool = False


class ReportDecider:
    """Takes steps for the keys of one rule; `source` is this process as service/instance."""

    def __init__(self, rule: Rule, source: str) -> None:
        self._rule = rule
        self.source = source
        memory_type = dict[str, Known[rule.state_type]]  # type: ignore[name-defined]
        self._memory = msgspec.msgpack.Decoder(memory_type)
        self._saved = msgspec.json.Decoder(Known[rule.state_type])  # type: ignore[name-defined]
        self._report = msgspec.json.Decoder(rule.report_type)

    def step(self, memory: bytes | None, inputs: Iterable[ReportRecord], now: int) -> Decided:
        """Decide on the streams that are reported on; without any, on all of the key. `now` in epoch ms.

        That is once all reports are observed: the last one may revoke what the others ask for.
        """
        known: dict[str, Known[Any]] = self._memory.decode(memory) if memory is not None else {}
        step = Decided()
        records = list(inputs)
        if not records:
            for stream in known.values():
                self._decide(step, stream, now)
        self._observe(step, known, records, now)
        wakes = {name: self._rule.wake_at(stream.state, now) for name, stream in known.items()}
        left = {name: stream for name, stream in known.items() if wakes[name] is not None}
        step.memory = msgspec.msgpack.encode(left) if left else None
        step.wake_at = min((min(at, now + LONGEST_WAIT_MS) for at in wakes.values() if at is not None), default=None)
        return step

    def saved(self, key: str, memory: bytes, wake_at: int, topic: str, now: int) -> OutgoingRecord:
        """What is remembered of the key, for who decides after this driver."""
        streams = {name: msgspec.Raw(msgspec.json.encode(one)) for name, one in self._memory.decode(memory).items()}
        id = f"{self.source}-{key}-{now}"
        value = msgspec.json.encode(StreamMemory(id, self.source, now, wake_at, streams))
        return OutgoingRecord(topic, key, value, self._attributes(StreamMemory, id, now, key))

    def forgotten(self, key: str, topic: str, now: int) -> OutgoingRecord:
        """That nothing need be remembered of the key."""
        return OutgoingRecord(topic, key, b"", self._attributes(StreamMemory, f"{self.source}-{key}-{now}", now, key))

    def restored(self, saved: StreamMemory) -> bytes:
        """The memory that was saved. Raises msgspec.DecodeError for one of another form."""
        return msgspec.msgpack.encode({name: self._saved.decode(one) for name, one in saved.streams.items()})

    def _attributes(self, kind: type, id: str, now: int, key: str) -> list[tuple[str, str]]:
        return as_text(cloud_event_headers(kind.__name__, id, self.source, now, key))

    def _observe(self, step: Decided, known: dict[str, Known[Any]], records: list[ReportRecord], now: int) -> None:
        """Observe the records, then decide once on each stream that they are about."""
        about: dict[str, list[ReportRecord]] = {}
        after: dict[str, Any] = {}
        for record in records:
            try:
                report = self._report.decode(record.value)
                # Whatever goes into the memory must fit there.
                msgspec.msgpack.encode(report)
                name = report.stream
                before = after[name] if name in after else known[name].state if name in known else None
                state = self._rule.observe(before, report, now)
            except Exception as error:  # noqa: BLE001 - whatever it is, it would be the same for ever
                step.sendings.append(self.dead_letter(record, error, now))
                continue
            if state is not None:
                after[name] = state
                about.setdefault(name, []).append(record)
        for name, state in after.items():
            part = Decided()
            stream = msgspec.structs.replace(known[name], state=state) if name in known else Known(state)
            try:
                self._decide(part, stream, now)
            except Exception as error:  # noqa: BLE001 - likewise
                step.sendings += [self.dead_letter(record, error, now) for record in about[name]]
                continue
            known[name] = stream
            step.sendings += part.sendings
            step.rows += part.rows
            step.acts |= part.acts

    def _decide(self, step: Decided, stream: Known[Any], now: int) -> None:
        verdict, state = self._rule.decide(stream.state, now)
        stream.state = state
        if is_news(stream.last_reported, verdict, now):
            stream.last_reported = LastReported(verdict.code, verdict.reason, now)
            step.rows.append(history_row(self._rule.kind, state.stream_id, verdict, now, self._id(state, verdict, now)))
        if verdict.request is not None:
            step.acts = True
            step.sendings.append(self._sending(*verdict.request, now))
        if not verdict.passing and is_news(stream.recorded, verdict, now):
            stream.recorded = LastReported(verdict.code, verdict.reason, now)
            step.sendings.append(self._note(state, verdict, now))

    def _id(self, state: Any, verdict: Verdict, now: int) -> str:
        """No name holds a line break; a reason may, but comes where that leads to nothing else."""
        of_stream = (self._rule.kind.value, *state.stream_id, state.creation_id)
        text = "\n".join((*of_stream, verdict.code, verdict.reason, str(now)))
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def _note(self, state: Any, verdict: Verdict, now: int) -> OutgoingRecord:
        note = RecordDecision(
            scope=state.scope,
            stream=state.stream,
            creation_id=state.creation_id,
            kind=self._rule.kind,
            code=verdict.code,
            reason=verdict.reason,
            at=now,
            acts=verdict.request is not None,
            request=verdict.request[0] if verdict.request is not None else "",
            numbers=verdict.numbers,
        )
        return self._sending(f"note-{self._id(state, verdict, now)}", note, now)

    def _sending(self, id: str, command: Command, now: int) -> OutgoingRecord:
        request = Request(id=id, at=now, by=self.source, command=command)
        attributes = self._attributes(type(command), id, now, command.key)
        return OutgoingRecord(topic_of(command).name, command.key, encode_request(request), attributes)

    def dead_letter(self, record: ReportRecord, error: Exception, now: int) -> OutgoingRecord:
        origin = {"topic": record.topic, "partition": str(record.partition), "offset": str(record.offset)}
        others = 2 * len(record.key.encode()) + len(record.headers)
        value, reason = fitting(record.value, others, in_words(error))
        headers = dead_letter_headers(origin, _headers_of(record), record.key, self.source, reason, now)
        return OutgoingRecord(DEAD_LETTERS.name, record.key, value, as_text(headers))


class _Header(msgspec.Struct):
    key: str
    value: bytes | None = None


_headers = msgspec.json.Decoder(list[_Header])


def _headers_of(record: ReportRecord) -> Headers:
    return [(header.key, header.value) for header in _headers.decode(record.headers)] if record.headers else []
