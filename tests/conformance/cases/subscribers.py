"""listSubscribers and updateSubscriberStreamCut (controller-grpc-api 5.8, background-and-other-workflows 1.11)."""

from conformance.answers import MALFORMED, NOT_FOUND, UNKNOWN
from conformance.calls import at, check_scale, create_scope, create_stream, delete_stream, scale, seal
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

_SUBSCRIBED: tuple[Step, ...] = (create_scope(), create_stream(), create_group(retention=MANUAL))

case("list_none", create_scope(), create_stream(), subscribers().gives(("SUCCESS", [])))
case("list_missing_stream", create_scope(), subscribers().gives(("STREAM_NOT_FOUND", [])))
case("list_in_missing_scope", subscribers().gives(NOT_FOUND))
case("list_without_name", create_scope(), subscribers("").gives(MALFORMED))
case("list_without_scope", subscribers("st", "").gives(MALFORMED))
case(
    "list_deleted_stream",
    create_scope(),
    create_stream(),
    seal(),
    delete_stream(),
    subscribers().gives(("STREAM_NOT_FOUND", [])),
)
case(
    "list_two",
    *_SUBSCRIBED,
    create_group("other", retention=MANUAL, id=OTHER_ID),
    subscribers().gives(("SUCCESS", ["sc/other", "sc/rg"])),
)
case("list_sealed", *_SUBSCRIBED, seal(), subscribers().gives(("SUCCESS", ["sc/rg"])))

case("publish", *_SUBSCRIBED, publish({0: 0}))
case("publish_beyond_the_end", *_SUBSCRIBED, publish({0: 1000}))
case("publish_twice", *_SUBSCRIBED, write(40), publish({0: 40}), publish({0: 40}))
case("publish_on", *_SUBSCRIBED, write(40), publish({0: 10}), publish({0: 40}))
case(
    "publish_backwards",
    *_SUBSCRIBED,
    write(40),
    publish({0: 40}),
    publish({0: 10}).gives("STREAM_CUT_NOT_VALID"),
    publish({0: 40}),
)
case(
    "publish_with_gap",
    create_scope(),
    create_stream(segments=2),
    create_group(retention=MANUAL),
    publish({0: 0}).gives("STREAM_CUT_NOT_VALID"),
)
case("publish_nothing", *_SUBSCRIBED, publish({}).gives(UNKNOWN))
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
case(
    "publish_as_nobody", create_scope(), create_stream(), create_group(), publish({0: 0}).gives("SUBSCRIBER_NOT_FOUND")
)
case("publish_as_text", *_SUBSCRIBED, publish({0: 0}, subscriber="rg").gives("SUBSCRIBER_NOT_FOUND"))
case("publish_as_empty_text", *_SUBSCRIBED, publish({0: 0}, subscriber="").gives("SUBSCRIBER_NOT_FOUND"))
case("publish_with_other_id", *_SUBSCRIBED, publish({0: 0}, id=OTHER_ID).gives("SUBSCRIBER_NOT_FOUND"))
case("publish_without_id", *_SUBSCRIBED, publish({0: 0}, id="").gives(UNKNOWN))
case("publish_of_later_generation", *_SUBSCRIBED, publish({0: 0}, generation=1).gives("GENERATION_MISMATCH"))
case("publish_on_missing_stream", create_scope(), publish({0: 0}).gives("STREAM_NOT_FOUND"))
case("publish_in_missing_scope", publish({0: 0}).gives(NOT_FOUND))
case("publish_without_name", create_scope(), publish({0: 0}, "").gives(MALFORMED))
case("publish_without_scope", publish({0: 0}, "st", "").gives(MALFORMED))
case("publish_when_deleted", *_SUBSCRIBED, delete_group(), publish({0: 0}).gives("SUBSCRIBER_NOT_FOUND"))
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
case("publish_on_sealed", *_SUBSCRIBED, seal(), publish({0: 0}))
