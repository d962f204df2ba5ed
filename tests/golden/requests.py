"""Golden requests: of each release some of every kind of command, as its documents show them.

The next release carries them out: they still lie in a topic when it starts, or come from an instance of the release
before that runs beside it.
"""

from pathlib import Path

import msgspec

from golden.journals import FOLDER
from sluice.catalog.examples import all_examples
from sluice.kafka.topics import ABORT, COMMIT, REQUESTS_CLUSTER, REQUESTS_STREAMS, REQUESTS_TRANSACTIONS

NAME = "requests.json"
_TOPICS = {topic.name for topic in (REQUESTS_STREAMS, REQUESTS_TRANSACTIONS, COMMIT, ABORT, REQUESTS_CLUSTER)}
_requests = msgspec.json.Decoder(list[msgspec.Raw])


def written() -> bytes:
    """What this tree writes, as the content of a file."""
    values = dict.fromkeys(example.value for example in all_examples() if example.topic in _TOPICS)
    return b"[\n" + b",\n".join(values) + b"\n]\n"


def all_golden_requests() -> dict[str, list[bytes]]:
    """The values by the release that wrote them."""
    return {path.parent.name: requests_in(path) for path in sorted(FOLDER.glob(f"*/{NAME}"))}


def requests_in(file: Path) -> list[bytes]:
    return [bytes(value) for value in _requests.decode(file.read_bytes())]
