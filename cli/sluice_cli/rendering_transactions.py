"""How overviews of transactions are shown."""

from typing import Any

from sluice.lookback.times import show_time
from sluice_cli.output import Output
from sluice_cli.rendering import workflow_text
from sluice_cli.units import show_age

_OUTCOMES = {
    "committed": "committed",
    "abortedByUser": "by user",
    "abortedByLease": "by lease",
    "abortedBySeal": "by seal",
    "abortedByRestore": "by restore",
}


def draw_transaction_summary(out: Output, found: dict[str, Any]) -> None:
    """A line for each bucket of time in which a transaction ended."""
    columns = ("from", *(f">{name}" for name in _OUTCOMES.values()))
    rows = ((show_time(one["at"]), *(one[key] or "" for key in _OUTCOMES)) for one in found["items"])
    out.table(columns, rows, empty=f"no transaction ended after {show_time(found['from'])}, as far as is remembered")
    if "firstAt" in found:
        out.text(f"what ended before {show_time(found['firstAt'])} is not remembered")


def draw_commits(out: Output, found: dict[str, Any], now_ms: int) -> None:
    """The batch, what it waits for, and the first commits behind it."""
    batch = found.get("batch")
    out.fields(
        (
            ("batch", f"{len(batch['ids'])} transactions for {show_age(batch['since'], now_ms)}" if batch else "none"),
            ("under way", workflow_text(batch["workflow"]) if batch else ""),
            ("waits for", found.get("waitsFor")),
            ("behind it", found["waiting"]),
        )
    )
    columns = (">queue position", "transaction", ">waits for")
    rows = (
        (one["position"], one["id"], show_age(one["waitsSince"], now_ms) if "waitsSince" in one else "")
        for one in found["queue"]
    )
    out.table(columns, rows, empty="no commit waits")
