"""Commands that other distributions add: entry points of the group `sluice.commands`.

An entry point names a `typer.Typer`; its own name is the command's. It is loaded when that command is run, completed or
listed, so that the command line neither knows who extends it nor waits for it. One that cannot be loaded is listed as
such and says why when it is run; everything else works. A command of the command line itself cannot be replaced.

Plug-ins may build on `sluice_cli.command`, `errors`, `units` and `session`, so that their options, errors and exit
codes are those of all other commands.
"""

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

GROUP = "sluice.commands"


class ExtensibleGroup(TyperGroup):
    """The commands of the command line and, after them, those of plug-ins, in the order of names."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names, own ones first."""
        own = super().list_commands(ctx)
        return [*own, *sorted(name for name in _found() if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, None if there is none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        entry = _found().get(cmd_name)
        return None if entry is None else _command_of(entry)


def _found() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        # As with modules, the first one on the path counts.
        found.setdefault(entry.name, entry)
    return found


def _command_of(entry: EntryPoint) -> Any:
    try:
        app = entry.load()
        if not isinstance(app, typer.Typer):
            raise TypeError(f"{entry.value} is {type(app).__name__}, not a typer.Typer")
        return _named(app, entry.name)
    except Exception as error:  # noqa: BLE001 - reported when the command is run
        return _broken(entry, error)


def _named(app: typer.Typer, name: str) -> Any:
    """Put the plug-in's commands under the name of its entry point, with help as the command line writes it."""
    around = typer.Typer(rich_markup_mode=None, add_completion=False)
    around.add_typer(app, name=name)
    return get_command(around).commands[name]  # type: ignore[attr-defined]


def _broken(entry: EntryPoint, error: Exception) -> Any:
    reason = f"{type(error).__name__}: {error}"
    whose = f"the distribution {entry.dist.name} {entry.dist.version}" if entry.dist else "a distribution"

    def report() -> None:
        sys.stderr.write(f"Error: the command {entry.name} cannot be loaded: {reason}\n")
        sys.stderr.write(f"  It is part of {whose}; install that anew, or remove it.\n")
        raise typer.Exit(1)

    report.__doc__ = f"Cannot be loaded: {reason}"
    around = typer.Typer(rich_markup_mode=None, add_completion=False)
    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    around.command(entry.name, context_settings=anything)(report)
    return get_command(around)
