"""`sluice search`: everything that has a name or an id."""

from typing import Annotated

import typer

from sluice_cli.session import Session


def search(
    session: Session,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Part of a name, or the id of a transaction, request or segment.")
    ],
) -> None:
    """Find scopes, streams, reader groups, tables and members by name, and others by id; 50 at most."""
    from sluice_cli.api import path_of

    found = session.rest.get(path_of("search"), q=text)
    session.items(
        found["items"],
        ("kind", "name", "detail"),
        lambda hit: (hit["type"], hit["name"], hit.get("detail")),
        empty="nothing of that name or id",
    )
