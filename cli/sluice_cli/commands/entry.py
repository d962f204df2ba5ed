"""`sluice table get`, `put`, `remove` and `entries`: the entries of a key-value table."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sluice_cli.arguments import Controller, Limit, Table
from sluice_cli.command import command, group
from sluice_cli.commands.table import path
from sluice_cli.session import Session

if TYPE_CHECKING:
    from sluice_cli.entries.access import Entries

app = group("Entries of key-value tables.")

_Key = Annotated[str, typer.Argument(metavar="KEY", help="As long as the table's keys are.", show_default=False)]
_Secondary = Annotated[
    str | None, typer.Option("--secondary", metavar="KEY", help="The secondary key, where the table has one.")
]
_Base64 = Annotated[bool, typer.Option("--base64", help="What is given of an entry is in base64.")]
_Version = Annotated[
    int | None, typer.Option("--version", min=0, metavar="N", help="Only if the entry has this version.")
]
_R = TypeVar("_R")


@command(app, "get")
def get(
    session: Session,
    table: Table,
    key: _Key,
    secondary: _Secondary = None,
    base64: _Base64 = False,
    controller: Controller = None,
) -> None:
    """Print the value of a key."""
    from sluice_cli.entries.printing import document
    from sluice_cli.errors import RefusedError
    from sluice_cli.events.printing import write_line

    given = _given(key, secondary, base64=base64)

    async def read(entries: "Entries") -> None:
        layout = entries.layout
        wanted = layout.key(*given)
        found = await entries.get(wanted)
        if found is None:
            raise RefusedError(f"table {table} has no entry of this key", "`sluice table entries` shows the keys")
        if session.json:
            session.out.document(document(layout, layout.partition_of(wanted), found))
        else:
            write_line(found.value)

    _run(session, table, controller, read)


@command(app, "put")
def put(
    session: Session,
    table: Table,
    key: _Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", show_default=False)],
    secondary: _Secondary = None,
    version: _Version = None,
    if_absent: Annotated[bool, typer.Option("--if-absent", help="Only if the key has no entry.")] = False,
    base64: _Base64 = False,
    controller: Controller = None,
) -> None:
    """Write the value of a key, over the one that is there."""
    from sluice.pravega import NO_VERSION, NOT_EXISTS
    from sluice_cli.errors import UsageError

    if if_absent and version is not None:
        raise UsageError("an entry that has a version is not absent", "give --version or --if-absent")
    given, data = _given(key, secondary, base64=base64), _bytes(value, base64=base64)
    wanted = NOT_EXISTS if if_absent else NO_VERSION if version is None else version

    async def write(entries: "Entries") -> int:
        return await entries.put(entries.layout.key(*given), data, wanted)

    written = _run(session, table, controller, write)
    session.said(f"entry written to {table}, version {written}", {"table": table, "version": written})


@command(app, "remove")
def remove(
    session: Session,
    table: Table,
    key: _Key,
    secondary: _Secondary = None,
    version: _Version = None,
    base64: _Base64 = False,
    controller: Controller = None,
) -> None:
    """Remove the entry of a key; done already if there is none."""
    from sluice.pravega import NO_VERSION

    given = _given(key, secondary, base64=base64)

    async def erase(entries: "Entries") -> None:
        await entries.remove(entries.layout.key(*given), NO_VERSION if version is None else version)

    _run(session, table, controller, erase)
    session.said(f"table {table} has no entry of this key any more", {"table": table})


@command(app, "entries")
def list_entries(session: Session, table: Table, limit: Limit = None, controller: Controller = None) -> None:
    """Print the entries, each on a line: key, secondary key and value. JSON: one object per line.

    One partition after the other, in each by the keys. What is written meanwhile may be there or not.
    """
    from contextlib import aclosing

    from sluice_cli.entries.printing import document, line
    from sluice_cli.events.printing import write_line

    async def show(entries: "Entries") -> None:
        left = limit
        async with aclosing(entries.all()) as found:
            async for partition, entry in found:
                if session.json:
                    session.out.line(document(entries.layout, partition, entry))
                else:
                    write_line(line(entries.layout, entry))
                left = left and left - 1
                if left == 0:
                    return

    _run(session, table, controller, show)


def _run(
    session: Session, table: str, controller: str | None, work: "Callable[[Entries], Coroutine[Any, Any, _R]]"
) -> _R:
    """What `work` makes of the table's entries. Raises CommandError."""
    import asyncio

    from sluice_cli import session as opening
    from sluice_cli.entries.access import Entries
    from sluice_cli.entries.layout import Layout
    from sluice_cli.events.failures import as_command_errors

    address = session.controller(controller)
    layout = Layout(session.rest.get(path(table)))

    async def run() -> _R:
        async with opening.open_client(address) as client:
            return await work(Entries(client.store, layout))

    with as_command_errors(address, layout.name):
        return asyncio.run(run())


def _given(key: str, secondary: str | None, *, base64: bool) -> tuple[bytes, bytes | None]:
    return _bytes(key, base64=base64), None if secondary is None else _bytes(secondary, base64=base64)


def _bytes(text: str, *, base64: bool) -> bytes:
    """What an argument stands for. Raises UsageError."""
    from base64 import b64decode

    from sluice_cli.errors import UsageError

    if not base64:
        return text.encode(errors="surrogateescape")
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise UsageError(f"{text!r} is not base64", "leave --base64 out for text") from error
