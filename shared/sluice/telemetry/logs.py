"""Structured logs: one JSON object a line on standard error, with what the code gave as `extra` beside the message.

A line names the service that is at work, where several share the process.

JSON leaves most control characters as they are, and a caller may choose what is logged: those that end a line for
some readers, or command a terminal, are escaped.
"""

import logging
import sys
import time
from collections import Counter
from typing import Any

import msgspec

from sluice.service_context import service_at_work
from sluice.telemetry import tracing

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FOR_TERMINALS = {"color_message"}
"""What uvicorn adds: the message a second time, with colours."""

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}

_TALKATIVE = ("faust", "kazoo", "mode", "uvicorn.access")
_GRPC = "grpc._cython.cygrpc"
"""Any caller has it log a stack trace, by a message that is none."""

LOUD = (
    _GRPC,
    "aiokafka",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "api_gateway.pravega.rpc",
    "librdkafka",
    "opentelemetry.exporter.otlp.proto.http._common",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
    "uvicorn.error",
)
"""Each logger by itself: a filter does not reach those below."""


def extra_of(record: logging.LogRecord) -> dict[str, Any]:
    """What the code gave beside the message."""
    return {k: v for k, v in vars(record).items() if k not in _STANDARD | _FOR_TERMINALS}


class JsonFormatter(logging.Formatter):
    def __init__(self, service: str, instance: str) -> None:
        super().__init__()
        self._own = service, instance

    def format(self, record: logging.LogRecord) -> str:
        service, instance = service_at_work() or self._own
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "service": service,
            "instance": instance,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if tracing.is_on() and (trace_id := tracing.current().trace_id()):
            line["trace_id"] = trace_id
        line.update(extra_of(record))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=repr).decode().translate(_ESCAPED)


class WithoutHeaders(logging.Filter):
    """Leaves out what gRPC says of headers that are no text: it says all of them, and they may be credentials."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("Invalid encoding on")


class AtMost(logging.Filter):
    """Lets through so many records of each level in so many seconds.

    So an outage does not drown everything else, and what any caller may bring about hides no error.
    """

    def __init__(self, records: int, seconds: float) -> None:
        super().__init__()
        self._records = records
        self._seconds = seconds
        self._since = 0.0
        self._passed: Counter[int] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.created - self._since > self._seconds:
            self._since, self._passed = record.created, Counter()
        self._passed[record.levelno] += 1
        return self._passed[record.levelno] <= self._records


def set_up_logs(service: str, instance: str, level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(service, instance))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger(_GRPC).addFilter(WithoutHeaders())
    for name in LOUD:
        logging.getLogger(name).addFilter(AtMost(records=5, seconds=10.0))
