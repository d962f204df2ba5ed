"""A system whose Kafka is a cluster of three brokers, as in production: every topic on each, two must have a record.

The first one is the embedded broker, and the cluster's controller; it has to stay. The others may be killed. One at a
time: what only one of three has is not acknowledged.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.system import System, claimed_ports
from sluice_local import java, kafka
from sluice_local.home import HOST
from sluice_local.part import Part
from sluice_local.ports import PortClaim
from support.ports import free_ports

BROKERS = 3
_REPLICATED = {
    "default.replication.factor": BROKERS,
    "min.insync.replicas": BROKERS - 1,
    "offsets.topic.replication.factor": BROKERS,
    "transaction.state.log.replication.factor": BROKERS,
    "transaction.state.log.min.isr": BROKERS - 1,
}


def have_brokers(system: System) -> dict[str, int]:
    """Give a system that does not run yet its cluster; the brokers that may be killed, with their node ids."""
    system.configure_kafka(_REPLICATED)
    followers = dict(enumerate(free_ports(BROKERS - 1, claimed_ports(system.settings)), start=2))
    bootstrap = ",".join([system.kafka_bootstrap, *(f"{HOST}:{port}" for port in followers.values())])
    for name in system.names:
        system.configure(name, {"SLUICE_KAFKA_BOOTSTRAP": bootstrap, "SLUICE_KAFKA_REPLICATION": str(BROKERS)})
    parts = [_follower(system, node, port) for node, port in followers.items()]
    # Topics that are made while only the first one is there have all their leaders on it.
    system.services_start_after(part.name for part in parts)
    for part in parts:
        system.add(part)
    return {part.name: node for part, node in zip(parts, followers, strict=True)}


def _follower(system: System, node: int, port: int) -> Part:
    """A broker that is no controller, formatted for the cluster that is there."""
    first, jars = kafka.part(system.settings), system.settings.jars_dir
    name = f"{kafka.NAME}-{node}"
    folder = system.settings.data_dir / name
    config, alike = folder / "server.properties", kafka.server_properties(system.settings)
    listener = str(alike["advertised.listeners"]).replace(first.address, f"{HOST}:{port}")
    properties = {
        **alike,
        **_REPLICATED,
        "process.roles": "broker",
        "node.id": node,
        "listeners": listener,
        "advertised.listeners": listener,
        "log.dirs": str(folder / "log"),
    }
    archive = java.archive(jars, kafka.NAME)
    cluster_id = partial(_cluster_id, first.folder / "log" / "meta.properties")
    return replace(
        first,
        name=name,
        command=(*first.command[:-1], str(config)),
        folder=folder,
        log=first.log.with_name(f"{name}.log"),
        address=f"{HOST}:{port}",
        claims=(PortClaim(port, name, "a free port"),),
        probe=replace(first.probe, port=port),
        starts_after=(kafka.NAME,),
        files={config: java.properties(properties)},
        prepare=partial(kafka.format_once, jars / kafka.NAME, archive, config, folder / "log", cluster_id),
    )


def _cluster_id(meta: Path) -> str:
    (found,) = re.findall(r"^cluster\.id=(.+)$", meta.read_text(), re.MULTILINE)
    return str(found)
