"""Requests that could not be handled: kept as dead letters, replied to, and what is none or has no source."""

from functools import partial

import pytest
from support.memory_world import MemoryWorld, until

from sluice.domain.decision import Decision, Reply
from sluice.domain.model import JournalEntry
from sluice.domain.scope.commands import CreateScope
from sluice.domain.status import Status
from sluice.engine.consumer import Delivery, RequestConsumer
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import DEAD_LETTERS, JOURNAL, REQUESTS_STREAMS, Topic
from sluice.workflows.dead_lettering import MisplacedRequestError, dead_letter, request_of

KEY = "sc"


class Scene:
    """A service that can handle nothing; it may decide a request before it fails."""

    def __init__(self) -> None:
        self.world = MemoryWorld()
        self.is_deciding = False
        self.error = ValueError("no")
        self.errors: list[Exception] = []
        runtime = self.world.first.runtime
        self.consumer = RequestConsumer(
            runtime.request_source(REQUESTS_STREAMS),
            runtime.journal,
            self._handle,
            self._own,
            partial(dead_letter, runtime),
        )

    async def _own(self, _partition: int) -> None:
        return None

    async def _handle(self, delivery: Delivery) -> None:
        try:
            request = request_of(delivery, REQUESTS_STREAMS)
        except Exception as error:
            self.errors.append(error)
            raise
        if self.is_deciding:
            decided = Decision(reply=Reply(Status.SUCCESS))
            journal = self.world.first.journal
            await journal.propose(delivery.key, lambda *_: decided, delivery.facts(request.id))
        raise self.error

    async def send(self, key: str = KEY, partition: int | None = None) -> None:
        """Return when the request `r` has been handled."""
        value = encode_request(Request(id="r", at=1, by="api-gateway/0", command=CreateScope(scope=KEY)))
        where = self.world.first.journal.partition_of(key) if partition is None else partition
        self.world.broker.land_in(REQUESTS_STREAMS.name, where, key, value)
        await self.handled()

    async def handled(self) -> None:
        """Return when the request need not be delivered a second time."""
        if not self.consumer.joined:
            self.consumer.start()
        positions = self.consumer.positions
        await until(lambda: any(offset > 0 for _, offset in positions().values()))

    @property
    def replies(self) -> list[JournalEntry]:
        return [entry for entry in self.world.entries() if entry.reply is not None]

    @property
    def letters(self) -> int:
        return len(self.world.messages(DEAD_LETTERS))


@pytest.fixture
async def scene() -> Scene:
    return Scene()


async def test_the_reply_marks_the_request_as_decided_and_says_why(scene: Scene) -> None:
    await scene.send()
    [entry] = scene.replies
    assert entry.request == "r" and entry.reply is not None and entry.source is not None
    assert (entry.reply.status, entry.reply.reason) == ("FAILURE", "stored as a dead letter: ValueError: no")
    assert scene.world.view(KEY).is_decided(entry.source)
    [letter] = scene.world.messages(DEAD_LETTERS)
    assert dict(letter.headers())["sluice_reason"] == b"ValueError: no"


@pytest.mark.parametrize("topic", [JOURNAL, DEAD_LETTERS], ids=["reply", "letter"])
async def test_the_reply_and_the_letter_outlast_an_outage(scene: Scene, topic: Topic) -> None:
    scene.world.refuse(topic, 3)
    await scene.send()
    assert scene.letters == len(scene.replies) == 1 and scene.world.broker.refusals == 0


async def test_a_request_that_was_decided_already_is_no_dead_letter(scene: Scene) -> None:
    scene.is_deciding = True
    await scene.send()
    assert scene.letters == 0 and [entry.reply for entry in scene.replies] == [Reply(Status.SUCCESS)]


async def test_a_request_under_another_key_of_its_partition_is_a_dead_letter(scene: Scene) -> None:
    journal = scene.world.first.journal
    other = next(k for k in map("k{}".format, range(99)) if journal.partition_of(k) == journal.partition_of(KEY))
    await scene.send(key=other)
    assert [type(error) for error in scene.errors] == [MisplacedRequestError]
    [entry] = scene.replies
    assert entry.source is not None and scene.letters == 1, "it is delivered in that partition"


async def test_the_reply_to_a_request_in_a_foreign_partition_has_no_source(scene: Scene) -> None:
    journal = scene.world.first.journal
    await scene.send(partition=(journal.partition_of(KEY) + 1) % journal.partitions)
    [entry] = scene.replies
    assert entry.request == "r" and entry.source is None and scene.letters == 1


async def test_what_is_no_request_is_a_dead_letter_without_a_reply(scene: Scene) -> None:
    scene.world.broker.land(REQUESTS_STREAMS.name, KEY, b"{no json")
    await scene.handled()
    assert scene.letters == 1 and scene.replies == []


async def test_a_partition_that_has_stopped_is_not_waited_for(scene: Scene) -> None:
    journal = scene.world.first.journal
    scene.consumer.start()
    await until(lambda: len(scene.consumer.partitions) == journal.partitions and scene.consumer.is_idle)
    scene.world.broker.land(JOURNAL.name, KEY, b"no record")
    await until(lambda: bool(journal.failed))
    await scene.send()
    assert scene.letters == 1 and len(scene.world.log_of(KEY)) == 1, "nothing but the record that stopped it"


async def test_a_reply_that_no_record_can_hold_is_not_tried_anew(scene: Scene) -> None:
    scene.error = ValueError("no" * 500)
    scene.world.broker.max_bytes = 500
    await scene.send()
    assert scene.letters == 1 and scene.replies == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((b'"by":', b'"format":2,"by":'), "format 2 is newer than 1"),
        ((b"CreateScope", b"NotYetKnown"), "NotYetKnown"),
    ],
    ids=["format", "command"],
)
async def test_a_request_of_a_newer_release_is_a_dead_letter_and_its_caller_learns_why(
    scene: Scene, change: tuple[bytes, bytes], why: str
) -> None:
    value = encode_request(Request(id="r", at=1, by="api-gateway/0", command=CreateScope(scope=KEY)))
    scene.world.broker.land(REQUESTS_STREAMS.name, KEY, value.replace(*change))
    await scene.handled()
    [entry] = scene.replies
    assert entry.request == "r" and entry.reply is not None and entry.source is not None and scene.letters == 1
    assert entry.reply.status == "FAILURE" and why in entry.reply.reason
