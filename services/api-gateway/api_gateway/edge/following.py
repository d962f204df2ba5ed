"""Following a topic beside the journal: the answers about it are as new as what this process has received."""

from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from sluice.exceptions import in_words
from sluice.kafka.poll_thread import Batch, PollThread
from sluice.kafka_config import clients
from sluice.runtime import Runtime


def follow(runtime: Runtime, name: str, begin: list[TopicPartition], observe: Callable[[Batch], None]) -> None:
    """Have `observe` take in these partitions as long as the service lives, on its event loop.

    Each begins at its beginning or at its end: OFFSET_BEGINNING or OFFSET_END, the same for all. A failure degrades the
    service, under `name`, and ends the following.
    """

    def attach(consumer: Consumer) -> None:
        consumer.assign(begin)

    slug = name.replace(" ", "-")
    reset = "earliest" if begin[0].offset == OFFSET_BEGINNING else "latest"
    # Nothing else is requested on its connections, so nothing waits for the end of a fetch.
    more = {"auto.offset.reset": reset, "fetch.wait.max.ms": 5000}
    config = clients.consumer(runtime.settings.kafka_client(), f"sluice-{slug}", more)
    poll = PollThread(slug, config, attach, observe)
    poll.start()
    runtime.degraded[name] = lambda: in_words(poll.failure) if poll.failure else None
    runtime.stack.push_async_callback(poll.stop)
