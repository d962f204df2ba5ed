"""From a command line to a run: the job's definition, the checks before anything begins, the summary after."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import typer

from distributed_ingest.display import Display
from distributed_ingest.feed import Feed, Scene
from distributed_ingest.job import Definition, Job, Kind, checked_name
from distributed_ingest.options import Common, seconds_of
from distributed_ingest.records import KeyRule, RecordForm
from distributed_ingest.run import Run, Timing
from distributed_ingest.stores import default_url
from distributed_ingest.stream_sink import opened
from sluice_cli.api import path_of
from sluice_cli.errors import RefusedError, UnreachableError, UsageError
from sluice_cli.session import Session, open_client
from sluice_cli.units import scoped

T = TypeVar("T", bound=str)

EXIT_BY_SIGNAL = {"SIGINT": 130, "SIGTERM": 143}
"""How `--once` ends that was stopped before its end."""
_WRITABLE = ("ACTIVE", "UPDATING", "SCALING", "TRUNCATING")


@dataclass(frozen=True)
class Plan:
    """What a command was given: where from, where to, how records are cut and, unless said otherwise, keyed."""

    kind: Kind
    origins: tuple[str, ...]
    stream: str
    records: str
    forms: Sequence[RecordForm]
    key: str
    options: dict[str, str] = field(default_factory=dict)

    def job(self, common: Common) -> Job:
        """Return the job. Raises UsageError."""
        scope, name = scoped(self.stream)
        key = common.key or self.key
        try:
            KeyRule(key)
        except ValueError as error:
            raise UsageError(str(error), "give --key none, source, record or json:FIELD") from error
        if key == "record" and self.kind != "kafka":
            raise UsageError(
                "only the records of Kafka have keys of their own", "give --key none, source or json:FIELD"
            )
        form: RecordForm = chosen("--records", self.records, self.forms)
        definition = Definition(self.kind, self.origins, f"{scope}/{name}", form, key, self.options)
        return Job(checked_name(common.name) if common.name else definition.name(), definition)


def chosen(option: str, value: str, among: Sequence[T]) -> T:
    """Return the choice that a value is. Raises UsageError."""
    for each in among:
        if value == each:
            return each
    raise UsageError(f"{value!r} is nothing for {option}", f"give one of {', '.join(among)}")


def launch(session: Session, common: Common, plan: Plan, make_feed: Callable[[Scene], Feed], *, once: bool) -> None:
    """Run a job on this node until its end, and print the summary. Raises CommandError, typer.Exit."""
    job = plan.job(common)
    scope, name = scoped(job.definition.stream)
    timing = Timing(common.lease_s)
    state = session.rest.get(path_of("scopes", scope, "streams", name))["state"]
    if state not in _WRITABLE:
        raise RefusedError(f"the stream {scope}/{name} is {state}", "nothing can be written into it")
    client = open_client(session.controller(common.controller))
    run = Run(
        job=job,
        store_url=common.store or default_url(job.name),
        timing=timing,
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
