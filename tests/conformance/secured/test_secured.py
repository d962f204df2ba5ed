"""Who is let through and who is not: every operation by every caller, on ours and on the original."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from api_gateway.security.authentication import Authentication, authentication_of
from api_gateway.security.guard import Guard
from api_gateway.security.permissions import RPCS as RULES
from api_gateway.security.rest_permissions import REST
from api_gateway.settings import GatewaySettings
from conformance.case import CALLED_TARGETS, PEER
from conformance.peer import Peer, fetch_jars
from conformance.secured.operations import DENIED, PASSES, UNAUTHENTICATED, Needs, Operation
from conformance.secured.rest_calls import CALLS, OPEN
from conformance.secured.rpcs import RPCS
from conformance.secured.target import Target, ours, theirs
from conformance.secured.users import (
    BROKEN_SENT,
    NOBODY_SENT,
    PASSWORD,
    USERS,
    WRONG_SENT,
    basic,
    password_file,
)
from sluice_local.settings import LocalSettings

pytestmark = pytest.mark.timeout(600)

OPERATIONS = (*RPCS, *CALLS)
FLAG = "sluice with the flag"
TRIED = (*CALLED_TARGETS, FLAG)

TOLD = {
    (UNAUTHENTICATED, ""),
    (UNAUTHENTICATED, "Authentication failed"),
    (DENIED, ""),
    (DENIED, "Authorization failed"),
}
"""Descriptions and bodies of refusals, but those of our own interface over HTTP."""

SENT: Mapping[str, str] = {
    **NOBODY_SENT,
    **WRONG_SENT,
    **BROKEN_SENT,
    **{user: basic(user) for user in USERS},
}
"""All callers, each with the header that it sends."""


@dataclass
class Answers:
    """What came of every call, by operation and caller, and what those were told who were refused."""

    target: str
    found: dict[tuple[str, str], str]
    refusals: set[tuple[str, str]]
    open: dict[str, str]


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
        fetch_jars(settings)
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
    assert isinstance(authentication, Authentication)
    try:
        async with ours(Guard(authentication.authenticator, readers_write=name == FLAG)) as target:
            return await _called(name, target)
    finally:
        authentication.close()


async def _called(name: str, target: Target) -> Answers:
    found: dict[tuple[str, str], str] = {}
    opened: dict[str, str] = {}

    async def call(operation: Operation, caller: str) -> None:
        found[operation.id, caller] = await operation.send(target, SENT[caller])

    async def look(path: str) -> None:
        opened[path] = await target.http("GET", path, None, WRONG_SENT["wrong password"])

    tried = [one for one in OPERATIONS if name != PEER or not one.is_own]
    calls: list[Awaitable[None]] = [call(operation, caller) for operation in tried for caller in SENT]
    await asyncio.gather(*calls, *map(look, OPEN))
    return Answers(name, found, target.refusals, opened)


def needed(operation: Operation, target: str) -> Needs:
    if target == PEER:
        return operation.needs
    own = operation.ours or operation.needs
    return operation.with_flag or own if target == FLAG else own


def expected(operation: Operation, target: str, caller: str) -> str:
    needs = needed(operation, target)
    if caller in USERS:
        return PASSES if needs.may(caller) else DENIED
    if caller in NOBODY_SENT:
        return PASSES if not needs.on else UNAUTHENTICATED
    if caller in WRONG_SENT or target != PEER:
        return UNAUTHENTICATED
    # The original takes an exception of its handler for its own.
    return "500" if operation.id.startswith(("GET", "POST", "PUT", "DELETE")) else "UNKNOWN"


@pytest.mark.parametrize(
    ("target", "operation"),
    [
        pytest.param(target, operation, id=f"{target}-{operation.id}")
        for target in TRIED
        for operation in OPERATIONS
        if target != PEER or not operation.is_own
    ],
)
def test_callers_are_let_through_by_what_they_may(
    answers_of: Callable[[str], Answers], target: str, operation: Operation
) -> None:
    found = answers_of(target).found
    wrong = {
        caller: (found[operation.id, caller], rightly)
        for caller in SENT
        if found[operation.id, caller] != (rightly := expected(operation, target, caller))
    }
    assert wrong == {}, "caller: (what came of it, what should have)"


@pytest.mark.parametrize("target", CALLED_TARGETS)
def test_health_and_ping_look_at_no_credentials(answers_of: Callable[[str], Answers], target: str) -> None:
    assert set(answers_of(target).open.values()) == {PASSES}


@pytest.mark.parametrize("target", CALLED_TARGETS)
def test_who_is_refused_is_told_that_and_no_more(answers_of: Callable[[str], Answers], target: str) -> None:
    assert answers_of(target).refusals == TOLD


def test_every_operation_is_called() -> None:
    assert {operation.id.partition(" ")[0] for operation in RPCS} == set(RULES)
    called = [operation.id.partition("?")[0] for operation in CALLS] + [f"GET {path}" for path in OPEN]
    known = {rule: re.compile(re.sub(r"\{\w+\}", "[^/]+", rule)) for rule in REST}
    missed = {rule for rule, pattern in known.items() if not any(map(pattern.fullmatch, called))}
    assert missed == {"GET /prometheus"}, "which the original has only with metrics switched on"
