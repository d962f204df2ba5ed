"""Streams that are created, shown and listed (admin-rest-api 5.5 to 5.7, 7)."""

from typing import Any

from conformance.calls import BY_SIZE, BY_TIME, UNBOUNDED, create_scope, stream_configuration
from conformance.calls import create_stream as grpc_create_stream
from conformance.case import Step, Subject
from conformance.cases.streams_created import configuration
from conformance.rest.calls import STREAMS, TWO, create_stream, get_stream, good, list_streams, rest, shown

REST_STREAMS = Subject("rest_stream")
case = REST_STREAMS.case

DAY_MS, MEGABYTE = 24 * 3600 * 1000, 1024 * 1024
WRONG = "the original fails inside at a configuration that cannot be meant; here the request is a wrong one"

_N = {"type": "FIXED_NUM_SEGMENTS"}
EVENTS = {"type": "BY_RATE_IN_EVENTS_PER_SEC", "targetRate": 100, "scaleFactor": 2, "minSegments": 3}


def created(**properties: Any) -> tuple[int, dict[str, Any]]:
    return 201, shown(**properties)


def wrong(stream: str = "st", **properties: Any) -> Step:
    return create_stream(stream, **properties).differs(peer=500, sluice=400, why=WRONG)


case(
    "create",
    create_scope(),
    create_stream().gives(created()),
    get_stream().gives((200, shown())),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2))),
)
case("create_twice", create_scope(), create_stream(), create_stream(scalingPolicy=EVENTS).gives(409))
case("create_in_missing_scope", create_stream().gives(404))
case("create_without_name", create_scope(), create_stream(None).gives(400))
case("create_with_empty_name", create_scope(), create_stream("").gives(400))
case("create_with_underscore_inside", create_scope(), create_stream("a_b").gives(400))
case("create_with_leading_underscore", create_scope(), create_stream("_ab").gives(400))
case("create_of_250_characters", create_scope(), create_stream("a" * 250))
case("create_of_251_characters", create_scope(), create_stream("a" * 251).gives(400))
case("create_with_wrong_name_and_configuration", create_scope(), create_stream("a_b", scalingPolicy={}).gives(400))
case(
    "create_by_events",
    create_scope(),
    create_stream(scalingPolicy=EVENTS).gives(created(scalingPolicy=EVENTS)),
    stream_configuration().gives(configuration(scaling=(2, 100, 2, 3))),
)
_KBYTES = {"type": "BY_RATE_IN_KBYTES_PER_SEC", "targetRate": 1, "scaleFactor": 1, "minSegments": 1}
case(
    "create_by_a_type_that_nobody_knows",
    create_scope(),
    create_stream(scalingPolicy={**_KBYTES, "type": "BY_MOON"}).gives(created(scalingPolicy=_KBYTES)),
    create_stream("b", scalingPolicy={k: v for k, v in _KBYTES.items() if k != "type"}),
    stream_configuration("b").gives({**configuration(scaling=(1, 1, 1, 1)), "stream": "sc/b"}),
)
case("create_without_scaling", create_scope(), wrong(scalingPolicy=None))
case("create_without_number_of_segments", create_scope(), wrong(scalingPolicy=_N))
case("create_with_no_segments", create_scope(), wrong(scalingPolicy={**_N, "minSegments": 0}))
case("create_with_negative_segments", create_scope(), wrong(scalingPolicy={**_N, "minSegments": -1}))
case("create_by_events_without_rate", create_scope(), wrong(scalingPolicy={**EVENTS, "targetRate": 0}))
case("create_by_events_without_factor", create_scope(), wrong(scalingPolicy={**EVENTS, "scaleFactor": 0}))
case(
    "create_with_a_number_as_text",
    create_scope(),
    create_stream(scalingPolicy={**_N, "minSegments": "2"}).gives(created()),
)
case(
    "create_with_a_number_with_a_point",
    create_scope(),
    create_stream(scalingPolicy={**_N, "minSegments": 2.9}).gives(created()),
)
case(
    "create_with_true_for_a_number", create_scope(), create_stream(scalingPolicy={**_N, "minSegments": True}).gives(400)
)
case(
    "create_with_too_large_a_number",
    create_scope(),
    create_stream(scalingPolicy={**_N, "minSegments": 2**31}).gives(400),
)
case("create_with_a_number_for_a_type", create_scope(), create_stream(scalingPolicy={**TWO, "type": 0}).gives(400))
case("create_from_nothing", create_scope(), rest("POST", STREAMS, "").differs(peer=500, sluice=400, why=WRONG))

case(
    "create_with_tags",
    create_scope(),
    create_stream(streamTags=["b", "a", "b", ""]).gives(created(tags=["", "a", "b"])),
    get_stream().gives((200, shown(tags=["", "a", "b"]))),
)
case("create_with_127_tags", create_scope(), create_stream(streamTags=[f"t{i}" for i in range(127)]))
case("create_with_128_tags", create_scope(), wrong(streamTags=[f"t{i}" for i in range(128)]))
case("create_with_a_tag_of_255", create_scope(), create_stream(streamTags=["t" * 255]))
case("create_with_a_tag_of_256", create_scope(), wrong(streamTags=["t" * 256]))
case("create_with_null_for_a_tag", create_scope(), wrong(streamTags=["a", None]))
case("create_with_text_for_tags", create_scope(), create_stream(streamTags="a").gives(400))
case(
    "create_with_rollover_and_timeout",
    create_scope(),
    create_stream(rolloverSizeBytes=1048576, timestampAggregationTimeout=30000).gives(
        created(rolloverSizeBytes=1048576, timestampAggregationTimeout=30000)
    ),
    stream_configuration().gives(configuration(scaling=(0, 0, 0, 2), timeout=30000, rollover=1048576)),
)
case("create_with_negative_rollover", create_scope(), wrong(rolloverSizeBytes=-1))
case("create_with_negative_timeout", create_scope(), create_stream(timestampAggregationTimeout=-1))


