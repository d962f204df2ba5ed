"""`sluice dead-letter`: records nobody could handle, and what becomes of them."""

from typing import Annotated

import typer

from sluice_cli.arguments import Limit
from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Dead letters: records nobody could handle. Replay them once the reason is gone, or drop them.")

_Place = Annotated[
    str, typer.Argument(metavar="PARTITION/OFFSET", help="Where it stands, as the list shows it.", show_default=False)
]
_Settled = Annotated[bool, typer.Option("--settled", help="Also those that were replayed or dropped.")]


def place_of(text: str) -> tuple[int, int]:
    """Partition and offset. Raises UsageError."""
    from sluice_cli.errors import UsageError

    partition, _, offset = text.partition("/")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise UsageError(f"{text!r} is no place of a dead letter", "write it as PARTITION/OFFSET, for example 3/17")
    return int(partition), int(offset)


@command(app, "list")
def list_letters(session: Session, settled: _Settled = False, limit: Limit = None) -> None:
    """List the dead letters that nobody has dealt with, the latest first."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import LETTER_COLUMNS, letter_row

    letters = session.rest.pages(path_of("dead-letters"), limit, settled=settled or None)
    session.items(letters, LETTER_COLUMNS, letter_row, empty="there are no dead letters")


@command(app, "show")
def show(session: Session, place: _Place) -> None:
    """Show a dead letter with its value."""
    from sluice_cli.api import path_of
    from sluice_cli.errors import RefusedError
    from sluice_cli.rendering import draw_letter

    try:
        letter = session.rest.get(path_of("dead-letters", *place_of(place)))
    except RefusedError as error:
        if error.status == 404:
            error.hint = "`sluice dead-letter list --settled` shows all there are"
        raise
    session.show(letter, draw_letter)


@command(app, "replay")
def replay(session: Session, place: _Place) -> None:
    """Send a dead letter to its topic once more, at least once; a request gets an id of its own."""
    _settle(session, place, "replay", "went back into its topic")


@command(app, "drop")
def drop(session: Session, place: _Place) -> None:
    """Have nobody look at a dead letter any more."""
    _settle(session, place, "drop", "is dropped")


def _settle(session: Session, place: str, what: str, done: str) -> None:
    from sluice_cli.api import path_of

    partition, offset = place_of(place)
    answer = session.rest.change("POST", path_of("dead-letters", partition, offset, what))
    request = answer.body.get("request", answer.request)
    session.done(f"dead letter {place} {done}", answer._replace(request=request))
