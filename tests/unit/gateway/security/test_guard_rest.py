"""HTTP calls with authentication on: who is let through, and what the others get."""

from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest
from support import group_state as written
from unit.gateway.rest.world import World
from unit.gateway.security.support import ALL, NONE, READ, READ_UPDATE, Callers

from api_gateway.app import OPEN_PATHS, RULES, build_app
from api_gateway.console.page_files import FILES_PATH, page_files
from api_gateway.console.paging import position_in
from api_gateway.console.rest import RULES as CONSOLE_RULES
from api_gateway.console.rest import stream_search
from api_gateway.edge.rest import boundary
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.rest_resources import DEAD_LETTERS, WORKFLOWS, names_in
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.events import DecisionRecorded, StreamSealStarted
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.domain.workflow import WorkflowStepFailed
from sluice.kafka.topics import RETENTION, SNAPSHOT_CHUNKS
from sluice.lookback.tracing import MAX_SAYS
from sluice.security.caller import CALLER
from sluice.security.resources import ROOT, Permission

SC = "prn::/scope:sc"
SINCE = {"from": "-1h"}
VALUES = {"partition": "0", "offset": "0", "epoch": "0", "segment": "0", "txn": "0" * 8 + "-0000" * 3 + "-" + "0" * 12}


@pytest.fixture
def callers() -> Callers:
    return Callers(admin={ALL: READ_UPDATE}, reader={ALL: READ}, stranger={})


@pytest.fixture
async def secured(callers: Callers) -> AsyncIterator[World]:
    world = World(guard=Guard(callers, readers_write=True))
    await world.start()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        world.client = client
        yield world
    await world.stop()


@pytest.fixture
async def filled(secured: World) -> World:
    """With the scopes `sc` and `other`, and in `sc` the streams, reader groups and tables `a`, `b`, `c`."""
    for scope in ("sc", "other"):
        assert (await call(secured, "PUT", f"/sluice/v1/scopes/{scope}", "admin")).status_code == 201
    stream = {"scaling": {"type": "fixed", "minSegments": 1}}
    group: dict[str, Any] = {"config": {"streams": {"sc/a": {}}}}
    table = {"partitionCount": 1, "primaryKeyLength": 4}
    for kind, body in (("streams", stream), ("readergroups", group), ("tables", table)):
        for name in "abc":
            answer = await call(secured, "PUT", f"/sluice/v1/scopes/sc/{kind}/{name}", "admin", body)
            assert answer.status_code == 201, answer.text
    return secured


async def call(world: World, method: str, path: str, user: str = "", body: Any = None, **query: Any) -> httpx.Response:
    headers = {"Authorization": f"Basic {user}"} if user else {}
    return await world.client.request(method, path, json=body, headers=headers, params=query or None)


def operations(*, open_: bool) -> Iterator[tuple[str, str]]:
    """Methods and paths."""
    for operation, rule in RULES.items():
        if (rule is None) if open_ else (rule is not None and rule.on):
            method, _, path = operation.partition(" ")
            for name in ("scope", "stream", "group", "table", "scopeName", "streamName", "readerGroupName", "id"):
                path = path.replace(f"{{{name}}}", "x")
            for name, value in VALUES.items():
                path = path.replace(f"{{{name}}}", value)
            yield method, path


async def test_calls_that_need_a_permission_are_refused_before_anything_is_looked_at(secured: World) -> None:
    before = len(secured.sent)
    for method, path in operations(open_=False):
        for value in ("", "Basic unknown", "Bearer x", "Basic"):
            headers = {"Authorization": value} if value else {}
            refused = await secured.client.request(method, path, headers=headers, content=b"no json")
            assert refused.status_code == 401, path
            check_form(path, refused, "no credentials, or wrong ones")
        refused = await call(secured, method, path, "stranger", "no right body")
        assert refused.status_code == 403, path
        check_form(path, refused, "these credentials do not allow it")
    assert len(secured.sent) == before


