"""`sluice scope`: scopes."""

from typing import Annotated

import typer

from sluice_cli.arguments import At, Limit, Scope
from sluice_cli.command import command, group
from sluice_cli.confirmation import Yes, confirm, scope_losses
from sluice_cli.session import Session

app = group("Scopes: the folders that streams, reader groups and tables live in.")


@command(app, "list")
def list_scopes(session: Session, limit: Limit = None) -> None:
    """List the scopes."""
    from sluice_cli.api import path_of

    items = session.rest.pages(path_of("scopes"), limit)
    session.items(items, ("scope",), lambda s: (s["name"],), empty="there is no scope")


@command(app, "create")
def create(session: Session, scope: Scope) -> None:
    """Create a scope; one that is there already is left as it is."""
    from sluice_cli.api import path_of

    answer = session.rest.change("PUT", path_of("scopes", scope))
    session.done(f"scope {scope} {'created' if answer.status == 201 else 'was there already'}", answer)


@command(app, "show")
def show(session: Session, scope: Scope, at: At = None) -> None:
    """Show what a scope holds, now or at a time."""
    from sluice_cli.rendering import draw_past_scope, draw_scope

    if at is None:
        from sluice_cli.api import path_of

        session.show(session.rest.get(path_of("scopes", scope)), draw_scope)
    else:
        from sluice.lookback.replay import scope_at
        from sluice.lookback.times import moment_of

        moment = moment_of(at, session.now_ms)
        session.show(scope_at(session.records, scope, moment, session.out.progress), draw_past_scope)


@command(app, "delete")
def delete(
    session: Session,
    scope: Scope,
    recursive: Annotated[
        bool, typer.Option("--recursive", help="With everything in it: all data of all its streams is gone.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete a scope, which must be empty unless --recursive is given; asks first at a terminal."""
    from sluice_cli.api import path_of
    from sluice_cli.deletion import delete_all

    if recursive:
        confirm(session, f"Deleting scope {scope} with everything in it", lambda: scope_losses(session, scope), yes=yes)
        answer = delete_all(session.rest, scope, session.out.progress)
    else:
        answer = session.rest.change("DELETE", path_of("scopes", scope))
    session.done(f"scope {scope} deleted", answer)
