"""`sluice migrate`: what a cluster of the original controller has, in files."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sluice_cli.command import command, group
from sluice_cli.output import Output
from sluice_cli.session import Session

if TYPE_CHECKING:
    from sluice_cli.migration.dump import Manifest
    from sluice_cli.migration.inspection import Inspection
    from sluice_cli.migration.source import Source

app = group("From the original controller to Sluice: look at what a running one has, and keep it in files.")

_R = TypeVar("_R")

_SHOWN = 20
"""Lines of one kind, in a text for people."""

ZooKeeper = Annotated[
    str, typer.Option("--zookeeper", metavar="HOST:PORT", envvar="SLUICE_ZOOKEEPER", help="The original's ZooKeeper.")
]
Cluster = Annotated[
    str, typer.Option("--cluster", metavar="NAME", envvar="SLUICE_CLUSTER_NAME", help="The cluster's name in it.")
]
Concurrency = Annotated[
    int, typer.Option("--concurrency", min=1, max=256, metavar="N", help="Tables that are read at a time.")
]


@command(app, "dump")
def dump(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DIR", show_default=False, help="The dump's own folder.")],
    zookeeper: ZooKeeper = "127.0.0.1:2181",
    cluster: Cluster = "pravega-cluster",
    concurrency: Concurrency = 8,
    rounds: Annotated[
        int, typer.Option("--rounds", min=2, max=100, metavar="N", help="How often all of it is read.")
    ] = 2,
) -> None:
    """Write all metadata of a running original into files, and read it again to see that it is right.

    Ends with 1 if something changed between the last two readings. A dump that was ended goes on where it was.
    """
    from sluice_cli.migration import dump as dumps

    def work(source: "Source") -> "Awaitable[Manifest]":
        return dumps.dump(source, folder, rounds, lambda: session.now_ms, session.out.progress)

    manifest = reading(zookeeper, cluster, concurrency, work)
    dumps.write_decoded(folder, session.out.progress)
    session.show(manifest, lambda out, _: _draw(out, folder, manifest))
    if manifest.changed:
        raise typer.Exit(1)


@command(app, "inspect")
def inspect(
    session: Session,
    dumped: Annotated[
        Path | None,
        typer.Option("--dump", metavar="DIR", help="Of this dump instead of a running original.", show_default=False),
    ] = None,
    zookeeper: ZooKeeper = "127.0.0.1:2181",
    cluster: Cluster = "pravega-cluster",
    concurrency: Concurrency = 8,
) -> None:
    """Say what an original has, what it is in the middle of, and whether it can be brought along. Changes nothing.

    Ends with 1 if something must be mended first.
    """
    import asyncio

    from sluice_cli.migration.dump import Dump
    from sluice_cli.migration.inspection import Inspector

    if dumped is not None:
        kept = Dump(dumped)
        flaw = kept.flaw
        found = asyncio.run(Inspector(kept).run(session.out.progress, flaw=flaw))
    else:
        found = inspected(session, zookeeper, cluster, concurrency)
    session.show(found, _draw_inspection)
    if not found.can_be_imported:
        raise typer.Exit(1)


@command(app, "diff")
def diff(
    session: Session,
    first: Annotated[Path, typer.Argument(metavar="A", show_default=False, help="A dump.")],
    second: Annotated[Path, typer.Argument(metavar="B", show_default=False, help="Another one.")],
    versions: Annotated[bool, typer.Option("--versions", help="Versions of equal values count, too.")] = False,
) -> None:
    """Compare two dumps, key by key. Ends with 1 if they differ."""
    from sluice_cli.migration.difference import differences
    from sluice_cli.migration.dump import Dump

    is_different = False
    for found in differences(Dump(first), Dump(second), versions):
        is_different = True
        if session.json:
            session.out.line(found)
        else:
            of = f"{found.of.kind} {found.of.scope}/{found.of.name}".replace(" /", " ")
            session.out.text(f"{found.what}: {of}  {found.table}  {found.key}".rstrip())
    if is_different:
        raise typer.Exit(1)


def inspected(session: Session, zookeeper: str, cluster: str, concurrency: int) -> "Inspection":
    """What a running original has. Raises CommandError."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="sluice-inspect-") as folder:
        return reading(
            zookeeper, cluster, concurrency, lambda source: _inspect(session, source, Path(folder), concurrency)
        )