def check_form(path: str, refused: httpx.Response, detail: str) -> None:
    if path.startswith("/sluice/"):
        assert refused.headers["content-type"] == boundary.PROBLEM_TYPE
        assert refused.json()["detail"] == detail
    else:
        assert refused.content == b""
    assert "www-authenticate" not in refused.headers


async def test_what_is_open_looks_at_no_credentials(secured: World, callers: Callers) -> None:
    for method, path in operations(open_=True):
        answer = await call(secured, method, path, "unknown")
        assert answer.status_code in (200, 204, 404), path
    version = page_files().version
    for path in OPEN_PATHS:
        file = {"/docs-files": f"{path}/swagger-ui.css", "/ui": "/ui/", FILES_PATH: f"/ui/{version}/page.css"}.get(path)
        assert (await call(secured, "GET", file or path, "unknown")).status_code == 200, path
    assert callers.requests == []


async def test_of_several_headers_the_first_counts(secured: World) -> None:
    headers = [("Authorization", "Basic admin"), ("Authorization", "Basic unknown")]
    assert (await secured.client.get("/v1/scopes", headers=headers)).status_code == 200


async def test_what_does_not_exist_looks_like_what_may_not_be_seen(filled: World, callers: Callers) -> None:
    answers = [await call(filled, "GET", f"/sluice/v1/scopes/sc/streams/{name}", "stranger") for name in ("a", "z")]
    assert answers[0].status_code == answers[1].status_code == 403
    assert answers[0].content == answers[1].content


async def test_a_stream_shows_the_subscribers_that_its_reader_may_read(filled: World, callers: Callers) -> None:
    group = {"config": {"streams": {"sc/b": {}}, "retention": "manual"}}
    assert (await call(filled, "PUT", "/sluice/v1/scopes/sc/readergroups/g", "admin", group)).status_code == 201
    seen = []
    for group_too in (READ, NONE):
        callers.permissions["half"] = {f"{SC}/stream:b": READ, f"{SC}/reader-group:g": group_too}
        shown = (await call(filled, "GET", "/sluice/v1/scopes/sc/streams/b", "half")).json()
        seen.append([subscriber["name"] for subscriber in shown["subscribers"]])
    assert seen == [["sc/g"], []]


async def test_a_stream_kept_for_something_else_is_shown_to_who_may_read_that(filled: World, callers: Callers) -> None:
    await filled.store.append("sc/_RGa/0.#epoch.0", uuid4(), b"state")
    seen = []
    for own in (f"{SC}/stream:_RGa", f"{SC}/reader-group:a"):
        callers.permissions["half"] = {own: READ, ROOT: READ, SC: READ}
        events = await call(filled, "GET", "/sluice/v1/scopes/sc/streams/_RGa/events", "half")
        lists = [
            (await call(filled, "GET", f"/sluice/v1/{path}", "half", **query)).json()["items"]
            for path, query in (
                ("scopes/sc/streams", {"internal": True}),
                ("streams", {"scope": "sc", "internal": True}),
                ("streams/loads", {"name": "sc/_RGa"}),
            )
        ]
        seen.append((events.status_code, ["_RGa" in [one["name"] for one in items] for items in lists]))
    assert seen == [(403, [False] * 3), (200, [True] * 3)]


async def test_what_a_group_has_to_read_of_foreign_streams_is_not_counted(filled: World, callers: Callers) -> None:
    names = [f"sc/{stream}/0.#epoch.0" for stream in "ab"]
    for name, length in zip(names, (100, 30), strict=True):
        filled.store.segments[name].data = bytes(length)
    config = written.config(["sc/a"], "0f0e0d0c-0b0a-4908-8706-050403020100", 0)
    await filled.store.append("sc/_RGa/0.#epoch.0", uuid4(), written.initial(config, names))
    now = filled.system.broker.now_ms()
    report = RetentionReport(
        id="1", by="t", at=now - 60_000, scope="sc", stream="b", creation_id="", policy=None,
        head=SizedCut({0: 0}, 0), sample=SizedCut({0: 30}, 0),
    )  # fmt: skip
    filled.system.broker.land(RETENTION.name, "sc/b", msgspec.json.encode(report))
    callers.permissions["half"] = {f"{SC}/reader-group:a": READ, f"{SC}/stream:a": READ}
    seen = []
    for user in ("admin", "half"):
        found = (await call(filled, "GET", "/sluice/v1/scopes/sc/readergroups/a/readers", user)).json()
        seen.append((found["lag"]["bytes"], "ms" in found["lag"], found["complete"]))
    assert seen == [(130, True, True), (100, False, False)]


