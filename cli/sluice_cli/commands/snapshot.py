"""`sluice snapshot`: the snapshots of the journal."""

from typing import Annotated

import typer

from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Snapshots: the states of the journal's partitions, from which services begin.")


@command(app, "list")
def list_snapshots(
    session: Session,
    check: Annotated[bool, typer.Option("--check", help="Read all of each, and compare its checksums.")] = False,
) -> None:
    """List the snapshots, newest first, with why one of them may not be used."""
    from sluice.lookback.snapshots import snapshot_documents
    from sluice_cli.units import show_age, show_size

    session.items(
        snapshot_documents(session.records, check=check),
        (">partition", ">offset", ">age", ">parts", ">size", "confirmed by", "problem"),
        lambda s: (
            s["partition"],
            s.get("offset"),
            show_age(s["at"], session.now_ms) if "at" in s else None,
            sum(s.get("parts", {}).values()) or None,
            show_size(s["bytes"]) if "bytes" in s else None,
            ", ".join(s.get("confirmedBy", ())),
            s["problem"],
        ),
        empty="there is no snapshot yet",
    )
