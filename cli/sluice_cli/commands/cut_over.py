"""`sluice migrate cut-over`: the commands of a migration one after the other, and what is waited for between them.

All that it goes by are the journal, ZooKeeper and the dump. So one that was broken off, or that something stood in the
way of, goes on when it is run again: no step does what was done before.
"""

import time
from collections.abc import Awaitable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sluice_cli.arguments import Controller
from sluice_cli.commands import migrate, take_over
from sluice_cli.errors import RefusedError, UsageError
from sluice_cli.session import Session

if TYPE_CHECKING:
    from sluice_cli.migration.dump import Manifest
    from sluice_cli.migration.fences import Fences
    from sluice_cli.migration.inspection import Inspection
    from sluice_cli.migration.source import Source
    from sluice_cli.records.backing_up import Topics
    from sluice_cli.records.holding import Stage

LOOK_AGAIN_S = 1.0
READINGS = 5
"""How often the original is read twice before it counts as one that goes on to change."""


class Step(NamedTuple):
    """`clients` says what they see meanwhile, `back` how the original is returned to from there."""

    name: str
    does: str
    clients: str
    back: str


_NOTHING = "nothing was changed yet"
_FORGET = "stop Sluice's services, delete its topics, lead clients back, and let the original's controllers run"
_NO_WAY_BACK = "there is no way back behind the release: the original keeps its metadata in ZooKeeper"
_SERVED = "they are served by the original"
_HELD = "they write and read on; their calls wait at Sluice's gateways"
LOOK = Step("look", "reads the original while it runs, and judges whether it can be brought along", _SERVED, _NOTHING)
HOLD = Step("hold", "makes Sluice's topics, and holds their journal: services wait that start now", _SERVED, _FORGET)
STOP = Step("stop", "waits: start Sluice's services, and stop the original's controllers for good", _HELD, _FORGET)
READ = Step("read", "reads the original until nothing changes, and judges what did", _HELD, _FORGET)
IMPORT = Step("import", "brings what was read into the journal", _HELD, _FORGET)
RELEASE = Step(
    "release",
    "has Sluice's services begin",
    "their calls are answered by Sluice",
    "`sluice migrate export`, for the original does not know what Sluice decides",
)
STEPS = (LOOK, HOLD, STOP, READ, IMPORT, RELEASE)


def cut_over(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DIR", show_default=False, help="A dump's own folder.")],
    partitions: take_over.Partitions,
    replication: take_over.Replication = None,
    left_out: take_over.LeftOut = None,
    controller: Controller = None,
    zookeeper: migrate.ZooKeeper = "127.0.0.1:2181",
    cluster: migrate.Cluster = "pravega-cluster",
    concurrency: migrate.Concurrency = 8,
    wait_s: Annotated[
        int, typer.Option("--wait", min=0, metavar="SECONDS", help="How long others may take to stop and to start.")
    ] = 3600,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what each step would do, and what stands in its way now.")
    ] = False,
) -> None:
    """Take over from a running original, in steps that say what clients see meanwhile and how to go back.

    Ends with 1 if something stands in the way. Run it again then: it goes on where it was. With --dry-run it ends with
    1 if the original cannot be brought along.
    """
    to = session.controller(controller)
    run = _CutOver(
        session, folder, partitions, replication, left_out or (), to, zookeeper, cluster, concurrency, wait_s
    )
    if dry_run:
        run.rehearse()
    else:
        run.run()


