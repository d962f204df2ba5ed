"""What every service owes as a container, whatever it does: the last classes of each module of tests, in this order."""

import httpx
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from containers.neighbours import Neighbours
from containers.published import check
from containers.service import ENDS_S, ServiceContainer
from containers.surroundings import PARTITIONS
from harness import eventually
from sluice.catalog import examples

SHOWS_S = 30.0

_WRITES_TO_ROOT = "import errno\ntry: open('/written', 'w')\nexcept OSError as e: print(errno.errorcode[e.errno])"


class ContainerContract:
    """When the service has done its work."""

    def test_runs_as_an_unprivileged_user_on_a_read_only_root(self, service: ServiceContainer) -> None:
        assert service.users() == {service.setting("Config", "User").partition(":")[0]}
        assert "0" not in service.users()
        assert service.exec(["python3", "-c", _WRITES_TO_ROOT]).output.decode().strip() == "EROFS"

    def test_tells_about_its_health(self, service: ServiceContainer) -> None:
        assert service.get("/livez").status_code == httpx.codes.OK
        ready = service.get("/readyz")
        assert ready.status_code == httpx.codes.OK and ready.json()["ready"] is True
        metrics = {family.name for family in text_string_to_metric_families(service.get("/metrics").text)}
        assert any(name.startswith("sluice_") for name in metrics)

    def test_writes_only_what_is_published(self, service: ServiceContainer, neighbours: Neighbours) -> None:
        written = neighbours.others()
        assert written
        for message in written:
            check(message, service.source, PARTITIONS)


class FollowerContract:
    """For those who follow the journal; a partition of it stands still afterwards."""

    def test_stops_where_the_journal_cannot_be_understood(
        self, service: ServiceContainer, neighbours: Neighbours
    ) -> None:
        """Never skipped, never quiet, and no reason to end: the other partitions are served."""
        record = examples.of_unknown_type(examples.journal_records()[0])
        value = record.json()
        value["entries"][0]["expect"] = {}
        (place,) = neighbours.send(msgspec.structs.replace(record, value=msgspec.json.encode(value)))

        def told() -> bool:
            answer = service.get("/readyz")
            return answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and f"offset {place.offset} " in answer.text

        eventually(told, SHOWS_S, "the service says at which record of the journal it stopped")
        assert service.get("/livez").status_code == httpx.codes.OK


class EndContract:
    """The last of each module: the service ends here."""

    def test_ends_in_time_when_told_to(self, service: ServiceContainer) -> None:
        ended = service.end()
        assert (ended.status, ended.out_of_memory) == (0, False), service.tail()
        assert ended.seconds < ENDS_S
