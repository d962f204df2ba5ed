"""From a command line to a run: the job's definition, the checks before anything begins, the summary after."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import typer

from distributed_ingest.display import Display
from distributed_ingest.feeds import Maker, maker
from distributed_ingest.job import Definition, Job, Kind, Settings, checked_name, stored
from distributed_ingest.options import Common, chosen, seconds_of
from distributed_ingest.records import KeyRule, RecordForm
from distributed_ingest.run import Run, Timing
from distributed_ingest.stores import default_url
from distributed_ingest.stores import opened as opened_store
from distributed_ingest.stream_sink import opened
from sluice_cli.api import path_of
from sluice_cli.errors import RefusedError, UnreachableError, UsageError
from sluice_cli.session import Session, open_client
from sluice_cli.units import scoped

_CONTROLLER = "controller"
EXIT_BY_SIGNAL = {"SIGINT": 130, "SIGTERM": 143}
"""How `--once` ends that was stopped before its end."""
_WRITABLE = ("ACTIVE", "UPDATING", "SCALING", "TRUNCATING")


@dataclass(frozen=True)
class Plan:
    """What a command was given: where from, where to, how records are cut and, unless said otherwise, keyed.

    `urls`: the origins with what is hidden in the job's document.
    """

    kind: Kind
    origins: tuple[str, ...]
    stream: str
    records: str
    forms: Sequence[RecordForm]
    key: str
    options: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    urls: Sequence[str] = ()

    def job(self, common: Common) -> Job:
        """Return the job. Raises UsageError."""
        scope, name = scoped(self.stream)
        key = common.key or self.key
        try:
            KeyRule(key)
        except ValueError as error:
            raise UsageError(str(error), "give --key none, source, record or json:FIELD") from error
        if key == "record" and self.kind not in ("kafka", "rabbitmq"):
            raise UsageError(
                "only the records of Kafka and RabbitMQ have keys of their own", "give --key none, source or json:FIELD"
            )
        form: RecordForm = chosen("--records", self.records, self.forms)
        definition = Definition(self.kind, self.origins, f"{scope}/{name}", form, key, self.options)
        return Job(checked_name(common.name) if common.name else definition.name(), definition)


def launch(session: Session, common: Common, plan: Plan, *, once: bool) -> None:
    """Run a job on this node until its end, and print the summary. Raises CommandError, typer.Exit."""
    job = plan.job(common)
    settings = {**plan.settings, _CONTROLLER: session.controller(common.controller)}
    make_feed = maker(job.definition, settings, plan.urls)
    scope, name = scoped(job.definition.stream)
    state = session.rest.get(path_of("scopes", scope, "streams", name))["state"]
    if state not in _WRITABLE:
        raise RefusedError(f"the stream {scope}/{name} is {state}", "nothing can be written into it")
    _run(session, common, job, settings, make_feed, common.store or default_url(job.name), once=once)


def join(session: Session, common: Common, name: str, *, once: bool) -> None:
    """Run a job that is in the store, by what its document says. Raises CommandError, typer.Exit."""
    if common.name or common.key:
        raise UsageError("the job has its name and its key", "give neither --name nor --key")
    url = common.store or default_url(name)

    async def read() -> tuple[Job, Settings]:
        async with opened_store(url, Timing(common.lease_s).store_timeout_s) as store:
            return await stored(store, checked_name(name))

    job, settings = asyncio.run(read())
    if common.controller:
        settings = {**settings, _CONTROLLER: session.controller(common.controller)}
    _run(session, common, job, settings, maker(job.definition, settings), url, once=once)


def _run(
    session: Session, common: Common, job: Job, settings: Settings, make_feed: Maker, store_url: str, *, once: bool
) -> None:
    scope, name = scoped(job.definition.stream)
    client = open_client(settings[_CONTROLLER])
    run = Run(
        job=job,
        settings=settings,
        store_url=store_url,
        timing=Timing(common.lease_s),
        workers=common.workers,
        once_s=seconds_of(common.patience) if once else None,
        display=Display(bars=common.progress, verbose=common.verbose),
        sink=opened(client, scope, name),
        make_feed=make_feed,
    )
    summary = run.run()
    session.show(summary.document(), summary.draw)
    if summary.refused:
        raise RefusedError(summary.refused, "what was written before is in it; `sluice ingest reset` forgets the job")
    if summary.missed:
        raise UnreachableError("\n".join(summary.missed), "what was read is in the stream; the same command goes on")
    if once and not summary.finished:
        raise typer.Exit(EXIT_BY_SIGNAL[summary.stopped_by])
    if summary.tally.total.skipped:
        raise typer.Exit(1)
