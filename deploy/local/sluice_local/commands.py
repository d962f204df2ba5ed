"""`sluice up`, `sluice down` and `sluice status`, where this package is installed beside the command line.

They are `make up`, `make down` and `make status` without a clone; `up` fetches the Java programs first. One thread.
"""

import os

import typer

from sluice_local import cli, setup

up = typer.Typer(
    subcommand_metavar="", help="Start a whole system in the background, with Kafka; again: start what has ended."
)
down = typer.Typer(subcommand_metavar="", help="Stop what `sluice up` started; the data stay.")
status = typer.Typer(subcommand_metavar="", help="Show all parts of that system; exit code 3 if one is not ready.")


@up.callback(invoke_without_command=True)
def start() -> None:
    """A small one, unless PROFILE says otherwise: what wheels bring along is enough for that."""
    os.environ.setdefault("PROFILE", "small")
    raise typer.Exit(setup.main(setup.set_up_programs) or cli.main(["up"]))


@down.callback(invoke_without_command=True)
def stop() -> None:
    """See `running.down`."""
    raise typer.Exit(cli.main(["down"]))


@status.callback(invoke_without_command=True)
def show() -> None:
    """See `running.status_table`."""
    raise typer.Exit(cli.main(["status"]))
