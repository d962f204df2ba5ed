"""`sluice transaction`: the transactions of a stream."""

from typing import Annotated, Any

import typer

from sluice_cli.arguments import Limit, Stream, Transaction
from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Transactions: open ones, waiting ones, ended ones.")

_STATES = ("open", "waiting", "ended")
_Lease = Annotated[str, typer.Option("--lease", metavar="TIME", help="How long it lives without a ping.")]


def _path(stream: str, *more: str) -> str:
    from sluice_cli.api import path_of
    from sluice_cli.units import scoped

    scope, name = scoped(stream)
    return path_of("scopes", scope, "streams", name, "transactions", *more)


@command(app, "list")
def list_transactions(
    session: Session,
    stream: Stream,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="|".join(_STATES), help="Which ones; else all that have not ended."),
    ] = None,
    limit: Limit = None,
) -> None:
    """List a stream's transactions: the first ones first, those that have ended the last ones first."""
    from sluice_cli.errors import UsageError
    from sluice_cli.rendering import TRANSACTION_COLUMNS, transaction_row

    if state not in (None, *_STATES):
        raise UsageError(f"{state!r} is no state to list", f"use {', '.join(_STATES)}")
    items = session.rest.pages(_path(stream), limit, state=state)
    session.items(items, TRANSACTION_COLUMNS, transaction_row, empty=f"{stream} has no such transactions")


@command(app, "show")
def show(session: Session, stream: Stream, transaction: Transaction) -> None:
    """Show one transaction."""
    from sluice_cli.rendering import draw_transaction

    session.show(session.rest.get(_path(stream, transaction)), draw_transaction)


@command(app, "summary")
def summary(
    session: Session,
    stream: Stream,
    bucket: Annotated[str, typer.Option("--bucket", metavar="TIME", help="How long a bucket of time is.")] = "5m",
    begin: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="TIME as in --at; a day before the end unless given.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Now unless given.")] = None,
) -> None:
    """Count how a stream's transactions ended, by bucket of time."""
    from sluice.lookback.times import duration_of, time_of
    from sluice_cli.rendering_transactions import draw_transaction_summary

    moments = {name: time_of(text, session.now_ms) for name, text in (("from", begin), ("to", end)) if text is not None}
    found = session.rest.get(_path(stream, "summary"), bucket=duration_of(bucket), **moments)
    session.show(found, draw_transaction_summary)


@command(app, "waiting")
def waiting(
    session: Session,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, metavar="N", help="At most so many streams.")] = 100,
) -> None:
    """List the streams with transactions now or within a day, those with the most waiting commits first."""
    from sluice_cli.api import path_of
    from sluice_cli.units import show_age

    found = session.rest.get(path_of("transactions"), sort="waiting", limit=limit)
    now = session.now_ms
    session.items(
        found["items"],
        ("stream", ">waiting", ">first for", ">aborting", ">open", ">ended", ">last ago"),
        lambda s: (
            s["stream"],
            s["waiting"],
            show_age(s["oldestWaitingAt"], now) if "oldestWaitingAt" in s else "",
            s["aborting"],
            s["open"],
            s["ended"],
            show_age(s["endedAt"], now) if "endedAt" in s else "",
        ),
        empty="no stream has a transaction, or had one within a day",
    )


@command(app, "commits")
def commits(session: Session, stream: Stream) -> None:
    """Show the commits of a stream: the batch that is being merged, and those that wait behind it."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering_transactions import draw_commits
    from sluice_cli.units import scoped

    scope, name = scoped(stream)
    now = session.now_ms
    found = session.rest.get(path_of("scopes", scope, "streams", name, "commits"))
    session.show(found, lambda out, f: draw_commits(out, f, now))


@command(app, "begin")
def begin(session: Session, stream: Stream, lease: _Lease = "30s") -> None:
    """Open a transaction and say its id."""
    from sluice.lookback.times import duration_of

    answer = session.rest.change("POST", _path(stream), {"leaseMs": duration_of(lease)})
    id = answer.body["id"]
    session.done(f"transaction {id} of {stream} is open for {lease} from now, and from every ping", answer)


@command(app, "ping")
def ping(session: Session, stream: Stream, transaction: Transaction, lease: _Lease = "30s") -> None:
    """Extend the lease of a transaction."""
    from sluice.lookback.times import duration_of

    _request(session, stream, transaction, "ping", f"lives for another {lease}", {"leaseMs": duration_of(lease)})


@command(app, "commit")
def commit(session: Session, stream: Stream, transaction: Transaction) -> None:
    """Commit a transaction: what was written to it becomes part of the stream."""
    _request(session, stream, transaction, "commit", "is being committed")


@command(app, "abort")
def abort(session: Session, stream: Stream, transaction: Transaction) -> None:
    """Abort a transaction: what was written to it is gone."""
    _request(session, stream, transaction, "abort", "is being aborted")


def _request(session: Session, stream: str, transaction: str, what: str, done: str, body: Any = None) -> None:
    answer = session.rest.change("POST", _path(stream, transaction, what), body)
    session.done(f"transaction {transaction} {done}", answer)
