"""Dead letters: listed, dropped, replayed."""

import json
from itertools import pairwise

import msgspec
import pytest
from support.callers import called_by
from unit.gateway.rest.test_sluice_streams import S, problem
from unit.gateway.rest.world import World

from api_gateway.console.dead_letters import MAX_READINGS, readings
from sluice.domain.scope.commands import CreateScope
from sluice.domain.scope.state import find_scope
from sluice.kafka.dead_letters import DeadLetterSettled, Settlement, settled_in
from sluice.kafka.requests import Request, decode_request, encode_request
from sluice.kafka.topics import DEAD_LETTERS, REQUESTS_STREAMS

LETTERS = f"{S}/dead-letters"


async def values(world: World) -> list[str]:
    return [item["value"] for item in (await world.get(LETTERS))["items"]]


def path_of(origin: tuple[int, int]) -> str:
    return f"{LETTERS}/{origin[0]}/{origin[1]}"


async def test_a_letter_is_shown_as_it_came(world: World) -> None:
    partition, offset = world.letters.letter("sc/st", b"hello", reason="an unknown command")
    (record,) = world.records(DEAD_LETTERS.name)
    world.letters.letter("sc/st", b"\xff\x00")
    later, first = (await world.get(LETTERS))["items"]
    assert first == {
        "partition": partition,
        "offset": offset,
        "topic": "sluice.commit",
        "key": "sc/st",
        "reason": "an unknown command",
        "service": "txn-manager/a",
        "at": record.timestamp()[1],
        "value": "hello",
        "encoding": "text",
    }
    assert (later["value"], later["encoding"]) == ("/wA=", "base64")


async def test_one_letter_is_shown_by_partition_and_offset(world: World) -> None:
    origin = world.letters.letter("sc/st", b"hello")
    path = path_of(origin)
    (item,) = (await world.get(LETTERS))["items"]
    assert await world.get(path) == item
    await world.call("POST", f"{path}/drop")
    assert await world.get(path) == {**item, "settled": "dropped"}
    assert problem(await world.call("GET", f"{LETTERS}/{origin[0]}/99")) == (404, None)
    assert problem(await world.call("GET", f"{path}/replay")) == (405, None)


async def test_what_lies_between_letters_of_a_page_is_passed_over(world: World) -> None:
    first = world.letters.letter("sc/st", b"first")
    for _ in range(1000):
        _settle(world, world.letters.letter("sc/st", b"between"), Settlement.DROPPED)
    world.letters.letter("sc/st", b"last")
    assert await values(world) == ["last", "first"]
    read = world.letters.records_read
    assert await values(world) == ["last", "first"]
    assert world.letters.records_read - read == 2
    assert (await world.get(path_of(first)))["value"] == "first"


def test_a_page_is_read_between_its_longest_gaps() -> None:
    near = [(0, 1), (0, 50), (1, 7)]
    assert readings([*near, (0, 500)]) == [({0: 1, 1: 7}, {0: 50, 1: 7}), ({0: 500}, {0: 500})]
    assert readings([]) == []
    many = [(0, number * 1000 + number**2) for number in range(100)]
    found = readings(many)
    assert len(found) == MAX_READINGS
    assert all(any(first[0] <= offset <= last[0] for first, last in found) for _, offset in many)
    passed_over = [after[0] - before[0] for (_, before), (after, _) in pairwise(sorted(found, key=lambda r: r[0][0]))]
    longest = sorted(after - before for (_, before), (_, after) in pairwise(many))[1 - MAX_READINGS :]
    assert sorted(passed_over) == longest


async def test_a_reading_has_a_deadline_and_goes_on_from_where_it_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        world.letters.letter("sc/st", str(number).encode())
    monkeypatch.setattr("api_gateway.console.dead_letters.MAX_READ_S", -1)
    for _ in range(3):
        assert problem(await world.call("GET", LETTERS)) == (503, None)
    assert world.letters.records_read == 3
    monkeypatch.setattr("api_gateway.console.dead_letters.MAX_READ_S", 10)
    assert await values(world) == ["2", "1", "0"]


