"""The deletion of a scope with everything in it: looked at while it runs, waited for until it is over."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli, problem
from unit.cli.shown import WORKFLOW

from sluice.lookback.progress import Advance
from sluice_cli import deletion
from sluice_cli.api import Answer, Api
from sluice_cli.deletion import delete_all
from sluice_cli.errors import RefusedError, StoppedError, UnreachableError

SCOPE = {"name": "demo", "createdAt": 1, "streams": 1, "internalStreams": 1, "readerGroups": 0, "tables": 0}
GONE = problem(404, "scope demo does not exist", "SCOPE_NOT_FOUND")
DELETED = httpx.Response(204, headers={"Sluice-Request": "d-1"})
BUSY = problem(503, "end of journal not reached")


class Gateway:
    """Answers looks one after the other, the last one again and again; the deletion when `decided` is set."""

    def __init__(self, *looks: Any, answer: Any) -> None:
        self.looks = list(looks)
        self.answer = answer
        self.looked = 0
        self.decided = threading.Event()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            assert self.decided.wait(30)
            return self._say(self.answer, request)
        self.looked += 1
        look = self.looks[min(self.looked, len(self.looks)) - 1]
        if self.looked >= len(self.looks):
            self.decided.set()
        return self._say(look, request)

    def _say(self, answer: Any, request: httpx.Request) -> httpx.Response:
        if isinstance(answer, type):
            raise answer("", request=request)
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    def delete(self) -> tuple[Answer, list[int]]:
        """The reply, and by how much the bar was moved."""
        steps: list[int] = []

        @contextmanager
        def progress(_title: str, _total: int | None) -> Iterator[Advance]:
            yield steps.append

        with Api("http://gateway", transport=httpx.MockTransport(self)) as api:
            return delete_all(api, "demo", progress, look_s=0.001), steps


def test_the_deletion_of_everything_waits_for_the_end(cli: Cli) -> None:
    cli.answers["GET /scopes/demo"] = SCOPE
    cli.answers["DELETE /scopes/demo?recursive=true"] = DELETED
    assert cli("scope", "delete", "demo", "--recursive", "--json").document == {"request": "d-1"}


def test_a_look_that_fails_says_nothing_about_the_deletion() -> None:
    looks = (SCOPE, BUSY, httpx.ReadTimeout, httpx.ConnectError, {**SCOPE, "streams": 0}, BUSY)
    answer, steps = Gateway(*looks, answer=DELETED).delete()
    assert answer.status == 204 and sum(steps) == 1


@pytest.mark.parametrize(
    ("reply", "request_id"),
    [(problem(504, "it goes on", request="d-1"), "d-1"), (httpx.ReadTimeout, ""), (httpx.RemoteProtocolError, "")],
)
def test_a_deletion_whose_reply_does_not_come_in_time_is_waited_for(reply: Any, request_id: str) -> None:
    under_way = {**SCOPE, "workflow": WORKFLOW}
    gateway = Gateway(SCOPE, answer=reply)
    gateway.decided.set()
    gateway.looks += [under_way, BUSY, {**under_way, "streams": 0}, httpx.ReadTimeout, GONE]
    answer, steps = gateway.delete()
    assert answer == Answer(204, {}, request_id) and sum(steps) == 2


def test_a_deletion_that_is_not_decided_yet_is_waited_for() -> None:
    gateway = Gateway(SCOPE, answer=httpx.RemoteProtocolError)
    gateway.decided.set()
    gateway.looks += [SCOPE, SCOPE, {**SCOPE, "workflow": WORKFLOW}, GONE]
    assert gateway.delete()[0].status == 204


def test_a_scope_that_nothing_deletes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "DECIDED_S", 0.01)
    with pytest.raises(RefusedError, match="nothing deletes it now"):
        Gateway(SCOPE, answer=httpx.ReadTimeout).delete()


def test_a_deletion_without_any_answer_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "BLIND_S", 0.01)
    gateway = Gateway(SCOPE, httpx.ConnectError, answer=httpx.ReadTimeout)
    with pytest.raises(UnreachableError, match="cannot reach"):
        gateway.delete()


def test_ctrl_c_ends_the_waiting_at_once_and_says_that_the_deletion_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway(SCOPE, SCOPE, answer=DELETED)

    def interrupt(*_arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(deletion, "wait", interrupt)
    try:
        with pytest.raises(StoppedError, match="goes on") as stopped:
            gateway.delete()
        assert not gateway.decided.is_set() and stopped.value.exit_code == 130
        (thread,) = (t for t in threading.enumerate() if t.name == "deletion")
        assert thread.daemon
    finally:
        gateway.decided.set()
    thread.join(30)
