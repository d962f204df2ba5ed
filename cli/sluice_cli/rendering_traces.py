"""How requests with their replies are shown, and the history of one."""

from typing import Any

from sluice.lookback.times import show_time
from sluice.lookback.tracing import Trace
from sluice.lookback.wording import answer
from sluice_cli.output import Output

_LONGEST = 200
REQUEST_COLUMNS = ("at", "status", "about", "reason or events", "caller", "request")


def request_row(one: dict[str, Any]) -> tuple[object, ...]:
    return (
        show_time(one["at"]),
        one["status"],
        ", ".join(one["aggregates"]),
        one.get("reason") or ", ".join(one["types"]),
        one.get("principal"),
        one["request"],
    )


def draw_trace(out: Output, trace: Trace) -> None:
    """A row for each step, and how it ended."""
    rows = (
        (
            show_time(step.at)[11:],
            f"+{step.since_start}",
            step.took,
            step.what,
            f"{step.topic.removeprefix('sluice.')} {step.partition}@{step.offset}",
            step.by.rpartition("/")[2],
            step.says if len(step.says) <= _LONGEST else f"{step.says[: _LONGEST - 1]}…",
        )
        for step in trace.steps
    )
    caller = f" of {trace.principal}" if trace.principal else ""
    out.text(f"request {trace.request}{caller}, {show_time(trace.steps[0].at)[:10]}")
    out.table(("time", ">ms", ">took", "what", "where", "by", "says"), rows, empty="")
    if trace.answer is not None and trace.answer_at is not None:
        out.text(f"answered {answer(trace.answer)} after {trace.answer_at - trace.steps[0].at} ms")
    else:
        out.text("no answer in the journal")
    for running in trace.running:
        out.text(f"still under way: {running.kind} on {running.aggregate} since {show_time(running.since)}")
        if running.attempts:
            out.text(f"  step {running.step} failed {running.attempts} times: {running.last_error}")
        elif running.last_error:
            out.text(f"  step {running.step} {running.last_error}")
