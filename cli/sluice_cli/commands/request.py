"""`sluice request`: the requests that were replied to, by outcome. `sluice trace` has the history of one."""

from typing import Annotated, Any

import typer

from sluice_cli.arguments import Limit
from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Requests that were replied to, and how.")


@command(app, "list")
def list_requests(
    session: Session,
    begin: Annotated[
        str, typer.Option("--from", metavar="TIME", help="All since then; TIME as in --at of `stream show`.")
    ] = "-1h",
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Before; now unless given.")] = None,
    refused: Annotated[bool | None, typer.Option("--refused/--done", help="Only those that were, or were not.")] = None,
    limit: Limit = None,
) -> None:
    """List requests with their replies, the latest first."""
    from sluice.lookback.times import moment_of
    from sluice_cli.api import path_of
    from sluice_cli.rendering_traces import REQUEST_COLUMNS, request_row

    chosen: dict[str, Any] = {"from": moment_of(begin, session.now_ms), "refused": refused}
    if end is not None:
        chosen["to"] = moment_of(end, session.now_ms)
    items = session.rest.pages(path_of("requests"), limit, **chosen)
    session.items(items, REQUEST_COLUMNS, request_row, empty="no request was replied to in that time")
