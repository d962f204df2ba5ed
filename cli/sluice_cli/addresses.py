"""Where Sluice is: the addresses that a command uses, each by one rule.

An option of the command line counts first, before or after the command; then the variable of the environment; then the
context that is in use; then the default. Pure but for `os.environ` and the file of the contexts.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from sluice_cli import contexts


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
