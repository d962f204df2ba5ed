"""A Kafka that knows its users and lets each do what it has a right to; the tests have a listener without bounds.

It wants TLS and a password, and has Kafka's own bounds of sessions.

Its authorizer writes down each decision with the rule that it follows, so a test sees which rights were used.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from harness import System
from sluice.kafka.access import Right, user_of
from support.secured_kafka import SecuredListener

_DEADLINE_S = 60.0
_AUDIT = """\
logger.audit.name = kafka.authorizer.logger
logger.audit.level = debug
"""
_DECISION = re.compile(
    r"Principal = User:sluice-(?P<user>\S+) is (?P<outcome>\w+) operation = (?P<operation>\w+) from host = \S+ "
    r"on resource = (?P<kind>\w+):\w+:(?P<name>\S+) for request = (?P<request>\w+)"
)
_RULE = re.compile(r"resourceType=(\w+), resourceName=([^,]+), patternType=(\w+), .*operation=(\w+)")


class Used(NamedTuple):
    """A right that Kafka let something pass by."""

    user: str
    operation: str
    kind: str
    name: str
    is_prefix: bool


class GuardedKafka:
    """The broker of a system, which does not run yet. `users` are the services and others, without `sluice-`."""

    def __init__(self, system: System, users: Iterable[str]) -> None:
        self._system = system
        self._listener = SecuredListener(system, "guarded")
        system.configure_kafka(
            {
                **self._listener.broker(map(user_of, users)),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
            },
            log4j=_AUDIT,
        )

    def environment(self, user: str) -> Mapping[str, str]:
        """What makes a process that user."""
        return self._listener.environment(user_of(user))

    def grant(self, user: str, rights: Iterable[Right]) -> None:
        """The broker runs."""
        bindings = [_binding(user, right) for right in rights]
        # It must live until it has answered.
        admin = self._admin()
        for granted in admin.create_acls(bindings, request_timeout=_DEADLINE_S).values():
            granted.result()

    def revoke(self, user: str, right: Right) -> None:
        one, admin = _binding(user, right), self._admin()
        what = one.restype, one.name, one.resource_pattern_type
        wanted = AclBindingFilter(*what, one.principal, one.host, one.operation, one.permission_type)
        (revoked,) = admin.delete_acls([wanted], request_timeout=_DEADLINE_S).values()
        assert len(revoked.result()) == 1

    def used(self) -> set[Used]:
        """The rights that something was let pass by."""
        found = set()
        for decision in self._decisions("Allowed"):
            rule = _RULE.search(decision.string)
            assert rule is not None, decision.string
            kind, name, pattern, operation = rule.groups()
            is_prefix = pattern == "PREFIXED"
            found.add(Used(decision["user"], _spelled(operation), kind.lower(), name, is_prefix))
        return found

    def denied(self) -> set[tuple[str, str, str]]:
        """User, operation and name of what was refused."""
        return {(d["user"], _spelled(d["operation"]), d["name"]) for d in self._decisions("Denied")}

    def _decisions(self, outcome: str) -> list[re.Match[str]]:
        lines = self._log().read_text(errors="replace").splitlines()
        found = (_DECISION.search(line) for line in lines)
        return [decision for decision in found if decision is not None and decision["outcome"] == outcome]

    def _log(self) -> Path:
        return self._system.log("kafka")

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._system.kafka_bootstrap, "log_level": 3})


def _spelled(operation: str) -> str:
    """As `Operation` has it, of what the log says: Read of READ, DescribeConfigs of DESCRIBE_CONFIGS."""
    return "".join(part.capitalize() for part in operation.split("_"))


def _binding(user: str, right: Right) -> AclBinding:
    return AclBinding(
        ResourceType[right.kind.name],
        right.name,
        ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL,
        f"User:{user_of(user)}",
        "*",
        AclOperation[right.operation.name],
        AclPermissionType.ALLOW,
    )
