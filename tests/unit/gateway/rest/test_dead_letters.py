"""Dead letters: listed, dropped, replayed."""

import json
from typing import Any

import pytest
from unit.gateway.rest.test_sluice_streams import S, problem
from unit.gateway.rest.world import FIRST_AT, World

from sluice.domain.commands import CreateScope
from sluice.messaging.dead_letters import DeadLetterSettled, Settlement, settled_in
from sluice.messaging.requests import Request, decode_request, encode_request
from sluice.messaging.topics import DEAD_LETTERS

LETTERS = f"{S}/dead-letters"


async def values(world: World, **query: Any) -> list[str]:
    return [item["value"] for item in (await world.get(LETTERS, **query))["items"]]


async def test_a_letter_is_shown_as_it_came(world: World) -> None:
    partition, offset = world.kafka.letter("sc/st", b"hello", reason="nobody knows it")
    world.kafka.letter("sc/st", b"\xff\x00")
    later, first = (await world.get(LETTERS))["items"]
    assert first == {
        "partition": partition,
        "offset": offset,
        "topic": "sluice.commit",
        "key": "sc/st",
        "reason": "nobody knows it",
        "service": "txn-manager/a",
        "at": FIRST_AT + 1,
        "value": "hello",
        "encoding": "text",
    }
    assert (later["value"], later["encoding"]) == ("/wA=", "base64")


async def test_letters_come_in_pages_the_latest_first(world: World) -> None:
    for number in range(5):
        world.kafka.letter(f"sc/st{number}", str(number).encode())
    seen: list[str] = []
    after = ""
    while True:
        page = await world.get(LETTERS, limit=2, after=after)
        seen += [item["value"] for item in page["items"]]
        if "next" not in page:
            break
        after = page["next"]
    assert seen == ["4", "3", "2", "1", "0"]


async def test_a_page_of_large_letters_is_shorter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_gateway.rest.dead_letters.PAGE_BYTES", 10)
    for _ in range(3):
        world.kafka.letter("sc/st", b"x" * 20)
    page = await world.get(LETTERS)
    assert len(page["items"]) == 1
    assert len((await world.get(LETTERS, after=page["next"]))["items"]) == 1


async def test_what_is_read_once_is_not_read_again(world: World) -> None:
    world.kafka.letter("sc/st", b"first")
    assert await values(world) == ["first"]
    world.kafka.letter("sc/st", b"second")
    assert await values(world) == ["second", "first"]


async def test_only_the_latest_are_known(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_gateway.rest.dead_letters.KEPT_MOST", 2)
    for number in range(7):
        world.kafka.letter("sc/st", str(number).encode())
    assert await values(world) == ["6", "5"]


async def test_a_dropped_letter_is_left_out(world: World) -> None:
    partition, offset = world.kafka.letter("sc/st", b"hello")
    answer = await world.call("POST", f"{LETTERS}/{partition}/{offset}/drop")
    assert answer.json() == {"partition": partition, "offset": offset, "settled": "dropped"}
    assert await values(world) == []
    (item,) = (await world.get(LETTERS, settled="true"))["items"]
    assert (item["value"], item["settled"]) == ("hello", "dropped")
    again = await world.call("POST", f"{LETTERS}/{partition}/{offset}/drop")
    assert problem(again) == (409, None)
    ((topic, key, value, headers),) = world.kafka.sent
    assert (topic, key, dict(headers)["ce_type"]) == (DEAD_LETTERS.name, "sc/st", "DeadLetterSettled")
    body = json.loads(value)
    assert body.pop("at") > 0
    assert body == {
        "type": "DeadLetterSettled",
        "partition": partition,
        "offset": offset,
        "how": "dropped",
        "by": "api-gateway/test",
    }


async def test_another_gateway_sees_what_was_settled(world: World) -> None:
    place = world.kafka.letter("sc/st", b"hello")
    await world.call("POST", f"{LETTERS}/{place[0]}/{place[1]}/drop")
    other = World()
    other.kafka = world.kafka
    other.open()
    other.client = world.client
    other_page = await other.app.state.backend.dead_letters.page(10, None, True)
    assert [(letter.place, how) for letter, _, how in other_page.letters] == [(place, Settlement.DROPPED)]


async def test_a_replayed_request_gets_an_id_of_its_own(world: World) -> None:
    request = Request(id="r-1", at=5, by="api-gateway/a", command=CreateScope(scope="sc"))
    headers = {"ce_id": "r-1", "ce_type": "CreateScope"}
    partition, offset = world.kafka.letter("sc", encode_request(request), "sluice.requests.streams", **headers)
    answer = await world.call("POST", f"{LETTERS}/{partition}/{offset}/replay")
    assert answer.json() == {"partition": partition, "offset": offset, "settled": "replayed", "request": "r-1~"}
    assert answer.headers["sluice-request"] == "r-1~"
    topic, key, value, sent = world.kafka.sent[0]
    assert (topic, key) == ("sluice.requests.streams", "sc")
    again = decode_request(value)
    assert (again.id, again.at, again.command) == ("r-1~", 5, request.command)
    assert sent == [("ce_id", "r-1~"), ("ce_type", b"CreateScope")]
    assert await values(world) == []
    twice = await world.call("POST", f"{LETTERS}/{partition}/{offset}/replay")
    assert problem(twice) == (409, None)
    assert len(world.kafka.sent) == 2


async def test_what_is_no_request_is_replayed_as_it_is(world: World) -> None:
    partition, offset = world.kafka.letter("sc/st", b"\xffreport", "sluice.scale", extra="kept")
    answer = await world.call("POST", f"{LETTERS}/{partition}/{offset}/replay")
    assert "request" not in answer.json()
    assert world.kafka.sent[0] == ("sluice.scale", "sc/st", b"\xffreport", [("extra", b"kept")])


@pytest.mark.parametrize("topic", ["", "elsewhere", "sluice.journal", DEAD_LETTERS.name])
async def test_not_everything_can_be_replayed(world: World, topic: str) -> None:
    partition, offset = world.kafka.letter("sc/st", b"hello", topic)
    assert problem(await world.call("POST", f"{LETTERS}/{partition}/{offset}/replay")) == (409, None)
    assert world.kafka.sent == []


async def test_a_letter_that_is_not_there(world: World) -> None:
    for what in ("drop", "replay"):
        assert problem(await world.call("POST", f"{LETTERS}/3/9/{what}")) == (404, None)
    gone = world.kafka.letter("sc/st", b"hello")
    assert await values(world) == ["hello"]
    world.kafka.gone.add(gone)
    assert problem(await world.call("POST", f"{LETTERS}/{gone[0]}/{gone[1]}/replay")) == (404, None)
    assert await values(world) == []


async def test_while_kafka_is_away_nobody_can_say(world: World) -> None:
    world.kafka.away = True
    assert problem(await world.call("GET", LETTERS)) == (503, None)
    assert problem(await world.call("POST", f"{LETTERS}/0/0/drop")) == (503, None)


async def test_a_letter_about_a_settlement_is_a_letter(world: World) -> None:
    partition, offset = world.kafka.letter("sc/st", b"hello", ce_type="DeadLetterSettled")
    message: Any = world.kafka.log[partition][offset]
    assert settled_in(message) is None
    await world.call("POST", f"{LETTERS}/{partition}/{offset}/drop")
    last: Any = world.kafka.log[partition][-1]
    assert isinstance(settled_in(last), DeadLetterSettled)