async def test_credentials_are_asked_for_while_the_journal_is_loaded(callers: Callers) -> None:
    process: Any = SimpleNamespace(checks={}, outages={}, degraded={}, facts={})
    app = build_app(process, connections=10, guard=Guard(callers, readers_write=True))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        assert (await client.get("/v1/scopes")).status_code == 401
        assert (await client.get("/v1/scopes", headers={"Authorization": "Basic reader"})).status_code == 503


async def test_a_put_needs_the_permission_on_the_scope_and_on_what_is_in_it(filled: World, callers: Callers) -> None:
    path, body = "/sluice/v1/scopes/sc/streams/a", {"scaling": {"type": "fixed", "minSegments": 1}}
    for own in ({SC: READ_UPDATE}, {f"{SC}/stream:a": READ_UPDATE}):
        callers.permissions["half"] = own
        assert (await call(filled, "PUT", path, "half", body)).status_code == 403
    callers.permissions["half"] = {SC: READ_UPDATE, f"{SC}/stream:a": READ_UPDATE}
    assert (await call(filled, "PUT", path, "half", body)).status_code == 200


async def test_health_has_no_details_where_authentication_is_on(secured: World) -> None:
    secured.runtime.checks["kafka"] = lambda: "a secret address"
    for path in ("/v1/health", "/v1/health/kafka"):
        answer = await call(secured, "GET", path)
        assert answer.status_code == 200
        assert "kafka" in answer.text
        assert "a secret address" not in answer.text
    details = await call(secured, "GET", "/v1/health/details/kafka", "admin")
    assert details.json() == {"problem": "a secret address"}


async def test_the_description_says_which_calls_ask_for_credentials_if_they_do(secured: World) -> None:
    described = (await call(secured, "GET", "/openapi.json")).json()
    required = {
        f"{method.upper()} {path}": operation["security"]
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if "security" in operation
    }
    assert required.keys() == {operation for operation, rule in RULES.items() if rule is not None}
    assert required["GET /sluice/v1/overview"] == [{"basic": []}, {"bearer": []}]
    assert required["GET /sluice/v1/about"] == [{"basic": []}, {"bearer": []}, {}]
    assert set(described["components"]["securitySchemes"]) == {"basic", "bearer"}


# Listings.


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize(
    ("path", "hidden", "seen"),
    [
        ("/scopes", "prn::/scope:other", ["_system", "sc"]),
        ("/scopes/sc/streams", f"{SC}/stream:b", ["a", "c"]),
        ("/scopes/sc/readergroups", f"{SC}/reader-group:a", ["b", "c"]),
        ("/scopes/sc/tables", f"{SC}/key-value-table:c", ["a", "b"]),
    ],
)
async def test_a_list_leaves_out_what_may_not_be_read(
    filled: World, callers: Callers, path: str, hidden: str, seen: list[str], limit: int
) -> None:
    callers.permissions["reader"][hidden] = NONE
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = (await call(filled, "GET", f"/sluice/v1{path}", "reader", limit=limit, after=after)).json()
        assert len(page["items"]) <= limit
        found += [item["name"] for item in page["items"]]
        after = page.get("next")
    assert found == seen