async def test_of_several_settlements_a_replay_counts(world: World) -> None:
    origin = world.letters.letter("sc/st", b"report", "sluice.scale")
    path = path_of(origin)
    world.meanwhile = lambda: _settle(world, origin, Settlement.REPLAYED)
    assert problem(await world.call("POST", f"{path}/drop")) == (409, None)
    assert (await world.get(path))["settled"] == "replayed"
    other = world.letters.letter("sc/st", b"report", "sluice.scale")
    world.meanwhile = lambda: _settle(world, other, Settlement.DROPPED)
    assert (await world.call("POST", f"{path_of(other)}/replay")).status_code == 200
    assert (await world.get(path_of(other)))["settled"] == "replayed"


def _settle(world: World, origin: tuple[int, int], how: Settlement) -> None:
    """As another gateway does at the same moment."""
    settled = DeadLetterSettled(partition=origin[0], offset=origin[1], how=how, at=1, by="api-gateway/other")
    world.letters.append("sc/st", msgspec.json.encode(settled), [("ce_type", "DeadLetterSettled")])


async def test_letters_come_in_pages_the_latest_first(world: World) -> None:
    for number in range(5):
        world.letters.letter(f"sc/st{number}", str(number).encode())
    records = world.records(DEAD_LETTERS.name)
    records.sort(key=lambda record: (record.timestamp()[1], record.partition(), record.offset()), reverse=True)
    assert [item["value"] for item in await world.all_items(LETTERS)] == [record.value().decode() for record in records]


async def test_a_page_of_large_letters_is_shorter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_gateway.console.dead_letters.PAGE_BYTES", 10)
    for _ in range(3):
        world.letters.letter("sc/st", b"x" * 20)
    page = await world.get(LETTERS)
    assert len(page["items"]) == 1
    assert len((await world.get(LETTERS, after=page["next"]))["items"]) == 1


async def test_a_later_letter_is_in_the_next_list(world: World) -> None:
    world.letters.letter("sc/st", b"first")
    assert await values(world) == ["first"]
    world.letters.letter("sc/st", b"second")
    assert await values(world) == ["second", "first"]


