"""Is anything wrong? What an operator sees first: one sentence, and the numbers behind it.

It goes by this process's view without a barrier, so that it is there while Kafka is not. All pages share one answer for
a moment; the longer it took to find, the longer it is shared. Belongs to the event loop.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Literal, NamedTuple

import msgspec

from api_gateway.console.dead_letters import DeadLetters, LetterCounts
from api_gateway.console.tally import Tally
from api_gateway.edge.slices import Slices
from sluice.domain.listings import MEMBERS
from sluice.domain.names import SYSTEM_SCOPE
from sluice.domain.scope.index import scopes_of
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.state import open_transaction
from sluice.domain.workflow import is_under_way, running
from sluice.engine.journal import Journal
from sluice.engine.ports import Clock
from sluice.insight.progress import Progress, progress_of
from sluice.kafka.dead_letters import DeadLettersUnavailableError

SHARED_S = 1.0
SHARED_FACTOR = 20
"""An answer is shared for so many times as long as it took: so overviews cost a twentieth of a core at most."""

COUNT_S = 2.0
"""How long an overview waits for counts that are not known yet."""

LETTERS_S = 10.0
LETTERS_WAIT_S = 1.0
OVERDUE_MS = 5_000
"""So long behind the end of its lease a transaction is overdue."""

MAX_LEASES = 2_000
"""Transactions whose leases are looked at, of each stream the oldest ones first."""

MAX_LEASES_OF_A_STREAM = 100
HOT_MS = 10 * 60 * 1000
MAX_WORKFLOWS = 20_000
MAX_CAUSE = 120
"""Characters of the sentence that say why a workflow fails; the rest stands in its last error."""

_ERROR_NAME = re.compile(r"[A-Z][a-z]+[A-Z]\w*: ")
_CLAUSE_END = re.compile(r"[.;] | \[|\n")


class Counts(msgspec.Struct, frozen=True):
    """How much there is, but for what is internal; None: not known yet."""

    scopes: int
    streams: int
    groups: int
    tables: int
    segments: int | None
    transactions_open: int | None
    transactions_waiting: int | None


class FailingWorkflow(msgspec.Struct, frozen=True):
    """A workflow whose step is tried again; `since` is when it began, epoch ms."""

    aggregate: str
    kind: str
    since: int
    error: str


class Workflows(msgspec.Struct, frozen=True):
    """How many get on in which way, and the failing one that began first."""

    by_progress: dict[Progress, int]
    oldest_failing: FailingWorkflow | None


class Found(msgspec.Struct, frozen=True):
    """What there is at `at`, epoch ms; `dead_letters` None: not known."""

    counts: Counts
    workflows: Workflows
    dead_letters: LetterCounts | None
    overdue_leases: int
    hot_streams: list[str]
    at: int


class Overview:
    """The overview of one gateway."""

    def __init__(self, journal: Journal, tally: Tally, letters: DeadLetters, clock: Clock) -> None:
        self._journal = journal
        self._tally = tally
        self._letters = LetterCount(letters)
        self._clock = clock
        self._turn = asyncio.Lock()
        self._last: Found | None = None
        self._good_until_s = 0.0

    async def found(self) -> Found:
        """What there is, or was a moment ago."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            if self._last is None or loop.time() >= self._good_until_s:
                began_s = loop.time()
                self._last = await self._look()
                now_s = loop.time()
                self._good_until_s = now_s + max(SHARED_S, SHARED_FACTOR * (now_s - began_s))
            return self._last

    async def stop(self) -> None:
        """Look no more."""
        await self._tally.stop()
        await self._letters.stop()

    async def _look(self) -> Found:
        totals = await self._tally.totals(COUNT_S)
        letters = await self._letters.count()
        now, slices = self._clock.now_ms(), Slices()
        scopes = sum(len(scopes_of(view).names) for view in self._journal.views())
        streams, groups, tables = await self._members(slices)
        counts = Counts(
            scopes=scopes - self._has_system_scope(),
            streams=streams,
            groups=groups,
            tables=tables,
            segments=totals.segments if totals is not None else None,
            transactions_open=totals.open if totals is not None else None,
            transactions_waiting=totals.waiting if totals is not None else None,
        )
        return Found(
            counts=counts,
            workflows=await self._workflows(slices),
            dead_letters=letters,
            overdue_leases=await self._overdue(slices, now),
            hot_streams=self._tally.hot(now - HOT_MS),
            at=now,
        )

    def _has_system_scope(self) -> bool:
        return SYSTEM_SCOPE in scopes_of(self._journal.reader(SYSTEM_SCOPE)).names

    async def _members(self, slices: Slices) -> tuple[int, int, int]:
        """How many streams, groups and tables there are."""
        streams = groups = tables = 0
        for view in self._journal.views():
            members = view.projection(MEMBERS) or {}
            for scope in list(members):
                found = members.get(scope)
                if found is not None and scope != SYSTEM_SCOPE:
                    streams += len(found.streams) - found.internal_streams
                    groups += len(found.groups)
                    tables += len(found.tables)
                if slices.is_over():
                    await slices.pause()
        return streams, groups, tables

    async def _workflows(self, slices: Slices) -> Workflows:
        counts: Counter[Progress] = Counter(dict.fromkeys(Progress, 0))
        oldest: FailingWorkflow | None = None
        for view in self._journal.views():
            for aggregate in list(view.under_way())[:MAX_WORKFLOWS]:
                state = view.get(aggregate)
                if not is_under_way(state):
                    # It has ended meanwhile.
                    continue
                workflow = running(state)
                progress = progress_of(workflow)
                counts[progress] += 1
                is_failing = workflow is not None and progress is Progress.FAILING
                if workflow is not None and is_failing and (oldest is None or workflow.since < oldest.since):
                    oldest = FailingWorkflow(aggregate, workflow.kind.value, workflow.since, workflow.last_error)
                if slices.is_over():
                    await slices.pause()
        return Workflows(dict(counts), oldest)

    async def _overdue(self, slices: Slices, now: int) -> int:
        """How many open transactions are past the end of their lease, of those that are looked at."""
        looked, overdue = 0, 0
        for id in list(self._tally.with_open()):
            view = self._journal.reader(id.key)
            for uuid in list(islice(transactions_of(view, id).open, MAX_LEASES_OF_A_STREAM)):
                found = open_transaction(view, id.transaction(uuid))
                overdue += found is not None and found.lease_ends_at + OVERDUE_MS < now
                looked += 1
                if slices.is_over():
                    await slices.pause()
            if looked >= MAX_LEASES:
                break
        return overdue


