"""listSubscribers and updateSubscriberStreamCut (controller-grpc-api 5.8, background-and-other-workflows 1.11)."""

from functools import partial

from conformance.answers import NOT_FOUND
from conformance.calls import STREAM, TWO_SEGMENTS, at, check_scale, delete_stream, missing, scale, seal
from conformance.case import Step, Subject
from conformance.data import write
from conformance.group_calls import (
    MANUAL,
    OTHER_ID,
    create_group,
    delete_group,
    publish,
    subscribers,
    update_group,
)

SUBSCRIBERS = Subject("subscriber")
case = SUBSCRIBERS.case

_NOT_VALID = "a cut at a segment that is not is no valid cut; FAILURE has clients send it again and again"

_SUBSCRIBED: tuple[Step, ...] = (*STREAM, create_group(retention=MANUAL))

case(
    "list",
    *STREAM,
    subscribers().gives(("SUCCESS", [])),
    create_group(retention=MANUAL),
    create_group("other", retention=MANUAL, id=OTHER_ID),
    subscribers().gives(("SUCCESS", ["sc/other", "sc/rg"])),
    seal(),
    subscribers().gives(("SUCCESS", ["sc/other", "sc/rg"])),
)
case("list_missing", *missing(subscribers, ("STREAM_NOT_FOUND", []), in_missing_scope=NOT_FOUND))
case("list_deleted_stream", *STREAM, seal(), delete_stream(), subscribers().gives(("STREAM_NOT_FOUND", [])))

case(
    "publish",
    *_SUBSCRIBED,
    publish({0: 0}),
    write(40),
    publish({0: 10}),
    publish({0: 40}),
    publish({0: 40}),
    publish({0: 10}).gives("STREAM_CUT_NOT_VALID"),
    publish({0: 1000}),
    seal(),
    publish({0: 1000}),
)
case(
    "publish_with_gap",
    *TWO_SEGMENTS,
    create_group(retention=MANUAL),
    publish({0: 0}).gives("STREAM_CUT_NOT_VALID"),
)
case("publish_nothing", *_SUBSCRIBED, publish({}).is_invalid())
case(
    "publish_unknown_number",
    *_SUBSCRIBED,
    publish({7: 0}).differs(peer="FAILURE", sluice="STREAM_CUT_NOT_VALID", why=_NOT_VALID),
)
case(
    "publish_unknown_epoch",
    *_SUBSCRIBED,
    publish({at(0, 7): 0}).differs(peer="FAILURE", sluice="STREAM_CUT_NOT_VALID", why=_NOT_VALID),
)
case("publish_without_subscription", *STREAM, create_group(), publish({0: 0}).gives("SUBSCRIBER_NOT_FOUND"))
case(
    "publish_as_another",
    *_SUBSCRIBED,
    publish({0: 0}, subscriber="rg").gives("SUBSCRIBER_NOT_FOUND"),
    publish({0: 0}, subscriber="").gives("SUBSCRIBER_NOT_FOUND"),
    publish({0: 0}, id=OTHER_ID).gives("SUBSCRIBER_NOT_FOUND"),
    publish({0: 0}, id="").is_invalid(),
    publish({0: 0}, generation=1).gives("GENERATION_MISMATCH"),
    delete_group(),
    publish({0: 0}).gives("SUBSCRIBER_NOT_FOUND"),
)
case("publish_missing", *missing(partial(publish, {0: 0}), "STREAM_NOT_FOUND", in_missing_scope=NOT_FOUND))
case(
    "publish_after_an_update",
    *_SUBSCRIBED,
    publish({0: 0}),
    update_group(retention=MANUAL, refresh=1).gives(("SUCCESS", 1)),
    publish({0: 0}).gives("GENERATION_MISMATCH"),
    publish({0: 0}, generation=1),
)
case(
    "publish_across_epochs",
    *_SUBSCRIBED,
    write(40),
    scale([0], [(0.0, 0.5), (0.5, 1.0)]),
    check_scale(0).until("SUCCESS"),
    publish({0: 40}),
    publish({at(1, 1): 0, at(2, 1): 0}),
    publish({0: 40}).gives("STREAM_CUT_NOT_VALID"),
)
