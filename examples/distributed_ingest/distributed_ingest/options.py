"""The options that all sources have, each with a variable of the environment, and what they come to.

A command is declared with `source_command`: a function of the session, the common options and its own arguments.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

from sluice import addresses
from sluice.lookback.times import duration_of
from sluice_cli.addresses import Address
from sluice_cli.command import command, rule
from sluice_cli.errors import UsageError
from sluice_cli.session import Session
from sluice_cli.units import size_of

P = ParamSpec("P")
T = TypeVar("T", bound=str)

MIN_LEASE_S = 1.0


def variable(option: str) -> str:
    """Return the variable of an option: `--scan-every` is SLUICE_INGEST_SCAN_EVERY."""
    return f"SLUICE_INGEST_{option.strip('-').replace('-', '_').upper()}"


def option(name: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Declare an option, with its variable."""
    return typer.Option(name, help=help, metavar=metavar, envvar=variable(name.partition("/")[0]), **more)


Store = Annotated[
    str | None,
    option("--store", "Where nodes meet: file:PATH, redis://…, opensearch://…, elasticsearch://…; else a file.", "URL"),
]


@dataclass(frozen=True)
class Common:
    """See `--help`."""

    store: Store = None
    name: Annotated[
        str | None, option("--name", "The job; else made from source and stream. Its nodes give the same.", "NAME")
    ] = None
    controller: Annotated[
        str | None, option("--controller", f"The controller, by gRPC; {rule(Address.CONTROLLER)}.", "URL")
    ] = None
    workers: Annotated[int, option("--workers", "Tasks at a time on this node.", "N", min=1, max=256)] = 4
    lease: Annotated[str, option("--lease", "So long after a node has died its work goes to others.", "DURATION")] = (
        "15s"
    )
    patience: Annotated[
        str, option("--patience", "With --once: give up when nothing has moved for so long.", "DURATION")
    ] = "10m"
    key: Annotated[
        str | None,
        option("--key", "Routing keys: none, source, record (Kafka), or json:FIELD of the record.", "RULE"),
    ] = None
    progress: Annotated[bool, option("--progress/--no-progress", "Bars, if stderr is a terminal.")] = True
    verbose: Annotated[bool, option("--verbose", "Tell everything that happens, on stderr.")] = False

    @property
    def lease_s(self) -> float:
        """Seconds. Raises UsageError."""
        lease_s = seconds_of(self.lease)
        if lease_s < MIN_LEASE_S:
            raise UsageError(f"--lease {self.lease} is too short", f"give {MIN_LEASE_S:g}s or more")
        return lease_s


def seconds_of(text: str) -> float:
    """Return a duration in seconds. Raises UsageError if it is none, or nothing."""
    seconds = duration_of(text) / 1000
    if not (seconds > 0 and math.isfinite(seconds)):
        raise UsageError(f"{text!r} is no time to wait", "give a duration like 500ms, 30s or 10m")
    return seconds


def bytes_of(text: str) -> int:
    """Return a size in bytes. Raises UsageError if it is none, or nothing."""
    size = size_of(text)
    if size <= 0:
        raise UsageError(f"{text!r} is no size", "give a size like 8MiB")
    return size


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[::1]:port`. Raises UsageError."""
    try:
        host, port = addresses.host_and_port(text.removeprefix("tcp://"))
        if not 0 <= port < 65536:
            raise ValueError("no port")
    except ValueError as error:
        raise UsageError(f"{text!r} is no address", "write it as HOST:PORT, an IPv6 address in brackets") from error
    return host, port


def chosen(option: str, value: str, among: Sequence[T]) -> T:
    """Return the choice that a value is. Raises UsageError."""
    for each in among:
        if value == each:
            return each
    raise UsageError(f"{value!r} is nothing for {option}", f"give one of {', '.join(among)}")


def source_command(
    app: typer.Typer, name: str
) -> Callable[[Callable[Concatenate[Session, Common, P], None]], Callable[Concatenate[Session, Common, P], None]]:
    """Add a function to `app` under a name, as `sluice_cli.command.command` does, with the common options."""
    fields = dataclasses.fields(Common)

    def register(
        function: Callable[Concatenate[Session, Common, P], None],
    ) -> Callable[Concatenate[Session, Common, P], None]:
        first, _, *own = inspect.signature(function).parameters.values()

        def run(session: Session, /, **arguments: Any) -> None:
            common = Common(**{field.name: arguments.pop(field.name) for field in fields})
            function(session, common, **arguments)  # type: ignore[call-arg]

        shared = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
            for field in fields
        ]
        own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        run.__doc__ = function.__doc__
        vars(run)["__signature__"] = inspect.Signature([first, *own, *shared])
        command(app, name)(run)
        return function

    return register
