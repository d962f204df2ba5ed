"""Traces: what is a child of what, what travels in headers, and that they cost nothing while they are off."""

import asyncio
import subprocess
import sys
import threading
import time
import timeit
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import SpanKind
from unit.telemetry.spans import CALLER, TRACE, Spans, context_of, trace_of

from sluice.telemetry import otlp, tracing

DEADLINE_S = 60.0
SERVICES = ("api_gateway", "stream_workflows", "txn_manager", "cluster_manager")


def test_services_without_traces_do_not_import_what_makes_them() -> None:
    """The client of Redis imports another part of the SDK, that for metrics, whenever it is installed."""
    imports = "; ".join(f"import {name}.main" for name in SERVICES)
    parts = ("opentelemetry.sdk.trace", "opentelemetry.exporter", "sluice.telemetry.otlp")
    look = f"import sys; print([m for m in sys.modules if m.startswith({parts})])"
    found = subprocess.run([sys.executable, "-c", f"{imports}; {look}"], capture_output=True, text=True, timeout=120)
    assert found.stdout == "[]\n", found.stderr


def test_what_is_off_costs_next_to_nothing() -> None:
    """All that a request meets on its way through a service, in CPU time, against a bound with room."""

    def request() -> None:
        with tracing.handling("topic", None).active():
            span = tracing.sending("topic", "CreateStream", {"sluice.request": "1"})
            with tracing.within(span):
                span.note({"sluice.outcome": "counted"})
            with tracing.shared("decide together", (tracing.current(),)):
                span.end()

    assert not tracing.is_on()
    seconds = min(timeit.repeat(request, timer=time.thread_time, number=2_000, repeat=7))
    assert seconds / 2_000 < 20e-6


def test_off_means_one_object_that_does_nothing() -> None:
    assert tracing.begin("a", "server", {}, CALLER) is tracing.NOTHING
    assert tracing.child("a") is tracing.NOTHING and tracing.current() is tracing.NOTHING
    assert tracing.handling("t", [("traceparent", CALLER["traceparent"].encode())]) is tracing.NOTHING
    assert tracing.NOTHING.carrier() == {} and tracing.NOTHING.trace_id() == ""
    with pytest.raises(ValueError, match="as it is"), tracing.within(tracing.NOTHING):
        raise ValueError("as it is")


def test_a_call_goes_on_with_the_trace_of_its_caller(spans: Spans) -> None:
    span = tracing.begin("createStream", "server", {"rpc.method": "createStream"}, CALLER)
    with span.active(), tracing.within(tracing.child("inside")):
        assert tracing.current().trace_id() == TRACE
    span.end()
    ended = spans.ended()["createStream"]
    assert trace_of(ended) == TRACE and ended.kind is SpanKind.SERVER
    assert f"{ended.parent.span_id:016x}" == "00f067aa0ba902b7" if ended.parent else False
    assert spans.parent_of("inside") == "createStream"


def test_a_call_without_a_caller_begins_a_trace_whatever_runs_around_it(spans: Spans) -> None:
    with tracing.within(tracing.begin("other", "server", {}, {})):
        tracing.begin("root", "server", {}, {}).end()
    assert spans.ended()["root"].parent is None
    assert trace_of(spans.ended()["root"]) != trace_of(spans.ended()["other"])


def test_what_belongs_to_no_call_has_no_spans(spans: Spans) -> None:
    assert tracing.child("periodic") is tracing.NOTHING
    assert tracing.sending("t", "Heartbeat", {}) is tracing.NOTHING
    assert tracing.handling("t", [("ce_type", b"Heartbeat")]) is tracing.NOTHING
    assert tracing.handling("t", None) is tracing.NOTHING
    assert spans.ended() == {}


@pytest.mark.parametrize("form", [list, tuple, dict])
def test_a_record_is_handled_under_the_span_of_its_sender(form: Any, spans: Spans) -> None:
    with tracing.within(tracing.begin("call", "server", {}, {})):
        sending = tracing.sending("sluice.requests.streams", "CreateStream", {"sluice.request": "7"})
        headers = [("ce_type", b"CreateStream"), *((k, v.encode()) for k, v in sending.carrier().items())]
        sending.end()
    handling = tracing.handling("sluice.requests.streams", form(headers))
    handling.end()
    assert spans.parent_of("send CreateStream") == "call"
    assert spans.parent_of("handle CreateStream") == "send CreateStream"
    ended = spans.ended()["handle CreateStream"]
    assert ended.kind is SpanKind.CONSUMER
    assert (ended.attributes or {})["messaging.destination.name"] == "sluice.requests.streams"


def test_a_malformed_traceparent_begins_a_trace_of_its_own(spans: Spans) -> None:
    tracing.handling("t", [("ce_type", b"X"), ("traceparent", b"\xff\xfe nonsense")]).end()
    assert spans.ended()["handle X"].parent is None


def test_what_goes_wrong_inside_is_the_error_of_the_span(spans: Spans) -> None:
    call = tracing.begin("call", "server", {}, {})
    with call.active(), pytest.raises(ValueError, match="no"), tracing.within(tracing.child("step")):
        raise ValueError("no")
    call.end()
    assert "ValueError" in (spans.ended()["step"].status.description or "")
    assert spans.ended()["call"].status.is_ok


def test_shared_work_is_seen_in_every_trace_it_serves(spans: Spans) -> None:
    calls = [tracing.begin(f"call {n}", "server", {}, {}) for n in range(2)]
    with tracing.shared("together", (*calls, tracing.NOTHING)) as first:
        first.rename("together, first")
        tracing.child("append").end()
    for call in calls:
        call.end()
    assert spans.parent_of("append") == "together, first" and spans.parent_of("together, first") == "call 0"
    assert spans.parent_of("together") == "call 1"
    (link,) = spans.ended()["together"].links
    assert link.context.span_id == context_of(spans.ended()["together, first"]).span_id


async def test_the_active_span_goes_with_the_task_and_outlives_its_borrower(spans: Spans) -> None:
    with tracing.within(tracing.begin("call", "server", {}, {})):
        borrowed = tracing.current()

    async def later() -> None:
        with tracing.within(borrowed):
            await asyncio.sleep(0)
            tracing.child("later").end()

    await asyncio.get_running_loop().create_task(later())
    assert spans.parent_of("later") == "call"


def test_traces_go_to_the_collector_that_is_set_and_to_none_otherwise() -> None:
    tracing.set_up("service", "instance", "")
    assert not tracing.is_on()
    tracing.set_up("service", "instance", "http://127.0.0.1:9")
    try:
        assert tracing.is_on()
    finally:
        tracing.shut_down()
    assert not tracing.is_on()


def test_the_end_of_traces_does_not_wait_for_a_collector_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    class Stuck(SpanProcessor):
        def shutdown(self) -> None:
            answers.wait(DEADLINE_S)

    monkeypatch.setattr(otlp, "SHUT_DOWN_S", 0.05)
    tracer, began = otlp.OtelTracer("service", "instance", Stuck()), time.monotonic()
    tracer.shut_down()
    assert time.monotonic() - began < DEADLINE_S / 2
    answers.set()
