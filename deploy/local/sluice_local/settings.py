"""The settings of a local system, in one class.

Everything that can be changed is changed through the environment; no other module looks at it. An instance is frozen
once made, so any thread may read it.
"""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from sluice.addresses import LOOPBACK, address_of, bare
from sluice.validation import form
from sluice_local import home as state_folder
from sluice_local.home import HOST, NAME

Port = Annotated[int, Field(ge=1, le=65535)]
CACHE_SIZE = "pravegaservice.cache.size.max"
Count = Annotated[int, Field(ge=0, le=64)]
HostName = Annotated[str, AfterValidator(bare)]


def variable_of(field: str) -> str:
    """Return the environment variable of a field."""
    plain = ("segment_stores", "kafka_brokers", "secure", "profile")
    return field.upper() if field in plain else f"SLUICE_{field.upper()}"


def _parsed(value: object) -> object:
    """The object of which a variable has the JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"it must be JSON: {error}") from None


def _property_text(value: object) -> object:
    """A JSON number or truth value, as a properties file has it."""
    return json.dumps(value) if isinstance(value, int | float) else value


def _without_memory(options: dict[str, str]) -> dict[str, str]:
    if CACHE_SIZE in options:
        raise ValueError(f"{CACHE_SIZE} follows from SLUICE_SEGMENT_STORE_MEMORY_MIB: set that instead")
    return options


PropertyText = Annotated[str, BeforeValidator(_property_text)]


_COUNTS_OF_SERVICES = ("api_gateways", "stream_workflows", "cluster_managers", "txn_managers", "retention_sparks")
StoreOptions = Annotated[dict[str, PropertyText], NoDecode, BeforeValidator(_parsed), AfterValidator(_without_memory)]


class Profile(StrEnum):
    """What a system is for."""

    FULL = "full"
    """Each service by itself, policies decided on Spark."""
    SMALL = "small"
    """All services in one process, which decides by policies, too; Java programs with little memory."""


class LocalSettings(BaseSettings):
    """One local system. Environment names are the field names in capitals behind `SLUICE_`.

    `SEGMENT_STORES`, `KAFKA_BROKERS`, `SECURE` and `PROFILE` are without it.
    """

    model_config = SettingsConfigDict(
        env_prefix="SLUICE_", env_ignore_empty=True, frozen=True, populate_by_name=True, extra="forbid"
    )

    home: Path = Field(default_factory=state_folder.default_home)
    """The one folder with everything the system writes."""
    jars: Path | None = None
    """Where the jars are; inside `home` if not given."""

    profile: Profile = Field(default=Profile.FULL, validation_alias=AliasChoices("profile", "PROFILE"))
    """How much runs; the data are the same."""
    secure: bool = Field(default=False, validation_alias=AliasChoices("secure", "SECURE"))
    """Whether everything asks who it talks to: TLS, passwords, tokens. Such a system has data of its own."""

    host: HostName = LOOPBACK
    """Where the services listen, and segment stores that are published: see ServiceSettings."""
    grpc_published_host: HostName = ""
    """What clients know gateways and segment stores by; empty: what this machine calls itself."""

    kafka_bootstrap: str | None = None
    """Address of a Kafka to use; if given, none is embedded."""
    kafka_brokers: Annotated[
        int, Field(ge=1, le=9, validation_alias=AliasChoices("kafka_brokers", "KAFKA_BROKERS"))
    ] = 1
    """Embedded brokers, each a controller as well; fixed for as long as the data exist."""
    redis_url: str | None = None
    """Address of a Redis to use; if given, none is embedded."""
    zookeeper: str | None = None
    """Address of a ZooKeeper to use; if given, none is embedded."""

    segment_stores: Count = Field(default=1, validation_alias=AliasChoices("segment_stores", "SEGMENT_STORES"))
    """Embedded segment stores; 0 starts neither a segment store nor a bookie."""
    segment_store_memory_mib: Annotated[int, Field(ge=512, le=1024 * 1024)] | None = None
    """Memory of each embedded segment store: one half is its heap, one quarter its cache, one quarter its buffers.

    If not given 1024, or 512 in a small system.
    """
    segment_store_options: StoreOptions = {}
    """More of the segment stores' own settings, by their full names; in the environment as JSON."""
    api_gateways: Count = 1
    stream_workflows: Count = 1
    cluster_managers: Count = 1
    txn_managers: Count = 1
    retention_sparks: Annotated[int, Field(ge=0)] = 1
    """One decides; the others stand by, without a JVM."""

    kafka_port: Port = 9092
    """Port of the first broker; the others have every second port behind it."""
    kafka_controller_port: Port = 9093
    """The same of the controllers."""
    redis_port: Port = 6379
    zookeeper_port: Port = 2181
    bookie_port: Port = 3181
    segment_store_port: Port = 12345
    """Port of the first segment store; the others follow."""
    grpc_port: Port = 9090
    """gRPC port of the first api-gateway; the others follow."""
    rest_port: Port = 10080
    """REST and health port of the first api-gateway; the others follow."""
    page_port: Port = 10090
    """Where browsers reach the first api-gateway, for they refuse port 10080; the others follow."""
    health_port: Port = 10100
    """Health port of the first of all other service instances; the others follow in the order they are listed."""

    cluster_name: Annotated[str, Field(pattern=form(r"^[A-Za-z0-9_.-]+$", "letters, digits and ._-"))] = (
        "pravega-cluster"
    )
    container_count: Annotated[int, Field(ge=1, le=1024)] = 4
    partitions: Annotated[int, Field(ge=1, le=1024)] = 8

    start_timeout_s: Annotated[float, Field(gt=0)] = 90.0
    """When for so long no part became ready, or lacks something new, those that are not ready have failed."""
    stop_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    """A part that has not ended by then is killed."""

    @field_validator(*_COUNTS_OF_SERVICES)
    @classmethod
    def _one_of_each(cls, count: int, info: ValidationInfo) -> int:
        """None of retention-spark is a system that decides by no policies."""
        if info.data.get("profile") is Profile.SMALL:
            if count > 1:
                raise ValueError("it must be at most 1 with PROFILE=small: all services are in one process")
            if count == 0 and info.field_name != "retention_sparks":
                raise ValueError("it must be 1 with PROFILE=small: all services are in one process")
        return count

    @property
    def is_small(self) -> bool:
        """Whether it is for a small machine."""
        return self.profile is Profile.SMALL

    @property
    def store_memory_mib(self) -> int:
        """Memory of each embedded segment store."""
        return self.segment_store_memory_mib or (512 if self.is_small else 1024)

    @property
    def jars_dir(self) -> Path:
        """The folder that holds one folder of jars per program."""
        return (self.jars or self.home / "jars").absolute()

    @property
    def data_dir(self) -> Path:
        """The folder that holds one folder of data per part."""
        return (self.home / ("secured-data" if self.secure else "data")).absolute()

    @property
    def security_dir(self) -> Path:
        """The folder that holds certificates, keys and passwords of a secured system."""
        return (self.home / "security").absolute()

    @property
    def published_host(self) -> str:
        """The name, or address, that clients are given. Those written in Rust find no addresses in certificates."""
        return self.grpc_published_host or (NAME if self.secure else HOST)

    def published(self, port: int) -> str:
        """A port as clients are given it."""
        return address_of(self.published_host, port)

    @property
    def decisions_dir(self) -> Path:
        """The folder that holds where the streaming queries stand, and the history of their decisions."""
        return self.data_dir / "retention-spark"

    @property
    def logs_dir(self) -> Path:
        """The folder that holds one log file per part."""
        return state_folder.logs_dir(self.home)

    @property
    def run_dir(self) -> Path:
        """The folder that tells which processes run."""
        return state_folder.run_dir(self.home)

    @property
    def kafka_address(self) -> str:
        """Bootstrap servers, embedded or not."""
        return self.kafka_bootstrap or ",".join(f"{HOST}:{port}" for port in self.kafka_ports)

    @property
    def kafka_ports(self) -> range:
        """Those of the embedded brokers."""
        return range(self.kafka_port, self.kafka_port + 2 * self.kafka_brokers, 2)

    @property
    def kafka_replicas(self) -> int:
        """On how many embedded brokers each partition is."""
        return min(3, self.kafka_brokers)

    @property
    def zookeeper_address(self) -> str:
        """ZooKeeper's connect string, embedded or not."""
        return self.zookeeper or f"{HOST}:{self.zookeeper_port}"

    @property
    def redis_address(self) -> str:
        """Redis' URL, embedded or not."""
        return self.redis_url or f"redis://{HOST}:{self.redis_port}/0"
