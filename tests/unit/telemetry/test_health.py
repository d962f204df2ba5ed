"""What /readyz and /metrics answer, and what of it becomes a metric."""

import asyncio

import httpx
import pytest
import uvicorn
from prometheus_client import REGISTRY, Gauge
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from support import virtual_time

from sluice.telemetry import health
from sluice.telemetry.health import Checks, health_app
from sluice.telemetry.scrape import on_scrape

LOOKED_AT = Gauge("test_looked_at", "How often the tests' group was brought up to date")


def client(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


def failing(check: str, effect: str) -> float | None:
    return REGISTRY.get_sample_value("sluice_check_failing", {"check": check, "effect": effect})


async def test_ready_is_200_only_while_every_check_finds_nothing() -> None:
    wrong: dict[str, str | None] = {"kafka": None, "journal": "loading"}
    checks: Checks = {name: lambda name=name: wrong[name] for name in wrong}  # type: ignore[misc]
    async with client(health_app(checks, {"role": lambda: "standby"})) as http:
        answer = await http.get("/readyz")
        assert answer.status_code == 503
        assert answer.json() == {
            "ready": False, "level": "bad", "not_ready": {"journal": "loading"}, "outage": {}, "degraded": {},
            "role": "standby",
        }  # fmt: skip
        assert (await http.get("/livez")).status_code == 200
        wrong["journal"] = None
        assert (await http.get("/readyz")).status_code == 200


async def test_a_degraded_check_shows_and_leaves_the_service_ready() -> None:
    away: list[str | None] = ["Redis away"]
    async with client(health_app({"kafka": lambda: None}, {}, {"timers": lambda: away[0]})) as http:
        answer = await http.get("/readyz")
        assert answer.status_code == 200 and answer.json()["degraded"] == {"timers": "Redis away"}
        await http.get("/metrics")
        assert failing("timers", "degraded") == 1 and failing("kafka", "not-ready") == 0
        assert REGISTRY.get_sample_value("sluice_ready") == 1
        away[0] = None
        await http.get("/metrics")
        assert failing("timers", "degraded") == 0


async def test_an_outage_is_bad_and_leaves_the_service_ready() -> None:
    away: list[str | None] = ["container 3 has not answered"]
    checks: list[Checks] = [{"kafka": lambda: None}, {"timers": lambda: "away"}, {"containers": lambda: away[0]}]
    async with client(health_app(checks[0], {}, *checks[1:])) as http:
        answer = await http.get("/readyz")
        assert (answer.status_code, answer.json()["ready"], answer.json()["level"]) == (200, True, "bad")
        assert answer.json()["outage"] == {"containers": "container 3 has not answered"}
        await http.get("/metrics")
        assert failing("containers", "outage") == 1 and REGISTRY.get_sample_value("sluice_ready") == 1
        away[0] = None
        assert (await http.get("/readyz")).json()["level"] == "warn"


async def test_a_check_that_raises_counts_as_failing() -> None:
    def broken() -> str | None:
        raise KeyError("x")

    async with client(health_app({"broken": broken}, {})) as http:
        answer = await http.get("/readyz")
        assert answer.status_code == 503 and "the check failed" in answer.json()["not_ready"]["broken"]
        await http.get("/metrics")
    assert failing("broken", "not-ready") == 1 and REGISTRY.get_sample_value("sluice_ready") == 0


async def test_a_scrape_updates_all_gauges_but_those_that_fail() -> None:
    def broken() -> None:
        raise KeyError("x")

    on_scrape("test, broken", broken)
    on_scrape("test", lambda: LOOKED_AT.inc(100))
    on_scrape("test", LOOKED_AT.inc)
    before = REGISTRY.get_sample_value("sluice_scrape_failures_total", {"group": "test, broken"}) or 0
    async with client(health_app({}, {})) as http:
        answer = await http.get("/metrics")
    families = {f.name: f for f in text_string_to_metric_families(answer.text)}
    assert families["test_looked_at"].samples[0].value == 1, "the later one took the place of the earlier one"
    assert REGISTRY.get_sample_value("sluice_scrape_failures_total", {"group": "test, broken"}) == before + 1
    on_scrape("test, broken", lambda: None)


def test_an_idle_server_wakes_up_once_a_second_and_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        ticks: list[int] = []

        async def tick(_server: uvicorn.Server, counter: int) -> bool:
            ticks.append(counter)
            return False

        monkeypatch.setattr(uvicorn.Server, "on_tick", tick)
        server, loop = health._Server(uvicorn.Config(health.health_app({}, {}))), asyncio.get_running_loop()
        waking = asyncio.ensure_future(server.main_loop())
        await asyncio.sleep(59.5)
        assert ticks == [0] * 60, "each of them sets the date"
        server.ending.set()
        await waking
        assert loop.time() < 60

    virtual_time.run(scene())
