"""The helper process: makes or confirms one snapshot of a journal partition, then ends. See `engine.snapshotting`.

`python -m sluice.snapshotter PARTITION OFFSET BY`: the partition, the offset of the marker, and the service/instance
that has it done. Settings come from the environment, as for any service. It gives way to every other process of the
machine. Ends with status 0 when nothing is left to do, else with 1 and the reason as the only line on standard output.
"""

import logging
import os
import sys

from confluent_kafka import KafkaException

from sluice import event_loop
from sluice.domain.model import DomainModel
from sluice.engine.errors import JournalError
from sluice.engine.ports import EndsUnknownError, SnapshotStoreError
from sluice.engine.snapshotting import NoMarkerError, Snapshotter
from sluice.exceptions import in_words
from sluice.kafka.connections import KafkaConnections
from sluice.settings import ServiceSettings, settings_of
from sluice.telemetry.logs import set_up_logs

log = logging.getLogger(__name__)

NAME = "snapshotter"
NICENESS = 10


async def run(settings: ServiceSettings, partition: int, offset: int, by: str) -> str | None:
    """Why it was not done, None if it was."""
    connections = KafkaConnections(settings.kafka_client(), settings.partitions, settings.kafka_session_timeout_s)
    snapshotter = Snapshotter(
        connections.log, connections.snapshots, DomainModel(), by, connections.clock, connections.chance
    )
    try:
        await snapshotter.run(partition, offset)
    except (NoMarkerError, JournalError, EndsUnknownError, SnapshotStoreError, TimeoutError, KafkaException) as error:
        return in_words(error)
    finally:
        await connections.log.stop()
    return None


def main(arguments: list[str]) -> int:
    partition, offset, by = arguments
    os.nice(NICENESS)
    settings = settings_of(ServiceSettings)
    set_up_logs(NAME, settings.instance, settings.log_level)
    problem = event_loop.run(run(settings, int(partition), int(offset), by))
    if problem is not None:
        log.warning("not done", extra={"partition": int(partition), "offset": int(offset), "reason": problem})
        sys.stdout.write(f"{problem}\n")
    return 1 if problem is not None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
