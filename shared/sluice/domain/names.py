"""The rules for names, and which key the work on a name is serialised by.

Rules: controller-grpc-api section 4, stream-and-transaction-semantics 10.5 to 10.7. Pure functions, no state.
"""

import re

SYSTEM_SCOPE = "_system"
REQUEST_STREAM = "_requeststream"
MARK_PREFIX = "_MARK"
READER_GROUP_PREFIX = "_RG"

MAX_NAME_LENGTH = 255
MAX_USER_NAME_LENGTH = 250

_INTERNAL_NAME = re.compile(r"_?[A-Za-z0-9.\-]+")
_USER_NAME = re.compile(r"[A-Za-z0-9.\-]+")


def is_scope_name(name: str) -> bool:
    """Whether a scope may be created under this name; one leading underscore is allowed."""
    return is_stream_name(name)


def is_stream_name(name: str) -> bool:
    """Whether a stream may be created under this name; one leading underscore is allowed."""
    return len(name) <= MAX_NAME_LENGTH and _INTERNAL_NAME.fullmatch(name) is not None


def is_user_name(name: str) -> bool:
    """Whether a reader group or key-value table may be created under this name."""
    return len(name) <= MAX_USER_NAME_LENGTH and _USER_NAME.fullmatch(name) is not None


def mark_stream(stream: str) -> str:
    """The name of the stream that carries the watermarks of `stream`."""
    return MARK_PREFIX + stream


def base_name(name: str) -> str:
    """What a derived internal stream belongs to: `_MARKx`, `_RGx` and `_MARK_RGx` all belong to `x`."""
    while True:
        for prefix in (MARK_PREFIX, READER_GROUP_PREFIX):
            if name.startswith(prefix) and len(name) > len(prefix):
                name = name[len(prefix) :]
                break
        else:
            return name


def stream_key(scope: str, stream: str) -> str:
    """The key that serialises all work on a stream and on the internal streams derived from it.

    Derived streams share the key of their base, so that one record can create or delete both.
    """
    return f"{scope}/{base_name(stream)}"


def key_of(aggregate: str) -> str:
    """The key that serialises all work on an aggregate."""
    kind, _, name = aggregate.partition(":")
    scope, slash, stream = name.partition("/")
    return stream_key(scope, stream) if slash else name or kind


def scope_aggregate(scope: str) -> str:
    return f"scope:{scope}"


def stream_aggregate(scope: str, stream: str) -> str:
    return f"stream:{scope}/{stream}"
