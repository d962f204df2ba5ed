"""The services of Sluice, as programs of a local system.

A service is known here by its package, the number of its instances and its environment; nothing is imported from it.
Services start together with everything else and wait for what they need, so none names a part to start after.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sluice_local import security
from sluice_local.home import HOST, NAME
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings


@dataclass(frozen=True, slots=True)
class Service:
    """One kind of service."""

    name: str
    package: str
    count_field: str
    """The setting that holds the number of instances."""


ALLOCATOR = {
    "MALLOC_ARENA_MAX": "2",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_max=128:glibc.malloc.perturb=128",
}
"""As in deploy/images/runtime.Dockerfile, which says why."""

API_GATEWAY = Service("api-gateway", "api_gateway", "api_gateways")
RETENTION_SPARK = Service("retention-spark", "retention_spark", "retention_sparks")

SERVICES = (
    Service("stream-workflows", "stream_workflows", "stream_workflows"),
    Service("cluster-manager", "cluster_manager", "cluster_managers"),
    Service("txn-manager", "txn_manager", "txn_managers"),
    RETENTION_SPARK,
)
"""All but the gateway: they listen on nothing but a health port."""


def parts(settings: LocalSettings) -> Iterator[Part]:
    """Describe every instance of every service; of a small system the one process of all."""
    if settings.is_small:
        yield _gateway(settings, 0, _beside(settings))
        return
    for index in range(settings.api_gateways):
        yield _gateway(settings, index)
    port = settings.health_port
    for service in SERVICES:
        for index in range(getattr(settings, service.count_field)):
            yield _service(settings, service, index, port)
            port += 1


def _beside(settings: LocalSettings) -> dict[str, str]:
    """What the gateway of a small system does beside its own work."""
    return {
        "SLUICE_BESIDE": ",".join(service.package for service in SERVICES if service is not RETENTION_SPARK),
        "SLUICE_DECIDES_POLICIES": str(settings.retention_sparks > 0).lower(),
        # They would take a process of their own.
        "SLUICE_STATISTICS_MAX_WINDOWS": "0",
    }


def _gateway(settings: LocalSettings, index: int, more: Mapping[str, str] | None = None) -> Part:
    name = f"{API_GATEWAY.name}-{index}"
    grpc_port, rest_port, page_port = (
        first + index for first in (settings.grpc_port, settings.rest_port, settings.page_port)
    )
    return _part(
        settings,
        API_GATEWAY,
        name,
        Probe(ProbeKind.SERVICE, rest_port, security.shown(settings).authority, host=settings.grpc_published_host),
        address=_gateway_address(settings, grpc_port, page_port),
        claims=(
            PortClaim(grpc_port, name, f"SLUICE_GRPC_PORT (plus {index})"),
            PortClaim(rest_port, name, f"SLUICE_REST_PORT (plus {index})"),
            PortClaim(page_port, name, f"SLUICE_PAGE_PORT (plus {index})"),
        ),
        more={
            "SLUICE_GRPC_PORT": str(grpc_port),
            "SLUICE_GRPC_PUBLISHED_HOST": settings.published_host,
            "SLUICE_GRPC_PUBLISHED_PORT": str(grpc_port),
            "SLUICE_PAGE_PORT": str(page_port),
            **security.gateway_environment(settings),
            **(more or {}),
        },
    )


def _gateway_address(settings: LocalSettings, grpc_port: int, page_port: int) -> str:
    more = ""
    if settings.is_small:
        more = "; all services, policies without Spark" if settings.retention_sparks else "; all services, no policies"
    if settings.secure:
        return f"tls://{settings.published(grpc_port)}, page https://{settings.published(page_port)}/ui/{more}"
    return f"grpc {settings.published(grpc_port)}, page http://{settings.published(page_port)}/ui/{more}"


def _service(settings: LocalSettings, service: Service, index: int, port: int) -> Part:
    name = f"{service.name}-{index}"
    claims = (PortClaim(port, name, f"SLUICE_HEALTH_PORT (plus {port - settings.health_port})"),)
    more = _spark(settings, name) if service is RETENTION_SPARK else {}
    probe = Probe(ProbeKind.SERVICE, port, security.authority(settings))
    return _part(settings, service, name, probe, address=_health_address(settings, port), claims=claims, more=more)


def _health_address(settings: LocalSettings, port: int) -> str:
    return f"https://{NAME}:{port}" if settings.secure else f"http://{HOST}:{port}"


def _spark(settings: LocalSettings, name: str) -> dict[str, str]:
    """What Spark needs: its jars, and folders for what must stay and for what need not."""
    return {
        "SLUICE_SPARK_JARS": str(settings.jars_dir / "spark"),
        "SLUICE_SPARK_LOCAL": str(settings.data_dir / name / "local"),
        "SLUICE_SPARK_CHECKPOINTS": str(settings.decisions_dir / "checkpoints"),
        "SLUICE_SPARK_HISTORY": str(settings.decisions_dir / "history"),
    }


def _part(
    settings: LocalSettings,
    service: Service,
    name: str,
    probe: Probe,
    *,
    address: str,
    claims: tuple[PortClaim, ...],
    more: dict[str, str],
) -> Part:
    return Part(
        name=name,
        command=(sys.executable, "-m", service.package),
        folder=settings.data_dir / name,
        log=settings.logs_dir / f"{name}.log",
        address=address,
        claims=claims,
        probe=probe,
        stop_rank=StopRank.SERVICE,
        may_be_late=service is RETENTION_SPARK,
        environment={
            "SLUICE_KAFKA_BOOTSTRAP": settings.kafka_address,
            "SLUICE_REDIS_URL": settings.redis_address,
            "SLUICE_ZOOKEEPER": settings.zookeeper_address,
            "SLUICE_CLUSTER_NAME": settings.cluster_name,
            "SLUICE_CONTAINER_COUNT": str(settings.container_count),
            "SLUICE_PARTITIONS": str(settings.partitions),
            "SLUICE_INSTANCE": name,
            "SLUICE_HOST": settings.host,
            "SLUICE_HEALTH_PORT": str(probe.port),
            "PYTHONUNBUFFERED": "1",
            **ALLOCATOR,
            **security.service_environment(settings),
            **({"SLUICE_KAFKA_REPLICATION": str(settings.kafka_replicas)} if settings.kafka_bootstrap is None else {}),
            **more,
        },
    )
