"""All parts of one local system, as its settings ask for. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from sluice_local import bookie, kafka, redis, segment_store, services, zookeeper
from sluice_local.part import Part
from sluice_local.probes import ProbeKind
from sluice_local.settings import LocalSettings


def parts_of(settings: LocalSettings) -> list[Part]:
    """Return the descriptions of everything to start: nothing for what the settings give an address of."""
    parts: list[Part] = []
    if settings.kafka_bootstrap is None:
        parts.extend(kafka.parts(settings))
    if settings.zookeeper is None:
        parts.append(zookeeper.part(settings))
    if settings.redis_url is None:
        parts.append(redis.part(settings))
    if settings.segment_stores:
        parts.append(bookie.part(settings, tuple(part.name for part in parts if part.name == zookeeper.NAME)))
        parts.extend(segment_store.part(settings, index, (bookie.NAME,)) for index in range(settings.segment_stores))
    # Topics that are made while some brokers are still missing would have all their leaders on the others.
    brokers = tuple(part.name for part in parts if part.probe.kind is ProbeKind.KAFKA)
    first = brokers if len(brokers) > 1 else ()
    parts.extend(replace(part, starts_after=first) for part in services.parts(settings))
    return _late_ones_last(parts)


def _late_ones_last(parts: Sequence[Part]) -> list[Part]:
    """What may be late starts when all else is ready: until then the processors are for what clients wait for."""
    needed = tuple(part.name for part in parts if not part.may_be_late)
    return [replace(part, starts_after=needed) if part.may_be_late else part for part in parts]
