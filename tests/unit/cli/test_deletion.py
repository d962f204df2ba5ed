"""The deletion of a scope with everything in it: looked at while it runs, waited for until it is over."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli, problem
from unit.cli.test_commands import WORKFLOW

from sluice_cli import deletion
from sluice_cli.api import Api
from sluice_cli.deletion import delete_all
from sluice_cli.errors import StoppedError, UnreachableError
from sluice_cli.output import Advance

SCOPE = {"name": "demo", "createdAt": 1, "streams": 2, "readerGroups": 0, "tables": 0}
GONE = problem(404, "scope demo does not exist", "SCOPE_NOT_FOUND")
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

    def delete(self) -> tuple[int, list[int]]:
        """The status, and by how much the bar was moved."""
        steps: list[int] = []

        @contextmanager
        def progress(_title: str, _total: int) -> Iterator[Advance]:
            yield steps.append

        with Api("http://gateway", transport=httpx.MockTransport(self)) as api:
            return delete_all(api, "demo", progress, look_s=0.001).status, steps


def test_the_deletion_of_everything_waits_for_the_end(cli: Cli) -> None:
    scope = {"name": "demo", "createdAt": 1, "streams": 2, "readerGroups": 0, "tables": 0}
    cli.answers["GET /scopes/demo"] = scope
    cli.answers["DELETE /scopes/demo?recursive=true"] = httpx.Response(204, headers={"Sluice-Request": "d-1"})
    assert cli("scope", "delete", "demo", "--recursive", "--json").document == {"request": "d-1"}


def test_a_deletion_that_outlasts_its_call_is_waited_for(cli: Cli) -> None:
    scope = {"name": "demo", "createdAt": 1, "streams": 2, "readerGroups": 0, "tables": 0}
    looks = iter((scope, {**scope, "streams": 1, "workflow": WORKFLOW}, None))

    def look(_request: httpx.Request) -> httpx.Response:
        found = next(looks)
        return httpx.Response(200, json=found) if found else problem(404, "scope demo does not exist")

    cli.answers["GET /scopes/demo"] = look
    cli.answers["DELETE /scopes/demo?recursive=true"] = problem(504, "no reply in time, it goes on", request="d-1")
    found = cli("scope", "delete", "demo", "--recursive", "--json")
    assert found.document == {"request": "d-1"} and next(looks, "gone") == "gone"


DELETED = httpx.Response(204, headers={"Sluice-Request": "d-1"})


def test_a_look_that_fails_says_nothing_about_the_deletion() -> None:
    looks = (SCOPE, BUSY, httpx.ReadTimeout, httpx.ConnectError, {**SCOPE, "streams": 1}, BUSY)
    status, steps = Gateway(*looks, answer=DELETED).delete()
    assert status == 204 and sum(steps) == 1


@pytest.mark.parametrize("answer", [problem(504, "it goes on"), httpx.ReadTimeout])
def test_a_deletion_whose_answer_does_not_come_is_waited_for(answer: Any) -> None:
    under_way = {**SCOPE, "workflow": WORKFLOW}
    gateway = Gateway(SCOPE, answer=answer)
    gateway.decided.set()
    gateway.looks += [under_way, BUSY, {**under_way, "streams": 1}, httpx.ReadTimeout, GONE]
    status, steps = gateway.delete()
    assert status == 204 and sum(steps) == 2


def test_nobody_waits_for_ever_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
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
