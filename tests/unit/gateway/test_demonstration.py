"""The process of the demonstration: its beginning, its end, and what is said of one that ended by itself."""

import sys
from pathlib import Path

import pytest
from support.wait import SOON_S, eventually_async

from api_gateway.console.demonstration import Demonstration, DemonstrationState, grpc_address, why_not
from api_gateway.edge.rest.failures import RefusedError
from sluice.domain.cluster.state import Cluster, Member

_WAITS = (sys.executable, "-c", "import sys; sys.stdin.read()")
_FAILS_ONCE = """
import pathlib, sys
been = pathlib.Path(sys.argv[1])
if not been.exists():
    been.touch()
    sys.exit("no such controller")
sys.stdin.read()
"""
_STAYS = (sys.executable, "-c", "import time; time.sleep(1000)")


def _demonstration(program: tuple[str, ...], refusal: str = "", leaves_s: float = SOON_S) -> Demonstration:
    return Demonstration(lambda: "127.0.0.1:9090", lambda: 1_700, refusal, program, leaves_s)


async def test_one_that_was_started_runs_until_it_is_stopped() -> None:
    demonstration = _demonstration(_WAITS)
    await demonstration.start()
    await demonstration.start()
    assert demonstration.state == DemonstrationState(running=True, since=1_700)
    await demonstration.stop()
    await demonstration.close()
    assert demonstration.state == DemonstrationState(running=False)


async def test_one_that_ends_by_itself_says_why_and_can_be_started_again(tmp_path: Path) -> None:
    demonstration = _demonstration((sys.executable, "-c", _FAILS_ONCE, str(tmp_path / "been")))
    await demonstration.start()
    await eventually_async(lambda: demonstration.state.problem, SOON_S, "it says why")
    assert demonstration.state == DemonstrationState(running=False, problem="no such controller")
    await demonstration.start()
    assert demonstration.state.running
    await demonstration.close()


async def test_one_that_does_not_leave_is_ended_which_is_no_problem() -> None:
    demonstration = _demonstration(_STAYS, leaves_s=0.1)
    await demonstration.start()
    await demonstration.stop()
    # What follows it has seen its end, too.
    await demonstration.close()
    assert demonstration.state == DemonstrationState(running=False)


async def test_where_there_can_be_none_it_is_refused_with_the_reason() -> None:
    reason = why_not(secured=True)
    demonstration = _demonstration(_WAITS, reason)
    with pytest.raises(RefusedError, match="credentials"):
        await demonstration.start()
    assert demonstration.state.refusal == reason


async def test_it_calls_a_gateway_that_has_said_where_it_serves_grpc() -> None:
    silent, console = Member("api-gateway", "a", {}, 1), Member("console", "c", {"rest": "console:10080"}, 1)
    assert grpc_address(Cluster(members={"a": silent, "c": console})) is None
    gateway = Member("api-gateway", "b", {"grpc": "gateway:9090"}, 1)
    assert grpc_address(Cluster(members={"a": silent, "b": gateway, "c": console})) == "gateway:9090"


async def test_while_no_gateway_is_known_it_cannot_be_started() -> None:
    demonstration = Demonstration(lambda: None, lambda: 1_700, program=_WAITS)
    with pytest.raises(RefusedError, match="no gateway"):
        await demonstration.start()
    assert not demonstration.state.running