def span(days: int, hours: int, minutes: int) -> dict[str, int]:
    return {"days": days, "hours": hours, "minutes": minutes}


def _retained(name: str, sent: dict[str, Any], stored: tuple[int, int, int], answered: dict[str, Any]) -> None:
    case(
        name,
        create_scope(),
        create_stream(retentionPolicy=sent).gives(created(retentionPolicy=answered)),
        stream_configuration().gives(configuration(scaling=(0, 0, 0, 2), retention=stored)),
        get_stream().gives((200, shown(retentionPolicy=answered))),
    )


_DAYS, _MB = {"type": "LIMITED_DAYS"}, {"type": "LIMITED_SIZE_MB"}
_retained(
    "keep_days",
    {**_DAYS, "value": 2},
    (BY_TIME, 2 * DAY_MS, UNBOUNDED),
    {**_DAYS, "value": 2, "timeBasedRetention": span(2, 0, 0)},
)
_retained(
    "keep_hours_and_minutes",
    {**_DAYS, "value": 0, "timeBasedRetention": span(1, 2, 30), "maxTimeBasedRetention": span(7, 0, 0)},
    (BY_TIME, 95_400_000, 7 * DAY_MS),
    {**_DAYS, "value": 0, "timeBasedRetention": span(1, 2, 30)},
)
_retained(
    "keep_days_rather_than_hours",
    {**_DAYS, "value": 3, "timeBasedRetention": span(1, 2, 30), "maxValue": 9, "maxTimeBasedRetention": span(4, 0, 0)},
    (BY_TIME, 3 * DAY_MS, 9 * DAY_MS),
    {**_DAYS, "value": 3, "timeBasedRetention": span(3, 0, 0)},
)
_retained(
    "keep_at_most_no_day",
    {**_DAYS, "value": 1, "maxValue": 0},
    (BY_TIME, DAY_MS, 0),
    {**_DAYS, "value": 1, "timeBasedRetention": span(1, 0, 0)},
)
_retained("keep_megabytes", {**_MB, "value": 5}, (BY_SIZE, 5 * MEGABYTE, UNBOUNDED), {**_MB, "value": 5})
_retained(
    "keep_megabytes_to_a_maximum",
    {**_MB, "value": 5, "maxValue": 10},
    (BY_SIZE, 5 * MEGABYTE, 10 * MEGABYTE),
    {**_MB, "value": 5},
)
_retained("keep_negative_megabytes", {**_MB, "value": -5}, (BY_SIZE, -5 * MEGABYTE, UNBOUNDED), {**_MB, "value": -5})
case("keep_without_value", create_scope(), wrong(retentionPolicy=_DAYS))
case("keep_without_type", create_scope(), wrong(retentionPolicy={"value": 1}))
case("keep_by_a_type_that_nobody_knows", create_scope(), wrong(retentionPolicy={"type": "MOONS", "value": 1}))
case(
    "keep_days_without_hours",
    create_scope(),
    wrong(retentionPolicy={**_DAYS, "value": 0, "timeBasedRetention": {"days": 1}}),
)
case("keep_more_days_than_can_be_counted", create_scope(), wrong(retentionPolicy={**_DAYS, "value": 2**62}))
_ONE = {**_N, "minSegments": 1}
_A_DAY_AND_A_MINUTE = {**_DAYS, "value": 0, "timeBasedRetention": span(1, 0, 1)}
case(
    "shown_is_less_than_a_minute_or_a_megabyte",
    create_scope(),
    grpc_create_stream("a", retention=(BY_TIME, DAY_MS + 61_234, UNBOUNDED)),
    grpc_create_stream("b", retention=(BY_SIZE, MEGABYTE - 1, UNBOUNDED)),
    get_stream("a").gives((200, shown("a", scalingPolicy=_ONE, retentionPolicy=_A_DAY_AND_A_MINUTE))),
    get_stream("b").gives((200, shown("b", scalingPolicy=_ONE, retentionPolicy={**_MB, "value": 0}))),
)

case("get_missing", create_scope(), get_stream().gives(404))
case("get_in_missing_scope", get_stream().gives(404))

case("list_none", create_scope(), list_streams().gives((200, [])))
case("list_in_missing_scope", list_streams().gives(404), list_streams("?filter_type=tag&filter_value=a").gives(404))
case(
    "list",
    create_scope(),
    create_stream("a", streamTags=["x", "y"]),
    create_stream("b", streamTags=["y"]),
    list_streams().gives((200, ["a", "b"])),
    list_streams("?filter_type=tag&filter_value=x").gives((200, ["a"])),
    list_streams("?filter_type=tag&filter_value=y").gives((200, ["a", "b"])),
    list_streams("?filter_type=tag&filter_value=z").gives((200, [])),
    list_streams("?filter_type=tag").gives((200, ["a", "b"])),
    list_streams("?filter_type=TAG&filter_value=x").gives((200, ["a", "b"])),
    list_streams("?filter_value=x").gives((200, ["a", "b"])),
    list_streams("?filter_type=showInternalStreams").gives((200, ["_MARKa", "_MARKb"])),
    list_streams("?filter_type=tag&filter_value=").differs(peer=500, sluice=400, why=WRONG),
    rest("GET", STREAMS).gives(good({"streams": [shown("a", tags=["x", "y"]), shown("b", tags=["y"])]})),
)
