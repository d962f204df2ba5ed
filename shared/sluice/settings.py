"""The settings all services share, from the environment with the prefix SLUICE_."""

import logging
import os
import re
import secrets
import socket
import ssl
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from sluice.addresses import LOOPBACK, bare
from sluice.kafka_config import clients
from sluice.kafka_config.conf import VARIABLE as KAFKA_CONF
from sluice.kafka_config.conf import Conf, certificates_of, files_of, read_conf
from sluice.pravega_config.properties import PravegaConfigError
from sluice.pravega_config.translation import Translation
from sluice.security.contexts import ClientTls
from sluice.security.tls import (
    PLAIN,
    PROTOCOLS,
    Identity,
    counting,
    tls_in_words,
    watched_client,
    watched_identity,
)
from sluice.security.tokens import NO_EXPIRY, TokenSigner, signer_of
from sluice.security.validity import Validity
from sluice.security.watched import Watched, read_at_start
from sluice.validation import sentence

_KEY_STORE = "ssl.keystore.location"

S = TypeVar("S", bound=BaseSettings)

Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]
SecondsOrZero = Annotated[float, Field(ge=0)]
HostName = Annotated[str, AfterValidator(bare)]
Port = Annotated[int, Field(ge=0, le=65535)]


def _level(name: str) -> str:
    if name.upper() not in logging.getLevelNamesMapping():
        raise ValueError("not a level of logs: debug, info, warning or error")
    return name