@pytest.mark.parametrize("examined", [1, 1000])
async def test_a_search_names_what_may_not_be_read_in_no_token(
    filled: World, callers: Callers, monkeypatch: pytest.MonkeyPatch, examined: int
) -> None:
    monkeypatch.setattr(stream_search, "MAX_EXAMINED", examined)
    callers.permissions["reader"][f"{SC}/stream:b"] = NONE
    found: list[str] = []
    after = ""
    while True:
        page = (await call(filled, "GET", "/sluice/v1/streams", "reader", scope="sc", limit=1, after=after)).json()
        found += [item["name"] for item in page["items"]]
        if "next" not in page:
            break
        after = page["next"]
        assert position_in(after) in ("sc/a", "sc/c")
    assert found == ["a", "c"]


async def test_a_search_in_a_scope_that_may_not_be_read_looks_like_one_in_none(filled: World, callers: Callers) -> None:
    callers.permissions["half"] = {ROOT: READ}
    there, missing = [await call(filled, "GET", "/sluice/v1/streams", "half", scope=name) for name in ("sc", "no")]
    assert (there.status_code, there.json()) == (missing.status_code, missing.json()) == (200, {"items": []})


async def test_the_lists_of_pravega_leave_out_what_may_not_be_read(filled: World, callers: Callers) -> None:
    callers.permissions["reader"] |= {f"{SC}/stream:b": NONE, "prn::/scope:other": NONE}
    scopes = (await call(filled, "GET", "/v1/scopes", "reader")).json()["scopes"]
    assert [one["scopeName"] for one in scopes] == ["_system", "sc"]
    streams = (await call(filled, "GET", "/v1/scopes/sc/streams", "reader")).json()["streams"]
    assert [one["streamName"] for one in streams] == ["a", "c"]
    groups = (await call(filled, "GET", "/v1/scopes/sc/readergroups", "reader")).json()["readerGroups"]
    assert [one["readerGroupName"] for one in groups] == ["a", "b", "c"]


async def test_the_caller_is_forgotten_after_the_call(secured: World) -> None:
    await call(secured, "GET", "/v1/scopes", "reader")
    assert CALLER.get() is None


def test_what_is_about_no_scope_has_resources_of_its_own() -> None:
    of = {
        operation: rule.on[0].of(names_in({}))
        for operation, rule in CONSOLE_RULES.items()
        if "{scope}" not in operation and rule is not None and rule.on
    }
    assert {path.split("/")[3]: resource for path, resource in of.items()} == {
        "scopes": "prn::/",
        "streams": "prn::/",
        "search": "prn::/",
        "decisions": "prn::/",
        "transactions": "prn::/",
        "demonstration": "prn::/",
        "overview": "prn::/",
        "partitions": "prn::/sluice:cluster",
        "workflows": "prn::/sluice:workflows",
        "containers": "prn::/sluice:cluster",
        "members": "prn::/sluice:cluster",
        "dead-letters": "prn::/sluice:dead-letters",
        "journal": "prn::/",
        "requests": "prn::/",
    }


async def test_decisions_and_waiting_commits_of_streams_that_may_not_be_read_are_left_out(
    filled: World, callers: Callers
) -> None:
    callers.permissions["reader"][f"{SC}/stream:b"] = NONE
    for name in "ab":
        event = DecisionRecorded("sc", name, kind=DecisionKind.SCALE, code="steady", reason="calm", at=5)
        await filled.system.append(f"sc/{name}", event)
        begun = await call(
            filled, "POST", f"/sluice/v1/scopes/sc/streams/{name}/transactions", "admin", {"leaseMs": 30_000}
        )
        assert begun.status_code == 201
    for path in ("decisions", "transactions"):
        found = (await call(filled, "GET", f"/sluice/v1/{path}", "reader")).json()["items"]
        assert [one["stream"] for one in found] == ["sc/a"], path
    replied = (await call(filled, "GET", "/sluice/v1/requests", "reader")).json()["items"]
    of_streams = {one for reply in replied for one in reply["aggregates"] if one.startswith(("stream:", "txn:"))}
    names = {one.partition(":")[2].split("/")[1] for one in of_streams}
    assert "a" in names and not {"b", "_MARKb"} & names
    assert (await call(filled, "GET", "/sluice/v1/scopes/sc/streams/b/decisions", "reader", **SINCE)).status_code == 403
    what_if = await call(filled, "POST", "/sluice/v1/scopes/sc/streams/a/what-if", "reader", {"scaling": {}})
    assert what_if.status_code == 200


