"""How a command is declared: a function of a session and its own arguments.

The options that all commands share are added to each one's signature here, so that `--json` may stand where users
write it, at the end; errors become sentences on stderr and exit codes here, too.
"""

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from sluice_cli.errors import CommandError
from sluice_cli.session import API_VARIABLE, DEFAULT_API, DEFAULT_KAFKA, KAFKA_VARIABLE, Session

P = ParamSpec("P")

_Api = Annotated[
    str,
    typer.Option("--api", envvar=API_VARIABLE, metavar="URL", help="The api-gateway."),
]
_Kafka = Annotated[
    str,
    typer.Option("--kafka", envvar=KAFKA_VARIABLE, metavar="HOST:PORT", help="Kafka, for topics."),
]
_Json = Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")]


def _option(name: str, default: object, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_SHARED = (
    _option("api", DEFAULT_API, _Api),
    _option("kafka", DEFAULT_KAFKA, _Kafka),
    _option("json", False, _Json),
)


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
            shared = {p.name: arguments.pop(p.name) for p in _SHARED}
            _run(function, Session(**shared), arguments)

        run.__doc__ = function.__doc__
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + list(_SHARED)
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        vars(run)["__signature__"] = signature.replace(parameters=parameters)
        app.command(name)(run)
        return function

    return register


def _run(function: Callable[..., None], session: Session, arguments: dict[str, Any]) -> None:
    try:
        function(session, **arguments)
    except CommandError as error:
        sys.stderr.write(f"Error: {error}\n")
        if error.hint:
            sys.stderr.write(f"  {error.hint[0].upper()}{error.hint[1:]}.\n")
        raise typer.Exit(error.exit_code) from error
    finally:
        session.close()