class LetterCount:
    """How many dead letters need attention, as of a moment ago: reading them may take long while Kafka is away."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters
        self._known: LetterCounts | None = None
        self._due_s = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def count(self) -> LetterCounts | None:
        """The numbers as they were read last; None if they could not be read."""
        loop = asyncio.get_running_loop()
        if self._reading is None and loop.time() >= self._due_s:
            self._reading = loop.create_task(self._read(), name="dead letters")
        if self._reading is not None and self._known is None:
            await asyncio.wait((self._reading,), timeout=LETTERS_WAIT_S)
        return self._known

    async def stop(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            self._known = await self._letters.counts()
        except DeadLettersUnavailableError:
            self._known = None
        finally:
            self._due_s = asyncio.get_running_loop().time() + LETTERS_S
            self._reading = None


class Level(NamedTuple):
    """How bad it is, and why in words."""

    level: Literal["ok", "warn", "bad"]
    sentence: str


def judged(
    found: Found, oldest: FailingWorkflow | None, cannot: Sequence[str], troubles: Sequence[str], cause: str = ""
) -> Level:
    """The sentence: what is wrong first, each cause once.

    `oldest` is the failing workflow that began first, None for who may not see it. `cannot` says why calls cannot be
    served, `troubles` what else is wrong, `cause` why the oldest fails, as far as more is known than its last error.
    """
    failing = found.workflows.by_progress[Progress.FAILING]
    wrong = list(cannot)
    if failing:
        wrong.append(_failing_in_words(failing, oldest, found.at, cause))
    if found.overdue_leases:
        wrong.append(f"{_some(found.overdue_leases, 'transaction')} open past the end of the lease")
    if found.dead_letters is not None and found.dead_letters.open:
        wrong.append(_some(found.dead_letters.open, "dead letter"))
    wrong += troubles
    if not wrong:
        counts = found.counts
        under_way = sum(found.workflows.by_progress.values())
        doing = f"{_some(under_way, 'workflow')} under way" if under_way else "nothing is under way"
        sizes = f"{_some(counts.streams, 'stream')} in {_some(counts.scopes, 'scope')}"
        unread = "; dead letters are not read yet" if found.dead_letters is None else ""
        return Level("ok", f"All is well: {sizes}; {doing}{unread}.")
    sentence = "; ".join(wrong)
    return Level("bad" if cannot else "warn", f"{sentence[0].upper()}{sentence[1:]}.")


def _failing_in_words(failing: int, oldest: FailingWorkflow | None, at: int, cause: str) -> str:
    text = f"{_some(failing, 'workflow')} failing"
    if oldest is None:
        return text
    why = cause or _first_clause(oldest.error) or "no reason recorded"
    shown = why if len(why) <= MAX_CAUSE else f"{why[:MAX_CAUSE]}…"
    return f"{text}, the oldest for {_duration(at - oldest.since)}: {shown}"


def _first_clause(error: str) -> str:
    """What an error says first, without the name of its class."""
    return _CLAUSE_END.split(_ERROR_NAME.sub("", error.strip(), count=1), maxsplit=1)[0].rstrip(".")


def _some(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _duration(ms: int) -> str:
    seconds = max(0, ms) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