async def _inspect(session: Session, source: "Source", folder: Path, concurrency: int) -> "Inspection":
    from sluice_cli.migration import dump as dumps
    from sluice_cli.migration.inspection import Inspector
    from sluice_cli.migration.segments import SegmentJudge

    manifest = await dumps.dump(source, folder, 1, lambda: session.now_ms, session.out.progress)
    judge = SegmentJudge(source.store, concurrency)
    inspector = Inspector(dumps.Dump(folder), judge, source)
    return await inspector.run(session.out.progress, manifest.ended_ms - manifest.began_ms)


def _draw(out: Output, folder: Path, manifest: "Manifest") -> None:
    out.text(f"{folder} has {manifest.things} streams, reader groups and tables, read {manifest.rounds} times")
    for name in manifest.changed[:_SHOWN]:
        out.text(f"Changed when it was read again: {name.kind} {name.scope}/{name.name}")
    _more(out, len(manifest.changed))


def _draw_inspection(out: Output, found: "Inspection") -> None:
    words = {True: "holds", False: "does not hold", None: "not looked at"}
    out.fields(sorted(found.counts.items()))
    if found.bytes is not None:
        out.text(f"{found.bytes} bytes in all segments")
    out.text(f"Registered controllers: {', '.join(found.controllers) or 'none'}")
    out.table(
        ("invariant", "", "verdict", "problems"),
        ((one.number, one.title, words[one.holds], one.problems) for one in found.invariants),
        empty="",
    )
    for problem in found.problems[:_SHOWN]:
        out.text(
            f"{'STOPS' if problem.stops else 'mended'}: {problem.of}: {problem.what} (invariant {problem.invariant})"
        )
    _more(out, len(found.problems))
    for bad in found.unreadable:
        out.text(f"STOPS: {bad.of}: {bad.what}")
    for one in found.unfinished[:_SHOWN]:
        out.text(f"Under way: {one.of}: {one.what}; {one.then}")
    _more(out, len(found.unfinished))
    if found.read_ms:
        out.text(f"Read in {found.read_ms / 1000:.1f} s; a cut-over reads it twice while nobody decides anything")
    if found.flaw:
        out.text(f"`sluice migrate import` does not take this dump: it {found.flaw}")
    out.text("It can be brought along" if found.can_be_imported else "It cannot be brought along as it is")


def _more(out: Output, count: int) -> None:
    if count > _SHOWN:
        out.text(f"and {count - _SHOWN} more; --json shows all")


def reading(zookeeper: str, cluster: str, concurrency: int, work: "Callable[[Source], Awaitable[_R]]") -> _R:
    """What comes of reading a live original. Raises CommandError."""
    import asyncio

    import uvloop

    from sluice.pravega.errors import SegmentStoreError
    from sluice_cli.errors import UnreachableError
    from sluice_cli.migration.source import Containers, Source
    from sluice_cli.session import open_store, open_zookeeper

    async def read() -> _R:
        with open_zookeeper(zookeeper, cluster) as nodes:
            containers = await asyncio.to_thread(Containers, nodes)
            following = asyncio.create_task(containers.follow())
            try:
                async with open_store(containers.host, containers.count) as store:
                    return await work(Source(store, nodes, concurrency))
            finally:
                following.cancel()

    try:
        # Nearly all that there is to do is to send and to receive: it takes two thirds of asyncio's time.
        return uvloop.run(read())
    except SegmentStoreError as error:
        raise UnreachableError(
            str(error), "do the segment stores run, and are their key and TLS settings given?"
        ) from error
