"""Whether topics fit what is configured, and the checkpoint of the archive, the only one that outlives its query.

Topics are never made here: other services do that. A checkpoint belongs to one journal, which the name of its folder
says, and never stands beyond the end of a topic that it reads: a Kafka put back from a copy is older than what is
archived of it. A file in the folder says what else the checkpoint belongs to.

Spark syncs none of its files, so a power loss may leave some empty. To lose a checkpoint is harmless: one that cannot
be read is put aside, the last one, and begun anew.
"""

import logging
from typing import Any

import msgspec
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from retention_spark.files import DamagedFileError, empty_files, exists, names, read, remove, rename, write_once
from retention_spark.topic_ends import Ends, ReadEnds
from sluice.domain.wording import some
from sluice.exceptions import CannotStartError
from sluice.kafka.topic_ids import topic_ids
from sluice.kafka.topics import (
    DEAD_LETTERS,
    JOURNAL,
    REQUESTS_CLUSTER,
    REQUESTS_STREAMS,
    RETENTION,
    RETENTION_MEMORY,
    SCALE,
    SCALE_MEMORY,
)
from sluice.kafka_config import clients

log = logging.getLogger(__name__)

FORMAT = 4
"""To be counted on when an older checkpoint can no longer be read."""

NEEDED = (JOURNAL, SCALE, RETENTION, SCALE_MEMORY, RETENTION_MEMORY, REQUESTS_STREAMS, REQUESTS_CLUSTER, DEAD_LETTERS)
_FILE = "sluice.json"
_OFFSETS = "offsets"
_TIMEOUT_S = 10.0
_LOOK_S = 2.0
_UNREADABLE = ("Failed to read log file", "Checksum error")
"""What Spark says of files that do not hold what was written; it says which."""


class UnfitError(CannotStartError):
    """What is there belongs to another system, or to another configuration of this one; `fact` is what differs."""

    def __init__(self, text: str, fact: str = "") -> None:
        super().__init__(text)
        self.fact = fact


class _Formatted(msgspec.Struct, frozen=True):
    format: int


class Fit(msgspec.Struct, frozen=True):
    """What a checkpoint belongs to: facts by their names, those that its query goes by."""

    format: int
    facts: dict[str, str | int]


def look_at_topics(client: dict[str, Any], partitions: int) -> tuple[dict[str, str], list[str]]:
    """The ids of the topics that are needed, and those of them that are missing, while any is; blocking.

    Raises UnfitError for a topic with other partitions, KafkaException while the brokers cannot be reached.
    """
    admin = AdminClient(clients.admin(client))
    found = admin.list_topics(timeout=_LOOK_S)
    for topic in NEEDED:
        there = found.topics.get(topic.name)
        wanted = topic.partitions or partitions
        if there is not None and len(there.partitions) != wanted:
            raise UnfitError(
                f"{topic.name} has {len(there.partitions)} partitions, configured are {wanted} (SLUICE_PARTITIONS)"
            )
    missing = [topic.name for topic in NEEDED if topic.name not in found.topics]
    return {} if missing else topic_ids(admin, [topic.name for topic in NEEDED], _TIMEOUT_S), missing


def claim(session: SparkSession, folder: str, wanted: Fit, read_ends: ReadEnds) -> None:
    """Check the checkpoint in a folder of any file system that Spark knows, or begin a new one there.

    Raises UnfitError, KafkaException.
    """
    try:
        if exists(session, folder, _FILE):
            _check_facts(wanted, read_fit(read(session, folder, _FILE), folder), folder)
            _check_offsets(_last_offsets(session, folder), read_ends, folder)
            return
    except DamagedFileError as error:
        _put_aside(session, folder, f"{error}")
    if exists(session, folder, "metadata"):
        raise UnfitError(f"the checkpoint {folder} is not one of this service: {_FILE} is missing")
    write_once(session, folder, _FILE, msgspec.json.encode(wanted))


def mend(session: SparkSession, folder: str, failure: str) -> None:
    """Begin a claimed checkpoint anew if that is what the failure of its query comes from."""
    if empty := empty_files(session, folder):
        why = f"empty: {some(empty)}"
    elif _is_below(folder, failure) and any(text in failure for text in _UNREADABLE):
        why = failure
    else:
        return
    claimed = read(session, folder, _FILE)
    _put_aside(session, folder, why)
    write_once(session, folder, _FILE, claimed)


def _is_below(folder: str, failure: str) -> bool:
    """Whether a file of the folder is named; by its last part, for Spark says file:/a where file:///a is given."""
    return f"/{folder.rpartition('/')[2]}/" in failure


def _put_aside(session: SparkSession, folder: str, why: str) -> None:
    parent, _, name = folder.rpartition("/")
    aside = f"unreadable-{name}"
    remove(session, parent, aside)
    rename(session, parent, name, aside)
    facts = {"checkpoint": folder, "moved_to": f"{parent}/{aside}", "reason": why}
    log.warning("a checkpoint cannot be read: put aside, and begun anew", extra=facts)


def read_fit(value: bytes, folder: str) -> Fit:
    """What a file says of its checkpoint; a file of another format may hold other fields.

    Raises UnfitError, DamagedFileError.
    """
    try:
        found = msgspec.json.decode(value, type=_Formatted).format
        if found == FORMAT:
            return msgspec.json.decode(value, type=Fit)
    except msgspec.DecodeError as error:
        raise DamagedFileError(f"{folder}/{_FILE}: {error}") from error
    raise _unfit(folder, "format", found, FORMAT)


def _check_facts(wanted: Fit, found: Fit, folder: str) -> None:
    for name, should_be in wanted.facts.items():
        if found.facts.get(name) != should_be:
            raise _unfit(folder, name, found.facts.get(name), should_be)


def _last_offsets(session: SparkSession, folder: str) -> Ends:
    """Where the newest batch ends, which may have yet to run. Of its file a line for each source comes third."""
    batches = [int(name) for name in names(session, f"{folder}/{_OFFSETS}") if name.isdigit()]
    if not batches:
        return {}
    last = max(batches)
    lines = read(session, f"{folder}/{_OFFSETS}", f"{last}").splitlines()
    try:
        found = msgspec.json.decode(b"".join(lines[2:]), type=dict[str, dict[int, int]])
    except msgspec.DecodeError as error:
        raise DamagedFileError(f"{folder}/{_OFFSETS}/{last}: {error}") from error
    return {(topic, partition): offset for topic, ends in found.items() for partition, offset in ends.items()}


def _check_offsets(stands_at: Ends, read_ends: ReadEnds, folder: str) -> None:
    there = read_ends(stands_at)
    for (topic, partition), offset in stands_at.items():
        end = there[topic, partition]
        if offset > end:
            raise UnfitError(
                f"the checkpoint {folder} has read {topic}/{partition} up to {offset}, which ends at {end}: "
                "Kafka is older than it; remove it to begin anew, or put it back to that time, too"
            )


def _unfit(folder: str, what: str, found: object, needed: object) -> UnfitError:
    return UnfitError(
        f"the checkpoint {folder} has {what} {found}, needed is {needed}: "
        "remove it to begin anew, or have the settings as they were",
        what,
    )
