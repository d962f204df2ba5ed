"""What stands in the pages and comes from the code: blocks between two comments, written anew each time.

A block begins with `<!-- catalog: NAME -->` and ends with `<!-- end -->`. NAME is `topics` for the list of all topics,
`record TOPIC TYPE` for an example as it stands in its topic, or `kafka acls` for the commands that give Kafka's users
their rights.
"""

import json
import re
import textwrap
from typing import Any

from sluice.catalog import examples, kafka_access
from sluice.catalog.asyncapi import kept
from sluice.kafka.topics import TOPICS, Topic

_WIDTH = 120
_BLOCK = re.compile(r"(<!-- catalog: (?P<name>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


class UnknownBlockError(Exception):
    """A page names something that is not in the catalogue."""


def refreshed(page: str) -> str:
    """The page with its blocks written anew. Raises UnknownBlockError."""
    return _BLOCK.sub(lambda found: f"{found[1]}{_block(found['name'])}\n{found[3]}", page)


def _block(name: str) -> str:
    match name.split():
        case ["topics"]:
            return "\n".join(map(_item, TOPICS))
        case ["record", topic, kind]:
            return _record(topic, kind)
        case ["kafka", "acls"]:
            return kafka_access.acls()
    raise UnknownBlockError(f"nothing is called {name!r}")


def _item(topic: Topic) -> str:
    by = f"written by {', '.join(topic.written_by)}; read by {', '.join(topic.read_by)}"
    text = f"`{topic.name}`: key {topic.key}; {by}; kept {kept(topic)}"
    partitions = f"; {topic.partitions} partition" if topic.partitions else ""
    return textwrap.fill(f"- {text}{partitions}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _record(topic: str, kind: str) -> str:
    """An example of a record, with the headers that not every record of the topic has alike."""
    found = [e for e in examples.all_examples() if (e.topic, e.type) == (topic, kind)]
    if not found:
        raise UnknownBlockError(f"{topic} has no example of {kind}")
    example = found[0]
    shown = [name for name, _ in example.headers if name == "ce_type" or name.startswith("sluice_")]
    headers = "\n".join(f"{name}: {example.header(name)}" for name in shown)
    return f"```\nkey: {example.key}\n{headers}\n```\n\n```json\n{_json(example.json())}\n```"


def _json(value: Any, indent: str = "", name: str = "") -> str:
    """As JSON, behind the name of a field; what fits into a line stands in one."""
    line = f"{name}{json.dumps(value, ensure_ascii=False)}"
    if len(indent) + len(line) < _WIDTH or not isinstance(value, dict | list):
        return line
    inner = f"{indent}  "
    if isinstance(value, dict):
        parts = [_json(part, inner, f"{json.dumps(key)}: ") for key, part in value.items()]
    else:
        parts = [_json(part, inner) for part in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{name}{begin}\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}{end}"
