"""What readers and writers report about their progress: subscribers' cuts, writers' times.

Neither is a workflow nor waits for one: they touch only what they report. Who subscribes is decided by
`domain.reader_group.decide`.
Rules: controller-grpc-api 5.7 and 5.8, stream-and-transaction-semantics 2.11.
"""

from collections.abc import Callable
from typing import Any

from sluice.domain.decision import Context, Decide, Decision, Reader, Reply, refuse
from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.status import Status
from sluice.domain.stream import cuts
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import (
    NoteWriterTime,
    RemoveSubscriber,
    RemoveWriter,
    UpdateSubscriberCut,
)
from sluice.domain.stream.state import Stream, Subscriber, WriterTime, find_created, find_stream


def decide_remove_subscriber(reader: Reader, command: RemoveSubscriber, _context: Context) -> Decision:
    stream = find_created(reader, command.stream_id, command.creation_id)
    known = stream.subscribers.get(command.subscriber) if stream else None
    if known is None or command.generation < known.generation or command.group_id not in ("", known.group_id):
        return Decision()
    removed = ev.SubscriberRemoved(*command.stream_id, subscriber=command.subscriber)
    return Decision((removed,))


def decide_update_cut(reader: Reader, command: UpdateSubscriberCut, context: Context) -> Decision:
    stream = find_stream(reader, command.stream_id)
    if stream is None:
        return refuse(Status.STREAM_NOT_FOUND)
    known = stream.subscribers.get(command.subscriber)
    if known is None or known.group_id != command.group_id:
        return refuse(Status.SUBSCRIBER_NOT_FOUND)
    if known.generation != command.generation:
        return refuse(Status.GENERATION_MISMATCH, f"the reader group is at generation {known.generation}")
    try:
        if flaw := cuts.flaw(stream, command.cut):
            return refuse(Status.STREAM_CUT_NOT_VALID, flaw)
        if known.cut and not cuts.is_equal_or_after(stream, command.cut, known.cut):
            return refuse(Status.STREAM_CUT_NOT_VALID, "the cut lies behind the one reported before")
    except (InvalidArgumentError, NotFoundError) as error:
        return refuse(Status.STREAM_CUT_NOT_VALID, str(error))
    updated = ev.SubscriberCutUpdated(
        *command.stream_id, subscriber=command.subscriber, cut=command.cut, at=context.now
    )
    return Decision((updated,), Reply(Status.SUCCESS))


def decide_note_time(reader: Reader, command: NoteWriterTime, _context: Context) -> Decision:
    stream = find_stream(reader, command.stream_id)
    if stream is None:
        return refuse(Status.STREAM_NOT_FOUND)
    known = stream.writers.get(command.writer)
    if known is not None:
        if known.timestamp > command.timestamp:
            return refuse(Status.INVALID_TIME, f"the writer was at {known.timestamp} already")
        common = known.position.keys() & command.position.keys()
        if any(command.position[s] < known.position[s] for s in common):
            return refuse(Status.INVALID_POSITION, "the position lies behind the one reported before")
    recorded = ev.WriterTimeNoted(
        *command.stream_id,
        writer=command.writer,
        timestamp=command.timestamp,
        position=command.position,
    )
    return Decision((recorded,), Reply(Status.SUCCESS))


def decide_remove_writer(reader: Reader, command: RemoveWriter, _context: Context) -> Decision:
    stream = find_stream(reader, command.stream_id)
    if stream is None or command.writer not in stream.writers:
        return refuse(Status.UNKNOWN_WRITER)
    removed = ev.WriterRemoved(*command.stream_id, writer=command.writer)
    return Decision((removed,), Reply(Status.SUCCESS))


def _subscriber_added(state: Stream, event: ev.SubscriberAdded) -> Stream:
    known = state.subscribers.get(event.subscriber)
    if known is not None and known.group_id == event.group_id:
        known.generation, known.updated_at = event.generation, event.at
    else:
        added = Subscriber(event.group_id, event.generation, event.at)
        state.subscribers = {**state.subscribers, event.subscriber: added}
    return state


def _subscriber_removed(state: Stream, event: ev.SubscriberRemoved) -> Stream:
    state.subscribers = {name: s for name, s in state.subscribers.items() if name != event.subscriber}
    return state


def _cut_updated(state: Stream, event: ev.SubscriberCutUpdated) -> Stream:
    subscriber = state.subscribers[event.subscriber]
    subscriber.cut, subscriber.updated_at = event.cut, event.at
    return state


def _time_reported(state: Stream, event: ev.WriterTimeNoted) -> Stream:
    state.writers = {**state.writers, event.writer: WriterTime(event.timestamp, event.position)}
    return state


def _writer_removed(state: Stream, event: ev.WriterRemoved) -> Stream:
    state.writers[event.writer].alive = False
    return state


DECIDE: dict[type, Decide] = {
    RemoveSubscriber: decide_remove_subscriber,
    UpdateSubscriberCut: decide_update_cut,
    NoteWriterTime: decide_note_time,
    RemoveWriter: decide_remove_writer,
}

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.SubscriberAdded: _subscriber_added,
    ev.SubscriberRemoved: _subscriber_removed,
    ev.SubscriberCutUpdated: _cut_updated,
    ev.WriterTimeNoted: _time_reported,
    ev.WriterRemoved: _writer_removed,
}
