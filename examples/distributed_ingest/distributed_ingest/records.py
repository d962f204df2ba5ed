"""What a source's bytes become: records, each with the routing key it is written with. Pure.

A record is a line without its end (`\\n` or `\\r\\n`), a whole file or body, or an item of a JSON array. Empty lines
are no records. A line that is larger than an event may be is left out, and counted. A byte order mark before a line or
before JSON is no part of it; what is taken whole keeps it.
"""

from codecs import BOM_UTF8
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

MAX_EVENT_BYTES = 8 * 1024 * 1024 - 1024
"""The most a record may have: an event of Pravega has 8 MiB at most, its header included."""

_AROUND_BYTES = len(BOM_UTF8 + b"\r")

_LENGTH_DIGITS = 6
"""A message of syslog has less than a million bytes."""

RecordForm = Literal["lines", "whole", "items"]


class Event(NamedTuple):
    """What is written: events of the same key stay in order; those without one go anywhere."""

    data: bytes
    key: str | None


class Splitter(Protocol):
    """Cuts bytes that come in pieces into records. `skipped`: how many were too long."""

    skipped: int

    def feed(self, data: bytes) -> list[bytes]:
        """Return the records that end in these bytes."""

    def finish(self) -> list[bytes]:
        """Return what is held as the last record."""


class LineSplitter:
    """Cuts bytes that come in pieces into lines.

    `consumed`: how many bytes belong to lines that are through; what follows is held until its end comes.
    `skipped`: how many lines were too long.
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self.consumed = 0
        self.skipped = 0
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that end in these bytes."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._hold(end)
            self.consumed += 1
            lines += self._through()
        self._hold(rest)
        return lines

    @property
    def holds(self) -> bool:
        """Whether a line has begun."""
        return self._held > 0

    def finish(self) -> list[bytes]:
        """Return what is held as the last line, which has no end of its own."""
        return self._through()

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        # Of a line that is too long with a mark before it and \r behind it, nothing need be kept.
        if self._held <= self._max_bytes + _AROUND_BYTES:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _through(self) -> list[bytes]:
        line, held = b"".join(self._pieces).removesuffix(b"\r").removeprefix(BOM_UTF8), self._held
        self.consumed += held
        self._pieces.clear()
        self._held = 0
        if held > self._max_bytes + _AROUND_BYTES or len(line) > self._max_bytes:
            self.skipped += 1
            return []
        return [line] if line else []


class SyslogSplitter:
    """As LineSplitter, for messages that may say their length before them: `34 <13>1 ...` (RFC 6587)."""

    def __init__(self) -> None:
        self.skipped = 0
        self._held = b""
        self._lines = LineSplitter()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that end in these bytes."""
        messages = list[bytes]()
        self._held += data
        while self._held:
            if self._lines.holds or not self._held[:1].isdigit():
                # A line, to its end.
                line, end, self._held = self._held.partition(b"\n")
                messages += self._lines.feed(line + end)
            elif (framed := self._framed()) is not None:
                messages.append(framed)
            else:
                break
        self.skipped = self._lines.skipped
        return [message for message in messages if message]

    def finish(self) -> list[bytes]:
        """Return what is held as the last message."""
        rest, self._held = self._held, b""
        return [*self._lines.feed(rest), *self._lines.finish()]

    def _framed(self) -> bytes | None:
        """Take a message with its length off; None if its end has not come. What is no length begins a line."""
        digits, space, rest = self._held[: _LENGTH_DIGITS + 1].partition(b" ")
        if not space and self._held.isdigit() and len(self._held) <= _LENGTH_DIGITS:
            return None
        if not space or not digits.isdigit() or rest[:1] not in (b"<", b""):
            line, end, self._held = self._held.partition(b"\n")
            (line,) = self._lines.feed(line + end) or (b"",)
            return line
        start, length = len(digits) + 1, int(digits)
        if len(self._held) < start + length:
            return None
        message, self._held = self._held[start : start + length], self._held[start + length :]
        return message.removesuffix(b"\n").removeprefix(BOM_UTF8)


class KeyRule:
    """How routing keys are made, as `--key` has it.

    `none`; `source`: the file, the partition, the URL or the sender; `record`: the key of a Kafka record, the routing
    key of RabbitMQ; `json:a.b`: a field of the record, which is JSON. Raises ValueError for anything else.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        kind, _, path = text.partition(":")
        if text not in ("none", "source", "record") and not (kind == "json" and all(path.split("."))):
            raise ValueError(f"{text!r} is no rule for routing keys")
        self._kind = kind
        self._path = path.split(".") if path else []

    def key(self, data: bytes, origin: str, key: bytes | None = None) -> str | None:
        """Return the routing key of a record; None if it has none by this rule. `key`: that of a Kafka record."""
        match self._kind:
            case "source":
                return origin
            case "record":
                return None if key is None else key.decode(errors="backslashreplace")
            case "json":
                found = field_of(data, self._path)
                return found if found is None or isinstance(found, str) else msgspec.json.encode(found).decode()
        return None

    @property
    def may_lack(self) -> bool:
        """Whether a record without a key is worth telling."""
        return self._kind == "json"


def field_of(data: bytes, path: list[str]) -> Any:
    """Return a field of a JSON object by its path; None if there is none, or no JSON."""
    try:
        found = msgspec.json.decode(data.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def items_of(body: bytes) -> list[bytes]:
    """Return the items of a JSON array, each as it stands there. Raises ValueError if the body is no array."""
    try:
        items = msgspec.json.decode(body.removeprefix(BOM_UTF8), type=list[msgspec.Raw])
        return [bytes(item).strip() for item in items]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not a JSON array: {error}") from error


def records_of(body: bytes, form: RecordForm) -> list[bytes]:
    """Return the records of a body that is there as a whole, those that are too large, too. Raises ValueError."""
    if form == "lines":
        splitter = LineSplitter(len(body))
        return [*splitter.feed(body), *splitter.finish()]
    return items_of(body) if form == "items" else [body] if body else []
