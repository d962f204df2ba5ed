"""How many calls a user and a scope get at a gateway, and what is said to who wants more."""

import asyncio
from typing import Any

import grpc
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.wait import SOON_S, eventually_async
from unit.gateway.conftest import served
from unit.gateway.rest.world import World
from unit.gateway.security.support import ALL, READ_UPDATE, Callers, as_
from unit.gateway.support import failure

from api_gateway.edge.errors import QuotaExceededError
from api_gateway.edge.security import quotas
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.quotas import Buckets, Quotas
from api_gateway.main import guard_of
from api_gateway.settings import GatewaySettings
from sluice.controller_api import controller_pb2 as pb
from sluice.security.caller import Caller
from sluice.security.watched import SecurityConfigError

SCOPE = pb.ScopeInfo(scope="sc")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def quotas_of(clock: Clock, **settings: Any) -> Quotas:
    return Quotas(GatewaySettings(instance="test", **settings), clock)


@given(
    per_s=st.floats(0.1, 1000),
    burst_s=st.floats(0.1, 60),
    pauses=st.lists(st.floats(0, 5), min_size=1, max_size=100),
)
def test_a_bucket_gives_no_more_than_its_rate_and_its_burst(per_s: float, burst_s: float, pauses: list[float]) -> None:
    clock = Clock()
    buckets, taken = Buckets(per_s, burst_s, clock), 0
    for pause in pauses:
        clock.now += pause
        taken += buckets.take("a")
    assert 1 <= taken <= max(1, per_s * burst_s) + per_s * (clock.now - 1000) + 1e-6


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    clock = Clock()
    buckets = Buckets(2, 5, clock)
    assert [buckets.take("a") for _ in range(12)] == [True] * 10 + [False] * 2
    clock.now += 0.5
    assert [buckets.take("a") for _ in range(2)] == [True, False]
    assert buckets.take("b"), "another one has a bucket of its own"


def test_no_more_buckets_are_kept_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_BUCKETS", 3)
    buckets = Buckets(1, 1, Clock())
    assert buckets.take("busy")
    for number in range(10):
        assert buckets.take(f"scope{number}")
        assert not buckets.take("busy"), "what is in use is kept"
    assert len(buckets.names) == 3
    buckets.take("x" * 1_000_000)
    assert max(map(len, buckets.names)) < 1000


def test_a_user_and_a_scope_have_quotas_of_their_own() -> None:
    clock = Clock()
    limits = quotas_of(clock, quota_per_user_s=1, quota_per_scope_s=2, quota_burst_s=1)
    limits.take_of_user("alice")
    with pytest.raises(QuotaExceededError, match=r"a user may make 1 calls a second \(SLUICE_QUOTA_PER_USER_S\)"):
        limits.take_of_user("alice")
    limits.take_of_user("bob")
    for _ in range(2):
        limits.take_on_scope("sc")
    with pytest.raises(QuotaExceededError, match=r"2 calls a second on a scope \(SLUICE_QUOTA_PER_SCOPE_S\)"):
        limits.take_on_scope("sc")
    limits.take_on_scope("")


def test_a_user_has_so_many_calls_in_progress_and_others_have_theirs() -> None:
    limits = quotas_of(Clock(), max_calls_per_user=1)
    with (
        limits.calling("alice"),
        limits.calling("bob"),
        limits.calling(""),
        limits.calling(""),
        pytest.raises(QuotaExceededError, match="SLUICE_MAX_CALLS_PER_USER"),
        limits.calling("alice"),
    ):
        pytest.fail("one too many")
    with limits.calling("alice"), limits.calling("bob"):
        pass


async def test_over_grpc_the_limit_is_named_and_who_may_not_call_uses_up_nothing() -> None:
    limits = quotas_of(Clock(), quota_per_scope_s=2, quota_burst_s=1)
    callers = Callers(alice={ALL: READ_UPDATE}, stranger={})
    async with served(Guard(callers, readers_write=True, quotas=limits)) as gateway:
        for _ in range(5):
            code, _ = await failure(gateway.stub.checkScopeExists(SCOPE, metadata=as_("stranger")))
            assert code is grpc.StatusCode.PERMISSION_DENIED
        for _ in range(2):
            await gateway.stub.checkScopeExists(SCOPE, metadata=as_("alice"))
        code, details = await failure(gateway.stub.checkScopeExists(SCOPE, metadata=as_("alice")))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED and "SLUICE_QUOTA_PER_SCOPE_S" in str(details)


async def test_over_grpc_calls_of_a_user_in_progress_are_counted_until_they_end() -> None:
    limits = quotas_of(Clock(), max_calls_per_user=1)
    async with served(Guard(Callers(alice={ALL: READ_UPDATE}), readers_write=True, quotas=limits)) as gateway:
        await gateway.system.stop_deciding()
        waiting = asyncio.ensure_future(gateway.stub.createScope(SCOPE, metadata=as_("alice")))
        await eventually_async(lambda: gateway.waiting == 1, SOON_S, "a call in progress")
        code, _ = await failure(gateway.stub.checkScopeExists(SCOPE, metadata=as_("alice")))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        waiting.cancel()
        await eventually_async(lambda: gateway.waiting == 0, SOON_S, "no call in progress")
        await gateway.stub.checkScopeExists(SCOPE, metadata=as_("alice"))


async def test_over_http_it_is_429_also_where_nobody_is_asked_for_credentials() -> None:
    limits = quotas_of(Clock(), quota_per_scope_s=1, quota_burst_s=1)
    world = World(guard=Guard(None, readers_write=True, quotas=limits))
    await world.start()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        assert (await client.get("/sluice/v1/scopes/sc")).status_code == 404
        answer = await client.get("/sluice/v1/scopes/sc")
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
        assert "SLUICE_QUOTA_PER_SCOPE_S" in answer.json()["detail"]
        assert (await client.get("/v1/scopes/sc")).status_code == 429
        assert (await client.get("/v1/health/status")).status_code == 200
    await world.stop()


async def test_quotas_of_users_need_users(deciding: Any) -> None:
    settings = GatewaySettings(instance="test", quota_per_user_s=1)
    with pytest.raises(SecurityConfigError, match="SLUICE_QUOTA_PER_USER_S"):
        guard_of(deciding.runtime, settings)
    assert guard_of(deciding.runtime, GatewaySettings(instance="test")) is None


async def test_a_caller_without_a_name_has_no_quota_as_a_user() -> None:
    limits = quotas_of(Clock(), quota_per_user_s=1, quota_burst_s=1, max_calls_per_user=1)
    guard = Guard(None, readers_write=True, quotas=limits)
    with guard.serving(None), guard.serving(None):
        limits.take_of_user("")
        limits.take_of_user("")
    with guard.serving(Caller("alice", lambda _: READ_UPDATE)):
        limits.take_of_user("alice")
