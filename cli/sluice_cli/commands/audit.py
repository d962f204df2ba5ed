"""`sluice audit`: who changed what, when, and on whose request."""

from typing import Annotated

import typer

from sluice_cli.arguments import EventTypes
from sluice_cli.session import Session


def audit(
    session: Session,
    subject: Annotated[
        str, typer.Argument(metavar="SCOPE[/NAME]", help="A scope, or something in it.", show_default=False)
    ],
    begin: Annotated[
        str, typer.Option("--from", metavar="TIME", help="From then on; TIME as in --at of `stream show`.")
    ] = "-1d",
    end: Annotated[str, typer.Option("--to", metavar="TIME", help="Up to then, without it.")] = "now",
    type: EventTypes = None,
    internal: Annotated[
        bool,
        typer.Option("--internal", help="Also internal streams, and transactions prepared ahead."),
    ] = False,
) -> None:
    """Show who changed what, when, and on whose request: from the journal, and from the archive what is older.

    `principal` is who called, if the gateway knows callers; `by` is the instance that
    recorded it; `sluice trace REQUEST` shows a request's whole history.
    """
    from sluice.lookback.filters import event_types
    from sluice.lookback.times import show_time, since_of, time_of
    from sluice_cli.records.audit import PREPARING, Subject
    from sluice_cli.records.audit import audit as audited
    from sluice_cli.units import scoped

    types = event_types(type or ())
    wanted = Subject(*scoped(subject)) if "/" in subject else Subject(subject, internal=internal)
    since_ms, until_ms = since_of(begin, session.now_ms), time_of(end, session.now_ms)
    found = audited(session.records, wanted, since_ms, until_ms, session.out.progress)
    session.items(
        (
            {name: getattr(one, name) for name in one.__struct_fields__}
            for one in found
            if (one.type in types if types else internal or one.type not in PREPARING)
        ),
        ("at", "name", "event", "facts", "principal", "by", "request"),
        lambda c: (show_time(c["at"]), c["name"], c["type"], c["facts"], c["principal"], c["by"], c["request"]),
        empty=f"nothing of {subject} changed from {show_time(since_ms)} to {show_time(until_ms)}"
        + ("" if internal else "; --internal shows what Sluice keeps for itself, too"),
    )
