"""The command `sluice dev`. It prints where it serves as one line of JSON, and serves until SIGINT or SIGTERM.

Windows has no SIGTERM; there, as everywhere, its standard input may end it.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from sluice import event_loop
from sluice.exceptions import CannotStartError
from sluice.telemetry.logs import set_up_logs
from sluice_dev.options import HOST, DevOptions, NotMadeError, StreamToBegin

if TYPE_CHECKING:
    from sluice_dev.system import DevSystem

MAX_PORT = 65_535
_INPUT = 0
FORGETS = "sluice dev: all is in memory, and FORGOTTEN when this process ends. For tests only.\n"

app = typer.Typer(
    subcommand_metavar="", help="A whole Pravega in this process, in memory, for tests. It forgets all when it ends."
)


@app.callback(invoke_without_command=True)
def dev(
    host: Annotated[str, typer.Option(help="Where it listens.")] = HOST,
    grpc_port: Annotated[
        int, typer.Option(help="Of the controller, for clients; 0: a free one.", min=0, max=MAX_PORT)
    ] = 9090,
    rest_port: Annotated[int, typer.Option(help="Of REST and the page; 0: a free one.", min=0, max=MAX_PORT)] = 10080,
    store_port: Annotated[int, typer.Option(help="Of the segment store; 0: a free one.", min=0, max=MAX_PORT)] = 12345,
    scope: Annotated[list[str] | None, typer.Option(help="A scope to begin with.")] = None,
    stream: Annotated[
        list[str] | None, typer.Option(help="A stream to begin with: SCOPE/NAME, or SCOPE/NAME:SEGMENTS.")
    ] = None,
    load_interval: Annotated[
        float, typer.Option(help="How often load is looked at, for scaling, in seconds.", min=0.1)
    ] = 5.0,
    cooldown: Annotated[
        float, typer.Option(help="How long a stream is left alone after a scale, in seconds.", min=0)
    ] = 10.0,
    published: Annotated[str, typer.Option(help="The host that clients are given, if it is another one.")] = "",
    fail: Annotated[
        float, typer.Option(help="At this share of requests the segment store hangs up.", min=0, max=1)
    ] = 0.0,
    slow: Annotated[
        float, typer.Option(help="Each request to the segment store takes up to so many seconds.", min=0)
    ] = 0.0,
    move: Annotated[
        float, typer.Option(help="Again and again a container is away for up to so many seconds.", min=0)
    ] = 0.0,
    secure: Annotated[bool, typer.Option("--secure", help="With TLS, users and tokens.")] = False,
    until_input_ends: Annotated[
        bool, typer.Option("--until-input-ends", help="It ends with its standard input, a pipe of its caller.")
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    """A whole Pravega in this process, in memory, for tests. It forgets all when it ends."""
    streams = tuple(_stream(text) for text in stream or ())
    options = DevOptions(
        host,
        grpc_port,
        rest_port,
        store_port,
        tuple(scope or ()),
        streams,
        load_interval_s=load_interval,
        cooldown_s=cooldown,
        published=published,
        failing=fail,
        slow_s=slow,
        moving_s=move,
        secure=secure,
    )
    set_up_logs("sluice-dev", "dev", log_level)
    sys.stderr.write(FORGETS)
    try:
        event_loop.run(_serve(options, until_input_ends))
    except (CannotStartError, NotMadeError, OSError) as error:
        sys.stderr.write(f"Error: {error}\n")
        raise typer.Exit(2) from error


def _stream(text: str) -> StreamToBegin:
    path, _, segments = text.partition(":")
    scope, slash, name = path.partition("/")
    if not (scope and slash and name) or (segments and not segments.isdecimal()):
        raise typer.BadParameter(f"{text} is not SCOPE/NAME or SCOPE/NAME:SEGMENTS")
    return StreamToBegin(scope, name, int(segments or 1))


async def _serve(options: DevOptions, until_input_ends: bool) -> None:
    # Imported here: the help of the command line waits for no service.
    from sluice_dev.system import DevSystem

    system = DevSystem(options)
    loop = asyncio.get_running_loop()
    serving = loop.create_task(_until_failed(system))
    # On Windows Ctrl-C cancels this coroutine.
    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, serving.cancel)
    if until_input_ends:
        Thread(target=_end_with_input, args=(loop, serving), name="input", daemon=True).start()
    try:
        await serving
    except asyncio.CancelledError:
        return
    finally:
        await system.stop()


def _end_with_input(loop: asyncio.AbstractEventLoop, serving: asyncio.Task[None]) -> None:
    """In a thread: on Windows an event loop does not see the end of a pipe."""
    while os.read(_INPUT, 4096):
        pass
    # A loop that is closed has ended for another reason.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(serving.cancel)


async def _until_failed(system: "DevSystem") -> None:
    await system.start()
    sys.stdout.buffer.write(msgspec.json.encode(system.addresses) + b"\n")
    sys.stdout.buffer.flush()
    await system.failed()