async def test_only_the_latest_are_known(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_gateway.console.dead_letters.MAX_KEPT", 2)
    for number in range(7):
        world.letters.letter("sc/st", str(number).encode())
    assert await values(world) == ["6", "5"]


async def test_a_dropped_letter_is_left_out(world: World) -> None:
    partition, offset = world.letters.letter("sc/st", b"hello")
    answer = await world.call("POST", f"{LETTERS}/{partition}/{offset}/drop")
    assert answer.json() == {"partition": partition, "offset": offset, "settled": "dropped"}
    assert await values(world) == []
    (item,) = (await world.get(LETTERS, settled="true"))["items"]
    assert (item["value"], item["settled"]) == ("hello", "dropped")
    again = await world.call("POST", f"{LETTERS}/{partition}/{offset}/drop")
    assert problem(again) == (409, None)
    _, settlement = world.records(DEAD_LETTERS.name)
    assert (settlement.key(), dict(settlement.headers())["ce_type"]) == (b"sc/st", b"DeadLetterSettled")
    body = json.loads(settlement.value())
    assert body.pop("at") > 0
    assert body == {
        "type": "DeadLetterSettled",
        "partition": partition,
        "offset": offset,
        "how": "dropped",
        "by": "api-gateway/test",
    }


async def test_another_gateway_sees_what_was_settled(world: World) -> None:
    origin = world.letters.letter("sc/st", b"hello")
    await world.call("POST", f"{path_of(origin)}/drop")
    page = await world.dead_letters().page(10, None, True)
    assert [(letter.record_offset, how) for letter, _, how in page.letters] == [(origin, Settlement.DROPPED)]


async def test_a_replayed_request_is_a_new_one_and_is_decided(world: World) -> None:
    request = Request(id="r-1", at=5, by="api-gateway/a", command=CreateScope(scope="sc"))
    headers = {"ce_id": "r-1", "ce_type": "CreateScope"}
    partition, offset = world.letters.letter("sc", encode_request(request), REQUESTS_STREAMS.name, **headers)
    answer = await world.call("POST", f"{LETTERS}/{partition}/{offset}/replay")
    (record,) = (record for record in world.records(REQUESTS_STREAMS.name) if record.key() == b"sc")
    sent = decode_request(record.value())
    assert sent.id != "r-1"
    assert (sent.at, sent.command) == (5, request.command)
    assert record.headers() == [("ce_id", sent.id.encode()), ("ce_type", b"CreateScope")]
    assert answer.json() == {"partition": partition, "offset": offset, "settled": "replayed", "request": sent.id}
    assert answer.headers["sluice-request"] == sent.id
    await world.runtime.journal.until("sc", lambda view: find_scope(view, "sc") is not None)
    assert await values(world) == []
    twice = await world.call("POST", f"{LETTERS}/{partition}/{offset}/replay")
    assert problem(twice) == (409, None)
    assert len(world.records(DEAD_LETTERS.name)) == 2


async def test_a_replay_names_who_called_for_it(world: World) -> None:
    request = Request(id="r-1", at=5, by="api-gateway/a", command=CreateScope(scope="sc"), principal="alice")
    origin = world.letters.letter("sc", encode_request(request), REQUESTS_STREAMS.name)
    with called_by("bob"):
        await world.call("POST", f"{path_of(origin)}/replay")
    (record,) = (record for record in world.records(REQUESTS_STREAMS.name) if record.key() == b"sc")
    assert decode_request(record.value()).principal == "bob"
    assert [msgspec.json.decode(r.value()).get("principal") for r in world.records(DEAD_LETTERS.name)][-1] == "bob"


async def test_two_replays_of_one_request_are_two_requests(world: World) -> None:
    request = encode_request(Request(id="r-1", at=5, by="api-gateway/a", command=CreateScope(scope="sc")))
    ids = set()
    for _ in range(2):
        origin = world.letters.letter("sc", request, REQUESTS_STREAMS.name)
        ids.add((await world.call("POST", f"{path_of(origin)}/replay")).json()["request"])
    assert len(ids) == 2


async def test_what_is_no_request_is_replayed_as_it_is(world: World) -> None:
    origin = world.letters.letter("sc/st", b"\xffreport", "sluice.scale", extra="kept")
    answer = await world.call("POST", f"{path_of(origin)}/replay")
    assert "request" not in answer.json()
    (record,) = world.records("sluice.scale")
    assert (record.key(), record.value(), record.headers()) == (b"sc/st", b"\xffreport", [("extra", b"kept")])


@pytest.mark.parametrize("topic", ["", "elsewhere", "sluice.journal", DEAD_LETTERS.name])
async def test_not_everything_can_be_replayed(world: World, topic: str) -> None:
    origin = world.letters.letter("sc/st", b"hello", topic)
    assert problem(await world.call("POST", f"{path_of(origin)}/replay")) == (409, None)
    assert len(world.records(DEAD_LETTERS.name)) == 1


async def test_a_missing_letter_is_not_found(world: World) -> None:
    for what in ("drop", "replay"):
        assert problem(await world.call("POST", f"{LETTERS}/3/9/{what}")) == (404, None)
    gone = world.letters.letter("sc/st", b"hello")
    assert await values(world) == ["hello"]
    world.letters.gone.add(gone)
    assert problem(await world.call("POST", f"{path_of(gone)}/replay")) == (404, None)
    assert await values(world) == []


async def test_while_kafka_is_away_dead_letters_are_unavailable(world: World) -> None:
    world.letters.away = True
    assert problem(await world.call("GET", LETTERS)) == (503, None)
    assert problem(await world.call("POST", f"{LETTERS}/0/0/drop")) == (503, None)


async def test_a_letter_about_a_settlement_is_a_letter(world: World) -> None:
    origin = world.letters.letter("sc/st", b"hello", ce_type="DeadLetterSettled")
    (letter,) = world.records(DEAD_LETTERS.name)
    assert settled_in(letter) is None
    await world.call("POST", f"{path_of(origin)}/drop")
    assert isinstance(settled_in(world.records(DEAD_LETTERS.name)[-1]), DeadLetterSettled)
