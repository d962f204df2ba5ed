"""updateReaderGroup (controller-grpc-api 5.8, background-and-other-workflows 6.3)."""

from conformance.answers import MALFORMED, NOT_FOUND
from conformance.calls import STREAM, create_scope, create_stream, delete_stream, seal
from conformance.case import Subject
from conformance.group_calls import (
    AUTOMATIC,
    MANUAL,
    NONE,
    OTHER_ID,
    configuration_of,
    create_group,
    delete_group,
    group_configuration,
    subscribers,
    update_group,
)

UPDATES = Subject("group_update")
case = UPDATES.case

case(
    "replaces_all",
    *STREAM,
    create_group(start={"st": {0: 3}}),
    update_group(refresh=9, outstanding=1).gives(("SUCCESS", 1)),
    group_configuration().gives(("SUCCESS", configuration_of(refresh=9, outstanding=1, generation=1))),
)
case(
    "twice",
    *STREAM,
    create_group(),
    update_group(refresh=1).gives(("SUCCESS", 1)),
    update_group(refresh=1).gives(("INVALID_CONFIG", 0)),
    group_configuration().gives(("SUCCESS", configuration_of(refresh=1, generation=1))),
    update_group(refresh=2, generation=1).gives(("SUCCESS", 2)),
    group_configuration().gives(("SUCCESS", configuration_of(refresh=2, generation=2))),
)
case(
    "of_another_generation_or_id",
    *STREAM,
    create_group(),
    update_group(generation=1).gives(("INVALID_CONFIG", 1)),
    update_group(generation=-1).gives(("INVALID_CONFIG", -1)),
    update_group(id=OTHER_ID).gives(("INVALID_CONFIG", 0)),
    group_configuration().gives(("SUCCESS", configuration_of())),
)
case("missing", create_scope(), update_group(generation=4).gives(("RG_NOT_FOUND", 4)))
case("in_missing_scope", update_group().gives(NOT_FOUND))
case("deleted", *STREAM, create_group(), delete_group(), update_group().gives(("RG_NOT_FOUND", 0)))
case(
    "malformed",
    *STREAM,
    update_group(outstanding=0).gives(MALFORMED),
    update_group("rg", "").gives(MALFORMED),
    create_group(),
    update_group(id="").gives(MALFORMED),
    update_group(start={}, end={}).gives(MALFORMED),
    update_group(retention=3).gives(MALFORMED),
    update_group(outstanding=0).gives(MALFORMED),
)

case(
    "subscribes_and_unsubscribes",
    *STREAM,
    create_group(),
    update_group(retention=AUTOMATIC).gives(("SUCCESS", 1)),
    subscribers().gives(("SUCCESS", ["sc/rg"])),
    update_group(retention=NONE, generation=1).gives(("SUCCESS", 2)),
    subscribers().gives(("SUCCESS", [])),
)
case(
    "when_the_stream_is_gone",
    *STREAM,
    create_stream("other"),
    create_group(retention=MANUAL),
    seal(),
    delete_stream(),
    update_group(start={"other": {}}, end={}, retention=MANUAL).gives(("SUCCESS", 1)),
    subscribers("other").gives(("SUCCESS", ["sc/rg"])),
    peer_not_called="it stumbles over the missing subscription, and answers DEADLINE_EXCEEDED after two minutes",
)
case(
    "moves_to_other_stream",
    create_scope(),
    create_stream("a"),
    create_stream("b"),
    create_group(start={"a": {}}, end={}, retention=MANUAL),
    update_group(start={"b": {}}, end={}, retention=MANUAL).gives(("SUCCESS", 1)),
    subscribers("a").gives(("SUCCESS", [])),
    subscribers("b").gives(("SUCCESS", ["sc/rg"])),
)
