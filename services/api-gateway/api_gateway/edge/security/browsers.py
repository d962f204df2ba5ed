"""What a browser may send here: which of our calls a website can have its visitor make.

A website can have a visitor's browser POST to this port, and with a name of its own that points here (DNS rebinding)
even read the answers. So a call that says where it comes from (`Origin`) must come from our own page. Where only this
machine reaches the port, a call must name this machine (`Host`), too. Programs send no `Origin`, and name the host that
they connect to. With authentication a foreign name gains a website nothing: it has no credentials, and the session's
cookie is not sent. Pure functions on what the settings say.
"""

import ipaddress
from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec

from api_gateway.settings import GatewaySettings, PageMode

_LOOPBACK_NAME = "localhost"
_UNCHECKED_PATHS = ("/livez", "/readyz", "/metrics", "/ping")
"""Of probes and of Prometheus, by whatever name they reach this machine."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a call of a browser is refused."""

    status: HTTPStatus
    detail: str


class Calls(StrEnum):
    """Which calls must come to a known host."""

    ALL = "all"
    OF_BROWSERS = "of browsers"
    NONE = "none"


class Browsers(msgspec.Struct, frozen=True):
    """`given` are the names, with a port or for any port, under which browsers reach the gateway through proxies.

    `must_know` says for which calls the host must be one of these, one of `own`, an address or this machine's name;
    `mode` is what the page may do.
    """

    given: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    must_know: Calls = Calls.NONE
    mode: PageMode = PageMode.ON

    def refusal(self, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """Why a call is refused, whatever it is about; None if it is not. `headers` by their names in lower case."""
        if path in _UNCHECKED_PATHS:
            return None
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.must_know is Calls.ALL and not self._knows(_name_in(host)):
            return Refusal(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"{host[:100]!r} is not known as a name of this gateway; SLUICE_PAGE_HOSTS names others",
            )
        if origin is None:
            return None
        sender = _sender(origin)
        name = _name_in(sender)
        is_own = bool(sender) and (sender == host.lower() or not self.given.isdisjoint((sender, name)))
        if not is_own or (self.must_know is not Calls.NONE and not self._knows(name)):
            return Refusal(
                HTTPStatus.FORBIDDEN,
                f"a page of {origin[:100]!r} may send nothing here; SLUICE_PAGE_HOSTS names what browsers call us",
            )
        return None

    def refuses_change(self, headers: Mapping[str, str]) -> bool:
        """Whether a change is refused because a page sends it, and pages may only read."""
        return self.mode is not PageMode.ON and "origin" in headers

    def _knows(self, name: str) -> bool:
        """An address is no name that could be pointed elsewhere."""
        if (
            name in self.own
            or name in map(_name_in, self.given)
            or name == _LOOPBACK_NAME
            or name.endswith(f".{_LOOPBACK_NAME}")
        ):
            return True
        return _is_address(name)


def browsers_of(settings: GatewaySettings) -> Browsers:
    """As the settings say."""
    given = frozenset(name.lower() for name in settings.page_host_names)
    own = frozenset(name.lower() for name in (settings.host, settings.grpc_published_host))
    must_know = Calls.NONE
    if not settings.auth_enabled:
        must_know = Calls.ALL if settings.is_loopback else Calls.OF_BROWSERS
    return Browsers(given, own, must_know, settings.page_mode)


def _name_in(netloc: str) -> str:
    """The name or address of a host, without its port and brackets."""
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0].lower()
    return netloc.rpartition(":")[0].lower() if ":" in netloc else netloc.lower()


def _sender(origin: str) -> str:
    """Host and port of the page; empty for what comes from no web server."""
    try:
        return urlsplit(origin).netloc.lower() if origin.lower().startswith(("http://", "https://")) else ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
