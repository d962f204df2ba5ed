"""`sluice container` and `sluice member`: who runs what, who ran it, and when."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from sluice_cli.arguments import At, Begin, End
from sluice_cli.command import command, group
from sluice_cli.session import Session

containers = group("Segment containers: which segment store runs which.")
members = group("Members: the instances of Sluice's own services.")


@command(containers, "list")
def list_containers(session: Session, at: At = None) -> None:
    """List the containers with the segment stores that run them, now or at a time."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import draw_containers

    if at is None:
        session.show(session.rest.get(path_of("containers")), draw_containers)
    else:
        from sluice.lookback.replay import containers_at
        from sluice.lookback.times import moment_of

        moment = moment_of(at, session.now_ms)
        session.show(containers_at(session.records, moment, session.out.progress), draw_containers)


@command(containers, "history")
def containers_history(session: Session, begin: Begin = None, end: End = None) -> None:
    """List which segment store ran which container, and when; without --from of the last day."""
    _history(
        session,
        "containers",
        (begin, end),
        (">container", "segment store"),
        lambda c: (c["container"], c["store"]),
    )


_Store = Annotated[
    str, typer.Argument(metavar="STORE", help="host:port, as `container list` shows it.", show_default=False)
]


@command(containers, "drain")
def drain(session: Session, store: _Store) -> None:
    """Have a segment store run no container from now on, as long as another one is there."""
    _change(session, "drain", {"store": store}, f"the containers of {store} move to other segment stores")


@command(containers, "undrain")
def undrain(session: Session, store: _Store) -> None:
    """Have a segment store that was drained take its share of the containers."""
    _change(session, "undrain", {"store": store}, f"{store} gets its share of the containers")


@command(containers, "rebalance")
def rebalance(session: Session) -> None:
    """Measure for some seconds what is written to each container, and spread them over the segment stores by it."""
    _change(session, "rebalance", None, "containers are spread by what is written to them")


def _change(session: Session, what: str, body: dict[str, str] | None, done: str) -> None:
    from sluice_cli.api import path_of

    session.done(done, session.rest.change("POST", path_of("containers", what), body))


@command(members, "list")
def list_members(session: Session, at: At = None) -> None:
    """List the instances with their endpoints and their last heartbeat, now or at a time."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import MEMBER_COLUMNS, member_row

    now = session.now_ms
    if at is None:
        found = session.rest.pages(path_of("members"))
    else:
        from sluice.lookback.replay import members_at
        from sluice.lookback.times import moment_of

        found = members_at(session.records, moment_of(at, now), session.out.progress)["items"]
    session.items(found, MEMBER_COLUMNS, lambda m: member_row(m, now), empty="no instance is known")


@command(members, "history")
def members_history(session: Session, begin: Begin = None, end: End = None) -> None:
    """List which instances there were, when, and why they ended; without --from of the last day."""
    _history(session, "members", (begin, end), ("service", "instance"), lambda m: (m["service"], m["instance"]))


def _history(
    session: Session,
    what: str,
    interval: tuple[str | None, str | None],
    columns: Sequence[str],
    row: Callable[[Any], Sequence[object]],
) -> None:
    from sluice.lookback.times import show_time
    from sluice_cli.api import path_of

    begin, end = interval
    found = session.rest.get(path_of(what, "history"), **{"from": begin, "to": end})
    session.items(
        found["items"],
        (*columns, "from", "to", "why"),
        lambda one: (*row(one), show_time(one["from"]), show_time(one.get("to")), one.get("why")),
        empty="there were none",
    )
    if not found["complete"]:
        session.remark(f"Searched to {show_time(found['searchedTo'])}; go on with --from {found['searchedTo']}.")
