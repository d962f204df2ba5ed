"""All metrics of Sluice, as they are declared, and as they appear in what Prometheus reads."""

from collections.abc import Mapping
from types import ModuleType

import msgspec
from prometheus_client import Counter, Gauge, Histogram, Info
from prometheus_client.metrics import MetricWrapperBase

import api_gateway.metrics
import cluster_manager.metrics
import retention_spark.metrics
import sluice.telemetry.metrics
import stream_workflows.metrics
import txn_manager.metrics
import txn_manager.wheel.metrics

MODULES: Mapping[str, tuple[ModuleType, ...]] = {
    "All services": (sluice.telemetry.metrics,),
    "api-gateway": (api_gateway.metrics,),
    "stream-workflows": (stream_workflows.metrics,),
    "txn-manager": (txn_manager.metrics, txn_manager.wheel.metrics),
    "cluster-manager": (cluster_manager.metrics,),
    "retention-spark": (retention_spark.metrics,),
}
_KINDS: Mapping[type, str] = {Counter: "counter", Gauge: "gauge", Histogram: "histogram", Info: "info"}
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "info": ("_info",),
}
OF_PROMETHEUS: Mapping[str, frozenset[str]] = {
    "up": frozenset(),
    "process_cpu_seconds_total": frozenset(),
    "process_resident_memory_bytes": frozenset(),
}
"""What is used beside ours: Prometheus' own sign of life, and two that its client has for every process."""
TARGET_LABELS = frozenset({"instance", "job"})


class Declared(msgspec.Struct, frozen=True):
    """`name` as in the exposition, without what a histogram's samples end with."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


def declared() -> dict[str, list[Declared]]:
    """By service, in the order of the code."""
    return {service: [d for module in modules for d in _of(module)] for service, modules in MODULES.items()}


def _of(module: ModuleType) -> list[Declared]:
    found = [m for m in vars(module).values() if isinstance(m, MetricWrapperBase)]
    return [_declared(metric) for metric in found]


def _declared(metric: MetricWrapperBase) -> Declared:
    kind = _KINDS[type(metric)]
    ending = "" if kind == "histogram" else _ENDINGS[kind][0]
    labels = ("name", "member", "version") if kind == "info" else tuple(metric._labelnames)
    (described,) = metric.describe()
    return Declared(described.name + ending, kind, labels, described.documentation)


def samples() -> dict[str, frozenset[str]]:
    """Every sample's name with its labels, beside those that Prometheus adds."""
    found = dict(OF_PROMETHEUS)
    for each in (d for some in declared().values() for d in some):
        endings = _ENDINGS["histogram"] if each.kind == "histogram" else ("",)
        for ending in endings:
            labels = {*each.labels, "le"} if ending == "_bucket" else set(each.labels)
            found[each.name + ending] = frozenset(labels)
    return found
