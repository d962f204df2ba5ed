"""The rules for names, and which key the work on a name is serialised by.

Rules: controller-grpc-api section 4, stream-and-transaction-semantics 10.5 to 10.7. Pure functions, no state.
"""

import re

SYSTEM_SCOPE = "_system"
REQUEST_STREAM = "_requeststream"
MARK_PREFIX = "_MARK"
READER_GROUP_PREFIX = "_RG"

COMMITS = "commits:"
TRANSACTIONS = "txn:"
STREAMS = "stream:"
"""What the names of a kind of aggregates begin with."""

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
    """The stream that a mark stream belongs to: `x` for `_MARKx`, `_RGx` for `_MARK_RGx`."""
    at = 0
    while name.startswith(MARK_PREFIX, at) and len(name) - at > len(MARK_PREFIX):
        at += len(MARK_PREFIX)
    return name[at:]


def stream_key(scope: str, stream: str) -> str:
    """The key of a stream: that of its mark stream, so that one record can create both."""
    return f"{scope}/{base_name(stream)}"


def key_of(aggregate: str) -> str:
    """The key that serialises all work on an aggregate.

    A reader group has that of its state
    stream, not of a stream it may be named like: it waits for the keys of the streams it reads.
    """
    kind, _, name = aggregate.partition(":")
    scope, slash, resource = name.partition("/")
    if kind in ("txn", "prepared"):
        resource = resource.rpartition("/")[0]
    if kind == "group":
        resource = group_stream(resource)
    return stream_key(scope, resource) if slash else name or kind


def group_stream(group: str) -> str:
    """The name of the stream that carries the state of a reader group."""
    return READER_GROUP_PREFIX + group


def stream_aggregate(scope: str, stream: str) -> str:
    return f"{STREAMS}{scope}/{stream}"


def transaction_aggregate(scope: str, stream: str, transaction: str) -> str:
    return f"{TRANSACTIONS}{scope}/{stream}/{transaction}"


def scope_aggregate(scope: str) -> str:
    return f"scope:{scope}"


def fences_aggregate(partition_key: str) -> str:
    """What the creations of one partition are guarded by while scopes are deleted; see `domain.scope.fences`."""
    return f"fences:{partition_key}"
