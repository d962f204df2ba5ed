"""What a service says about itself over HTTP."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from harness import System, eventually


def readiness(system: System, name: str) -> tuple[int, str]:
    """The status of /readyz and its text."""
    answer = httpx.get(f"{system.health_url(name)}/readyz", timeout=60)
    return answer.status_code, answer.text


def await_ready(system: System, name: str, deadline_s: float = 60.0) -> None:
    """Wait until a service calls itself ready; for a moment it may not, where the machine stood still."""

    def ready() -> bool:
        status, text = readiness(system, name)
        assert status == httpx.codes.OK, text
        return True

    eventually(ready, deadline_s, f"{name} is ready")


def metric(system: System, name: str, sample: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels; 0 if it has none."""
    text = httpx.get(f"{system.health_url(name)}/metrics", timeout=60).text
    families = text_string_to_metric_families(text)
    return sum(
        s.value
        for family in families
        for s in family.samples
        if s.name == sample and labels.items() <= s.labels.items()
    )
