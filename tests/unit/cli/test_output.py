"""Every command that reads from the API: programs get what the API says, people get it in words, whatever there is.

What the API says is made from its own description: everything that may be there, or only what has to be and what has
a default, which is said too.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from unit.cli.conftest import Cli
from unit.cli.shown import TXN

from api_gateway.app import build_app

NAMES: dict[str, Any] = {
    "scope": "demo",
    "stream": "orders",
    "group": "rg",
    "table": "kv",
    "txn": TXN,
    "segment": 0,
    "epoch": 3,
    "partition": 3,
    "offset": 17,
}
ONE = "/scopes/{scope}/streams/{stream}"
READS = {
    "overview": "/overview",
    "partition list": "/partitions",
    "search ord": "/search",
    "scope list": "/scopes",
    "scope show demo": "/scopes/{scope}",
    "stream list demo": "/scopes/{scope}/streams",
    "stream find orders --sort changed": "/streams",
    "stream loads demo/orders": "/streams/loads",
    "stream show demo/orders": ONE,
    "stream segments demo/orders": f"{ONE}/segments",
    "stream successors demo/orders 0": f"{ONE}/segments/{{segment}}/successors",
    "stream locate demo/orders 0": f"{ONE}/segments/{{segment}}/location",
    "stream scale-status demo/orders 3": f"{ONE}/scales/{{epoch}}",
    "stream statistics demo/orders": f"{ONE}/statistics",
    "stream topology demo/orders": f"{ONE}/topology",
    "stream rates demo/orders --from -1h": f"{ONE}/rates/history",
    "reader-group list demo": "/scopes/{scope}/readergroups",
    "reader-group show demo/rg": "/scopes/{scope}/readergroups/{group}",
    "reader-group readers demo/rg": "/scopes/{scope}/readergroups/{group}/readers",
    "table list demo": "/scopes/{scope}/tables",
    "table show demo/kv": "/scopes/{scope}/tables/{table}",
    "table size demo/kv": "/scopes/{scope}/tables/{table}/size",
    "transaction list demo/orders": f"{ONE}/transactions",
    f"transaction show demo/orders {TXN}": f"{ONE}/transactions/{{txn}}",
    "transaction waiting": "/transactions",
    "transaction summary demo/orders": f"{ONE}/transactions/summary",
    "transaction commits demo/orders": f"{ONE}/commits",
    "workflow list": "/workflows",
    "decision list demo/orders": f"{ONE}/decisions",
    "stream reports demo/orders": f"{ONE}/reports",
    "decision list --from 2023-11-14T22:00Z": "/decisions",
    "request list --from 2023-11-14T22:00Z": "/requests",
    "member list": "/members",
    "container list": "/containers",
    "dead-letter list": "/dead-letters",
    "dead-letter show 3/17": "/dead-letters/{partition}/{offset}",
}
"""Commands, and where what they show is from."""
MOST_DEEP = 8


@cache
def description() -> dict[str, Any]:
    process: Any = SimpleNamespace(checks={}, outages={}, degraded={}, facts={})
    return build_app(process, connections=10).openapi()


def example(schema: dict[str, Any], full: bool, deep: int = 0) -> Any:
    """A value that follows the schema: with all that may be there, or only with what has to be."""
    match schema:
        case {"$ref": name}:
            return example(description()["components"]["schemas"][name.rpartition("/")[2]], full, deep)
        case {"anyOf": [first, *_]}:
            return example(first, full, deep)
        case {"enum": [first, *_]} | {"const": first}:
            return first
        case {"prefixItems": parts}:
            return [example(part, full, deep) for part in parts]
        case {"type": "array"}:
            return [example(schema["items"], full, deep + 1)] if full and deep < MOST_DEEP else []
        case {"type": "object", "properties": properties}:
            said = {name: of["default"] for name, of in properties.items() if of.get("default") is not None}
            wanted = properties if full and deep < MOST_DEEP else schema.get("required", ())
            return said | {name: example(properties[name], full, deep + 1) for name in wanted}
        case {"type": "object"}:
            values = schema.get("additionalProperties")
            return {"0": example(values, full, deep + 1)} if full and isinstance(values, dict) else {}
    return {"string": "some", "integer": 1, "number": 0.5, "boolean": True}[schema["type"]]


@pytest.mark.parametrize("full", [True, False], ids=["everything", "little"])
@pytest.mark.parametrize("command", READS)
def test_what_is_read_is_shown_to_programs_as_it_is_and_to_people_in_words(cli: Cli, command: str, full: bool) -> None:
    operation = description()["paths"][f"/sluice/v1{READS[command]}"]["get"]
    said = example(operation["responses"]["200"]["content"]["application/json"]["schema"], full)
    said.pop("next", None)
    cli.answers[f"GET {READS[command].format(**NAMES)}"] = said
    assert cli(*command.split(), "--json").document in (said, said.get("items"))
    found = cli(*command.split())
    assert (found.code, found.err) == (0, "") and found.out.strip()
