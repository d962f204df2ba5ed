"""The settings all services share, from the environment with the prefix SLUICE_."""

import logging
import re
import secrets
import socket
import sys
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from sluice.validation import sentence

S = TypeVar("S", bound=BaseSettings)


class ServiceSettings(BaseSettings):
    """One instance of a service. Addresses are host:port; the health port serves /livez, /readyz and /metrics.

    `otlp_endpoint` is the base URL of a collector of traces (OTLP over HTTP); without one there are none.
    """

    model_config = SettingsConfigDict(env_prefix="SLUICE_")

    kafka_bootstrap: str = "127.0.0.1:9092"
    kafka_replication: int = 1
    redis_url: str = "redis://127.0.0.1:6379/0"
    zookeeper: str = "127.0.0.1:2181"
    cluster_name: str = "pravega-cluster"
    container_count: int = 4
    partitions: int = 16
    instance: str = ""
    host: str = "127.0.0.1"
    health_port: int = 10100
    log_level: str = "info"
    otlp_endpoint: str = ""

    def model_post_init(self, _context: Any) -> None:
        if not self.instance:
            self.instance = f"{socket.gethostname()}-{secrets.token_hex(3)}"

    def kafka_client(self) -> dict[str, Any]:
        """The librdkafka configuration that every client of the process starts from."""
        return {
            "bootstrap.servers": self.kafka_bootstrap,
            "client.id": self.instance,
            "socket.keepalive.enable": True,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1000,
            "topic.metadata.refresh.interval.ms": 5_000,
            "logger": logging.getLogger("librdkafka"),
        }


def settings_of(kind: type[S]) -> S:
    """The settings of the environment. Ends the process with exit code 2 and a line on stderr for each wrong one."""
    prefix = str(kind.model_config.get("env_prefix", ""))
    try:
        return kind()
    except ValidationError as error:
        wrongs = [
            sentence(dict(one), f"{prefix}{'_'.join(str(part) for part in one['loc'])}".upper())
            for one in error.errors()
        ]
    except SettingsError as error:
        # Of a structured setting that is no JSON only the text says which one it is.
        named = re.search(r'field "(\w+)"', str(error))
        wrongs = [f"{prefix}{named[1].upper()}: it must be JSON" if named else str(error)]
    for wrong in wrongs:
        sys.stderr.write(f"setting {wrong}\n")
    raise SystemExit(2)
