"""What every service owes as a container, whatever it does: the last classes of each module of tests, in this order."""

import httpx
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from containers.lives import relocated
from containers.neighbours import Neighbours
from containers.published import check
from containers.service import ServiceContainer
from containers.surroundings import PARTITIONS
from harness import eventually
from sluice.catalog import examples
from sluice.catalog.examples import Example

SHOWS_S = 60.0

_WRITES_TO_ROOT = "import errno\ntry: open('/written', 'w')\nexcept OSError as e: print(errno.errorcode[e.errno])"


class ContainerContract:
    """When the service has done its work."""

    def test_runs_as_an_unprivileged_user_on_a_read_only_root(self, service: ServiceContainer) -> None:
        assert service.users() == {service.setting("Config", "User").partition(":")[0]}
        assert "0" not in service.users()
        assert service.exec(["python3", "-c", _WRITES_TO_ROOT]).output.decode().strip() == "EROFS"

    def test_tells_about_its_health(self, service: ServiceContainer) -> None:
        assert service.get("/livez").status_code == httpx.codes.OK
        eventually(lambda: service.get("/readyz").json()["ready"] is True, SHOWS_S, "it is ready")
        metrics = {family.name for family in text_string_to_metric_families(service.get("/metrics").text)}
        assert any(name.startswith("sluice_") for name in metrics)

    def test_writes_only_what_is_published(self, service: ServiceContainer, neighbours: Neighbours) -> None:
        written = neighbours.others()
        assert written
        for message in written:
            check(message, service.source, PARTITIONS)


class FollowerContract:
    """For those who follow the journal; a partition of it stands still afterwards."""

    def test_stops_where_the_journal_cannot_be_followed(
        self, service: ServiceContainer, neighbours: Neighbours
    ) -> None:
        """At a record of an unknown type and at one that cannot be applied. The other partitions are served."""
        records = examples.journal_records()
        unknown = examples.of_unknown_type(records[0])
        created = next(record for record in records if record.type == "StreamCreated")
        never_begun = (relocated(created, f"never-begun-{number}") for number in range(99))
        partition = neighbours.partition_of(unknown.key)
        inapplicable = next(record for record in never_begun if neighbours.partition_of(record.key) != partition)
        offsets = neighbours.send(*map(_unconditional, (unknown, inapplicable)))
        stopped_at = [f"partition {each.partition}: record at offset {each.offset} " for each in offsets]

        def stopped() -> bool:
            answer = service.get("/readyz")
            unavailable = answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
            return unavailable and all(each in answer.text for each in stopped_at)

        eventually(stopped, SHOWS_S, "the service says at which records of the journal it stopped")
        assert service.get("/livez").status_code == httpx.codes.OK


def _unconditional(record: Example) -> Example:
    """The record of the journal, without versions that it expects."""
    value = record.json()
    value["entries"][0]["expect"] = {}
    return msgspec.structs.replace(record, value=msgspec.json.encode(value))


class EndContract:
    """The last of each module: the service ends here."""

    def test_ends_in_time_on_a_signal(self, service: ServiceContainer) -> None:
        """A container that takes longer than `ENDS_S` is killed, which shows in its status."""
        ended = service.end()
        assert (ended.status, ended.out_of_memory) == (0, False), service.tail()
