"""Rights in Kafka follow from the declaration of the topics, and from the names of groups."""

import pytest

from sluice.kafka.access import MEMBERS, Kind, Operation, rights
from sluice.kafka.topics import DEAD_LETTERS, JOURNAL, REPLAYABLE, STATISTICS, STATISTICS_GROUP, TOPICS, TRIMMED

RIGHTS = rights()
SERVICES = [name for name in RIGHTS if name not in ("keda", "operator")]


def may(user: str, operation: Operation, kind: Kind = Kind.TOPIC) -> set[str]:
    """Names, a prefix with an asterisk."""
    found = (r for r in RIGHTS[user] if (r.operation, r.kind) == (operation, kind))
    return {f"{right.name}{'*' if right.is_prefix else ''}" for right in found}


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_reads_and_writes_the_topics_that_name_it(service: str) -> None:
    searched = {t.name for t in TOPICS} if service == "console" else set()
    assert may(service, Operation.READ) == {t.name for t in TOPICS if service in t.read_by} | searched
    replayed = {t.name for t in REPLAYABLE} if service == "console" else set()
    assert may(service, Operation.WRITE) == {t.name for t in TOPICS if service in t.written_by} | replayed


def test_a_gateway_for_clients_alone_may_less_than_the_console() -> None:
    """So a gateway that serves both needs the rights of the console."""
    assert set(RIGHTS["api-gateway"]) < set(RIGHTS["console"])
    assert DEAD_LETTERS.name not in may("api-gateway", Operation.READ) | may("api-gateway", Operation.WRITE)


def test_only_one_service_makes_topics_and_removes_records() -> None:
    assert {user for user in RIGHTS if may(user, Operation.CREATE)} == {"cluster-manager"}
    assert {user: names for user in RIGHTS if (names := may(user, Operation.DELETE))} == {
        "cluster-manager": {topic.name for topic in TRIMMED}
    }


def test_a_gateway_cannot_write_what_is_true() -> None:
    for user in ("api-gateway", "console"):
        assert JOURNAL.name not in may(user, Operation.WRITE)


def test_nothing_is_replayed_into_the_journal_or_the_dead_letters() -> None:
    assert not {JOURNAL, DEAD_LETTERS, *TRIMMED} & {*REPLAYABLE}


def test_the_groups_of_members_begin_with_the_name_of_their_service() -> None:
    groups = {STATISTICS_GROUP: STATISTICS.read_by} | {topic.group: topic.read_by for topic in TOPICS if topic.group}
    of_service = {group: [s for s in readers if group.startswith(s)] for group, readers in groups.items()}
    assert sorted({service for (service,) in of_service.values()}) == sorted(MEMBERS)
    for service in MEMBERS:
        assert may(service, Operation.READ, Kind.GROUP) == {f"{service}*"}


def test_people_see_what_waits_for_each_service() -> None:
    """`kafka-consumer-groups.sh --all-groups` leaves out what they may not see, and says so nowhere."""
    assert {f"{service}*" for service in MEMBERS} <= may("operator", Operation.DESCRIBE, Kind.GROUP)


def test_people_and_the_autoscaler_write_nothing() -> None:
    for user in ("keda", "operator"):
        assert {right.operation for right in RIGHTS[user]} <= {Operation.READ, Operation.DESCRIBE}
