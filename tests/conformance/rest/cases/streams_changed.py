"""Streams that are updated, sealed and deleted (admin-rest-api 5.8 to 5.10)."""

from conformance.calls import BY_SIZE, BY_TIME, UNBOUNDED, create_scope, stream_configuration, stream_exists
from conformance.case import Subject
from conformance.cases.streams_created import configuration
from conformance.rest.calls import (
    STREAMS,
    create_stream,
    delete_stream,
    get_stream,
    rest,
    seal_stream,
    shown,
    update_stream,
)
from conformance.rest.cases.streams import DAY_MS, EVENTS, MEGABYTE, WRONG, span

REST_CHANGES = Subject("rest_change")
case = REST_CHANGES.case

_MB = {"type": "LIMITED_SIZE_MB", "value": 5}

case(
    "update",
    create_scope(),
    create_stream(),
    update_stream(scalingPolicy={**EVENTS, "minSegments": 2}, streamTags=["a"]).gives(
        (200, shown(scalingPolicy={**EVENTS, "minSegments": 2}, tags=["a"]))
    ),
    stream_configuration().gives(configuration(scaling=(2, 100, 2, 2), tags=["a"])),
)
case(
    "update_replaces_everything",
    create_scope(),
    create_stream(streamTags=["a"], retentionPolicy=_MB, rolloverSizeBytes=1048576, timestampAggregationTimeout=3),
    update_stream().gives((200, shown())),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2))),
    get_stream().gives((200, shown())),
)
case(
    "update_forgets_the_maximum",
    create_scope(),
    create_stream(retentionPolicy={**_MB, "maxValue": 10}),
    update_stream(retentionPolicy={**_MB, "maxValue": 10}).gives((200, shown(retentionPolicy=_MB))),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2), retention=(BY_SIZE, 5 * MEGABYTE, UNBOUNDED))),
    update_stream(retentionPolicy={"type": "LIMITED_DAYS", "value": 1, "maxTimeBasedRetention": span(7, 0, 0)}),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2), retention=(BY_TIME, DAY_MS, UNBOUNDED))),
)
case("update_missing", create_scope(), update_stream().gives(404))
case("update_in_missing_scope", update_stream().gives(404))
case(
    "update_without_scaling",
    create_scope(),
    create_stream(),
    rest("PUT", f"{STREAMS}/st", {}).differs(peer=500, sluice=400, why=WRONG),
)
case(
    "update_with_128_tags",
    create_scope(),
    create_stream(),
    update_stream(streamTags=[f"t{i}" for i in range(128)]).differs(peer=500, sluice=400, why=WRONG),
    get_stream().gives((200, shown())),
)
case("update_sealed", create_scope(), create_stream(), seal_stream(), update_stream().gives(500))
case("post_on_one", create_scope(), create_stream(), rest("POST", f"{STREAMS}/st", {}).gives(405))

_SEALED = (200, {"streamState": "SEALED"})
case("seal", create_scope(), create_stream(), seal_stream().gives(_SEALED), seal_stream().gives(_SEALED))
case("seal_missing", create_scope(), seal_stream().gives(404))
case("seal_in_missing_scope", seal_stream().gives(404))
case("state_other_than_sealed", create_scope(), create_stream(), seal_stream(state="OPEN").gives(400))
case("state_left_out", create_scope(), create_stream(), rest("PUT", f"{STREAMS}/st/state", {}).gives(400))
case("state_other_of_missing", create_scope(), seal_stream(state="sealed").gives(400))
case(
    "state_from_nothing",
    create_scope(),
    create_stream(),
    rest("PUT", f"{STREAMS}/st/state", "").differs(peer=500, sluice=400, why=WRONG),
)
case("get_state", create_scope(), create_stream(), rest("GET", f"{STREAMS}/st/state").gives(405))

case(
    "delete",
    create_scope(),
    create_stream(),
    seal_stream(),
    delete_stream().gives(204),
    get_stream().gives(404),
    stream_exists().gives(False),
    delete_stream().gives(404),
)
case("delete_unsealed", create_scope(), create_stream(), delete_stream().gives(412), get_stream())
case("delete_missing", create_scope(), delete_stream().gives(404))
case("delete_in_missing_scope", delete_stream().gives(404))
case("create_again", create_scope(), create_stream(), seal_stream(), delete_stream(), create_stream(), get_stream())