class _PravegaSource(PydanticBaseSettingsSource):
    """Settings of Pravega's controller, behind ours. Raises PravegaConfigError."""

    def __call__(self) -> dict[str, Any]:
        given, fields = self.current_state, self.settings_cls.model_fields
        file, options = (str(given.get(name, "")) for name in ("pravega_config", "pravega_options"))
        if not file and not options:
            return {}
        translation = Translation.of(file, options, os.environ, given)
        return dict(translation.settings(fields, is_gateway="grpc_port" in fields))

    def get_field_value(self, _field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False


class ServiceSettings(BaseSettings):
    """One instance of a service. Addresses are host:port; the health port serves /livez, /readyz and /metrics.

    With the `host` localhost it listens where only this machine reaches it, with :: everywhere; both are of IPv4 and of
    IPv6, where the machine has them.
    The services `beside`, packages with commas between them, run in the same process, with its settings.
    `kafka_conf` is more of librdkafka's configuration, as JSON or as the path of a file with JSON; it may hold
    passwords. A member of a group that is gone is missed after `kafka_session_timeout_s`, or after 6 s if the broker
    allows no session as short as that.
    Records of the journal gather at the broker for `journal_gather_ms` before they are fetched; 0: each comes at once.
    About `warm_aggregates` streams, transactions and so on are held decoded, 4 KB each; the others are a few hundred
    bytes each until they are used.
    `archive` is a folder, or the URL of one on any file system that Hadoop knows, into which retention-spark writes
    what the journal holds; empty: there is no archive. All services must be given the same one.
    With `tls_certificate` and `tls_key`, PEM files, all that the service listens on is TLS, of `tls_protocols`.
    `store_tls` has it speak TLS to segment stores; `store_tls_authorities` is a PEM file with the certificates that it
    trusts, empty: those of the machine; their host names are verified if `store_tls_check_host`.
    `otlp_endpoint` is the base URL of a collector of traces (OTLP over HTTP); without one there are none.
    `token_key` is what tokens for segment stores are signed with, `token_key_file` a file that holds it and is followed
    when it changes; without either there are no tokens. Those of clients count for `token_ttl_s`; -1: for ever.
    `pravega_config` is a file with the settings of Pravega's controller, `pravega_options` arguments of Java with its
    system properties: what they say counts where a setting is not given by itself.
    `max_http_connections` bounds the connections to the health port; one more cuts the one that is idle longest.
    `max_header_bytes` bounds the headers of a call, those of gRPC included: credentials are in there.
    """

    model_config = SettingsConfigDict(env_prefix="SLUICE_")

    kafka_bootstrap: str = "127.0.0.1:9092"
    kafka_replication: Count = 1
    kafka_conf: SecretStr = SecretStr("")
    kafka_session_timeout_s: float = Field(default=1.5, ge=0.1, le=60)
    journal_gather_ms: int = Field(default=0, ge=0, le=1000)
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    zookeeper: str = "127.0.0.1:2181"
    cluster_name: str = "pravega-cluster"
    container_count: Count = 4
    partitions: Count = 16
    warm_aggregates: int = Field(default=10_000, ge=0)
    instance: str = ""
    beside: str = ""
    host: HostName = LOOPBACK
    health_port: Port = 10100
    log_level: Annotated[str, AfterValidator(_level)] = "info"
    archive: str = ""
    otlp_endpoint: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_protocols: str = PROTOCOLS[0]
    store_tls: bool = False
    store_tls_authorities: str = ""
    store_tls_check_host: bool = True
    token_key: SecretStr = SecretStr("")
    token_key_file: str = ""
    token_ttl_s: int = Field(default=600, ge=NO_EXPIRY)
    pravega_config: str = ""
    pravega_options: str = Field(default="", repr=False)
    max_http_connections: int = Field(default=1_000, ge=10)
    max_header_bytes: int = Field(default=16 * 1024, ge=1024)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings, file_secret_settings, _PravegaSource(settings_cls)

    def model_post_init(self, _context: Any) -> None:
        if not self.instance:
            self.instance = f"{socket.gethostname()}-{secrets.token_hex(3)}"

    @property
    def http_ports(self) -> tuple[int, ...]:
        """Where all that is served over HTTP is served."""
        return (self.health_port,)

    def security(self) -> dict[str, str]:
        """What is secured, and how, for the log; nothing secret. Raises KafkaConfError."""
        kafka = self.given_kafka_conf()
        protocol, mechanism = str(kafka.get("security.protocol", PLAIN)), str(kafka.get("sasl.mechanism", ""))
        return {
            "listens": self.tls_protocols if self.tls_certificate else PLAIN,
            "segment_stores": tls_in_words(self.store_tls, self.store_tls_check_host),
            "tokens": "signed" if self.token_key.get_secret_value() or self.token_key_file else "none",
            "kafka": f"{protocol} {mechanism}".strip(),
        }

    def identity(self) -> Watched[Identity] | None:
        """What the service shows of itself where it listens; None without TLS. Raises SecurityConfigError."""
        return watched_identity(self.tls_certificate, self.tls_key, self.tls_protocols)

    def store_client_tls(self) -> Watched[ssl.SSLContext] | None:
        """The context of connections to segment stores; None without TLS. Raises SecurityConfigError."""
        tls = ClientTls("SLUICE_STORE_TLS", self.store_tls_authorities, self.store_tls_check_host)
        return watched_client("segment stores", self.store_tls, tls)

    def kafka_files(self) -> Watched[None] | None:
        """What clients of Kafka are configured by, if anything; a password or a certificate may stand in a file.

        Raises KafkaConfError, and SecurityConfigError if a certificate does not count.
        """
        conf = self.given_kafka_conf()
        if not conf:
            return None
        return read_at_start(
            "files for Kafka", files_of(self.kafka_conf.get_secret_value()), partial(_kafka_validity, conf)
        )

    def token_signer(self, now_ms: Callable[[], int]) -> TokenSigner:
        """Raises SecurityConfigError."""
        return signer_of(self.token_key.get_secret_value(), self.token_key_file, self.token_ttl_s, now_ms)

    def given_kafka_conf(self) -> Conf:
        """What `kafka_conf` gives. Raises KafkaConfError."""
        return read_conf(self.kafka_conf.get_secret_value())

    def kafka_client(self) -> dict[str, Any]:
        """The librdkafka configuration that every client of the process starts from. Raises KafkaConfError."""
        logger = logging.getLogger("librdkafka")
        return clients.common(self.kafka_bootstrap, self.instance, logger, self.given_kafka_conf())


class PolicySettings(ServiceSettings):
    """What retention-spark decides by; an api-gateway is given the same, so that its what-if is about this system.

    A stream's retention is decided on with each report and every `retention_tick_s`, and it is truncated no more often
    than every `retention_pause_s`; it is not scaled within `scale_cooldown_s` of its last scale.
    """

    retention_tick_s: float = Field(default=60.0, gt=0)
    retention_pause_s: float = Field(default=1800.0, ge=0)
    scale_cooldown_s: float = Field(default=120.0, ge=0)


def _kafka_validity(conf: Conf, contents: Mapping[Path, bytes]) -> Validity | None:
    """That of the certificates which the configuration has or names. Raises SecurityConfigError."""
    certificates, store = certificates_of(conf, contents), Path(str(conf.get(_KEY_STORE, "")))
    if store in contents:
        from sluice.security.certificates import pem_of_key_store

        password = str(conf.get("ssl.keystore.password", ""))
        certificates[store] = pem_of_key_store(KAFKA_CONF, str(store), contents[store], password)
    return counting(KAFKA_CONF)(certificates) if certificates else None


def settings_of(kind: type[S], **given: Any) -> S:
    """The settings of the environment, behind those that are given.

    Ends the process with exit code 2 and a line on stderr for each wrong one.
    """
    prefix = str(kind.model_config.get("env_prefix", ""))
    try:
        return kind(**given)
    except ValidationError as error:
        wrongs = [
            sentence(dict(one), f"{prefix}{'_'.join(str(part) for part in one['loc'])}".upper())
            for one in error.errors()
        ]
    except SettingsError as error:
        # Of a structured setting that is no JSON only the text says which one it is.
        named = re.search(r'field "(\w+)"', str(error))
        wrongs = [f"{prefix}{named[1].upper()}: it must be JSON" if named else str(error)]
    except PravegaConfigError as error:
        wrongs = list(error.sentences)
    for wrong in wrongs:
        sys.stderr.write(f"setting {wrong}\n")
    raise SystemExit(2)
