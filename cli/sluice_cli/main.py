"""Where the command line is put together."""

import typer

app = typer.Typer(name="sluice", no_args_is_help=True, help="Command Sluice, and look into it.")


def main() -> None:
    """Run the command line."""
    app()
