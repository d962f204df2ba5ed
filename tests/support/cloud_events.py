"""What makes a record a CloudEvent: version 1.0 of the specification, binary mode of its Kafka binding.

Checked by hand, without the code that writes the headers or the schema that describes them.
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

Headers = Sequence[tuple[str, str | bytes | None]]

REQUIRED = ("ce_specversion", "ce_id", "ce_source", "ce_type")
ALLOWED_ONCE = (*REQUIRED, "ce_time", "ce_subject", "ce_datacontenttype", "content-type")

_ATTRIBUTE = re.compile(r"ce_[a-z0-9]{1,20}")
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_SERVICE = re.compile(r"(api-gateway|stream-workflows|txn-manager|cluster-manager|retention-spark|people|sluice)/[^/]+")


def attributes_of(headers: Headers) -> dict[str, str]:
    """The headers as text. None of the attributes may be there twice."""
    names = [name for name, _ in headers]
    for name in ALLOWED_ONCE:
        assert names.count(name) <= 1, f"{name} is there {names.count(name)} times: {headers}"
    return {name: value.decode() if isinstance(value, bytes) else str(value) for name, value in headers}


def check_cloud_event(headers: Headers, key: str, value: bytes) -> dict[str, str]:
    """The attributes of a record, if it is a CloudEvent with all that our records have."""
    attributes = attributes_of(headers)
    for name in REQUIRED:
        assert attributes.get(name), f"{name} is missing: {attributes}"
    assert attributes["ce_specversion"] == "1.0"
    assert all(_ATTRIBUTE.fullmatch(name) for name in attributes if name.startswith("ce_")), attributes
    assert "ce_datacontenttype" not in attributes, "in binary mode that is the header content-type"
    assert _is_service_or_test(attributes["ce_source"]), attributes["ce_source"]
    assert urlsplit(attributes["ce_source"]).path == attributes["ce_source"]
    assert _RFC_3339.fullmatch(attributes["ce_time"]), attributes["ce_time"]
    assert datetime.fromisoformat(attributes["ce_time"]).tzinfo is not None
    assert attributes.get("ce_subject", "") == key
    assert attributes["content-type"]
    if attributes["content-type"] == "application/json":
        json.loads(value)
    return attributes


def _is_service_or_test(source: str) -> bool:
    return _SERVICE.fullmatch(source) is not None or source.startswith("test")
