"""`--at`: streams and scopes as they were."""

from typing import Any

import pytest
from unit.cli.conftest import Cli

from sluice.domain.config import RetentionPolicy, RetentionType, ScalingPolicy, StreamConfig
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream, DeleteStream, ScaleStream, SealStream
from sluice.engine.fold import Outcome
from sluice.kafka import topics


@pytest.fixture
def moments(cli: Cli) -> dict[str, int]:
    """The times between what happened to demo/orders."""
    history = cli.history
    found = {"before": history.now}
    history.ask(CreateScope("demo"), "scope")
    found["scope"] = history.now
    config = StreamConfig(
        scaling=ScalingPolicy(min_segments=2),
        retention=RetentionPolicy(RetentionType.SIZE, 2**30, 10 * 2**30),
        tags=("red", "blue"),
    )
    history.ask(CreateStream("demo", stream="orders", config=config), "create")
    found["creating"] = history.now
    history.finish_create("demo", "orders", "create")
    found["created"] = history.now
    history.ask(ScaleStream("demo", "orders", seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=1), "scale")
    found["scaling"] = history.now
    history.finish_scale("demo", "orders")
    found["scaled"] = history.now
    history.ask(SealStream("demo", "orders"), "seal")
    history.finish_seal("demo", "orders", "seal")
    found["sealed"] = history.now
    history.ask(DeleteStream("demo", "orders"), "delete")
    history.finish_delete("demo", "orders", "delete")
    found["deleted"] = history.now
    return found


def at(cli: Cli, moment: int) -> Any:
    return cli("stream", "show", "demo/orders", "--at", moment, "--json").document


def test_a_stream_at_each_moment(cli: Cli, moments: dict[str, int]) -> None:
    expected = {
        "creating": ("CREATING", 0, 2, "StreamCreationStarted"),
        "created": ("ACTIVE", 0, 2, "StreamCreated"),
        "scaling": ("SCALING", 0, 2, "StreamScaleStarted"),
        "scaled": ("ACTIVE", 1, 3, "StreamScaled"),
        "sealed": ("SEALED", 1, 0, "StreamSealed"),
    }
    for moment, (state, epoch, segments, type) in expected.items():
        found = at(cli, moments[moment])
        assert (found["state"], found["epoch"], len(found["segments"])) == (state, epoch, segments), moment
        assert found["record"]["types"] == [type] and found["record"]["at"] == moments[moment]


def test_the_record_that_made_it_so_is_found_where_it_is_said_to_be(cli: Cli, moments: dict[str, int]) -> None:
    record = at(cli, moments["scaled"])["record"]
    message = cli.history.source.logs[topics.JOURNAL.name][record["partition"]][record["offset"]]
    assert message.value is not None and b"StreamScaled" in message.value


def test_its_workflow_and_head_are_as_the_api_shows_them(cli: Cli, moments: dict[str, int]) -> None:
    found = at(cli, moments["scaling"])
    assert found["workflow"]["kind"] == "scale-stream"
    assert found["headCut"] == {"0": 0, "1": 0} and found["markStream"] == "_MARKorders"
    assert found["transactions"] == {"open": 0, "waiting": 0, "aborting": 0, "ended": 0, "endedKeptMs": 172_800_000}


def test_people_see_the_record(cli: Cli, moments: dict[str, int]) -> None:
    found = cli("stream", "show", "demo/orders", "--at", moments["scaled"])
    assert found.code == 0 and "made so by" in found.out and "StreamScaled (journal " in found.out
    assert "size=1 GiB..10 GiB" in found.out and "red, blue" in found.out


def test_before_and_after_its_life_there_is_no_stream(cli: Cli, moments: dict[str, int]) -> None:
    found = cli("stream", "show", "demo/orders", "--at", moments["scope"])
    assert found.code == 1 and "did not exist" in found.err and found.out == ""
    found = cli("stream", "show", "demo/orders", "--at", moments["deleted"])
    assert found.code == 1 and "it was deleted at" in found.err


def test_a_scope_at_each_moment(cli: Cli, moments: dict[str, int]) -> None:
    found = cli("scope", "show", "demo", "--at", moments["created"], "--json").document
    assert found["names"]["streams"] == ["orders"] and (found["streams"], found["internalStreams"]) == (1, 1)
    assert found["record"]["types"] == ["ScopeCreated"]
    found = cli("scope", "show", "demo", "--at", moments["deleted"], "--json").document
    assert found["names"]["streams"] == [] and found["streams"] == 0
    found = cli("scope", "show", "demo", "--at", moments["created"])
    assert "orders" in found.out and "ScopeCreated (journal " in found.out
    assert cli("scope", "show", "demo", "--at", moments["before"]).code == 1


def test_a_record_that_did_not_count_made_nothing_so(cli: Cli) -> None:
    history = cli.history
    history.create_stream(StreamConfig())
    counted = at(cli, history.now)["record"]
    assert history.twin("demo/orders", decides=False) is Outcome.STALE
    assert at(cli, history.now)["record"] == counted


def test_a_partition_that_stops_is_shown_up_to_there(cli: Cli, moments: dict[str, int]) -> None:
    broken = cli.history.source.append(topics.JOURNAL.name, "demo/orders", b"no record")
    assert at(cli, moments["scaled"])["state"] == "ACTIVE"
    found = cli("stream", "show", "demo/orders", "--at", broken.at)
    assert found.code == 1 and f"stops at offset {broken.offset}" in found.err and "--at" in found.err