async def test_the_overview_names_nothing_that_the_caller_may_not_read(filled: World, callers: Callers) -> None:
    now = filled.runtime.clock.now_ms()
    await filled.system.stop_deciding()
    for name in "ab":
        hot = DecisionRecorded("sc", name, kind=DecisionKind.SCALE, code="split", reason="hot", at=now, acts=True)
        await filled.system.append(f"sc/{name}", hot)
    failed = WorkflowStepFailed("stream:sc/b", "seal-segments", 3, "sc/b does not answer")
    await filled.system.append("sc/b", StreamSealStarted("sc", "b", at=1), failed)
    for permissions, streams, is_named in (
        ({ALL: READ}, ["sc/a", "sc/b"], True),
        ({"prn::/": READ, f"{SC}/stream:a": READ}, ["sc/a"], False),
        ({"prn::/": READ, WORKFLOWS: READ}, [], True),
    ):
        callers.permissions["half"] = permissions
        found = (await call(filled, "GET", "/sluice/v1/overview", "half")).json()
        assert found["hotStreams"] == streams and found["workflows"]["failing"] == 1
        assert ("oldestFailing" in found["workflows"]) is is_named
        assert ("the oldest for" in found["sentence"]) is is_named and "sc/" not in found["sentence"]


async def test_the_journal_is_shown_without_what_the_caller_may_not_read(filled: World, callers: Callers) -> None:
    for permissions, seen in (
        ({ALL: READ}, {"scope:sc", "scope:other", "stream:sc/a", "stream:sc/b", "table:sc/a", "group:sc/a"}),
        ({"prn::/": READ, SC: READ, f"{SC}/stream:a": READ}, {"scope:sc", "stream:sc/a"}),
        ({"prn::/": READ}, set()),
    ):
        callers.permissions["half"] = permissions
        found = (await call(filled, "GET", "/sluice/v1/journal", "half", limit=1000)).json()
        shown = {one["aggregate"] for one in found["items"]}
        assert seen <= shown and (permissions.get(ALL) or shown <= {*seen, "stream:sc/_MARKa", "fences:x"}), shown
        assert found["complete"]


@pytest.mark.parametrize("key", ["stream:sc/{}", "commits:sc/{}", "sc/{}", "{}", "scope:{}", "cluster"])
async def test_the_journal_of_what_may_not_be_read_looks_like_that_of_what_is_not_there(
    filled: World, callers: Callers, key: str
) -> None:
    callers.permissions["half"] = {ROOT: READ, f"{SC}/stream:a": READ}
    hidden = "other" if key in ("{}", "scope:{}") else "b"
    journal = "/sluice/v1/journal"
    there, missing = [
        await call(filled, "GET", journal, "half", key=key.format(name), limit=1) for name in (hidden, "no")
    ]
    assert (there.status_code, there.json()) == (missing.status_code, missing.json())
    assert there.json() == {"items": [], "searchedTo": 0, "complete": True}
    assert not filled.lookback.done


async def test_the_journal_of_a_name_is_that_of_all_that_has_it_and_may_be_read(
    filled: World, callers: Callers
) -> None:
    callers.permissions["half"] = {ROOT: READ, f"{SC}/reader-group:b": READ}
    found = (await call(filled, "GET", "/sluice/v1/journal", "half", key="sc/b")).json()
    assert {one["aggregate"] for one in found["items"]} == {"group:sc/b"}


