"""`sluice trace`: the history of one request."""

from typing import Annotated

import typer

from sluice_cli.session import Session


def trace(
    session: Session,
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="Its id, as every change says it.", show_default=False)
    ],
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="How far back to look; TIME as in --at of `stream show`.")
    ] = "-1h",
) -> None:
    """Show the history of a request over all topics, in order and with times.

    Where it was sent, what was decided, what its workflow did, which commands that sent, when it was answered.
    """
    from sluice.lookback.times import show_time, since_of
    from sluice.lookback.tracing import document
    from sluice.lookback.tracing import trace as traced
    from sluice_cli.errors import RefusedError
    from sluice_cli.rendering_traces import draw_trace

    since_ms = since_of(since, session.now_ms)
    found = traced(session.records, request, since_ms, session.out.progress)
    if not found.steps:
        raise RefusedError(
            f"no record since {show_time(since_ms)} belongs to request {request}",
            "look further back with --since 1d; every change prints its id, and so does `sluice topic tail`",
        )
    if session.json:
        session.out.document(document(found))
    else:
        draw_trace(session.out, found)
