"""The command line: `python -m sluice_local COMMAND`; `commands` has the part for installations without a clone.

One thread; each command is one function of another module.

`down`, `status` and `clean` import nothing but the standard library and look at no setting but the state folder: they
work when the set-up or the settings are broken.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from sluice_local import launch, running
from sluice_local.errors import LocalError, NotUp
from sluice_local.home import home_of_environment

_COMMANDS = {
    "run": "start everything in the foreground; Ctrl-C stops it",
    "up": "start everything in the background; again: start what has ended",
    "down": "stop what `up` started",
    "status": "show all parts; exit code 3 if one is not ready",
    "clean": "remove the state folder; refused while the system is up",
    "supervise": "what `up` runs in the background",
}


def main(given: Sequence[str] | None = None) -> int:
    """Run one command, of this process if none is given, and return its exit code."""
    parser = argparse.ArgumentParser(prog="sluice_local", description="Sluice, embedded, on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in _COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if name == "run":
            command.add_argument("--with-parent", action="store_true", help="stop when the calling process ends")
        if name == "down":
            command.add_argument("--only", choices=["services"], help="leave Kafka and the data plane")
    arguments = parser.parse_args(given)
    try:
        if arguments.command in ("run", "up", "supervise"):
            return _start(arguments.command, getattr(arguments, "with_parent", False))
        return _look(arguments.command, getattr(arguments, "only", None))
    except NotUp as error:
        print(error, file=sys.stderr)
        return 3
    except LocalError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _look(command: str, only: str | None) -> int:
    home = home_of_environment()
    match command:
        case "down" if only:
            running.stop_services(home)
            print("the services are stopped: `make up` starts them again, `make down` ends all else")
        case "down":
            print("stopped" if running.down(home) else "nothing to stop: no system is up")
        case "status":
            table, ready = running.status_table(home)
            print(table)
            return 0 if ready else 3
        case "clean":
            print(f"removed {home}" if running.clean(home) else "nothing to remove")
    return 0


def _start(command: str, with_parent: bool) -> int:
    from pydantic import ValidationError

    from sluice.validation import sentence
    from sluice_local import background, supervisor
    from sluice_local.settings import LocalSettings, variable_of

    try:
        settings = LocalSettings()
    except ValidationError as error:
        for problem in error.errors():
            field, *inside = (str(part) for part in problem["loc"])
            name = field if field.isupper() else variable_of(field)
            print(f"setting {sentence(dict(problem), '.'.join((name, *inside)))}", file=sys.stderr)
        return 2
    if command == "up":
        background.up(settings)
        return 0
    if with_parent:
        launch.die_with_parent(os.getppid(), signal.SIGTERM)
    return supervisor.supervise(settings, supervisor.say)
