"""Following a topic beside the journal: the answers about it are as new as what this process has received."""

from collections.abc import Mapping

from sluice.exceptions import in_words
from sluice.kafka.connections import Observe
from sluice.runtime import Runtime


def follow(runtime: Runtime, name: str, topic: str, begins: Mapping[int, int], observe: Observe) -> None:
    """Have `observe` take in these partitions as long as the service lives, on its event loop.

    For where each begins see Connections. A failure degrades the service, under `name`, and ends the following.
    """
    following = runtime.connections.follow(name.replace(" ", "-"), topic, begins, observe)
    runtime.degraded[name] = lambda: in_words(following.failure) if following.failure else None
    runtime.stack.push_async_callback(following.stop)
