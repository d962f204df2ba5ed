"""`sluice demonstration`: a program of the gateway that fills an empty system."""

from typing import Any

from sluice_cli.command import command, group
from sluice_cli.output import Output
from sluice_cli.session import Session

app = group("The demonstration: a program of the gateway that fills a scope of its own, to look at.")


@command(app, "show")
def show(session: Session) -> None:
    """Show whether it runs, and since when."""
    from sluice_cli.api import path_of

    session.show(session.rest.get(path_of("demonstration")), _draw)


@command(app, "start")
def start(session: Session) -> None:
    """Start it: a stream that scales by itself, transactions, a reader group."""
    from sluice_cli.api import path_of

    session.show(session.rest.change("POST", path_of("demonstration")).body, _draw)


@command(app, "stop")
def stop(session: Session) -> None:
    """End it; what it has made stays: `sluice scope delete demonstration --recursive`."""
    from sluice_cli.api import path_of

    session.show(session.rest.change("DELETE", path_of("demonstration")).body, _draw)


def _draw(out: Output, found: Any) -> None:
    from sluice.lookback.times import show_time

    if found["running"]:
        out.text(f"runs since {show_time(found['since'])}, in the scope {found['scope']}")
    else:
        why = found.get("refusal") or found.get("problem")
        out.text(f"does not run: {why}" if why else "does not run")
