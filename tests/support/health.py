"""What a service says about itself over HTTP."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from harness import System


def readiness(system: System, name: str) -> tuple[int, str]:
    """The status of /readyz and its text."""
    answer = httpx.get(f"{system.health_url(name)}/readyz", timeout=5)
    return answer.status_code, answer.text


def metric(system: System, name: str, sample: str) -> float:
    """The sum of a metric's samples over all labels; 0 if it has none."""
    text = httpx.get(f"{system.health_url(name)}/metrics", timeout=5).text
    families = text_string_to_metric_families(text)
    return sum(s.value for family in families for s in family.samples if s.name == sample)
