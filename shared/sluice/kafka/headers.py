"""The headers of records: attributes of CloudEvents 1.0 in the binary mode of its Kafka binding."""

from datetime import UTC, datetime
from functools import lru_cache

Headers = list[tuple[str, str | bytes | None]]


JSON = "application/json"
MESSAGE_PACK = "application/x-msgpack"


def cloud_event_headers(
    kind: str, id: str, source: str, time_ms: int, subject: str, content_type: str = JSON
) -> Headers:
    """The attributes of CloudEvents 1.0 in the binary mode of its Kafka binding; an empty subject is none at all."""
    attributes: Headers = [
        ("ce_specversion", "1.0"),
        ("ce_type", kind),
        ("ce_id", id),
        ("ce_source", source),
        ("ce_time", f"{_second(time_ms // 1000)}.{time_ms % 1000:03d}+00:00"),
        ("content-type", content_type),
    ]
    # As text it would end at a zero character, which a name that is refused may hold.
    return [*attributes, ("ce_subject", subject.encode())] if subject else attributes


@lru_cache(maxsize=16)
def _second(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def as_text(headers: Headers) -> list[tuple[str, str]]:
    """The same for receivers that take text only; a header without a value is left out."""
    return [(name, v.decode(errors="replace") if isinstance(v, bytes) else v) for name, v in headers if v is not None]
