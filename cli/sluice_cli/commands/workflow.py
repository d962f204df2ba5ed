"""`sluice workflow`: the long operations that are under way."""

from enum import StrEnum
from typing import Annotated

import typer

from sluice_cli.arguments import Limit
from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Workflows: what is under way, since when, and what keeps it.")

_Aggregate = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="What it works on, as the list shows it (stream:demo/orders); demo/orders is a stream, demo a scope.",
        show_default=False,
    ),
]


_Aggregates = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...",
        help="What they work on, as the list shows it; at most 200.",
        show_default=False,
    ),
]


class _State(StrEnum):
    FAILING = "failing"
    WAITING = "waiting"
    RUNNING = "running"
    QUEUED = "queued"


class _Sort(StrEnum):
    AGGREGATE = "aggregate"
    SINCE = "since"


def aggregate_of(name: str) -> str:
    """The aggregate's name: a name without a kind is that of a stream, or of a scope."""
    if ":" in name:
        return name
    return f"stream:{name}" if "/" in name else f"scope:{name}"


@command(app, "list")
def list_workflows(
    session: Session,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Such as scale-stream.")] = None,
    scope: Annotated[str | None, typer.Option("--scope", metavar="SCOPE")] = None,
    state: Annotated[_State | None, typer.Option("--state", help="Only those that get on like this.")] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="In name, kind, step or error.")] = None,
    sort: Annotated[_Sort | None, typer.Option("--sort", help="By name, or the longest under way first.")] = None,
    limit: Limit = None,
) -> None:
    """List what is under way or queued, and what keeps it."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import WORKFLOW_COLUMNS, workflow_row

    items = session.rest.pages(path_of("workflows"), limit, kind=kind, scope=scope, state=state, q=text, sort=sort)
    now = session.now_ms
    session.items(items, WORKFLOW_COLUMNS, lambda w: workflow_row(w, now), empty="nothing is under way")


@command(app, "retry")
def retry(session: Session, names: _Aggregates) -> None:
    """Have workflows that wait for their next attempts try again now."""
    from sluice.domain.status import Status
    from sluice_cli.api import path_of
    from sluice_cli.errors import RefusedError

    aggregates = [aggregate_of(name) for name in names]
    if len(aggregates) == 1:
        _change(session, "retry", {"aggregate": aggregates[0]}, f"the workflow of {aggregates[0]} retries now")
        return
    answer = session.rest.change("POST", path_of("workflows", "retry-each"), {"aggregates": aggregates})
    session.items(
        answer.body["items"],
        ("on", "status", "detail", "request"),
        lambda item: (item["aggregate"], item["status"], item.get("detail"), item["request"]),
        empty="nothing was retried",
    )
    refused = sum(item["status"] != Status.SUCCESS for item in answer.body["items"])
    if refused:
        raise RefusedError(f"{refused} of {len(answer.body['items'])} do not retry")


@command(app, "cancel")
def cancel(session: Session, name: _Aggregate) -> None:
    """End a creation, a scale without new segments or the plain deletion of a scope, as if it had never begun."""
    aggregate = aggregate_of(name)
    workflow = _running(session, aggregate)
    _change(session, "cancel", {"aggregate": aggregate, "workflow": workflow}, f"{workflow} is being cancelled")


def _running(session: Session, aggregate: str) -> str:
    """The id of the workflow that is under way there. Raises RefusedError."""
    from sluice_cli.api import path_of
    from sluice_cli.errors import RefusedError

    scope = aggregate.partition(":")[2].partition("/")[0]
    items = session.rest.pages(path_of("workflows"), None, scope=scope)
    found = next((item["id"] for item in items if item["aggregate"] == aggregate and item["id"]), None)
    if found is None:
        raise RefusedError(
            f"nothing is under way on {aggregate}", f"`sluice workflow list --scope {scope}` shows what is"
        )
    return str(found)


def _change(session: Session, what: str, body: dict[str, str], done: str) -> None:
    from sluice_cli.api import path_of

    session.done(done, session.rest.change("POST", path_of("workflows", what), body))
