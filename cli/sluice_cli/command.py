"""How a command is declared: a function of a session and its own arguments.

The options that all commands share are added to each one's signature here, so that `--json` may stand where users
write it, at the end; they may stand before the command, too, where the one after it counts. Errors become sentences on
stderr and exit codes here, too.
"""

import inspect
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from sluice_cli.addresses import DEFAULTS, VARIABLES, Address
from sluice_cli.errors import as_command_error
from sluice_cli.output import harmless
from sluice_cli.session import Session

P = ParamSpec("P")

_CONTEXT = "typer_context"


def rule(which: Address) -> str:
    """Where an address is from without its option, for help."""
    return f"else {VARIABLES[which]}, the context in use, or {DEFAULTS[which]}"


Api = Annotated[
    str | None, typer.Option("--api", metavar="URL", help=f"The api-gateway; {rule(Address.API)}.", show_default=False)
]
Kafka = Annotated[
    str | None,
    typer.Option("--kafka", metavar="HOST:PORT", help=f"Kafka, for topics; {rule(Address.KAFKA)}.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")]


def _option(name: str, default: object, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_SHARED = (_option("api", None, Api), _option("kafka", None, Kafka), _option("json", False, Json))
_ADDRESSES = (Address.API, Address.KAFKA)


def group(help: str) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(help=help, no_args_is_help=True)


def command(
    app: typer.Typer, name: str
) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[Concatenate[Session, P], None]]:
    """Add a function to `app` under a name; its docstring is the help, its first parameter is given the session."""

    def register(function: Callable[Concatenate[Session, P], None]) -> Callable[Concatenate[Session, P], None]:
        signature = inspect.signature(function)
        own = list(signature.parameters.values())[1:]

        def run(**arguments: Any) -> None:
            before = arguments.pop(_CONTEXT).find_root().params
            after = {p.name: arguments.pop(p.name) for p in _SHARED}
            _run(function, session_of(before, after), arguments)

        run.__doc__ = function.__doc__
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + list(_SHARED)
        parameters.append(inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        vars(run)["__signature__"] = signature.replace(parameters=parameters)
        app.command(name)(run)
        return function

    return register


def session_of(*options: dict[str, Any]) -> Session:
    """The session for the shared options before and after a command; of one that is given twice the last counts."""
    given = {which.value: found[which] for found in options for which in _ADDRESSES if found.get(which)}
    return Session(given, json=any(found.get("json") for found in options))


def _run(function: Callable[..., None], session: Session, arguments: dict[str, Any]) -> None:
    try:
        with _remarks():
            function(session, **arguments)
    except Exception as error:
        known = as_command_error(error)
        if known is None:
            raise
        sys.stderr.write(f"Error: {harmless(str(known))}\n")
        if known.hint:
            sys.stderr.write(f"  {harmless(known.hint[0].upper() + known.hint[1:])}.\n")
        raise typer.Exit(known.exit_code) from error
    finally:
        session.close()


@contextmanager
def _remarks() -> Iterator[None]:
    """What reading the past has to say meanwhile is said on stderr."""
    log, remarks = logging.getLogger("sluice.lookback"), logging.StreamHandler()
    log.setLevel(logging.INFO)
    log.addHandler(remarks)
    try:
        yield
    finally:
        log.removeHandler(remarks)
