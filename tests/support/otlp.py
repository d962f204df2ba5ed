"""A collector of traces, as small as it can be: OTLP over HTTP into a list. Has a thread of its own."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Received(msgspec.Struct, frozen=True):
    """A span and the service it is of; ids in hexadecimal digits, `parent` empty for a root."""

    service: str
    name: str
    trace: str
    span: str
    parent: str
    begin_ns: int
    end_ns: int


class Collector:
    """`endpoint` is what services are given; `spans` is what they have sent so far."""

    def __init__(self, port: int, scheme: str) -> None:
        self.endpoint = f"{scheme}://127.0.0.1:{port}"
        self._spans: list[Received] = []
        self._lock = threading.Lock()

    @property
    def spans(self) -> list[Received]:
        with self._lock:
            return list(self._spans)

    def of(self, trace: str) -> list[Received]:
        """One trace, by beginning."""
        return sorted((span for span in self.spans if span.trace == trace), key=lambda span: span.begin_ns)

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        found = []
        for resource in request.resource_spans:
            facts = {a.key: a.value.string_value for a in resource.resource.attributes}
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                times = span.start_time_unix_nano, span.end_time_unix_nano
                found.append(Received(facts["service.name"], span.name, *ids, *times))
        with self._lock:
            self._spans += found


@contextmanager
def collector(tls: ssl.SSLContext | None = None) -> Iterator[Collector]:
    """Inside, it listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Not on the output of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        found = Collector(server.server_address[1], "http" if tls is None else "https")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        serving.start()
        try:
            yield found
        finally:
            server.shutdown()
            serving.join(5)
