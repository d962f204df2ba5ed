"""`sluice migrate export`: the original controller takes its place back."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sluice_cli.command import command, group
from sluice_cli.commands.migrate import Cluster, Concurrency, ZooKeeper, reading
from sluice_cli.output import Output
from sluice_cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from sluice_cli.migration.source import Source

app = group("Go back to Pravega's own controller: docs/migration.md.")


@command(app, "export")
def export(
    session: Session,
    zookeeper: ZooKeeper = "127.0.0.1:2181",
    cluster: Cluster = "pravega-cluster",
    concurrency: Concurrency = 8,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is in the way.")] = False,
) -> None:
    """Write what the journal knows into the original's tables, while no service and no controller runs.

    Refused as long as something is under way or open. To do so twice is the same as once.
    """
    from sluice.backup.states import states_of
    from sluice.kafka.topics import JOURNAL
    from sluice_cli.errors import CommandError, RefusedError
    from sluice_cli.migration import exporting
    from sluice_cli.records.backing_up import counted, present_views

    def ends() -> dict[int, int]:
        return {span.partition: span.end for span in session.present.spans([JOURNAL.name])}

    before = ends()
    views, lost = present_views(session.present, session.out.progress)
    if lost:
        raise RefusedError(
            f"partitions {lost} of the journal have lost their end: an older state would be written",
            "mend that first: docs/operations.md, a journal that lost its end",
        )
    found = states_of(views)
    if dry_run:
        reading(zookeeper, cluster, concurrency, lambda source: exporting.check(source, found))
        session.said("Nothing is in the way", {"remarks": exporting.remarks(found)})
        return

    def work(source: "Source") -> "Awaitable[dict[str, Any]]":
        return exporting.export(source, found, session.out.progress)

    done = {**counted(found), **reading(zookeeper, cluster, concurrency, work)}
    if ends() != before:
        raise CommandError("the journal went on meanwhile: a service runs", "stop all services, and repeat it")
    session.show(done, lambda out, _: _draw(out, done))


def _draw(out: Output, done: dict[str, Any]) -> None:
    from sluice_cli.records.backing_up import COUNTS

    changed = f"{done['changes']} entries, tables and nodes were changed"
    out.text(f"The original's tables say what Sluice knew; {changed if done['changes'] else 'nothing was to be done'}")
    out.fields((name, done[name]) for name in COUNTS)
    for thing in done["left"]:
        out.text(f"{thing}: it stays as it is, for Sluice does not have it")
    for remark in done["remarks"]:
        out.text(remark)
