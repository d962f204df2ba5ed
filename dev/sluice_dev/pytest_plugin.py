"""For pytest: the fixture `sluice_dev`, a Pravega with a new, empty scope for each test.

One `sluice dev` serves all tests of a run; with pytest-xdist, those of a worker. The setting `sluice_dev_options` has
options of its command line.
"""

import json
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from sluice.security.credentials import basic
from sluice_dev.addresses import Addresses
from sluice_dev.process import dev_process

OPTIONS = "sluice_dev_options"
ANSWERS_S = 60.0
_numbers = count(1)


@dataclass(frozen=True)
class SluiceDev:
    """Where the Pravega of a test is found: `rest` is a URL, `controller` is `host:port`. `scope` is the test's own.

    With `--secure` among the options `authority` is the file with what certificates are of, in PEM, and `passwords` has
    the file with the password of each user: `admin`, `writer` and `reader`.
    """

    controller: str
    rest: str
    scope: str
    authority: str = ""
    passwords: Mapping[str, str] = field(default_factory=dict)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Make the setting known."""
    parser.addini(OPTIONS, "options of `sluice dev`, such as --load-interval 1", type="args", default=[])


@pytest.fixture(scope="session")
def sluice_dev_process(pytestconfig: pytest.Config) -> Iterator[Addresses]:
    """The process that all tests share."""
    with dev_process(*pytestconfig.getini(OPTIONS)) as addresses:
        yield addresses


@pytest.fixture
def sluice_dev(sluice_dev_process: Addresses) -> SluiceDev:
    """A Pravega with a scope in which nobody else has anything."""
    scope = f"test-{next(_numbers)}"
    at, headers = sluice_dev_process, {"Content-Type": "application/json"}
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if at.authority:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=at.authority)))
        headers["Authorization"] = basic("admin", Path(at.passwords["admin"]).read_text()).header
    request = urllib.request.Request(f"{at.rest}/v1/scopes", json.dumps({"scopeName": scope}).encode(), headers)
    with urllib.request.build_opener(*handlers).open(request, timeout=ANSWERS_S):
        return SluiceDev(at.controller, at.rest, scope, at.authority, at.passwords)
