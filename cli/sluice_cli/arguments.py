"""Arguments and options that several commands have."""

from typing import Annotated

import typer

from sluice_cli import completion
from sluice_cli.addresses import Address
from sluice_cli.command import rule

Scope = Annotated[str, typer.Argument(metavar="SCOPE", autocompletion=completion.scopes, show_default=False)]
Stream = Annotated[str, typer.Argument(metavar="SCOPE/STREAM", autocompletion=completion.streams, show_default=False)]
Group = Annotated[str, typer.Argument(metavar="SCOPE/GROUP", autocompletion=completion.groups, show_default=False)]
Table = Annotated[str, typer.Argument(metavar="SCOPE/TABLE", autocompletion=completion.tables, show_default=False)]
Transaction = Annotated[str, typer.Argument(metavar="TRANSACTION", help="Its id, a UUID.", show_default=False)]

Controller = Annotated[
    str | None,
    typer.Option(
        "--controller", metavar="URL", help=f"The controller, by gRPC; {rule(Address.CONTROLLER)}.", show_default=False
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many; else all.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="As it was then, from the journal: 2026-01-31T12:00:00Z, -10m, or epoch milliseconds.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say in numbers what it would do, and do nothing.")]
EventTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type", metavar="NAME", help="Only that type of event; repeated, or with commas.", show_default=False
    ),
]
Begin = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="From then on; TIME as in --at.", show_default=False)
]
End = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="Up to then; else up to now.", show_default=False)
]
