"""What stands in the pages and comes from the code: blocks between two comments, written anew each time.

A block begins with `<!-- catalog: NAME -->` and ends with `<!-- end -->`. NAME is `topics` for the table of all topics,
`record TOPIC TYPE` for an example as it stands in its topic, `kafka access` for the table of the rights of Kafka's
users, or `kafka acls` for the same as a list of commands.
"""

import json
import re

from sluice.catalog import examples, kafka_access
from sluice.catalog.asyncapi import kept
from sluice.kafka.topics import TOPICS, Topic

_BLOCK = re.compile(r"(<!-- catalog: (?P<name>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


class UnknownBlockError(Exception):
    """A page names something that is not in the catalogue."""


def refreshed(page: str) -> str:
    """The page with its blocks written anew. Raises UnknownBlockError."""
    return _BLOCK.sub(lambda found: f"{found[1]}{_block(found['name'])}\n{found[3]}", page)


def _block(name: str) -> str:
    match name.split():
        case ["topics"]:
            return _table()
        case ["record", topic, kind]:
            return _record(topic, kind)
        case ["kafka", "access"]:
            return kafka_access.table()
        case ["kafka", "acls"]:
            return kafka_access.acls()
    raise UnknownBlockError(f"nothing is called {name!r}")


def _table() -> str:
    head = ["| topic | key | holds | written by | read by | kept | partitions |", "|---|---|---|---|---|---|---|"]
    return "\n".join([*head, *(_row(topic) for topic in TOPICS)])


def _row(topic: Topic) -> str:
    partitions = str(topic.partitions) if topic.partitions else "as the deployment"
    cells = (
        f"`{topic.name}`",
        topic.key,
        topic.holds,
        ", ".join(topic.written_by),
        ", ".join(topic.read_by),
        kept(topic),
        partitions,
    )
    return f"| {' | '.join(cells)} |"


def _record(topic: str, kind: str) -> str:
    found = [e for e in examples.all_examples() if (e.topic, e.type) == (topic, kind)]
    if not found:
        raise UnknownBlockError(f"{topic} has no example of {kind}")
    example = found[0]
    headers = "\n".join(f"{name}: {example.header(name)}" for name, _ in example.headers)
    value = json.dumps(example.json(), indent=2, ensure_ascii=False)
    return f"```\nkey: {example.key}\n{headers}\n```\n\n```json\n{value}\n```"
