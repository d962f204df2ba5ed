"""The read barrier on Kafka: whatever goes wrong, the next question is answered, and a thread that ended shows."""

import asyncio
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID
from support.wait import SOON_S, eventually

from sluice.engine.ports import EndsUnknownError
from sluice.kafka import ends as module
from sluice.kafka.ends import EndOffsets


class Admin:
    """Fails in the ways there are, then answers."""

    failing: list[str]
    offset = 7
    made = 0

    def __init__(self, _client: object) -> None:
        self._fail("made")
        Admin.made += 1

    def __len__(self) -> int:
        """As the real one: what waits in its queue."""
        return 0

    def list_offsets(self, question: dict[Any, Any], **_options: float) -> dict[Any, Future[Any]]:
        self._fail("queried")
        answers: dict[Any, Future[Any]] = {partition: Future() for partition in question}
        for answer in answers.values():
            answer.set_result(SimpleNamespace(offset=Admin.offset))
        return answers

    def _fail(self, when: str) -> None:
        if Admin.failing and Admin.failing[0] == when:
            Admin.failing.pop(0)
            raise ValueError(f"cannot be {when}")


class EndingAdmin:
    def __init__(self, _client: object) -> None:
        raise SystemExit


@pytest.fixture(autouse=True)
def admin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AdminClient", Admin)
    Admin.failing, Admin.offset = [], 7


async def test_the_read_barrier_survives_whatever_goes_wrong() -> None:
    Admin.failing = ["made", "made", "queried", "made", "made"]
    ends = EndOffsets({}, "t", 1, 1.0)
    assert ends.failure is None, "not begun"
    ends.start()
    for why in ("made", "queried", "made"):
        with pytest.raises(EndsUnknownError, match=why):
            await asyncio.wait_for(ends.request(), 10)
    assert await asyncio.wait_for(ends.request(), 10) == {0: 7} and ends.failure is None
    made = Admin.made
    assert await asyncio.wait_for(ends.request(), 10) == {0: 7} and Admin.made == made, "the client stays"
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "the thread ends")
    assert ends.failure is None, "stopped"


async def test_an_offset_that_is_none_is_no_answer() -> None:
    Admin.offset = OFFSET_INVALID
    ends = EndOffsets({}, "t", 1, 1.0)
    ends.start()
    with pytest.raises(EndsUnknownError, match="no answer"):
        await asyncio.wait_for(ends.request(), 10)
    Admin.offset = 7
    assert await asyncio.wait_for(ends.request(), 10) == {0: 7}
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "the thread ends")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_read_barrier_whose_thread_has_ended_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AdminClient", EndingAdmin)
    ends = EndOffsets({}, "t", 1, 1.0)
    ends.start()
    eventually(lambda: "has ended" in (ends.failure or ""), SOON_S, "the end of the thread shows")


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "read-barrier"]
