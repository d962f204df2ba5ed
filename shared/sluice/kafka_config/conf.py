"""What the operator gives of librdkafka's configuration, checked before any client is made of it.

No message repeats a value: it may be a password.
"""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluice.exceptions import CannotStartError
from sluice.kafka_config import clients

VARIABLE = "SLUICE_KAFKA_CONF"

PROVIDERS_FILE = Path("/etc/pki/tls/certs/ca-bundle.crt")
"""By what librdkafka trusts a provider of tokens. Its curl was built for this file, and before 2.11 none can be set."""

Conf = Mapping[str, str | int | float | bool]
"""Values by the names that Sluice uses itself: of a setting with two names, the one in `_NAMES`."""


class KafkaConfError(CannotStartError):
    """What is given cannot be used. The message names the setting and says why."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{VARIABLE}: {message}")


_NAMES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "queue.buffering.max.ms": "linger.ms",
    "message.send.max.retries": "retries",
    "compression.codec": "compression.type",
    "request.required.acks": "acks",
    "delivery.timeout.ms": "message.timeout.ms",
    "auto.commit.enable": "enable.auto.commit",
}
"""librdkafka's other names of its settings."""

_FILES = {
    "https.ca.location",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.crl.location",
    "ssl.key.location",
    "ssl.keystore.location",
}

_CERTIFICATES = ("https.ca.pem", "ssl.ca.pem", "ssl.certificate.pem")

_SESSION = "SLUICE_KAFKA_SESSION_TIMEOUT_S sets it, for all services alike"
_GROUPS = "Sluice names its groups itself: their members divide the partitions among them"
_COMMITS = "a request is committed when it is decided, not when it is read"
_CLASSIC = "the rule by which partitions move is fixed: they move one by one, without a pause of the others"

_REFUSED = {
    "bootstrap.servers": "SLUICE_KAFKA_BOOTSTRAP sets it (the command line has --kafka)",
    "acks": "an answer is given when all replicas have its record",
    "enable.idempotence": "without it a record that is sent again could be appended twice, or out of order",
    "transactional.id": "processes with the same id end each other's producers",
    "partitioner": "services find the partition of a key by its hash",
    "message.max.bytes": "the topics and all limits are made for records of 8 MiB",
    "delivery.report.only.error": "who sends a record waits for its acknowledgement",
    "allow.auto.create.topics": "the services create the topics, with partitions and retention of their own",
    "group.id": _GROUPS,
    "group.instance.id": _GROUPS,
    "group.protocol": _CLASSIC,
    "group.protocol.type": _CLASSIC,
    "group.remote.assignor": _CLASSIC,
    "partition.assignment.strategy": _CLASSIC,
    "session.timeout.ms": _SESSION,
    "heartbeat.interval.ms": _SESSION,
    "enable.auto.commit": _COMMITS,
    "enable.auto.offset.store": _COMMITS,
    "offset.store.method": _COMMITS,
    "auto.offset.reset": "each reader knows where it begins: most at the first record",
    "isolation.level": "readers take what is committed, and nothing that may still be taken back",
    "enable.partition.eof": "readers know by it that they have read all there is",
}


def of_environment() -> Conf:
    """What the environment of this process gives. Raises KafkaConfError."""
    return read_conf(os.environ.get(VARIABLE, ""))


def read_conf(text: str) -> Conf:
    """What `text` gives: JSON, or the path of a file that holds JSON; nothing if it is empty. Raises KafkaConfError.

    Names and values were accepted by librdkafka, and the files that they name can be read.
    """
    if not text.strip():
        return {}
    conf = _checked(_parsed(text if text.lstrip().startswith(("{", "[")) else _content(text.strip())))
    _try_out(conf)
    return conf


def files_of(text: str) -> list[Path]:
    """What is read to configure clients by this text, the file of the configuration included. Raises KafkaConfError."""
    named = [str(value) for key, value in read_conf(text).items() if key in _FILES]
    given = [] if text.lstrip().startswith(("{", "[")) else [text.strip()]
    return [path for path in map(Path, [*given, *named]) if path.is_file()]


def certificates_of(conf: Conf, contents: Mapping[Path, bytes]) -> dict[Path, bytes]:
    """The certificates, in PEM, that stand in the configuration or in these files, by the setting or the file."""
    given = {Path(key): str(value).encode() for key, value in conf.items() if key in _CERTIFICATES}
    named = [Path(str(conf[location])) for key in _CERTIFICATES if (location := _location(key)) in conf]
    return {**given, **{path: contents[path] for path in named if path in contents}}


def _location(key: str) -> str:
    return f"{key.removesuffix('.pem')}.location"


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        # What was meant to be no path may hold a password.
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise KafkaConfError(
            f"neither JSON nor the path of a file that can be read: {why} (relative paths begin in {Path.cwd()})"
        ) from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise KafkaConfError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    if not isinstance(found, dict):
        raise KafkaConfError("not a JSON object of settings and their values")
    return found


def _checked(given: Mapping[str, Any]) -> Conf:
    conf: dict[str, str | int | float | bool] = {}
    for key, value in given.items():
        name = _NAMES.get(key, key)
        if name in _REFUSED:
            raise KafkaConfError(f"{key} cannot be set: {_REFUSED[name]}")
        if not isinstance(value, str | int | float | bool):
            raise KafkaConfError(f"{key} must be text, a number, true or false")
        if name in conf:
            raise KafkaConfError(f"{key} is given twice: {name} is another name of it")
        conf[name] = value
    return conf


def _try_out(conf: Conf) -> None:
    """Have librdkafka read it, in clients that know no broker and so connect to none."""
    from confluent_kafka import Consumer, KafkaException, Producer

    if str(conf.get("sasl.oauthbearer.token.endpoint.url", "")).startswith("https:") and not PROVIDERS_FILE.is_file():
        raise KafkaConfError(f"{PROVIDERS_FILE} must hold the certificates by which the provider of tokens is trusted")
    client = {**clients.common("", "sluice", _quiet, conf), "log_level": 0}
    try:
        Producer(clients.producer(client))
        Consumer(clients.consumer(client, "sluice", clients.membership(clients.DEFAULT_SESSION_S))).close()
    except KafkaException as error:
        raise KafkaConfError(error.args[0].str()) from None


_quiet = logging.getLogger("sluice.kafka_config.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False