@dataclass
class _CutOver:
    session: Session
    folder: Path
    partitions: int
    replication: int | None
    left_out: Collection[str]
    controller: str
    zookeeper: str
    cluster: str
    concurrency: int
    wait_s: int
    judged: int = 0
    """How far the dump had come when this run judged it: what changes later gets a new line."""

    def run(self) -> None:
        """Do what is left to be done. Raises CommandError."""
        from sluice_cli.records import holding

        if self._stage() is not holding.Stage.RELEASING:
            with self._fences() as fences:
                if fences.controllers_left():
                    self._begin(LOOK)
                    self._read(2)
                    self._judge()
                self._begin(HOLD)
                self._hold()
                self._begin(STOP)
                self._wait(fences)
            self._begin(READ)
            self._read_last(READINGS, 2)
            self._judge()
            self._begin(IMPORT)
            self._import()
            self._read_last(1, 1)
            with self._fences() as fences:
                _refuse(fences.controllers_left())
        self._begin(RELEASE)
        records = holding.release(self.session.present, self._topics, self.session.now_ms, is_empty=False)
        self._say(RELEASE, f"services begin now, with {records} records")

    def rehearse(self) -> None:
        """Say what there is to do, and change nothing. Ends with 1 if something stands in the way."""
        from sluice_cli.records import holding

        stage = self._stage()
        in_the_way: dict[Step, list[str]] = {}
        if stage is not holding.Stage.RELEASING:
            with self._fences() as fences:
                in_the_way[STOP] = fences.in_the_way()
            found = migrate.inspected(self.session, self.zookeeper, self.cluster, self.concurrency)
            in_the_way[LOOK] = self._stopping(found)
        done = {holding.Stage.HELD: (LOOK, HOLD), holding.Stage.RELEASING: STEPS[:-1]}.get(stage, ())
        for step in STEPS:
            self._begin(step)
            if step in done:
                self._say(step, "was done")
            for problem in in_the_way.get(step, ()):
                self._say(step, f"in the way: {problem}")
        if in_the_way.get(LOOK):
            raise typer.Exit(1)

    def _stage(self) -> "Stage":
        """How far it came. Raises RefusedError for a journal that may be older than what the original knows."""
        from sluice_cli.records import holding

        stage = holding.stage(self.session.present)
        if stage is holding.Stage.RELEASED:
            raise RefusedError(
                "it was released already: nothing is left to do",
                "if the original has served since, stop Sluice's services and delete its topics first",
            )
        return stage

    @cached_property
    def _is_in_zookeeper(self) -> bool:
        return migrate.reading(self.zookeeper, self.cluster, self.concurrency, lambda source: source.is_in_zookeeper())

    @contextmanager
    def _fences(self) -> "Iterator[Fences]":
        from sluice_cli import session as sessions
        from sluice_cli.migration.dump import Dump
        from sluice_cli.migration.fences import Fences
        from sluice_client import Access, is_secured

        try:
            tls = Access.of_environment().to_controller() if is_secured(self.controller) else None
        except ValueError as error:
            raise UsageError(str(error), "`sluice --help` and docs/cli.md name the variables") from error
        with sessions.open_zookeeper(self.zookeeper, self.cluster) as nodes:
            yield Fences(nodes, Dump(self.folder).controllers_ever(), self.controller, tls)

    @cached_property
    def _topics(self) -> "Topics":
        from sluice_cli import session as sessions

        return sessions.open_topics(self.session.kafka)

    def _hold(self) -> None:
        from sluice.kafka.topics import BROKERS_OWN
        from sluice_cli.records import holding

        session, replication = self.session, self.replication or BROKERS_OWN
        is_new = holding.hold(session.present, self._topics, self.partitions, replication, session.now_ms)
        self._say(HOLD, "it is held" if is_new else "it was held already")

    def _import(self) -> None:
        from sluice_cli.migration.dump import Dump
        from sluice_cli.migration.importing import import_original

        session, dump = self.session, Dump(self.folder)
        found = import_original(
            session.present, self._topics, dump, self.left_out, session.now_ms, session.out.progress
        )
        if session.json:
            session.out.line({"name": IMPORT.name, **found})
        else:
            take_over.draw_imported(session.out, found)

    def _wait(self, fences: "Fences") -> None:
        until, said = time.monotonic() + self.wait_s, list[str]()
        while found := fences.in_the_way():
            for problem in found:
                if problem not in said:
                    self._say(STOP, f"in the way: {problem}")
            said = found
            if time.monotonic() >= until:
                _refuse(found)
            time.sleep(LOOK_AGAIN_S)

    def _read(self, rounds: int) -> str:
        """What `Dump.flaw` says of it."""
        from sluice_cli.migration import dump as dumps

        def work(source: "Source") -> "Awaitable[Manifest]":
            session = self.session
            return dumps.dump(source, self.folder, rounds, lambda: session.now_ms, session.out.progress)

        migrate.reading(self.zookeeper, self.cluster, self.concurrency, work)
        return dumps.Dump(self.folder).flaw

    def _read_last(self, readings: int, rounds: int) -> None:
        flaw = "is not there"
        for _ in range(readings):
            flaw = self._read(rounds)
            if not flaw:
                return
        raise RefusedError(f"the dump in {self.folder} {flaw}", "a controller of the original runs, or ran: find it")

    def _judge(self) -> None:
        """Refuse what cannot be brought along; what this run has judged before, and did not change, is as it was."""
        from sluice_cli.migration.dump import Dump
        from sluice_cli.migration.inspection import Inspector
        from sluice_cli.migration.segments import SegmentJudge

        dump = Dump(self.folder)

        def work(source: "Source") -> "Awaitable[Inspection]":
            judge = SegmentJudge(source.store, self.concurrency)
            return Inspector(dump, judge, source, self.judged).run(self.session.out.progress)

        found = self._stopping(migrate.reading(self.zookeeper, self.cluster, self.concurrency, work))
        self.judged = dump.end
        if found:
            more = f", and {len(found) - 1} more: `sluice migrate inspect`" if found[1:] else ""
            raise RefusedError(f"{found[0]}{more}", '--except "KIND SCOPE/NAME" leaves a thing out')

    def _stopping(self, found: "Inspection") -> list[str]:
        return [f"{of}: {what}" for of, what in found.stopping if of not in self.left_out]

    def _begin(self, step: Step) -> None:
        number = STEPS.index(step) + 1
        if step in (LOOK, RELEASE) and self._is_in_zookeeper:
            step = step._replace(back=f"{_NOTHING}; {_NO_WAY_BACK}" if step is LOOK else _NO_WAY_BACK)
        if self.session.json:
            self.session.out.line({"number": number, **step._asdict()})
            return
        self.session.out.text(f"{number} of {len(STEPS)}, {step.name}: {step.does}", "bold")
        self.session.out.text(f"  clients: {step.clients}")
        self.session.out.text(f"  way back: {step.back}")

    def _say(self, step: Step, what: str) -> None:
        if self.session.json:
            self.session.out.line({"name": step.name, "says": what})
        else:
            self.session.out.text(f"  {what}")


def _refuse(in_the_way: list[str]) -> None:
    if in_the_way:
        raise RefusedError("; ".join(in_the_way), "mend that, and run this again: it goes on where it was")