@pytest.mark.parametrize("key", ["", "sc"])
async def test_no_page_of_the_journal_ends_with_what_may_not_be_read(filled: World, callers: Callers, key: str) -> None:
    callers.permissions["half"] = {ROOT: READ, SC: READ, f"{SC}/stream:a": READ}

    async def sealed() -> Any:
        return (await call(filled, "GET", "/sluice/v1/journal", "half", key=key, types="StreamSealed", limit=1)).json()

    async def seal(name: str) -> None:
        assert (await call(filled, "POST", f"/sluice/v1/scopes/sc/streams/{name}/seal", "admin")).status_code == 200

    await seal("b")
    await seal("c")
    # Two of what may not be read: a page of one would end between them.
    assert await sealed() == {"items": [], "searchedTo": 0, "complete": True}
    await seal("a")
    assert (await call(filled, "PUT", "/sluice/v1/scopes/sc/streams/d", "admin", {})).status_code == 201
    await seal("d")
    (found,) = (await sealed())["items"]
    assert found["aggregate"] in ("stream:sc/a", "stream:sc/_MARKa")


async def test_a_request_is_traced_by_who_may_read_what_it_is_about(filled: World, callers: Callers) -> None:
    sealed = await call(filled, "POST", "/sluice/v1/scopes/sc/streams/a/seal", "admin")
    path = f"/sluice/v1/requests/{sealed.headers['Sluice-Request']}"
    callers.permissions["own"] = {f"{SC}/stream:a": READ}
    callers.permissions["other"] = {f"{SC}/stream:b": READ}
    shown = (await call(filled, "GET", path, "own")).json()
    assert shown["steps"][0]["what"] == "requested" and shown["answer"]["status"] == "SUCCESS"
    assert shown["principal"] == "admin"
    assert (await call(filled, "GET", path, "other")).status_code == 403
    assert (await call(filled, "GET", "/sluice/v1/requests/0123456789-1", "other")).status_code == 403
    assert (await call(filled, "GET", path)).status_code == 401


@pytest.mark.parametrize("too", [{}, {DEAD_LETTERS: READ}])
async def test_a_dead_letter_that_cannot_be_read_is_traced_by_who_may_read_dead_letters(
    filled: World, callers: Callers, too: dict[str, Permission]
) -> None:
    sealed = await call(filled, "POST", "/sluice/v1/scopes/sc/streams/a/seal", "admin")
    id = sealed.headers["Sluice-Request"]
    filled.letters.letter("sc/a", b"secret" * 100_000, ce_id=id)
    filled.letters.letter("sc/b", f"secret of {id}".encode(), ce_id="0123456789-1")
    filled.system.broker.land(SNAPSHOT_CHUNKS.name, "0", f"secret of {id}".encode(), [("ce_id", id)])
    callers.permissions["half"] = {ROOT: READ, f"{SC}/stream:a": READ, **too}
    steps = (await call(filled, "GET", f"/sluice/v1/requests/{id}", "half")).json()["steps"]
    secrets = [(step["what"], len(step["says"])) for step in steps if "secret" in step["says"]]
    assert secrets == ([("dead letter", MAX_SAYS)] if too else [])


@pytest.mark.parametrize("text", ["e", "scale-1", "0123456789ab", "0123456789ab-", "-0123456789ab"])
async def test_what_no_request_is_called_is_searched_for_nowhere(secured: World, text: str) -> None:
    refused = await call(secured, "GET", f"/sluice/v1/requests/{text}", "stranger")
    assert refused.status_code == 400 and "id" in refused.json()["detail"]
    assert not secured.lookback.done


async def test_the_past_of_a_stream_shows_subscribers_as_its_present_does(filled: World, callers: Callers) -> None:
    group = {"config": {"streams": {"sc/b": {}}, "retention": "manual"}}
    assert (await call(filled, "PUT", "/sluice/v1/scopes/sc/readergroups/g", "admin", group)).status_code == 201
    for group_too, seen in ((READ, ["sc/g"]), (NONE, [])):
        callers.permissions["half"] = {f"{SC}/stream:b": READ, f"{SC}/reader-group:g": group_too}
        shown = (await call(filled, "GET", "/sluice/v1/scopes/sc/streams/b", "half", at="now")).json()
        assert [subscriber["name"] for subscriber in shown["subscribers"]] == seen
