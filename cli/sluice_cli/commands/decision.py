"""`sluice decision`: what was decided on scaling and retention, and why."""

from sluice_cli.arguments import Stream
from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Decisions on scaling and retention, with their reasons.")


@command(app, "list")
def list_decisions(session: Session, stream: Stream) -> None:
    """List the last decisions on a stream."""
    from sluice_cli.api import path_of
    from sluice_cli.units import scoped, show_time

    scope, name = scoped(stream)
    found = session.rest.get(path_of("scopes", scope, "streams", name, "decisions"))
    session.items(
        found["items"],
        ("at", "kind", "decision", "reason"),
        lambda d: (show_time(d.get("at")), d.get("kind"), d.get("code"), d.get("reason")),
        empty=f"nothing was decided on {stream} yet",
    )
