"""How the processes of a system come to use links: each is given another address of a server than the others have.

Kafka tells its clients where the brokers are, so a broker has one more listener for each link. Plain functions over
the descriptions of processes that do not run yet.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.links import Links
from harness.relay import Link
from sluice_local import kafka, segment_store
from sluice_local.home import HOST
from sluice_local.part import Part

CLIENT = "client"
"""What is no process of the system: whatever calls a gateway."""
LINKS = (
    (CLIENT, "api-gateway"),
    *((service, "kafka") for service in ("api-gateway", "stream-workflows", "txn-manager", "cluster-manager")),
    ("txn-manager", "redis"),
    ("stream-workflows", "segment-store"),
    ("segment-store", "zookeeper"),
    ("cluster-manager", "zookeeper"),
)
"""All that a system of one site may break into, for its `links`."""
_DETOUR, _FOLDER = "SLUICE_TEST_DETOUR", Path(__file__).parent / "detour"


def is_called(part: str, name: str) -> bool:
    """Whether a process has the name, or is of the kind that has it."""
    return part == name or re.fullmatch(re.escape(name) + r"-\d+", part) is not None


def join(links: Links, parts: dict[str, Part], client: str, server: str, free_port: Callable[[], int]) -> None:
    """Have a client's process, if it is one of the parts, use a link of its own to a server."""
    port = parts[server].claims[0].port
    of_broker = is_called(server, kafka.NAME)
    link = links.add(client, server, port, free_port() if of_broker else port)
    if of_broker:
        # A broker knows of another one's leadership only what the same listener of that one may tell.
        parts[server] = _with_listener(parts[server], link, re.sub(r"\W", "_", client).upper())
    if client in parts:
        parts[client] = _calling(parts[client], link, by_detour=is_called(server, segment_store.KIND))


def _calling(part: Part, link: Link, *, by_detour: bool) -> Part:
    usual = f"{HOST}:{link.port}"
    environment = {name: value.replace(usual, link.address) for name, value in part.environment.items()}
    if by_detour:
        known = json.loads(environment.get(_DETOUR, "{}"))
        environment |= {
            _DETOUR: json.dumps({**known, usual: (link.listens, link.port)}),
            "PYTHONPATH": str(_FOLDER),
        }
    files = {path: text.replace(usual, link.address) for path, text in part.files.items()}
    return replace(part, environment=environment, files=files)


def _with_listener(broker: Part, link: Link, name: str) -> Part:
    more = {
        "listeners": f"{name}://{HOST}:{link.target_port}",
        "advertised.listeners": f"{name}://{link.address}",
        "listener.security.protocol.map": f"{name}:PLAINTEXT",
    }
    files = dict(broker.files)
    for path, text in files.items():
        for key, value in more.items():
            text = re.sub(rf"^({re.escape(key)}=.*)$", rf"\1,{value}", text, flags=re.MULTILINE)
        files[path] = text
    return replace(broker, files=files)
