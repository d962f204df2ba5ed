"""createReaderGroup, refused (controller-grpc-api 5.8)."""

from typing import Any

from conformance.answers import MALFORMED
from conformance.calls import STREAM, TWO_SEGMENTS, Cut, at
from conformance.case import Subject
from conformance.group_calls import create_group, group_configuration

REFUSED = Subject("group_refused")
case = REFUSED.case


def refuse(name: str, *refused: dict[str, Any]) -> None:
    """Groups that can not be made, and are not."""
    case(
        name,
        *TWO_SEGMENTS,
        *(create_group(**options).gives(MALFORMED) for options in refused),
        group_configuration().gives(("RG_NOT_FOUND", {})),
    )


def _cuts(start: Cut, end: Cut) -> dict[str, Any]:
    return {"start": {"st": start}, "end": {"st": end}}


case(
    "impossible_name",
    create_group("rg", "").gives(MALFORMED),
    create_group("r_g").gives("INVALID_RG_NAME"),
    create_group().gives("SCOPE_NOT_FOUND"),
    *STREAM,
    *(create_group(name).gives("INVALID_RG_NAME") for name in ("r_g", "_rg", "x" * 251, "")),
    create_group("r_g", outstanding=0).gives(MALFORMED),
)

refuse("id", {"id": ""}, {"id": "me"})
refuse(
    "streams",
    {"start": {}, "end": {}},
    {"start": ["st", "st"]},
    {"start": {"a_b": {}}},
    {"start": {"": {}}},
    {"start": {"st": {}}, "end": {"other": {0: 1}}},
)
refuse("retention", {"retention": 3}, {"retention": -1})
refuse("outstanding_checkpoints", {"outstanding": 0}, {"outstanding": -1})
refuse("end_before_start", _cuts({0: 9, 1: 0}, {0: 5, 1: 0}), _cuts({0: -1, 1: 0}, {0: 5, 1: 0}))
refuse("end_in_earlier_segments", _cuts({at(2, 1): 0}, {0: 0, 1: 0}), _cuts({1: 0}, {0: 0, 1: 0}))
case("start_not_begun_nor_ended", *STREAM, create_group(start={"st": {0: -1}}, end={"st": {0: -1}}))
case("start_begun_end_of_segment", *STREAM, create_group(start={"st": {0: 3}}, end={"st": {0: -1}}))
