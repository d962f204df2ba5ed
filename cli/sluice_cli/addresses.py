"""Where Sluice is: the addresses that a command uses, each by one rule, and what form they must have.

An option of the command line counts first, before or after the command; then the variable of the environment; then the
context that is in use; then the default. Pure but for `os.environ` and the file of the contexts.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlsplit

from sluice_cli import contexts
from sluice_cli.errors import UsageError


class Address(StrEnum):
    """What has an address; the value names the option, the property of a context and the property in JSON."""

    API = "api"
    KAFKA = "kafka"
    CONTROLLER = "controller"
    ARCHIVE = "archive"


VARIABLES = {
    Address.API: "SLUICE_API",
    Address.KAFKA: "SLUICE_KAFKA_BOOTSTRAP",
    Address.CONTROLLER: "SLUICE_CONTROLLER",
    Address.ARCHIVE: "SLUICE_ARCHIVE",
}
DEFAULTS = {
    Address.API: "http://127.0.0.1:10080",
    Address.KAFKA: "127.0.0.1:9092",
    Address.CONTROLLER: "tcp://127.0.0.1:9090",
    # None: then topics are read as far back as Kafka has them.
    Address.ARCHIVE: "",
}
_FORMS = {
    Address.API: "write it as http://HOST:PORT or https://HOST:PORT",
    Address.CONTROLLER: "write it as tcp://HOST:PORT or tls://HOST:PORT, an IPv6 address in brackets",
}
"""Of the others any text is one."""


class Found(NamedTuple):
    """An address, and where it is from: `--api`, `SLUICE_API`, `context prod` or `default`."""

    value: str
    source: str


def find(which: Address, given: Mapping[str, str]) -> Found:
    """The address that counts; `given` are those of the command line, by name. Raises UsageError."""
    option = given.get(which)
    if option:
        return Found(option, f"--{which}")
    variable = os.environ.get(VARIABLES[which])
    if variable:
        return Found(variable, VARIABLES[which])
    kept = contexts.load()
    present = kept.contexts.get(kept.current, {}).get(which)
    if present:
        return Found(present, f"context {kept.current}")
    return Found(DEFAULTS[which], "default")


def usable(which: Address, given: Mapping[str, str]) -> str:
    """The address that counts, if it has the form of one. Raises UsageError."""
    found = find(which, given)
    check(which, found)
    return found.value


def check(which: Address, found: Found) -> None:
    """Raises UsageError for what has not the form of such an address."""
    from sluice.security.hiding import shown

    try:
        is_one = _has_form(which, found.value)
    except ValueError:
        is_one = False
    if not is_one:
        raise UsageError(f"{shown(found.value)!r} ({found.source}) is no address of the {which}", _FORMS[which])


def _has_form(which: Address, address: str) -> bool:
    """Raises ValueError for some that have not."""
    from sluice.addresses import host_and_port

    if which is Address.API:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    if which is Address.CONTROLLER:
        scheme, separator, rest = address.rpartition("://")
        host_and_port(rest)
        return not separator or scheme in ("tcp", "tls")
    return True
