"""Which names are sent to a controller at all.

A controller that gets an impossible name, above all an empty one, may answer with an internal error as if it had
trouble of its own (controller-grpc-api 4 and 5), and the call would go on trying. Pure functions.
"""

from sluice.domain.names import base_name, is_scope_name, is_stream_name
from sluice_client.errors import Refused


def check_scope(scope: str) -> None:
    """Raises Refused if no scope can have this name."""
    if not is_scope_name(scope):
        raise Refused(f"scope {scope!r}: INVALID_SCOPE_NAME")


def check_stream(scope: str, stream: str) -> None:
    """Raises Refused if no stream can have this name in a scope of that name; the mark of a stream is one, too."""
    check_scope(scope)
    if not is_stream_name(base_name(stream)):
        raise Refused(f"stream {scope}/{stream!r}: INVALID_STREAM_NAME")


def check_new_stream(scope: str, stream: str, segments: int) -> None:
    """Raises Refused if no stream can be made under this name, or with so many segments."""
    check_stream(scope, stream)
    if not is_stream_name(stream):
        raise Refused(f"stream {scope}/{stream!r}: INVALID_STREAM_NAME")
    if segments < 1:
        raise Refused(f"stream {scope}/{stream}: {segments} segments")
