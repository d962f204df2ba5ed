"""Traces that stay in memory."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from sluice.telemetry import tracing
from sluice.telemetry.otlp import OtelTracer

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}


class Spans:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OtelTracer("test", "test-0", SimpleSpanProcessor(self._exporter))

    def finished(self, name: str) -> list[ReadableSpan]:
        """All of that name that have ended."""
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def ended_one(self, name: str) -> ReadableSpan:
        (span,) = self.finished(name)
        return span

    def ended(self) -> dict[str, ReadableSpan]:
        """By name; no two of them may have the same."""
        spans = self._exporter.get_finished_spans()
        named = {span.name: span for span in spans}
        assert len(named) == len(spans), [span.name for span in spans]
        return named

    def parent_of(self, name: str) -> str | None:
        """The name of a span's parent; None if there is none that has ended here."""
        parent = self.ended()[name].parent
        return next((n for n, s in self.ended().items() if parent and context_of(s).span_id == parent.span_id), None)


def context_of(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def trace_of(span: ReadableSpan) -> str:
    return f"{context_of(span).trace_id:032x}"


@contextmanager
def traced() -> Iterator[Spans]:
    """Inside, traces are on."""
    spans = Spans()
    tracing.use(spans.tracer)
    try:
        yield spans
    finally:
        tracing.use(None)
        spans.tracer.shut_down()
