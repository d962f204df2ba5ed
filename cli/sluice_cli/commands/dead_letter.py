"""`sluice dead-letter`: records that could not be handled, and what becomes of them."""

from typing import Annotated, Any

import typer

from sluice_cli.arguments import Limit
from sluice_cli.command import command, group
from sluice_cli.confirmation import Yes, confirm, letter_losses
from sluice_cli.session import Session

app = group("Dead letters: records that could not be handled. Replay them once the reason is gone, or drop them.")

_RecordOffset = Annotated[
    str, typer.Argument(metavar="PARTITION/OFFSET", help="Where it stands, as the list shows it.", show_default=False)
]
_Settled = Annotated[bool, typer.Option("--settled", help="Also those that were replayed or dropped.")]


def record_offset_of(text: str) -> tuple[int, int]:
    """Partition and offset. Raises UsageError."""
    from sluice_cli.errors import UsageError

    partition, _, offset = text.partition("/")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise UsageError(f"{text!r} is no offset of a dead letter", "write it as PARTITION/OFFSET, for example 3/17")
    return int(partition), int(offset)


@command(app, "list")
def list_letters(session: Session, settled: _Settled = False, limit: Limit = None) -> None:
    """List the dead letters that were not replayed or dropped, the latest first."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import LETTER_COLUMNS, letter_row

    letters = session.rest.pages(path_of("dead-letters"), limit, settled=settled or None)
    session.items(letters, LETTER_COLUMNS, letter_row, empty="there are no dead letters")


@command(app, "show")
def show(session: Session, record_offset: _RecordOffset) -> None:
    """Show a dead letter with its value."""
    from sluice_cli.rendering import draw_letter

    session.show(_letter(session, record_offset), draw_letter)


@command(app, "replay")
def replay(session: Session, record_offset: _RecordOffset) -> None:
    """Send a dead letter to its topic once more, at least once; a request gets an id of its own."""
    _settle(session, record_offset, "replay", "went back into its topic")


@command(app, "drop")
def drop(session: Session, record_offset: _RecordOffset, yes: Yes = False) -> None:
    """Record that a dead letter needs no more attention; asks first at a terminal."""
    confirm(
        session,
        f"Dropping dead letter {record_offset}",
        lambda: letter_losses(_letter(session, record_offset)),
        yes=yes,
    )
    _settle(session, record_offset, "drop", "is dropped")


def _letter(session: Session, record_offset: str) -> dict[str, Any]:
    from sluice_cli.api import path_of
    from sluice_cli.errors import RefusedError

    try:
        letter: dict[str, Any] = session.rest.get(path_of("dead-letters", *record_offset_of(record_offset)))
    except RefusedError as error:
        if error.status == 404:
            error.hint = "`sluice dead-letter list --settled` shows all there are"
        raise
    return letter


def _settle(session: Session, record_offset: str, what: str, done: str) -> None:
    from sluice_cli.api import path_of

    partition, offset = record_offset_of(record_offset)
    answer = session.rest.change("POST", path_of("dead-letters", partition, offset, what))
    request = answer.body.get("request", answer.request)
    session.done(f"dead letter {record_offset} {done}", answer._replace(request=request))
