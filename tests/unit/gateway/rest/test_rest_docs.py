"""The examples of docs/rest.md: there is one for every call, and all of them work in the order of the page."""

import re
import shlex
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx
from starlette.routing import compile_path
from support.documents import DOCS
from unit.gateway.rest.world import World

from sluice.domain.cluster.events import ContainersAssigned
from sluice.domain.host import Host
from sluice.domain.transaction.events import CommitBatchEnded, TransactionAborted, TransactionCommitted
from sluice.kafka.topics import SCALE

PAGE = (DOCS / "rest.md").read_text()
GIVEN = {"API": "/sluice/v1", "JSON": "Content-Type: application/json"}
REFUSED = {
    "retryWorkflow": HTTPStatus.CONFLICT,
    "cancelWorkflow": HTTPStatus.CONFLICT,
    "beginSession": HTTPStatus.NOT_FOUND,
    "startDemonstration": HTTPStatus.CONFLICT,
}
"""What is refused, as the page says: nothing is under way when it gets there, and callers are not authenticated."""


class Example(NamedTuple):
    """A command line, and the shell variable that it sets, if any."""

    line: str
    variable: str


def examples() -> Iterator[Example]:
    """All calls of the page, one after the other."""
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            if found := re.match(r"(?:(\w+)=\$\()?(curl .*?)(?: +\| .*\))?$", line):
                yield Example(found[2], found[1] or "")
            else:
                assert line.partition("=")[0] in GIVEN, f"this test cannot read {line}"


def call_of(example: Example, values: dict[str, str]) -> httpx.Request:
    """The call that curl would make of it."""
    words = shlex.split(re.sub(r"\$(\w+)", lambda found: values[found[1]].replace('"', '\\"'), example.line))[1:]
    method, url, body, headers = "", "", None, {}
    while words:
        match words.pop(0):
            case "-s":
                pass
            case "-X":
                method = words.pop(0)
            case "-sI":
                method = "HEAD"
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers[name] = value
            case "-d":
                body = words.pop(0)
            case word:
                assert not url and word.startswith("/"), f"{example.line}: {word}"
                url = word
    return httpx.Request(method or "GET", f"http://gateway{url}", headers=headers, content=body)


class Story:
    """What has to be there, or to happen, between the examples."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.values = dict(GIVEN)
        self.operations = {
            (method.upper(), path): operation
            for path, methods in world.app.openapi()["paths"].items()
            for method, operation in methods.items()
            if path.startswith("/sluice/")
        }

    async def begin(self) -> None:
        host, other = Host("store", 12345), Host("store-2", 12345)
        await self.world.system.append(
            "cluster", ContainersAssigned(containers=dict.fromkeys(range(4), host), hosts=(host, other), at=1)
        )

    def operation(self, request: httpx.Request) -> dict[str, Any]:
        """What the call is in the description; its query must be there, too."""
        method, url = request.method.replace("HEAD", "GET"), urlsplit(str(request.url))
        paths = (path for its_method, path in self.operations if its_method == method)
        # Of `transactions/summary` and `transactions/{txn}` the one that names it.
        path = min((path for path in paths if compile_path(path)[0].match(url.path)), key=lambda path: path.count("{"))
        found: dict[str, Any] = self.operations[method, path]
        known = {p["name"] for p in found.get("parameters", []) if p["in"] == "query"}
        assert {name for name, _ in parse_qsl(url.query)} <= known, url.query
        return found

    def before(self, example: Example) -> None:
        if "$LETTER" in example.line:
            partition, offset = self.world.letters.letter("demo/orders", b"a report", SCALE.name)
            self.values["LETTER"] = f"{partition}/{offset}"

    async def after(self, example: Example, operation: str, answer: httpx.Response) -> None:
        if example.variable:
            self.values[example.variable] = answer.headers["etag"] if "-sI" in example.line else answer.json()["id"]
        ids = ("demo", "orders")
        if operation == "commitTransaction":
            committed = TransactionCommitted(*ids, self.values["TXN"], at=1)
            await self.world.system.append("demo/orders", committed, CommitBatchEnded(*ids))
        elif operation == "abortTransaction":
            await self.world.system.append("demo/orders", TransactionAborted(*ids, self.values["TXN"], at=1))


async def test_the_examples_work_and_show_every_call(world: World) -> None:
    story, shown = Story(world), set()
    await story.begin()
    for example in examples():
        story.before(example)
        request = call_of(example, story.values)
        operation = story.operation(request)["operationId"]
        answer = await world.client.send(request)
        works = answer.status_code == REFUSED[operation] if operation in REFUSED else answer.is_success
        assert works, f"{example.line}: {answer.status_code} {answer.text}"
        await story.after(example, operation, answer)
        shown.add(operation)
    assert shown == {operation["operationId"] for operation in story.operations.values()}
