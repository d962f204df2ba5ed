"""`sluice ingest`: the commands. What is heavy is imported when a command runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from distributed_ingest.options import Common, Store, option, source_command
from sluice_cli import completion
from sluice_cli.command import command, group
from sluice_cli.session import Session

if TYPE_CHECKING:
    from distributed_ingest.records import RecordForm

app = group("Bring files, objects, topics, queues, or what is sent by HTTP, TCP, UDP or syslog into a stream.")

Target = Annotated[
    str,
    typer.Argument(
        metavar="SCOPE/STREAM", help="Where to; it must exist.", autocompletion=completion.streams, show_default=False
    ),
]
Once = Annotated[bool, option("--once", "End when everything that is there now is in the stream.")]


@source_command(app, "folder")
def folder(
    session: Session,
    common: Common,
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="Read with its subfolders.", show_default=False)],
    stream: Target,
    once: Once = False,
    pattern: Annotated[str, option("--pattern", "Only files whose names are like that.", "GLOB")] = "*",
    records: Annotated[str, option("--records", "A record is a line, or a whole file.", "lines|whole")] = "lines",
    window: Annotated[str, option("--window", "How much a task copies.", "SIZE")] = "8MiB",
    ahead: Annotated[int, option("--ahead", "Windows at a time, over all nodes.", "N", min=1, max=64)] = 32,
    scan_every: Annotated[str, option("--scan-every", "How often to look for new data.", "DURATION")] = "1s",
    settle: Annotated[str, option("--settle", "A whole file is taken when unchanged for so long.", "DURATION")] = "2s",
) -> None:
    """Copy the lines of a folder's files, and go on with what is added.

    Files and folders that begin with a dot are left out. A line is taken when its end is there; with --once the rest of
    a file counts as a line too.
    """
    from pathlib import Path

    from distributed_ingest.launch import Plan, launch

    origin = str(Path(path).expanduser().resolve())
    settings = {"window": window, "ahead": str(ahead), "scanEvery": scan_every, "settle": settle}
    plan = Plan("folder", (origin,), stream, records, ("lines", "whole"), "none", {"pattern": pattern}, settings)
    launch(session, common, plan, once=once)


@source_command(app, "s3")
def s3(
    session: Session,
    common: Common,
    url: Annotated[str, typer.Argument(metavar="s3://BUCKET/PREFIX", show_default=False)],
    stream: Target,
    once: Once = False,
    endpoint: Annotated[str, option("--endpoint", "Where it is, if not at AWS.", "URL")] = "",
    records: Annotated[
        str,
        option("--records", "A record is a line, an item of a JSON array, or a whole object.", "lines|items|whole"),
    ] = "lines",
    objects: Annotated[int, option("--objects", "How many objects a task copies at most.", "N", min=1)] = 100,
    window: Annotated[str, option("--window", "How much a task copies.", "SIZE")] = "8MiB",
    ahead: Annotated[int, option("--ahead", "Windows at a time, over all nodes.", "N", min=1, max=256)] = 32,
    scan_every: Annotated[str, option("--scan-every", "How often to look for new objects.", "DURATION")] = "5s",
    settle: Annotated[str, option("--settle", "An object is taken when it is so old.", "DURATION")] = "10s",
) -> None:
    """Copy the objects of a bucket of S3, or of what speaks it, each once, in the order of their keys.

    It goes on with what is added behind that; what comes later with a key before that is not read.
    """
    from distributed_ingest.launch import Plan, launch

    options = {"endpoint": endpoint} if endpoint else {}
    settings = {"window": window, "ahead": str(ahead), "scanEvery": scan_every, "settle": settle}
    settings |= {"objects": str(objects)}
    plan = Plan("s3", (url,), stream, records, ("lines", "items", "whole"), "none", options, settings)
    launch(session, common, plan, once=once)


@source_command(app, "kafka")
def kafka(
    session: Session,
    common: Common,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)],
    stream: Target,
    once: Once = False,
    begin: Annotated[str, option("--from", "Where partitions begin that were never read.", "start|end")] = "start",
) -> None:
    """Copy the records of a Kafka topic; its partitions are dealt to the nodes."""
    from distributed_ingest.launch import Plan, launch

    settings = {"kafka": session.kafka, "from": begin}
    launch(session, common, Plan("kafka", (topic,), stream, "whole", ("whole",), "record", {}, settings), once=once)


@source_command(app, "http")
def http(
    session: Session,
    common: Common,
    urls: Annotated[list[str], typer.Argument(metavar="URL...", show_default=False)],
    stream: Target,
    once: Once = False,
    every: Annotated[str, option("--every", "How often each URL is fetched.", "DURATION")] = "10s",
    records: Annotated[
        str, option("--records", "A record is a line, an item of a JSON array, or the whole body.", "lines|items|whole")
    ] = "lines",
    cursor: Annotated[
        str, option("--cursor", "The field of a record that {cursor} in the URL stands for.", "FIELD")
    ] = "",
    cursor_start: Annotated[str, option("--cursor-start", "What it stands for at first.", "VALUE")] = "",
) -> None:
    """Poll HTTP endpoints and copy what is new; each is polled by one node at a time.

    With --once each is fetched once, with --cursor until nothing new comes. Bodies that have not changed, by ETag,
    Last-Modified or content, are not copied.
    """
    from distributed_ingest.http import name_of
    from distributed_ingest.launch import Plan, launch

    options = {"cursor": cursor, "cursorStart": cursor_start} if cursor else {}
    forms: tuple[RecordForm, ...] = ("lines", "items", "whole")
    origins, settings = tuple(map(name_of, urls)), {"every": every}
    plan = Plan("http", origins, stream, records, forms, "source", options, settings, urls)
    launch(session, common, plan, once=once)


@source_command(app, "tcp")
def tcp(
    session: Session,
    common: Common,
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", show_default=False)],
    stream: Target,
    listen: Annotated[bool, option("--listen", "Wait for connections at the address, and not connect to it.")] = False,
) -> None:
    """Copy lines that come over TCP; one node at a time connects to the address, or listens there.

    A sender gets no replies: lines that a node has received and not yet written are lost if it is killed.
    """
    from distributed_ingest.launch import Plan, launch

    options = {"listen": "yes"} if listen else {}
    launch(session, common, Plan("tcp", (address,), stream, "lines", ("lines",), "source", options), once=False)


@source_command(app, "udp")
def udp(
    session: Session,
    common: Common,
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", show_default=False)],
    stream: Target,
) -> None:
    """Copy datagrams that come over UDP; one node at a time listens. What it does not write in time is lost."""
    from distributed_ingest.launch import Plan, launch

    launch(session, common, Plan("udp", (address,), stream, "whole", ("whole",), "source"), once=False)


@source_command(app, "syslog")
def syslog(
    session: Session,
    common: Common,
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", show_default=False)],
    stream: Target,
) -> None:
    """Copy messages of syslog (RFC 5424, RFC 3164), as they come, over UDP and TCP; one node at a time listens."""
    from distributed_ingest.launch import Plan, launch

    launch(session, common, Plan("syslog", (address,), stream, "whole", ("whole",), "source"), once=False)


@source_command(app, "http-listener")
def http_listener(
    session: Session,
    common: Common,
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", show_default=False)],
    stream: Target,
    records: Annotated[
        str, option("--records", "A record is a line, an item of a JSON array, or the whole body.", "lines|items|whole")
    ] = "lines",
) -> None:
    """Copy what is sent by HTTP, POST or PUT, with 204 as the answer when it is stored; one node at a time listens."""
    from distributed_ingest.launch import Plan, launch

    forms: tuple[RecordForm, ...] = ("lines", "items", "whole")
    launch(session, common, Plan("http-listener", (address,), stream, records, forms, "source"), once=False)


@source_command(app, "rabbitmq")
def rabbitmq(
    session: Session,
    common: Common,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", show_default=False)],
    stream: Target,
    url: Annotated[str, option("--url", "Where RabbitMQ is.", "URL")] = "amqp://guest:guest@127.0.0.1/",
) -> None:
    """Move the messages of a queue of RabbitMQ: each is acknowledged when it is stored; all nodes take from it."""
    from distributed_ingest.http import name_of
    from distributed_ingest.launch import Plan, launch

    plan = Plan("rabbitmq", (name_of(url), queue), stream, "whole", ("whole",), "record", urls=(url,))
    launch(session, common, plan, once=False)


@source_command(app, "join")
def join(
    session: Session,
    common: Common,
    job: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    once: Once = False,
) -> None:
    """Take part in a job of the store, by what its document says: the controller, too, unless that is given."""
    from distributed_ingest.launch import join

    join(session, common, job, once=once)


@command(app, "status")
def status(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Of one job; else of all.")] = None,
    store: Store = None,
    watch: Annotated[bool, option("--watch", "Show it again and again, until Ctrl-C.")] = False,
) -> None:
    """Show the jobs of a store: who takes part, each task with its owner and its lag, as reported last."""
    from distributed_ingest import inspection

    (inspection.watch if watch else inspection.status)(session, name, store)


@command(app, "reset")
def reset(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    store: Store = None,
    force: Annotated[bool, option("--force", "Also while nodes take part; they write what they have.")] = False,
) -> None:
    """Forget a job with its positions; begun again it reads everything anew. What is in the stream stays."""
    from distributed_ingest.inspection import reset

    reset(session, name, store, force=force)
