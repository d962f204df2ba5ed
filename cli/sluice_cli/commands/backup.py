"""`sluice backup`: the control plane's state in files, and back."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sluice_cli.command import command, group
from sluice_cli.output import Output
from sluice_cli.session import Session

app = group("Back-ups: what the journal knows, in files; the events of streams are with the segment stores.")

_Folder = Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False, help="The back-up's own folder.")]


@command(app, "create")
def create(
    session: Session,
    folder: _Folder,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, metavar="N", help="Of a journal that was given more: those it had before."),
    ] = None,
) -> None:
    """Write a back-up of the journal as it is now, while the system serves."""
    from sluice.backup.target import Folder
    from sluice_cli.records import backing_up

    progress = session.out.progress
    found = backing_up.create(session.present, Folder(folder), lambda: session.now_ms, progress, partitions)
    session.show({"folder": str(folder), **found}, lambda out, _: _draw_created(out, folder, found))


@command(app, "verify")
def verify(session: Session, folder: _Folder) -> None:
    """Read all of a back-up as a restore would, and say what it has."""
    from sluice.backup.target import Folder
    from sluice_cli.records import backing_up

    found = backing_up.verify(Folder(folder))
    session.show({"folder": str(folder), **found}, lambda out, _: _draw(out, f"{folder} can be restored", found))


@command(app, "restore")
def restore(
    session: Session,
    folder: _Folder,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, metavar="N", help="Of each keyed topic; else as many as were backed up."),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option("--replication", min=1, metavar="N", help="Replicas of each topic; else as the brokers have it."),
    ] = None,
    earlier: Annotated[
        list[int] | None,
        typer.Option(
            "--earlier",
            min=1,
            metavar="BASE",
            help="From where another restore that was made after this back-up numbered, as it printed. Repeatable.",
        ),
    ] = None,
) -> None:
    """Bring a back-up into a Kafka without records of Sluice's, while no service runs."""
    from sluice.backup.target import Folder
    from sluice.kafka.topics import BROKERS_OWN
    from sluice_cli import session as sessions
    from sluice_cli.records import backing_up

    topics = sessions.open_topics(session.kafka)
    found = backing_up.restore(
        session.present,
        topics,
        Folder(folder),
        partitions or 0,
        replication or BROKERS_OWN,
        session.now_ms,
        session.out.progress,
        earlier or (),
    )
    session.show({"folder": str(folder), **found}, lambda out, _: _draw_restored(out, found))


def _draw(out: Output, sentence: str, found: dict[str, Any]) -> None:
    from sluice_cli.records.backing_up import COUNTS

    out.text(sentence)
    names = ("partitions", "records", "bytes", *COUNTS)
    out.fields((name, found[name]) for name in names)


def _draw_created(out: Output, folder: Path, found: dict[str, Any]) -> None:
    _draw(out, f"{folder} has a back-up", found)
    for partition in found["fromSnapshots"]:
        out.text(f"Partition {partition} of the journal has lost its end: the back-up has its newest snapshot")


def _draw_restored(out: Output, found: dict[str, Any]) -> None:
    _draw(out, "The journal has what the back-up knew; start the services", found)
    out.text(f"Epochs are numbered from {found['base']} on")
    for repair in found["repairs"]:
        out.text(f"Made to fit: {repair}")
