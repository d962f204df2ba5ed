"""How the history of a request is shown."""

from typing import Any

import msgspec

from sluice_cli.output import Output
from sluice_cli.records.tracing import Trace
from sluice_cli.records.wording import answer
from sluice_cli.units import show_time

_LONGEST = 200


def document(trace: Trace) -> dict[str, Any]:
    """The trace as JSON has it; times in epoch ms, spans in ms."""
    first = trace.steps[0].at
    return {
        "request": trace.request,
        **({"principal": trace.principal} if trace.principal else {}),
        "began": first,
        "answer": {
            "status": trace.answer.status,
            **({"reason": trace.answer.reason} if trace.answer.reason else {}),
            "at": trace.answer_at,
            "after": trace.answer_at - first,
        }
        if trace.answer is not None and trace.answer_at is not None
        else None,
        "steps": [
            {
                "at": step.at,
                "sinceStart": step.since_start,
                "took": step.took,
                "what": step.what,
                "says": step.says,
                "request": step.request,
                "types": list(step.types),
                "topic": step.topic,
                "partition": step.partition,
                "offset": step.offset,
                "by": step.by,
                **({"entry": step.entry, "outcome": step.outcome} if step.outcome else {}),
            }
            for step in trace.steps
        ],
        "running": [msgspec.to_builtins(running) for running in trace.running],
    }


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
