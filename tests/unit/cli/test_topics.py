"""`sluice topic`: every topic decoded, in order, filtered; what cannot be decoded shown with the reason."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.cli.conftest import Cli

from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, StreamConfig
from sluice.domain.segment import Segment
from sluice.domain.stream.commands import SealStream
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.domain.stream.traffic import Direction, PolicyInForce, ScaleReport
from sluice.domain.transaction.commands import AbortTransaction, CommitTransaction, OpenTransaction
from sluice.kafka import topics
from sluice.kafka.dead_letters import DeadLetterSettled, Settlement
from sluice.kafka.headers import cloud_event_headers
from sluice.lookback.source import KafkaRecord, Span, by_time

SCALE = ScaleReport(
    id="s-1", by="stream-workflows/b", at=1, scope="demo", stream="orders", creation_id="create", segment=0,
    direction=Direction.UP, splits=2, silent=False, range=(0.0, 1.0), active=True, epoch=0, epoch_since=1,
    epoch_segments=1, neighbours=(Segment(1, 0.0, 1.0),), policy=PolicyInForce(ScaleType.EVENTS, 100, 2, 1),
)  # fmt: skip
RETENTION = RetentionReport(
    id="r-1", by="stream-workflows/b", at=1, scope="demo", stream="orders", creation_id="create",
    policy=RetentionPolicy(RetentionType.SIZE, 1, 2), head=SizedCut({0: 0}, 0),
)  # fmt: skip


def tail(cli: Cli, topic: str, *more: str) -> list[dict[str, object]]:
    found = cli("topic", "tail", topic, "--no-follow", "--json", *more)
    assert found.code == 0, found.err
    return found.lines


def fill(cli: Cli) -> None:
    history = cli.history
    history.create_stream(StreamConfig())
    history.send(OpenTransaction("demo", "orders", lease_ms=10_000), "open")
    history.send(CommitTransaction("demo", "orders", "00000000-0000-0000-0000-000000000001"), "commit")
    history.send(AbortTransaction("demo", "orders", "00000000-0000-0000-0000-000000000001"), "abort")
    history.send(Heartbeat("txn-manager", "c", {}), "beat")
    history.source.append(topics.SCALE.name, "demo/orders", msgspec.json.encode(SCALE))
    history.source.append(topics.RETENTION.name, "demo/orders", msgspec.json.encode(RETENTION))


@pytest.mark.parametrize(
    ("topic", "types", "request_id", "line"),
    [
        ("requests.streams", "CreateScope", "scope", "CreateScope demo"),
        ("requests.transactions", "OpenTransaction", "open", "OpenTransaction demo/orders lease_ms=10000"),
        ("requests.cluster", "Heartbeat", "beat", "Heartbeat cluster service=txn-manager instance=c"),
        ("commit", "CommitTransaction", "commit", "CommitTransaction demo/orders transaction=00000000"),
        ("abort", "AbortTransaction", "abort", "AbortTransaction demo/orders transaction=00000000"),
        ("scale", "ScaleReport", "s-1", "ScaleReport demo/orders"),
        ("retention", "RetentionReport", "r-1", "RetentionReport demo/orders"),
        ("journal", "ScopeCreated", "scope", "ScopeCreated demo"),
    ],
)
def test_every_topic_is_decoded(cli: Cli, topic: str, types: str, request_id: str, line: str) -> None:
    fill(cli)
    first = tail(cli, topic)[0]
    assert first["types"] == [types] and first["requests"] == [request_id]
    assert isinstance(first["value"], dict) and "problem" not in first
    assert line in cli("topic", "tail", topic, "--no-follow", "--count", "1").out


def test_a_journal_record_shows_events_and_reply(cli: Cli) -> None:
    fill(cli)
    out = cli("topic", "tail", "sluice.journal", "--no-follow").out
    assert "StreamCreationStarted demo/" in out and "StreamCreated demo/" in out and "-> SUCCESS" in out


def test_filters(cli: Cli) -> None:
    fill(cli)
    assert [f["types"] for f in tail(cli, "requests.streams", "--stream", "demo/orders")] == [["CreateStream"]]
    assert [f["types"] for f in tail(cli, "journal", "--request", "scope")] == [["ScopeCreated"]]
    assert len(tail(cli, "journal", "--request", "create")) == 2
    assert len(tail(cli, "journal", "--type", "streamcreated")) == 1
    assert len(tail(cli, "journal", "--count", "2")) == 2
    assert tail(cli, "journal", "--stream", "demo/other") == []


def test_where_to_begin(cli: Cli) -> None:
    fill(cli)
    everything = tail(cli, "journal", "--from", "start")
    assert tail(cli, "journal", "--from", str(everything[1]["at"])) == everything[1:]
    assert tail(cli, "journal", "--from", "end") == []
    assert cli("topic", "tail", "journal", "--from", "soon").code == 2


def test_following_goes_on_where_reading_ended(cli: Cli) -> None:
    fill(cli)
    there = len(tail(cli, "journal"))
    found = cli("topic", "tail", "journal", "--from", "start", "--count", str(there), "--json")
    assert len(found.lines) == there
    source, follow = cli.history.source, cli.history.source.follow

    def followed(spans: list[Span]) -> object:
        source.append(topics.JOURNAL.name, "demo", b"later")
        return follow(spans)

    source.follow = followed  # type: ignore[method-assign,assignment]
    later = cli("topic", "tail", "journal", "--count", "1", "--json").lines
    assert [f["text"] for f in later] == ["later"]


@pytest.mark.parametrize("value", [b"\xff\x00", b"plain text", b'{"id":1}', b"", b"[" * 5000])
@pytest.mark.parametrize("topic", ["journal", "commit", "scale", "retention", "requests.streams", "dead-letters"])
def test_what_cannot_be_decoded_is_shown_with_the_reason(cli: Cli, topic: str, value: bytes) -> None:
    cli.history.source.append(f"sluice.{topic}", "k", value)
    found = tail(cli, topic)
    assert len(found) == 1 and found[0]["problem"]
    assert {"value", "text", "base64"} & found[0].keys()
    assert "not decoded" in cli("topic", "tail", topic, "--no-follow").out


def test_a_tombstone_is_shown(cli: Cli) -> None:
    cli.history.source.append(topics.JOURNAL.name, "k", None)
    assert tail(cli, "journal")[0]["problem"] == "it has no value"


def test_a_filter_leaves_out_nothing_that_may_be_meant(cli: Cli) -> None:
    """Only what a record says of itself, by key or header, keeps one out that cannot be decoded."""
    source = cli.history.source
    source.append(topics.COMMIT.name, "", b"broken")
    source.append(topics.COMMIT.name, "demo/orders", b"broken", [("ce_id", "commit"), ("ce_type", "CommitTransaction")])
    assert len(tail(cli, "commit", "--type", "AbortTransaction")) == 1
    assert len(tail(cli, "commit", "--type", "CommitTransaction")) == 2
    assert len(tail(cli, "commit", "--stream", "demo/orders")) == 2
    assert len(tail(cli, "commit", "--stream", "demo/other")) == 1
    assert len(tail(cli, "commit", "--request", "commit")) == 1


def test_a_dead_letter_is_decoded_as_what_it_was(cli: Cli) -> None:
    source, request = cli.history.source, cli.history.send(SealStream("demo", "orders"), "seal")
    why = [("sluice_reason", "KeyError()"), ("sluice_service", "s/1"), ("sluice_topic", request.topic)]
    origin = [("sluice_partition", "3"), ("sluice_offset", "17")]
    source.append(topics.DEAD_LETTERS.name, request.key, request.value, [*why, *origin, *request.headers])
    letter = tail(cli, "dead-letters")[0]
    assert letter["types"] == ["DeadLetter", "SealStream"] and letter["requests"] == ["seal"]
    assert letter["deadLetter"] == {
        "topic": "sluice.requests.streams", "partition": 3, "offset": 17, "reason": "KeyError()", "service": "s/1"
    }  # fmt: skip
    line = cli("topic", "tail", "dead-letters", "--no-follow").out
    assert "dead letter of sluice.requests.streams 3@17: KeyError(); SealStream demo/orders" in line


def test_a_dead_letter_that_names_its_own_topic_is_shown_as_it_is(cli: Cli) -> None:
    headers = [("sluice_reason", "why"), ("sluice_topic", topics.DEAD_LETTERS.name)]
    cli.history.source.append(topics.DEAD_LETTERS.name, "k", b"hello", headers)
    (found,) = tail(cli, "dead-letters")
    assert found["text"] == "hello" and "dead letters themselves" in str(found["problem"])


def test_a_settled_dead_letter(cli: Cli) -> None:
    settled = DeadLetterSettled(partition=1, offset=2, how=Settlement.DROPPED, at=3, by="api-gateway/a")
    headers = cloud_event_headers("DeadLetterSettled", "1-2-dropped", "api-gateway/a", 3, "k")
    cli.history.source.append(topics.DEAD_LETTERS.name, "k", msgspec.json.encode(settled), headers)
    assert tail(cli, "dead-letters")[0]["types"] == ["DeadLetterSettled"]
    assert "DeadLetterSettled 1/2 dropped" in cli("topic", "tail", "dead-letters", "--no-follow").out


def test_topics_are_listed_with_what_they_are_for(cli: Cli) -> None:
    fill(cli)
    found = {t["topic"]: t for t in cli("topic", "list", "--json").document}
    assert found.keys() == {t.name for t in topics.TOPICS}
    assert found["sluice.journal"]["records"] == 3 and found["sluice.journal"]["partitions"] == 4
    assert found["sluice.commit"]["readBy"] == ["txn-manager"]
    assert "what is true" in cli("topic", "list").out


def test_an_unknown_topic_is_refused(cli: Cli) -> None:
    found = cli("topic", "tail", "nothing", "--no-follow")
    assert found.code == 1 and "no topic nothing" in found.err and found.out == ""


@given(st.lists(st.lists(st.integers(0, 20), max_size=6), max_size=4), st.randoms())
def test_by_time_orders_whatever_way_partitions_arrive(times: list[list[int]], chance: object) -> None:
    logs = [
        [KafkaRecord("t", p, offset, at, "", None) for offset, at in enumerate(sorted(log))]
        for p, log in enumerate(times)
    ]
    spans = [Span("t", p, 0, len(log)) for p, log in enumerate(logs)]
    queues: list[list[KafkaRecord | Span]] = [[*log, span] for log, span in zip(logs, spans, strict=True)]
    arrival: list[KafkaRecord | Span] = []
    while any(queues):
        queue = chance.choice([q for q in queues if q])  # type: ignore[attr-defined]
        arrival.append(queue.pop(0))
    found = list(by_time(arrival, spans))
    assert [r.at for r in found] == sorted(at for log in times for at in log)
    assert sorted((r.partition, r.offset) for r in found) == [
        (p, o) for p, log in enumerate(logs) for o in range(len(log))
    ]


def test_by_time_gives_records_before_everything_is_read() -> None:
    spans = [Span("t", 0, 0, 2), Span("t", 1, 0, 2)]

    def endless() -> object:
        yield KafkaRecord("t", 0, 0, 1, "", None)
        yield KafkaRecord("t", 1, 0, 2, "", None)
        raise AssertionError("the reading goes on")

    assert next(by_time(endless(), spans)).at == 1  # type: ignore[arg-type]
