"""Realistic records of every topic, as they travel: envelope, headers, key. All values are fixed."""

from sluice.catalog.examples.commands import command_examples
from sluice.catalog.examples.dead_letters import dead_letter_examples
from sluice.catalog.examples.example import Example, of_unknown_type, with_unknown_field
from sluice.catalog.examples.journal_records import journal_records
from sluice.catalog.examples.reports import memory_examples, report_examples, statistics_examples
from sluice.catalog.examples.snapshots import snapshot_examples

__all__ = [
    "Example",
    "all_examples",
    "dead_letters",
    "journal_records",
    "of_unknown_type",
    "reports",
    "requests",
    "snapshots",
    "statistics",
    "stream_memory_records",
    "with_unknown_field",
]


def requests() -> list[Example]:
    """Every command at least once, in the topic it is sent to, from a stream's creation to its deletion."""
    return command_examples()


def reports() -> list[Example]:
    """What `sluice.scale` and `sluice.retention` hold."""
    return report_examples()


def statistics() -> list[Example]:
    """What `sluice.statistics` and `sluice.statistics.windows` hold."""
    return statistics_examples()


def stream_memory_records() -> list[Example]:
    """What `sluice.scale.memory` and `sluice.retention.memory` hold."""
    return memory_examples()


def snapshots() -> list[Example]:
    """What `sluice.snapshots` holds."""
    return snapshot_examples()


def dead_letters() -> list[Example]:
    """A request that could not be handled, bytes that cannot be decoded, and what became of the first."""
    return dead_letter_examples(requests())


def all_examples() -> list[Example]:
    """Examples of all topics."""
    return [
        *requests(),
        *reports(),
        *stream_memory_records(),
        *statistics(),
        *snapshots(),
        *journal_records(),
        *dead_letters(),
    ]
