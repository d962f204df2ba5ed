"""`sluice workflow`: the long operations that are under way."""

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
    limit: Limit = None,
) -> None:
    """List what is under way."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import WORKFLOW_COLUMNS, workflow_row

    items = session.rest.pages(path_of("workflows"), limit, kind=kind, scope=scope)
    now = session.now_ms
    session.items(items, WORKFLOW_COLUMNS, lambda w: workflow_row(w, now), empty="nothing is under way")


@command(app, "retry")
def retry(session: Session, name: _Aggregate) -> None:
    """Have a workflow that waits for its next attempt try again now."""
    aggregate = aggregate_of(name)
    _change(session, "retry", {"aggregate": aggregate}, f"the workflow of {aggregate} retries now")


@command(app, "cancel")
def cancel(session: Session, name: _Aggregate) -> None:
    """End a creation that is not done, or a scale whose new segments are not known yet, as if it had never begun."""
    aggregate = aggregate_of(name)
    workflow = _running(session, aggregate)
    _change(session, "cancel", {"aggregate": aggregate, "workflow": workflow}, f"{workflow} is being cancelled")


def _running(session: Session, aggregate: str) -> str:
    """The id of the workflow that is under way there. Raises RefusedError."""
    from sluice_cli.api import path_of
    from sluice_cli.errors import RefusedError

    scope = aggregate.partition(":")[2].partition("/")[0]
    items = session.rest.pages(path_of("workflows"), None, scope=scope)
    found = next((item["id"] for item in items if item["aggregate"] == aggregate), None)
    if found is None:
        raise RefusedError(
            f"nothing is under way on {aggregate}", f"`sluice workflow list --scope {scope}` shows what is"
        )
    return str(found)


def _change(session: Session, what: str, body: dict[str, str], done: str) -> None:
    from sluice_cli.api import path_of

    session.done(done, session.rest.change("POST", path_of("workflows", what), body))
