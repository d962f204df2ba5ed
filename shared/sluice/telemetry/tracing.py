"""Traces: spans that follow a request through the topics, exported by OpenTelemetry; off unless an endpoint is set.

A trace begins where a call comes in, by gRPC or HTTP, and goes on wherever its context goes: with the running task, and
from process to process in the Kafka header `traceparent` (W3C Trace Context). What belongs to no such call (heartbeats,
timers, periodic work, a workflow that was taken over) has no spans.

While traces are off nothing of OpenTelemetry is imported; what is called here then returns one object that does
nothing. `set_up` is called once, before the loop runs; everything else may be called from any task.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, Protocol, Self

from sluice.security.watched import Watched

Kind = Literal["server", "producer", "consumer", "internal"]
Attributes = Mapping[str, str | int]
Carrier = Mapping[str, str]
"""The context of a trace on its way between processes: `traceparent`, and `tracestate` if there is one."""

CARRIED = ("traceparent", "tracestate")


class Span(Protocol):
    """A piece of work, from its beginning to `end`, which may be given what went wrong."""

    def active(self) -> AbstractContextManager[object]:
        """Inside, this span is the parent of those that begin; may be entered several times."""
        ...

    def rename(self, name: str) -> None: ...

    def note(self, attributes: Attributes) -> None: ...

    def carrier(self) -> Carrier:
        """What makes spans of another process children of this one."""
        ...

    def trace_id(self) -> str:
        """32 hexadecimal digits; empty if this is no part of a trace."""
        ...

    def end(self, error: BaseException | str | None = None) -> None: ...


class Tracer(Protocol):
    def begin(
        self, name: str, kind: Kind, attributes: Attributes, parent: Carrier | Span | None, links: Iterable[Span]
    ) -> Span:
        """Begin a span as a child of `parent`, which None makes the span that is active; without any it is a root."""
        ...

    def current(self) -> Span:
        """The active span, not to be ended by the caller; NOTHING if there is none."""
        ...

    def shut_down(self) -> None:
        """Export what has ended; blocking, bounded."""
        ...


class _Nothing:
    """The span of what is not traced, and the context in which it is active."""

    def active(self) -> Self:
        return self

    def rename(self, name: str) -> None: ...

    def note(self, attributes: Attributes) -> None: ...

    def carrier(self) -> Carrier:
        return {}

    def trace_id(self) -> str:
        return ""

    def end(self, error: BaseException | str | None = None) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None


NOTHING = _Nothing()
_tracer: Tracer | None = None


class _Within:
    """A span for as long as a `with` lasts; an exception that leaves it is what went wrong."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._active = span.active()

    def __enter__(self) -> Span:
        self._active.__enter__()
        return self._span

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._active.__exit__(kind, error, at)
        self._span.end(error)


def set_up(service: str, instance: str, endpoint: str) -> None:
    """Export spans to the collector at `endpoint`, a base URL of OTLP over HTTP; with an empty one traces stay off."""
    if endpoint:
        from sluice.telemetry.otlp import otlp_tracer

        use(otlp_tracer(service, instance, endpoint))


def files_of_tls(endpoint: str) -> Watched[None] | None:
    """What the connection to the collector is secured by, in the SDK's settings. Raises SecurityConfigError."""
    if not endpoint:
        return None
    from sluice.telemetry import otlp

    return otlp.files_of_tls()


def use(tracer: Tracer | None) -> None:
    """Begin spans with this tracer from now on; None: have traces off."""
    global _tracer
    _tracer = tracer


def shut_down() -> None:
    """Export what has ended, and have traces off; blocking, bounded."""
    tracer = _tracer
    use(None)
    if tracer is not None:
        tracer.shut_down()


def is_on() -> bool:
    return _tracer is not None


def current() -> Span:
    """The active span, to go on under it in another task; the code that began it ends it."""
    return NOTHING if _tracer is None else _tracer.current()


def begin(name: str, kind: Kind, attributes: Attributes, parent: Carrier) -> Span:
    """Begin a span where a call or a record comes in; without a trace in `parent` it begins one."""
    return NOTHING if _tracer is None else _tracer.begin(name, kind, attributes, parent, ())


def child(name: str, kind: Kind = "internal", attributes: Attributes | None = None) -> Span:
    """Begin a span under the active one; NOTHING if there is none."""
    if _tracer is None or _tracer.current() is NOTHING:
        return NOTHING
    return _tracer.begin(name, kind, attributes or {}, None, ())


def within(span: Span) -> "_Within | _Nothing":
    """Make the span active for as long as a `with` lasts, then end it."""
    return NOTHING if isinstance(span, _Nothing) else _Within(span)


def received(headers: object) -> Carrier:
    """The trace that a record came with: its Kafka headers as a list of pairs, a mapping, or None."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers if isinstance(headers, list | tuple) else ()
    found = {}
    for key, value in pairs:
        if key in CARRIED:
            found[key] = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
    return found


def handling(topic: str, headers: object) -> Span:
    """Begin the span of a record that is handled, under the span of its sender; NOTHING if it was not traced."""
    if _tracer is None or not (carrier := received(headers)):
        return NOTHING
    attributes = {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.operation.type": "process",
    }
    return _tracer.begin(f"handle {_kind_of(headers)}", "consumer", attributes, carrier, ())


def sending(topic: str, kind: str, attributes: Attributes) -> Span:
    """Begin the span of a record that is sent; its `carrier` belongs into the record's headers."""
    return NOTHING if _tracer is None else _to_kafka("send", topic, kind, attributes)


def appending(topic: str, kind: str) -> Span:
    """The same for a record of the journal, until it is folded."""
    return NOTHING if _tracer is None else _to_kafka("append", topic, kind, {})


def _to_kafka(verb: str, topic: str, kind: str, attributes: Attributes) -> Span:
    facts = {"messaging.system": "kafka", "messaging.destination.name": topic, "messaging.operation.type": "send"}
    return child(f"{verb} {kind}", "producer", {**facts, **attributes})


def shared(name: str, spans: Iterable[Span]) -> "_Shared | _Nothing":
    """Work that is done at once for what several spans are about: a `with` that gives each of them a child.

    The first child is active; the others are linked to it.
    """
    if _tracer is None:
        return NOTHING
    traced = [span for span in spans if span is not NOTHING]
    return _Shared(_tracer, name, traced) if traced else NOTHING


class _Shared:
    def __init__(self, tracer: Tracer, name: str, spans: list[Span]) -> None:
        first = tracer.begin(name, "internal", {"sluice.requests": len(spans)}, spans[0], ())
        self._children = [first, *(tracer.begin(name, "internal", {}, span, (first,)) for span in spans[1:])]
        self._active = first.active()

    def __enter__(self) -> Span:
        self._active.__enter__()
        return self._children[0]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._active.__exit__(kind, error, at)
        for span in self._children:
            span.end(error)


def _kind_of(headers: object) -> str:
    """What the sender calls the record: the CloudEvents type."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers if isinstance(headers, list | tuple) else ()
    value = next((value for key, value in pairs if key == "ce_type"), None)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "record")
