"""Commands, events and reports as one line for users. Pure."""

from collections.abc import Iterable
from typing import Any

import msgspec

from sluice.domain.decision import Reply
from sluice.domain.events import Event
from sluice.domain.model import JournalEntry
from sluice.engine.record import Record
from sluice.engine.snapshots import SnapshotConfirmation, SnapshotManifest
from sluice.insight.statistics import StatisticsProgress
from sluice.kafka.dead_letters import DeadLetterSettled
from sluice.kafka.requests import Request
from sluice.lookback.decoding import Content, Decoded, names_of, raw_value
from sluice.policies.memory import StreamMemory

LONGEST = 160
_IMPLIED = frozenset(("scope", "stream", "group", "table", "aggregate", "type", "id", "by", "at", "created_at"))
_LISTED = 3


def facts(message: msgspec.Struct) -> str:
    """`field=value` for what is neither a default nor implied by the message's type, its name and its record's time."""
    plain = msgspec.to_builtins(message, str_keys=True, builtin_types=(bytes,))
    return " ".join(f"{name}={_value(value)}" for name, value in plain.items() if name not in _IMPLIED and value != "")


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, list | dict) and len(value) > _LISTED:
        return f"({len(value)})"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning and an ellipsis: so many characters at most."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def answer(reply: Reply) -> str:
    """What a reply says."""
    return f"{reply.status}: {reply.reason}" if reply.reason else reply.status


def about(message: Any) -> str:
    """Type, name and facts of a command or an event."""
    names = sorted(names_of(message), key=len)
    return " ".join(filter(None, (type(message).__name__, names[-1] if names else "", facts(message))))


def entry_line(entry: JournalEntry, events: Iterable[Event] | None = None) -> str:
    """The events of an entry, or these of them, and its reply."""
    parts = [about(event) for event in (entry.events if events is None else events)]
    if entry.reply is not None:
        parts.append(f"-> {answer(entry.reply)}")
    return "; ".join(parts) or "nothing to change"


def content_text(content: Content) -> str:
    """What a record says, on one line."""
    match content:
        case Request():
            return about(content.command)
        case Record():
            if content.marker is not None:
                return f"Marker {facts(content.marker)}"
            return " | ".join(entry_line(entry) for entry in content.entries)
        case DeadLetterSettled():
            return f"DeadLetterSettled {content.partition}/{content.offset} {content.how.value}"
        case StatisticsProgress() | SnapshotManifest() | SnapshotConfirmation():
            return f"{type(content).__name__} {facts(content)}"
        case StreamMemory():
            return f"StreamMemory {' '.join(sorted(content.streams))} wakeAt={content.wake_at}"
        case _:
            return f"{type(content).__name__} {content.scope}/{content.stream} {facts(content)}"


def line(found: Decoded, longest: int = LONGEST) -> str:
    """What to show of a record: what it says, or all of it raw with the reason."""
    origin = found.record.header("sluice_topic")
    about_letter = ""
    if found.source is not None:
        where = f"{origin} {found.source.record.partition}@{found.source.record.offset}"
        about_letter = f"dead letter of {where}: {found.record.header('sluice_reason')}; "
    if found.content is None:
        raw = msgspec.json.encode(raw_value(found.record)).decode()
        return f"{about_letter}{' '.join(found.types)} not decoded ({found.problem}): {raw}".strip()
    return shortened(f"{about_letter}{content_text(found.content)}", longest)


def document(found: Decoded) -> dict[str, Any]:
    """A record as one JSON object."""
    record = found.record
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "at": record.at,
        "key": record.key,
        "types": list(found.types),
        "requests": sorted(found.requests),
        "by": found.by,
        **({"deadLetter": _letter(found)} if found.source is not None else {}),
        **({"problem": found.problem} if found.content is None else {}),
        **raw_value(record),
        "headers": dict(record.headers),
    }


def _letter(found: Decoded) -> dict[str, Any]:
    assert found.source is not None
    source = found.source.record
    return {
        "topic": source.topic,
        "partition": source.partition,
        "offset": source.offset,
        "reason": found.record.header("sluice_reason"),
        "service": found.record.header("sluice_service"),
    }
