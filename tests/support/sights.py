"""What a system says of its data plane, in every place where users look."""

import re
from dataclasses import dataclass
from typing import Any

import httpx
from typer.testing import CliRunner

from harness import System
from sluice_cli.main import app

_SILENT = re.compile(r'^sluice_silent_containers\{store="([^"]*)"\} ([\d.]+)$', re.MULTILINE)


@dataclass
class Sight:
    """`alerts`: how many containers each store leaves silent, as alerts see it. `lines`: what the CLI prints."""

    health: dict[str, Any]
    readiness: dict[str, Any]
    is_served: bool
    overview: dict[str, Any]
    stream: dict[str, Any]
    alerts: dict[str, int]
    lines: dict[str, str]

    @property
    def silent(self) -> set[str]:
        """The stores whose containers do not answer; `none` for containers that none runs."""
        return {store for store, many in self.alerts.items() if many}

    def signs(self) -> dict[str, bool]:
        """Of each place, whether it says that all is well with the containers."""
        return {
            "health": self.health["status"] == "UP" and self.health["readiness"],
            "component": self.health["children"]["segment-stores"]["status"] == "UP",
            "readiness": self.readiness["level"] != "bad" and not self.readiness["outage"],
            "overview": self.overview["level"] != "bad" and self.overview["ready"],
            "stream": "unreachable" not in self.stream,
            "alerts": not any(self.alerts.values()),
        }


def look(system: System, stream: str) -> Sight:
    """Look at the first gateway; `stream` is scope/name."""
    scope, name = stream.split("/")
    with httpx.Client(base_url=system.rest_url, timeout=60, trust_env=False) as http:
        readiness = http.get("/readyz")
        return Sight(
            health=http.get("/v1/health").json(),
            readiness=readiness.json(),
            is_served=readiness.status_code == 200,
            overview=http.get("/sluice/v1/overview").json(),
            stream=http.get(f"/sluice/v1/scopes/{scope}/streams/{name}").json(),
            alerts={store: int(float(many)) for store, many in _SILENT.findall(http.get("/metrics").text)},
            lines={
                line: CliRunner().invoke(app, line.split(), env={"SLUICE_API": system.rest_url}).stdout
                for line in ("overview", "container list", f"stream show {stream}")
            },
        )
