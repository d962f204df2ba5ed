"""Spans by the SDK of OpenTelemetry, exported with OTLP over HTTP. Imported only where traces are on.

A thread of the SDK exports what has ended in batches; while the collector is away spans are dropped without waiting.
What the SDK reads from the environment holds (`OTEL_TRACES_SAMPLER`, `OTEL_EXPORTER_OTLP_HEADERS` and so on).
"""

import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sluice.exceptions import in_words
from sluice.security.tls import counting
from sluice.security.watched import Watched
from sluice.telemetry.tracing import NOTHING, Attributes, Carrier, Kind, Span

EXPORT_TIMEOUT_S = 5
SHUT_DOWN_S = 3.0
_SETTINGS = "OTEL_EXPORTER_OTLP_…"
_FILES = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
_KINDS: Mapping[Kind, SpanKind] = {
    "server": SpanKind.SERVER,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
    "internal": SpanKind.INTERNAL,
}
_PROPAGATOR = TraceContextTextMapPropagator()


def otlp_tracer(service: str, instance: str, endpoint: str) -> "OtelTracer":
    """`endpoint` is the collector's base URL, such as http://collector:4318.

    The files of TLS in the SDK's own settings have to be there: see `files_of_tls`.
    """
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_TIMEOUT_S)
    return OtelTracer(service, instance, BatchSpanProcessor(exporter))


def files_of_tls() -> Watched[None] | None:
    """Those in the SDK's own settings, which reads them with each connection. Raises SecurityConfigError.

    The SDK would notice with the first spans what is wrong with them, and drop them all.
    """
    settings = (f"OTEL_EXPORTER_OTLP_{traces}{file}" for traces in ("TRACES_", "") for file in _FILES)
    files = [Path(file) for setting in settings if (file := os.environ.get(setting))]
    return Watched("TLS to the collector of traces", files, lambda *_: None, counting(_SETTINGS)) if files else None


class OtelTracer:
    """See `tracing.Tracer`."""

    def __init__(self, service: str, instance: str, processor: SpanProcessor) -> None:
        resource = Resource.create(
            {"service.name": service, "service.namespace": "sluice", "service.instance.id": instance}
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("sluice")

    def begin(
        self, name: str, kind: Kind, attributes: Attributes, parent: Carrier | Span | None, links: Iterable[Span]
    ) -> "OtelSpan":
        under = None
        if isinstance(parent, Mapping):
            # Not the present context: the loop may run in that of some other request.
            under = _PROPAGATOR.extract(parent, context.Context())
        elif isinstance(parent, OtelSpan):
            under = trace.set_span_in_context(parent.span, context.Context())
        linked = [trace.Link(link.span.get_span_context()) for link in links if isinstance(link, OtelSpan)]
        return OtelSpan(self._tracer.start_span(name, under, _KINDS[kind], dict(attributes), linked))

    def current(self) -> Span:
        span = trace.get_current_span()
        return OtelSpan(span, borrowed=True) if span.get_span_context().is_valid else NOTHING

    def shut_down(self) -> None:
        # The SDK sends all that waits first, however long a collector takes that is away.
        ending = threading.Thread(target=self._provider.shutdown, name="end of traces", daemon=True)
        ending.start()
        ending.join(SHUT_DOWN_S)


class OtelSpan:
    """See `tracing.Span`. A span that is `borrowed` was begun by another caller, who will end it."""

    def __init__(self, span: trace.Span, borrowed: bool = False) -> None:
        self.span = span
        self._borrowed = borrowed

    def active(self) -> AbstractContextManager[object]:
        return trace.use_span(self.span, record_exception=False, set_status_on_exception=False)

    def rename(self, name: str) -> None:
        self.span.update_name(name)

    def note(self, attributes: Attributes) -> None:
        self.span.set_attributes(dict(attributes))

    def carrier(self) -> Carrier:
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(self.span, context.Context()))
        return carrier

    def trace_id(self) -> str:
        return trace.format_trace_id(self.span.get_span_context().trace_id)

    def end(self, error: BaseException | str | None = None) -> None:
        if self._borrowed:
            return
        if error is not None:
            self.span.set_status(Status(StatusCode.ERROR, error if isinstance(error, str) else in_words(error)))
            if isinstance(error, Exception):
                self.span.record_exception(error)
        self.span.end()
