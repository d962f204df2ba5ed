"""`sluice migrate hold`, `import` and `release`: Sluice takes the place of the original controller."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sluice_cli.command import command, group
from sluice_cli.output import Output
from sluice_cli.session import Session

app = group("Take over from Pravega's own controller: docs/migration.md.")

Partitions = Annotated[
    int, typer.Option("--partitions", min=1, metavar="N", help="Of each keyed topic; as SLUICE_PARTITIONS.")
]
Replication = Annotated[
    int | None,
    typer.Option("--replication", min=1, metavar="N", help="Replicas of each topic; else as the brokers have it."),
]
LeftOut = Annotated[
    list[str] | None,
    typer.Option(
        "--except",
        metavar="THING",
        help='Leave this out, say "stream SCOPE/NAME": clients will not find it. Repeatable.',
    ),
]


@command(app, "hold")
def hold(
    session: Session,
    partitions: Partitions,
    replication: Replication = None,
) -> None:
    """Make the topics of a new system, whose services wait, once started, and hold clients' calls, until `release`."""
    from sluice.kafka.topics import BROKERS_OWN
    from sluice_cli import session as sessions
    from sluice_cli.records import holding

    topics = sessions.open_topics(session.kafka)
    is_new = holding.hold(session.present, topics, partitions, replication or BROKERS_OWN, session.now_ms)
    session.said("The journal is held; start the services" if is_new else "It is held already", {"held": True})


@command(app, "import")
def import_(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DUMP", show_default=False, help="What `dump` has written.")],
    left_out: LeftOut = None,
) -> None:
    """Bring what a dump has into a journal that is held. To do so twice is the same as once."""
    from sluice_cli import session as sessions
    from sluice_cli.errors import RefusedError
    from sluice_cli.migration.dump import Dump
    from sluice_cli.migration.importing import import_original

    dump = Dump(folder)
    if dump.flaw:
        raise RefusedError(f"the dump in {folder} {dump.flaw}", "stop all controllers and repeat `sluice migrate dump`")
    topics = sessions.open_topics(session.kafka)
    found = import_original(session.present, topics, dump, left_out or (), session.now_ms, session.out.progress)
    session.show(found, lambda out, _: draw_imported(out, found))


@command(app, "release")
def release(
    session: Session,
    empty: Annotated[bool, typer.Option("--empty", help="Although nothing was imported.")] = False,
) -> None:
    """Have the services begin, and answer the calls that were held."""
    from sluice_cli import session as sessions
    from sluice_cli.records import holding

    topics = sessions.open_topics(session.kafka)
    records = holding.release(session.present, topics, session.now_ms, empty)
    session.said("Released: services begin now", {"released": True, "records": records})


def draw_imported(out: Output, found: dict[str, Any]) -> None:
    """What an import has brought, for users."""
    from sluice_cli.records.backing_up import COUNTS

    is_new = found["appended"] > 0
    out.text("The journal has what the original knew" if is_new else "It was imported already: all is the same")
    out.fields((name, found[name]) for name in (*COUNTS, "records"))
    for remark in found["remarks"]:
        out.text(remark)
