"""What all of a command's clients of Kafka have in common."""

import logging
from typing import Any

from sluice.kafka_config import clients
from sluice.kafka_config.conf import KafkaConfError, of_environment
from sluice_cli.errors import UsageError

quiet = logging.getLogger("sluice_cli.librdkafka")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False


def client_of(bootstrap: str, name: str, logger: logging.Logger) -> dict[str, Any]:
    """What all clients of a command have in common. Raises UsageError if the environment's configuration is no good."""
    try:
        return clients.common(bootstrap, name, logger, of_environment())
    except KafkaConfError as error:
        raise UsageError(str(error), "docs/operations.md says what can be set") from error
