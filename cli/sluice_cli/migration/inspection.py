"""What an original has, what of it is in the middle of something, and which invariants hold.

A live original changes while it is looked at. So what does not hold is read and judged again, and counts only if it
still does not hold; which transactions have completed since they were listed is looked up. A few things at a time are
decoded, judged and forgotten.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Protocol
from uuid import UUID

import msgspec

from sluice.lookback.progress import Progress
from sluice_cli.migration import raw
from sluice_cli.migration.dump import Dump, side_by_side
from sluice_cli.migration.invariants import TITLES, Judge, Problem, committing, name_of
from sluice_cli.migration.model import Cluster, KeyValueTable, ReaderGroup, Stream, Thing, Unreadable
from sluice_cli.migration.raw import Name, Raw
from sluice_cli.migration.segments import NONE, SegmentJudge
from sluice_cli.migration.tables import UnreadableEntry
from sluice_cli.migration.unfinished import Unfinished, unfinished

ATTEMPTS = 3
"""How often a thing is judged before what does not hold of it counts."""


class Live(Protocol):
    """A running original."""

    async def thing(self, of: Name) -> Raw:
        """A thing, as it is now."""
        ...

    async def completed(self, of: Name, ids: Collection[UUID]) -> set[UUID]:
        """Which of these transactions of a stream have completed by now."""
        ...


class Invariant(msgspec.Struct, frozen=True):
    """The verdict on one of them; `holds` None: not looked at, for that takes segment stores."""

    number: int
    title: str
    holds: bool | None
    problems: int


class UnreadableThing(msgspec.Struct, frozen=True):
    """A thing with an entry that cannot be read."""

    of: str
    what: str


class Inspection(msgspec.Struct, frozen=True, rename="camel"):
    """`controllers` are those that are registered.

    `flaw` says why the dump itself is not imported, whatever it has; empty for a running original.
    `bytes` is what all segments hold, None if nothing was asked of the segment stores.
    """

    flaw: str
    controllers: tuple[str, ...]
    counts: dict[str, int]
    bytes: int | None
    read_ms: int
    invariants: tuple[Invariant, ...]
    problems: tuple[Problem, ...]
    unreadable: tuple[UnreadableThing, ...]
    unfinished: tuple[Unfinished, ...]

    @property
    def stopping(self) -> list[tuple[str, str]]:
        """What stands in the way: of which thing, and what."""
        stops = [(one.of, one.what) for one in self.problems if one.stops]
        return [(one.of, one.what) for one in self.unreadable] + stops

    @property
    def can_be_imported(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.stopping


OF_SEGMENTS = frozenset({6, 7, 16})
"""Invariants that cannot be judged without segment stores."""


class Inspector:
    """Inspects what a dump holds; with segment stores and `live` it is of the running original.

    With `since` only what was read since the dump had come so far: then nothing that concerns several things is judged.
    """

    def __init__(
        self, found: Dump, segments: SegmentJudge | None = None, live: Live | None = None, since: int = 0
    ) -> None:
        self._dump = found
        self._since = since
        self._segments = segments
        self._live = live
        self._cluster: Cluster = found.cluster
        self._judge = Judge(self._cluster)
        self._counts: Counter[str] = Counter(scopes=len(self._cluster.scopes), completed=len(self._cluster.completed))
        self._problems: list[Problem] = []
        self._unreadable: list[UnreadableThing] = []
        self._unfinished: list[Unfinished] = []
        self._bytes = 0

    async def run(self, progress: Progress, read_ms: int = 0, flaw: str = "") -> Inspection:
        """Look at everything. Raises SegmentStoreError; UnreadableEntry if it is in what belongs to no thing."""
        names = list(self._dump.names(self._since))
        with progress("judging", len(names)) as advance:
            await side_by_side(names, self._look, advance)
        self._problems += () if self._since else self._judge.at_last()
        return Inspection(
            flaw,
            self._dump.controllers,
            dict(self._counts),
            self._bytes if self._segments is not None else None,
            read_ms,
            tuple(self._verdicts()),
            tuple(sorted(self._problems, key=lambda one: (one.invariant, one.of, one.what))),
            tuple(sorted(self._unreadable, key=lambda one: one.of)),
            tuple(sorted(self._unfinished, key=lambda one: one.of)),
        )

    async def _look(self, name: Name) -> None:
        found = self._dump[name]
        for attempt in range(1, ATTEMPTS + 1):
            unreadable, thing, problems, answers = None, None, list[Problem](), NONE
            try:
                thing = raw.thing(found)
                if self._live is not None and attempt > 1:
                    self._judge.completed |= await self._live.completed(name, committing(thing))
                answers = await self._segments.of(thing) if self._segments is not None else NONE
                problems = [*self._judge.of(thing), *answers.problems]
            except UnreadableEntry as error:
                unreadable = f"{error}"
            if self._live is None or attempt == ATTEMPTS or (not problems and unreadable is None):
                break
            found = await self._live.thing(name)
        self._problems += problems
        self._bytes += answers.bytes
        if unreadable is not None:
            of = Unreadable(kind=raw.KINDS[name.kind], scope=name.scope, name=name.name, why=unreadable)
            self._unreadable.append(UnreadableThing(name_of(of), unreadable))
        if thing is not None:
            for what, number in counts(thing):
                self._counts[what] += number
            if not any(one.stops and one.invariant not in OF_SEGMENTS for one in problems):
                self._unfinished += unfinished(thing)

    def _verdicts(self) -> Iterator[Invariant]:
        count = Counter(problem.invariant for problem in self._problems)
        for number, title in TITLES.items():
            is_unknown = self._segments is None and number in OF_SEGMENTS and not count[number]
            yield Invariant(number, title, None if is_unknown else not count[number], count[number])


def counts(thing: Thing) -> Iterator[tuple[str, int]]:
    """What there is of it, by name."""
    if isinstance(thing, ReaderGroup):
        yield "readerGroups", 1
    elif isinstance(thing, KeyValueTable):
        yield "tables", 1
    else:
        yield ("internalStreams" if thing.name.startswith("_") else "streams"), 1
        yield from _of_stream(thing)


def _of_stream(stream: Stream) -> Iterator[tuple[str, int]]:
    for transactions in stream.transactions.values():
        found = Counter(one.status.name.lower() for one in transactions.values())
        yield from ((f"transactions.{status}", number) for status, number in found.items())
    yield "writers", len(stream.writers)
    found_metadata = stream.metadata
    if found_metadata is None:
        return
    yield "epochs", len(found_metadata.epochs)
    yield "retentionCuts", len(found_metadata.retention_cuts)
    yield "subscriptions", len(found_metadata.subscriber_records)
    if found_metadata.configuration is not None:
        yield "tags", len(found_metadata.configuration.tags)
        yield "retentionPolicies", int(found_metadata.configuration.retention is not None)
