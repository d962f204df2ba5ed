"""Who is let through and who is not: every operation by every caller, on ours and on the original."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from support.documents import DOCS

from api_gateway.app import RULES as REST_RULES
from api_gateway.edge.security.authentication import authentication_of
from api_gateway.edge.security.guard import Guard
from api_gateway.pravega.permissions import RPCS as RULES
from api_gateway.settings import GatewaySettings
from conformance.case import CALLED_TARGETS, PEER
from conformance.peer import Peer
from conformance.secured.creations import CREATIONS
from conformance.secured.operations import DENIED, PASSES, UNAUTHENTICATED, Needs, Operation
from conformance.secured.rest_calls import CALLS, OPEN
from conformance.secured.rpcs import RPCS
from conformance.secured.target import Target, ours, theirs
from conformance.secured.users import (
    BROKEN_SENT,
    NO_ONE_SENT,
    PASSWORD,
    USERS,
    WRONG_SENT,
    basic,
    password_file,
)
from sluice_local import jars, setup
from sluice_local.settings import LocalSettings

pytestmark = pytest.mark.timeout(600)

OPERATIONS = (*RPCS, *CALLS)
FLAG, EXISTING = "sluice with the flag", "sluice where all of it exists"

REFUSALS = {
    (UNAUTHENTICATED, ""),
    (UNAUTHENTICATED, "Authentication failed"),
    (DENIED, ""),
    (DENIED, "Authorization failed"),
}
"""Descriptions and bodies of refusals, but those of our own interface over HTTP."""

SENT: Mapping[str, str] = {
    **NO_ONE_SENT,
    **WRONG_SENT,
    **BROKEN_SENT,
    **{user: basic(user) for user in USERS},
}
"""All callers, each with the header that it sends."""


@dataclass
class Answers:
    """What came of every call, by operation and caller, and how those were refused who were."""

    found: dict[tuple[str, str], str]
    refusals: set[tuple[str, str]]
    open: dict[str, str]


def operations(target: str) -> list[Operation]:
    """Those that tell something about the target."""
    if target == PEER:
        return [operation for operation in OPERATIONS if not operation.is_own]
    return [operation for operation in OPERATIONS if target != FLAG or operation.with_flag]


def needed(operation: Operation, target: str) -> Needs:
    if target == PEER:
        return operation.needs
    own = operation.ours or operation.needs
    return operation.with_flag or own if target == FLAG else own


def expected(operation: Operation, target: str, caller: str) -> str:
    """UNAUTHENTICATED, DENIED, PASSES for any other answer; or what the original makes of a header it cannot read."""
    needs = needed(operation, target)
    if caller in USERS:
        return PASSES if needs.may(caller) else DENIED
    if caller in NO_ONE_SENT:
        return PASSES if not needs.on else UNAUTHENTICATED
    if caller in BROKEN_SENT and target == PEER:
        return "500" if operation in CALLS else "UNKNOWN"
    return UNAUTHENTICATED


def agrees(answer: str, with_expected: str) -> bool:
    return answer not in (UNAUTHENTICATED, DENIED) if with_expected == PASSES else answer == with_expected


@pytest.fixture(scope="module")
def answers_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Answers]:
    """The answers of a target, which is called once."""

    @cache
    def of(target: str) -> Answers:
        folder = tmp_path_factory.mktemp("secured")
        accounts = folder / "passwd"
        accounts.write_text(password_file())
        if target != PEER:
            return asyncio.run(_on_ours(target, accounts))
        settings = LocalSettings()
        jars.fetch_besides(jars.PEER, settings.jars_dir, setup.say)
        with Peer(settings.jars_dir, folder / PEER, _secured(accounts), basic("admin")) as peer:
            return asyncio.run(_on_theirs(peer))

    return of


def _secured(accounts: Path) -> dict[str, object]:
    return {
        "security.auth.enable": "true",
        "security.auth.pwdAuthHandler.accountsDb.location": accounts,
        "security.auth.credentials.username": "admin",
        "security.auth.credentials.pwd": PASSWORD,
    }


async def _on_theirs(peer: Peer) -> Answers:
    async with theirs(peer.address, peer.rest_url) as target:
        return await _called(PEER, target)


async def _on_ours(name: str, accounts: Path) -> Answers:
    settings = GatewaySettings(auth_enabled=True, auth_accounts=str(accounts))
    authentication = authentication_of(settings)
    assert authentication is not None
    try:
        async with ours(Guard(authentication.authenticator, readers_write=name == FLAG)) as target:
            if name == EXISTING:
                for create in CREATIONS:
                    answer = await create.send(target, basic("admin"))
                    assert answer in ("OK", "201"), f"{create.id}: {answer}"
            return await _called(name, target)
    finally:
        authentication.close()


async def _called(name: str, target: Target) -> Answers:
    found: dict[tuple[str, str], str] = {}
    opened: dict[str, str] = {}

    async def call(operation: Operation, caller: str) -> None:
        # What exists stays as it is: only those call who are to be refused.
        if name != EXISTING or expected(operation, name, caller) != PASSES:
            found[operation.id, caller] = await operation.send(target, SENT[caller])

    async def look(path: str) -> None:
        opened[path] = await target.http("GET", path, None, WRONG_SENT["wrong password"])

    calls: list[Awaitable[None]] = [call(operation, caller) for operation in operations(name) for caller in SENT]
    await asyncio.gather(*calls, *map(look, OPEN))
    return Answers(found, target.refusals, opened)


@pytest.mark.parametrize(
    ("target", "operation"),
    [
        pytest.param(target, operation, id=f"{target}-{operation.id}")
        for target in (*CALLED_TARGETS, FLAG, EXISTING)
        for operation in operations(target)
    ],
)
def test_callers_are_let_through_by_what_they_may(
    answers_of: Callable[[str], Answers], target: str, operation: Operation
) -> None:
    found = {caller: answer for (id, caller), answer in answers_of(target).found.items() if id == operation.id}
    assert found
    rightly = {caller: expected(operation, target, caller) for caller in found}
    wrong = {
        caller: (answer, rightly[caller]) for caller, answer in found.items() if not agrees(answer, rightly[caller])
    }
    assert wrong == {}, "caller: (what came of it, what should have)"


@pytest.mark.parametrize("target", CALLED_TARGETS)
def test_health_and_ping_look_at_no_credentials(answers_of: Callable[[str], Answers], target: str) -> None:
    assert {agrees(answer, PASSES) for answer in answers_of(target).open.values()} == {True}


@pytest.mark.parametrize("target", [*CALLED_TARGETS, EXISTING])
def test_who_is_refused_is_told_that_and_no_more(answers_of: Callable[[str], Answers], target: str) -> None:
    assert answers_of(target).refusals == REFUSALS


def test_what_is_needed_otherwise_is_on_the_page_of_differences_with_its_reason() -> None:
    page = " ".join((DOCS / "differences.md").read_text().split())
    for operation in OPERATIONS:
        assert (operation.ours is None) == (operation.why == "")
        assert operation.why in page


def test_every_operation_is_called() -> None:
    assert {operation.id.partition(" ")[0] for operation in RPCS} == set(RULES)
    called = [operation.id.partition("?")[0] for operation in CALLS] + [f"GET {path}" for path in OPEN]
    known = {rule: re.compile(re.sub(r"\{\w+\}", "[^/]+", rule)) for rule in REST_RULES}
    missed = {rule for rule, pattern in known.items() if not any(map(pattern.fullmatch, called))}
    # The original has the one only with metrics switched on; the other is open to whoever has a browser's session.
    assert missed == {"GET /prometheus", "DELETE /sluice/v1/session"}
