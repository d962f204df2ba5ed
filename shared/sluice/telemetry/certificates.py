"""How long the certificates in use still count, for Prometheus. Gauges are set on the event loop."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from sluice.security.watched import Watched
from sluice.telemetry.metrics import CERTIFICATE_LEFT, CERTIFICATE_RENEWAL
from sluice.telemetry.scrape import on_scrape


def report_certificates(service: str, watched: Iterable[Watched[Any]]) -> None:
    """Have metrics say it of all of these that have certificates, those that are added later included."""
    on_scrape(f"certificates of {service}", partial(_publish, watched))


def _publish(watched: Iterable[Watched[Any]]) -> None:
    for one in watched:
        if one.validity is not None:
            CERTIFICATE_LEFT.labels(one.name).set(one.validity.left().total_seconds())
            CERTIFICATE_RENEWAL.labels(one.name).set(one.validity.renewal.total_seconds())
