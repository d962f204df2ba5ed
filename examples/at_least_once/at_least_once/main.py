"""Where the programs are put together: `at-least-once COMMAND`, or `python -m at_least_once COMMAND`."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import redis.exceptions
from pydantic import ValidationError
from pydantic_settings import CliApp

from at_least_once.app import run_app
from at_least_once.functions import NoSuchFunction
from at_least_once.generator import run_generator
from at_least_once.groups import OtherInput
from at_least_once.pruner import make_checkpoint, run_pruner, show_members
from at_least_once.settings import (
    AppSettings,
    CheckpointSettings,
    GeneratorSettings,
    GroupSettings,
    IdempotentSinkSettings,
    Settings,
    SinkSettings,
    StarterSettings,
)
from at_least_once.sink import run_redis_sink, run_sink
from at_least_once.starter import run_workers
from sluice.exceptions import in_words
from sluice.validation import sentence
from sluice_client import Access, Client, ClientError, MalformedEvents, Patience, SegmentStoreError, open_client

ENDS = (ClientError, SegmentStoreError, redis.exceptions.RedisError, MalformedEvents, NoSuchFunction, OtherInput)
"""What ends a program with a message: an outage longer than the patience, and what is not as it should be."""


class Command(NamedTuple):
    """A program: its settings, what runs it, and a line about it."""

    settings: type[Settings]
    run: Callable[[Client, Any, asyncio.Event], Awaitable[int]]
    about: str


COMMANDS = {
    "generator": Command(GeneratorSettings, run_generator, "writes numbered events with checksums"),
    "app": Command(AppSettings, run_app, "one worker: reads, applies a function, stores the results"),
    "run-workers": Command(StarterSettings, run_workers, "several workers on this machine"),
    "members": Command(GroupSettings, show_members, "shows who is there and who reads what"),
    "pruner": Command(GroupSettings, run_pruner, "takes the readers of dead workers offline; every worker does, too"),
    "checkpoint": Command(CheckpointSettings, make_checkpoint, "has the workers make a checkpoint, and prints it"),
    "sink": Command(SinkSettings, run_sink, "prints and checks the results in a stream"),
    "redis-sink": Command(IdempotentSinkSettings, run_redis_sink, "checks the results of the keyed output"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; 2 if there is no such command, or a setting is not a legal one."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = COMMANDS.get(given[0]) if given else None
    if command is None:
        wants_help = bool(given) and given[0] in ("-h", "--help")
        print(_usage(), file=sys.stdout if wants_help else sys.stderr)
        return 0 if wants_help else 2
    try:
        settings = CliApp.run(command.settings, cli_args=given[1:])
    except ValidationError as error:
        for problem in error.errors():
            # Of a value that could be of several kinds the place says which kind was tried, too.
            print(f"--{sentence(dict(problem), str(problem['loc'][0]).replace('_', '-'))}", file=sys.stderr)
        return 2
    try:
        access = Access.of_environment()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    return asyncio.run(_run(command, settings, access))


async def _run(command: Command, settings: Settings, access: Access) -> int:
    """Runs until the command ends; SIGTERM and Ctrl-C ask it to. 2 if there can be no client with these settings."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    code = 1
    patience = Patience(deadline_s=settings.patience_s)
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(open_client(settings.controller, patience, access))
        except ValueError as refused:
            print(refused, file=sys.stderr)
            return 2
        try:
            code = await command.run(client, settings, stop)
        except* ENDS as ends:
            for error in _each(ends):
                print(in_words(error), file=sys.stderr)
    return code


def _each(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        yield from _each(error) if isinstance(error, BaseExceptionGroup) else (error,)


def _usage() -> str:
    lines = "\n".join(f"  {name:<12} {command.about}" for name, command in COMMANDS.items())
    return f"at-least-once COMMAND [OPTIONS]; COMMAND --help shows the options\n\n{lines}"
