"""What may happen to a system under load: what its harness knows, what needs to know who leads, and pairs of them.

Everything here blocks.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from redis import Redis

from harness import System, eventually
from harness.system import Fault
from sluice.kafka.topics import REQUESTS_STREAMS
from sluice_local import kafka
from support.answers import Answer, Waits
from support.brokers import Brokers

LASTS_S = (1.0, 5.0, 15.0)
LEADERLESS_S = 60.0
AT_ONCE = "two of these at once"
_ALONE = 0
"""The partition of the journal that is left without a leader."""
_HEALS_S = 180.0


def none_waits(_answer: Answer) -> bool:
    return False


@dataclass(frozen=True)
class Event:
    """A fault to draw. Of two that hit the same only one happens at a time. Which calls `waits` names wait till its
    end. A table has one row for all of a `kind`, if it has one.
    """

    name: str
    hits: str
    fault: Fault
    waits: Waits = none_waits
    lasts_s: tuple[float, ...] = LASTS_S
    kind: str = ""


class Faults:
    """Those of a system that runs: `single` ones, each of one thing, and `several` that hit more of the same kind."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.brokers = Brokers(system)
        names = [name for name in system.names if name.startswith("api-gateway")]
        self._gateways = dict(zip(names, system.grpc_addresses, strict=True))
        self.single = [self._known(name, fault) for name, fault in system.faults.items()]
        self.single.append(Event("redis emptied", "redis", self._redis_emptied))
        self.several: list[Event] = []
        if len(self.brokers.names) > 1:
            leader, follower = self.brokers.leader_of_quorum, self.brokers.follower_of_quorum
            of_brokers: dict[str, Callable[[], Any]] = {
                "group coordinator killed": lambda: system.killed(self._coordinator()),
                "group coordinator's disk full": self._disk_full,
                "quorum's leader killed": lambda: system.killed(leader()),
                "quorum's leader frozen": lambda: system.frozen(leader()),
                "quorum's follower frozen": lambda: system.frozen(follower()),
                "kafka restarted": self._restarted,
                "leaders moved": self._leaders_moved,
            }
            self.single += [Event(name, kafka.NAME, fault) for name, fault in of_brokers.items()]
            alone = Event("partition without a leader", kafka.NAME, self._leaderless, _is_alone, (LEADERLESS_S,))
            self.single.append(alone)
            killed = [f"{name} killed" for name in self.brokers.names[1:]]
            two = both(*(self._known(name, system.faults[name]) for name in killed))
            # No leader can be elected without a majority of controllers.
            name = "two of three brokers killed"
            self.several.append(replace(two, name=name, kind="", hits=kafka.NAME, waits=lambda _answer: True))

    def named(self, name: str) -> Event:
        return next(event for event in (*self.single, *self.several) if event.name == name)

    def mixture(self, random: Random) -> Iterator[tuple[Event, float]]:
        """Events for ever, each with how long it lasts; all comes from `random`, and each comes as often as others."""
        names = list(dict.fromkeys(event.name for event in self.single))
        while True:
            single = [random.choice([event for event in self.single if event.name == name]) for name in names]
            random.shuffle(single)
            pairs = [pair for pair in zip(single[::2], single[1::2], strict=False) if can_meet(*pair)]
            deck = [*single, *self.several, *(both(*pair) for pair in pairs)]
            random.shuffle(deck)
            yield from ((event, random.choice(event.lasts_s)) for event in deck)

    def heal(self) -> None:
        """Return when every process runs and is ready, and brokers have everything."""
        for name in self.system.names:
            if not self.system.is_running(name):
                self.system.start(name, wait=False)

        def all_ready() -> bool:
            late = [name for name in self.system.names if not self.system.is_ready(name)]
            assert not late, late
            return True

        eventually(all_ready, _HEALS_S, "all are ready")
        if len(self.brokers.names) > 1:
            self.brokers.have_all()

    def _known(self, name: str, fault: Fault) -> Event:
        """As one of its kind, whatever the number of the process. Who asks a gateway that is away waits for it."""
        target = name.rpartition(" ")[0]
        gateways = {self._gateways.get(end) for end in target.split("->")}
        hits = kafka.NAME if target in self.brokers.names else target
        return Event(re.sub(r"-\d+", "", name), hits, fault, lambda answer: answer.gateway in gateways)

    def _coordinator(self) -> str:
        return self.brokers.coordinator_of(REQUESTS_STREAMS.group)

    # --- faults

    @contextmanager
    def _redis_emptied(self) -> Iterator[None]:
        assert Redis.from_url(self.system.redis_url).flushall()
        yield

    @contextmanager
    def _disk_full(self) -> Iterator[None]:
        name = self._coordinator()
        self.brokers.fill_disk(name)
        assert self.system.wait_ended(name, _HEALS_S), f"{name} goes on with a full disk"
        yield
        self.system.start(name)

    @contextmanager
    def _restarted(self) -> Iterator[None]:
        """As in a rolling restart."""
        name = self.brokers.names[-1]
        self.system.stop(name)
        yield
        self.system.start(name)

    @contextmanager
    def _leaders_moved(self) -> Iterator[None]:
        self.brokers.move_leaders()
        yield

    @contextmanager
    def _leaderless(self) -> Iterator[None]:
        """The others have leaders, and so has the quorum.

        The one that has it is not killed: Kafka makes no broker a leader that has ended so, and was the last in sync.
        """
        with self.system.frozen(self.brokers.have_alone(_ALONE)):
            yield
        self.brokers.have_on_all(_ALONE)


def _is_alone(answer: Answer) -> bool:
    """Streams may be in any partition, so a list of them asks all."""
    return _ALONE in answer.partitions or answer.rpc == "listStreamsInScope"


def can_meet(one: Event, other: Event) -> bool:
    return one.hits != other.hits and one.lasts_s == other.lasts_s


def both(one: Event, other: Event) -> Event:
    """Two at once; they end at once, because what is started may need what the other has taken."""

    @contextmanager
    def fault() -> Iterator[None]:
        happening = [event.fault() for event in (one, other)]
        for each in happening:
            each.__enter__()
        yield
        with ThreadPoolExecutor(len(happening)) as pool:
            list(pool.map(lambda each: each.__exit__(None, None, None), happening))

    def waits(answer: Answer) -> bool:
        return one.waits(answer) or other.waits(answer)

    name = " and ".join(sorted((one.name, other.name)))
    return Event(name, f"{one.hits} {other.hits}", fault, waits, kind=AT_ONCE)
