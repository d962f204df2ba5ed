"""`sluice table`: key-value tables."""

from typing import Annotated, Any

import typer

from sluice_cli.arguments import At, Limit, Scope, Table
from sluice_cli.command import command, group
from sluice_cli.confirmation import Yes, confirm, table_losses
from sluice_cli.output import Output
from sluice_cli.session import Session

app = group("Key-value tables.")


def path(name: str) -> str:
    """The path of a table. Raises UsageError."""
    from sluice_cli.api import path_of
    from sluice_cli.units import scoped

    scope, own = scoped(name, "table")
    return path_of("scopes", scope, "tables", own)


@command(app, "list")
def list_tables(session: Session, scope: Scope, limit: Limit = None) -> None:
    """List the key-value tables of a scope."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import state_text

    session.items(
        session.rest.pages(path_of("scopes", scope, "tables"), limit),
        ("table", "state", ">partitions"),
        lambda t: (t["name"], state_text(t), t["partitionCount"]),
        empty=f"scope {scope} has no tables",
    )


@command(app, "show")
def show(session: Session, table: Table, at: At = None) -> None:
    """Show a key-value table, now or at a time."""
    from sluice_cli.rendering import draw_past_table, draw_table

    if at is None:
        session.show(session.rest.get(path(table)), draw_table)
    else:
        from sluice.lookback.replay import table_at
        from sluice.lookback.times import moment_of
        from sluice_cli.units import scoped

        moment = moment_of(at, session.now_ms)
        found = table_at(session.records, *scoped(table, "table"), moment, session.out.progress)
        session.show(found, draw_past_table)


@command(app, "size")
def size(session: Session, table: Table) -> None:
    """Count the entries of a table's partitions."""
    from sluice_cli.units import segment_text

    def draw(out: Output, found: dict[str, Any]) -> None:
        rows = ((segment_text(one["id"]), one["entries"]) for one in found["partitions"])
        out.table(("partition", ">entries"), rows, empty="no segment store answers")
        at_least = "" if found["complete"] else "at least "
        out.fields((("entries", f"{at_least}{found['entries']}" if "entries" in found else "unknown"),))

    session.show(session.rest.get(f"{path(table)}/size"), draw)


@command(app, "create")
def create(
    session: Session,
    table: Table,
    partitions: Annotated[int, typer.Option("--partitions", min=1, metavar="N")] = 1,
    key_bytes: Annotated[int, typer.Option("--key-bytes", min=1, metavar="N", help="Length of a key.")] = 16,
    secondary_key_bytes: Annotated[
        int, typer.Option("--secondary-key-bytes", min=0, metavar="N", help="Length of a secondary key; 0: none.")
    ] = 0,
    rollover: Annotated[str, typer.Option("--rollover", metavar="SIZE", help="Of a segment's parts.")] = "0",
) -> None:
    """Create a key-value table; one that is there with the same configuration is left as it is."""
    from sluice_cli.units import size_of

    body = {
        "partitionCount": partitions,
        "primaryKeyLength": key_bytes,
        "secondaryKeyLength": secondary_key_bytes,
        "rolloverSizeBytes": size_of(rollover),
    }
    answer = session.rest.change("PUT", path(table), body)
    session.done(f"table {table} {'created' if answer.status == 201 else 'was there already'}", answer)


@command(app, "delete")
def delete(session: Session, table: Table, yes: Yes = False) -> None:
    """Delete a key-value table with all that is in it; asks first at a terminal."""
    one = path(table)
    confirm(session, f"Deleting table {table}", lambda: table_losses(session, one), yes=yes)
    session.done(f"table {table} deleted", session.rest.change("DELETE", one))
