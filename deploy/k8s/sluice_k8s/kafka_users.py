"""The users of Kafka as Strimzi's resources, with the rights that `sluice.kafka.access` gives them."""

from itertools import groupby
from typing import Any

import yaml

from sluice.kafka.access import Right, rights, user_of
from sluice_k8s.manifests import FOLDER, Manifest

PATH = FOLDER / "components" / "kafka-users" / "users.yaml"
_HEADER = "# Made from shared/sluice/kafka/access.py by `make k8s-render`; not to be edited.\n"


class _Plain(yaml.SafeDumper):
    """Lists are set in, as in the other manifests."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - the interface of the library
        return super().increase_indent(flow, False)


def text() -> str:
    """The file at `PATH`."""
    return _HEADER + yaml.dump_all(map(_user, rights().items()), Dumper=_Plain, sort_keys=False, width=120)


def _user(item: tuple[str, tuple[Right, ...]]) -> Manifest:
    name, granted = item
    acls = [
        _acl(kind, resource, is_prefix, same)
        for (kind, resource, is_prefix), same in groupby(sorted(granted, key=_resource), key=_resource)
    ]
    password = {"valueFrom": {"secretKeyRef": {"name": f"sluice-kafka-{name}", "key": "password"}}}
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaUser",
        "metadata": {"name": user_of(name), "labels": {"strimzi.io/cluster": "kafka"}},
        "spec": {
            "authentication": {"type": "scram-sha-512", "password": password},
            "authorization": {"type": "simple", "acls": acls},
        },
    }


def _resource(right: Right) -> tuple[str, str, bool]:
    return right.kind.value, right.name, right.is_prefix


def _acl(kind: str, name: str, is_prefix: bool, same: Any) -> Manifest:
    pattern = "prefix" if is_prefix else "literal"
    return {
        "resource": {"type": kind, "name": name, "patternType": pattern},
        "operations": sorted(right.operation.value for right in same),
    }
