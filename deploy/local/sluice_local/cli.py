"""The command line: `python -m sluice_local COMMAND`. One thread; each command is one function of another module."""

import argparse
import os
import shutil
import signal
import sys

from pydantic import ValidationError

from sluice.validation import sentence
from sluice_local import background, launch, supervisor
from sluice_local.errors import AlreadyUp, LocalError, NotUp
from sluice_local.settings import LocalSettings, variable_of

_COMMANDS = {
    "run": "start everything in the foreground; Ctrl-C stops it",
    "up": "start everything in the background; again: start what has ended",
    "down": "stop what `up` started",
    "status": "show all parts; exit code 3 if one is not ready",
    "clean": "remove the state folder; refused while the system is up",
    "supervise": "what `up` runs in the background",
}


def main() -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="sluice_local", description="Sluice, embedded, on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in _COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if name == "run":
            command.add_argument("--with-parent", action="store_true", help="stop when the calling process ends")
    arguments = parser.parse_args()
    try:
        return _run(arguments.command, LocalSettings(), getattr(arguments, "with_parent", False))
    except ValidationError as error:
        for problem in error.errors():
            field = "_".join(str(one) for one in problem["loc"])
            name = field if field.isupper() else variable_of(field)
            print(f"setting {sentence(dict(problem), name)}", file=sys.stderr)
        return 2
    except NotUp as error:
        print(error, file=sys.stderr)
        return 3
    except LocalError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(command: str, settings: LocalSettings, with_parent: bool) -> int:
    match command:
        case "run" | "supervise":
            if with_parent:
                launch.die_with_parent(os.getppid(), signal.SIGTERM)
            return supervisor.supervise(settings, supervisor.say)
        case "up":
            background.up(settings)
        case "down":
            print("stopped" if background.down(settings) else "nothing to stop: no system is up")
        case "status":
            table, ready = background.status_table(settings)
            print(table)
            return 0 if ready else 3
        case "clean":
            _clean(settings)
    return 0


def _clean(settings: LocalSettings) -> None:
    if not settings.home.exists():
        print("nothing to remove")
        return
    try:
        with supervisor.Ownership(settings):
            shutil.rmtree(settings.home)
    except AlreadyUp:
        raise AlreadyUp(f"a system is up on {settings.home}: stop it first, with `make down`") from None
    print(f"removed {settings.home}")
