"""Who calls: the header, passwords, and handlers of a site's own."""

import asyncio
import logging
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from support.wait import SOON_S, eventually_async

from api_gateway.edge.errors import OverloadedError
from api_gateway.edge.security import basic, plugins
from api_gateway.edge.security.authentication import Authentication, Handlers, authentication_of
from api_gateway.edge.security.basic import BasicHandler
from api_gateway.settings import GatewaySettings
from sluice.security.accounts import Account, read_accounts
from sluice.security.caller import Caller, UnauthenticatedError
from sluice.security.passwords import hash_password
from sluice.security.resources import ROOT, Permission
from sluice.security.watched import SecurityConfigError, Watched

SECRET = "1111:äaaa"
HASH = hash_password(SECRET, bytes(32))
OTHER_HASH = hash_password("other", bytes(32))


def token(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()


def header(user: str, password: str) -> str:
    return f"Basic {token(user, password)}"


class Site:
    """A password file, and a gateway that knows callers by it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "passwd"
        self.write(f"admin:{HASH}:prn::*,READ_UPDATE;\nreader:{OTHER_HASH}:prn::/,READ\n")
        self.watched: Watched[Mapping[str, Account]] = Watched("accounts", [self.file], read_accounts)
        self.now = 0.0
        self.derived: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.basic = BasicHandler(self.watched, clock=lambda: self.now, verified=self.verified)
        self.handlers = Handlers([self.basic])

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def verified(self, password: str, stored: str) -> bool:
        self.derived.append(password)
        self.go_on.wait(SOON_S)
        return stored == {SECRET: HASH, "other": OTHER_HASH}.get(password)

    async def caller(self, user: str, password: str) -> Caller:
        found = await self.handlers.caller(header(user, password))
        assert found is not None
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.go_on.set()
    site.basic.close()


async def test_a_user_with_the_password_is_known_with_its_permissions(site: Site) -> None:
    admin, reader = await site.caller("admin", SECRET), await site.caller("reader", "other")
    assert (admin.principal, reader.principal) == ("admin", "reader")
    assert admin.permission_on("prn::/scope:s") is Permission.READ_UPDATE
    assert [reader.permission_on(one) for one in (ROOT, "prn::/scope:s")] == [Permission.READ, Permission.NONE]


@pytest.mark.parametrize(
    "authorization",
    [
        header("admin", "wrong"),
        header("nobody", SECRET),
        header("", ""),
        "Basic null",
        "Basic %%%",
        "Basic YQ",
        "Basic ",
        f"Basic {b64encode(b'admin').decode()}",
        f"Basic {b64encode(bytes([255, 58, 255])).decode()}",
        f"Basic {token('admin', SECRET)} more",
    ],
)
async def test_wrong_credentials_are_refused(site: Site, authorization: str) -> None:
    with pytest.raises(UnauthenticatedError):
        await site.handlers.caller(authorization)


@pytest.mark.parametrize("authorization", [None, "", "Basic", "basic x", "Bearer x", f" {header('admin', SECRET)}"])
async def test_without_a_handler_for_the_method_nobody_is_known(site: Site, authorization: str | None) -> None:
    assert await site.handlers.caller(authorization) is None


async def test_any_blanks_stand_between_method_and_token(site: Site) -> None:
    found = await site.handlers.caller(f"Basic \t {token('admin', SECRET)}")
    assert found is not None and found.principal == "admin"


async def test_a_malformed_hash_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "passwd"
    file.write_text("a:zz:prn::*,READ\n")
    handler = BasicHandler(Watched("accounts", [file], read_accounts))
    with pytest.raises(UnauthenticatedError):
        await handler.caller(token("a", "x"))
    handler.close()


async def test_a_password_is_derived_once_until_its_time_is_over(site: Site) -> None:
    for _ in range(3):
        await site.caller("admin", SECRET)
    for site.now in (basic.REMEMBERED_S - 1, 2 * basic.REMEMBERED_S - 2):
        await site.caller("admin", SECRET)
    assert site.derived == [SECRET], "it counts from the last use on"
    site.now += basic.REMEMBERED_S + 1
    await site.caller("admin", SECRET)
    assert site.derived == [SECRET] * 2


async def test_a_wrong_password_is_not_remembered(site: Site) -> None:
    for _ in range(2):
        with pytest.raises(UnauthenticatedError):
            await site.caller("admin", "wrong")
    assert site.derived == ["wrong"] * 2


async def test_equal_checks_share_one_derivation(site: Site) -> None:
    site.go_on.clear()
    calls = [asyncio.create_task(site.caller("admin", SECRET)) for _ in range(20)]
    await eventually_async(lambda: len(site.derived) == 1, SOON_S, "the derivation began")
    calls[0].cancel()
    site.go_on.set()
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(isinstance(one, Caller) for one in found[1:]) and site.derived == [SECRET]


async def test_guesses_at_a_user_are_bounded_and_keep_no_other_user_out(site: Site) -> None:
    site.go_on.clear()
    guesses = [
        asyncio.create_task(site.caller(user, str(number)))
        for user in ("admin", "no one")
        for number in range(basic.MAX_OF_A_USER + 1)
    ]
    await eventually_async(lambda: sum(one.done() for one in guesses) == 2, SOON_S, "those past the bound are refused")
    reader = asyncio.create_task(site.caller("reader", "other"))
    site.go_on.set()
    assert (await reader).principal == "reader"
    found = await asyncio.gather(*guesses, return_exceptions=True)
    # Nobody learns from that whether there is such a user.
    of_each = [UnauthenticatedError] * basic.MAX_OF_A_USER + [OverloadedError]
    assert [type(one) for one in found] == of_each * 2
    assert (await site.caller("admin", SECRET)).principal == "admin"


async def test_all_derivations_are_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic, "MAX_UNDER_WAY", 1)
    site.go_on.clear()
    first = asyncio.create_task(site.caller("admin", SECRET))
    await eventually_async(lambda: site.derived, SOON_S, "the derivation began")
    with pytest.raises(OverloadedError, match="try again"):
        await site.caller("reader", "other")
    site.go_on.set()
    await first
    assert (await site.caller("reader", "other")).principal == "reader"


async def test_what_changes_in_the_file_counts_for_the_next_call(site: Site) -> None:
    await site.caller("admin", SECRET)
    await site.caller("reader", "other")
    site.write(f"admin:{OTHER_HASH}:prn::/,READ\n")
    site.watched.look()
    for user, password in (("admin", SECRET), ("reader", "other")):
        with pytest.raises(UnauthenticatedError):
            await site.caller(user, password)
    changed = await site.caller("admin", "other")
    assert changed.permission_on("prn::/scope:s") is Permission.NONE
    site.write("")
    site.watched.look()
    assert site.watched.problem() and (await site.caller("admin", "other")).principal == "admin"


async def test_no_more_successes_are_remembered_than_may_be(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic, "MAX_REMEMBERED", 1)
    handler = BasicHandler(site.watched, verified=site.verified)
    for user, password in (("admin", SECRET), ("reader", "other"), ("reader", "other"), ("admin", SECRET)):
        await handler.caller(token(user, password))
    handler.close()
    assert site.derived == [SECRET, "other", SECRET]


# The settings


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Authentication | None]]:
    made: list[Authentication] = []

    def open_(**settings: object) -> Authentication | None:
        for name in GatewaySettings.model_fields:
            monkeypatch.delenv(f"SLUICE_{name.upper()}", raising=False)
        found = authentication_of(GatewaySettings(**settings))  # type: ignore[arg-type]
        made.extend([found] if found else [])
        return found

    yield open_
    for one in made:
        one.close()


Opened = Callable[..., Authentication | None]


async def test_callers_of_the_password_file_are_known(opened: Opened, site: Site) -> None:
    found = opened(auth_enabled=True, auth_accounts=str(site.file))
    assert found is not None
    (watched,) = found.watched
    assert watched.problem() is None
    caller = await found.authenticator.caller(header("admin", SECRET))
    assert caller is not None and caller.principal == "admin"
    site.write("\n")
    watched.look()
    assert "password file has no account" in (watched.problem() or "")


def test_nobody_is_asked_while_it_is_off(opened: Opened, site: Site) -> None:
    assert opened() is None
    assert opened(auth_enabled=False, auth_accounts=str(site.file)) is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"auth_enabled": True}, "give SLUICE_AUTH_ACCOUNTS or"),
        ({"auth_accounts": "/x"}, "SLUICE_AUTH_ENABLED is not"),
        ({"auth_oidc_issuer": "https://x"}, "SLUICE_AUTH_ENABLED is not"),
        ({"auth_enabled": True, "auth_accounts": "/none"}, "/none cannot be read"),
        ({"auth_enabled": True, "auth_oidc_jwks": "/x"}, "SLUICE_AUTH_OIDC_ISSUER is not"),
        ({"auth_enabled": True, "auth_oidc_issuer": "http://keycloak.example/realms/x"}, "https://"),
        ({"auth_enabled": True, "auth_oidc_issuer": "https://x", "auth_oidc_ca": "/none"}, "the OIDC issuer: /none"),
        ({"auth_enabled": True, "auth_oidc_issuer": "https://x", "auth_oidc_jwks": "/none"}, "/none cannot be read"),
        ({"auth_enabled": True, "auth_oidc_issuer": "https://x", "auth_oidc_audience": ""}, "AUDIENCE is empty"),
        ({"auth_enabled": True, "auth_oidc_issuer": "https://x", "auth_oidc_accounts": True}, "SLUICE_AUTH_ACCOUNTS"),
    ],
)
def test_half_a_configuration_is_refused_with_a_reason(opened: Opened, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(SecurityConfigError, match=reason):
        opened(**settings)


def test_what_does_nothing_in_the_file_is_warned_of(
    opened: Opened, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.write(f"a:{HASH}:*,READ\n")
    opened(auth_enabled=True, auth_accounts=str(site.file))
    assert "line 1, user 'a', entry 1 '*,READ': it never matches" in caplog.text and HASH not in caplog.text


# Handlers of a site's own


class Stamps:
    """Knows who comes with a stamp."""

    name = "Stamp"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.partitions = settings["partitions"]

    async def authenticate(self, token: str) -> str | None:
        if token == "burnt":
            raise RuntimeError(f"{token} is secret")
        return token.removeprefix("from ") if token.startswith("from ") else None

    def authorize(self, resource: str, principal: str) -> Permission:
        return Permission.READ if principal in resource else Permission.NONE


class OwnBasic(Stamps):
    name = "Basic"


class Broken(Stamps):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        raise OSError("no licence")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def found(group: str) -> list[EntryPoint]:
        assert group == "sluice.auth_handlers"
        return [EntryPoint(name.lower(), f"{__name__}:{name}", group) for name in names]

    def load(entry: EntryPoint) -> Any:
        return globals()[entry.value.partition(":")[2]]

    monkeypatch.setattr(plugins, "entry_points", found)
    monkeypatch.setattr(EntryPoint, "load", load)
    return names


async def test_a_handler_of_the_sites_own_proves_callers(
    opened: Opened, installed: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    installed.append("Stamps")
    found = opened(auth_enabled=True)
    assert found is not None
    caller = await found.authenticator.caller("Stamp from me")
    assert caller is not None and caller.principal == "me"
    assert [caller.permission_on(one) for one in ("prn::/scope:me", ROOT)] == [Permission.READ, Permission.NONE]
    for authorization in ("Stamp to me", "Stamp burnt"):
        with pytest.raises(UnauthenticatedError):
            await found.authenticator.caller(authorization)
    assert "RuntimeError" in str([record.__dict__ for record in caplog.records]) and "burnt" not in caplog.text


async def test_of_two_handlers_of_a_name_the_first_counts(
    opened: Opened, installed: list[str], site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    installed += ["OwnBasic", "Stamps", "Stamps"]
    with caplog.at_level(logging.WARNING):
        found = opened(auth_enabled=True, auth_accounts=str(site.file))
    assert found is not None
    with pytest.raises(UnauthenticatedError):
        await found.authenticator.caller("Basic from me")
    warned = [record.__dict__["handler"] for record in caplog.records if "not used" in record.message]
    assert warned == ["Basic", "Stamp"]


def test_a_handler_that_does_not_start_refuses_the_start(opened: Opened, installed: list[str]) -> None:
    installed.append("Broken")
    with pytest.raises(SecurityConfigError, match=r"broken .*does not start: OSError: no licence"):
        opened(auth_enabled=True)
