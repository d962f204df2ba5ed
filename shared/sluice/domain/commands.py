"""The commands that travel on the request topics: what somebody wants done, in the imperative.

Each names the key it belongs to and the aggregate it is about; commands of one key are handled one after the other.
"""

import msgspec

from sluice.domain.config import StreamConfig
from sluice.domain.names import scope_aggregate, stream_aggregate, stream_key


class ScopeCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str

    @property
    def key(self) -> str:
        return self.scope

    @property
    def aggregate(self) -> str:
        return scope_aggregate(self.scope)


class StreamCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    stream: str

    @property
    def key(self) -> str:
        return stream_key(self.scope, self.stream)

    @property
    def aggregate(self) -> str:
        return stream_aggregate(self.scope, self.stream)


class CreateScope(ScopeCommand, frozen=True):
    pass


class DeleteScope(ScopeCommand, frozen=True):
    pass


class CreateStream(ScopeCommand, frozen=True):
    """Reserve the name in the scope, then have the stream created under its own key."""

    stream: str
    config: StreamConfig


class ConfirmStreamName(ScopeCommand, frozen=True):
    """The stream's key has created the stream: the reservation need not be passed on again."""

    stream: str
    incarnation: str


class ReleaseStreamName(ScopeCommand, frozen=True):
    """The stream of that incarnation is going: drop its name and that of its mark stream."""

    stream: str
    incarnation: str


class CreateReservedStream(StreamCommand, frozen=True):
    """Create the stream whose name the scope has reserved; `incarnation` is the id of the request that asked."""

    incarnation: str
    created_at: int
    config: StreamConfig


class JoinStreamCreation(StreamCommand, frozen=True):
    """The name is held by another request: answer once its stream is there, or start over if it went meanwhile."""

    config: StreamConfig


class UpdateStream(StreamCommand, frozen=True):
    config: StreamConfig


class TruncateStream(StreamCommand, frozen=True):
    """`cut` maps segment ids to byte offsets, -1 for a segment not yet reached."""

    cut: dict[int, int]


class ScaleStream(StreamCommand, frozen=True):
    """Replace segments of the active epoch by new ones that tile the same key ranges; `at` in epoch ms."""

    seals: tuple[int, ...]
    ranges: tuple[tuple[float, float], ...]
    at: int


class SealStream(StreamCommand, frozen=True):
    pass


class DeleteStream(StreamCommand, frozen=True):
    pass


class Host(msgspec.Struct, frozen=True, order=True):
    """Where a segment store listens, exactly as it registered itself."""

    address: str
    port: int


class Heartbeat(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A service instance is alive; `endpoints` maps a protocol ("grpc", "rest") to host:port."""

    service: str
    instance: str
    endpoints: dict[str, str]

    @property
    def key(self) -> str:
        return "cluster"

    @property
    def aggregate(self) -> str:
        return "cluster"


Command = (
    CreateScope
    | DeleteScope
    | CreateStream
    | ConfirmStreamName
    | ReleaseStreamName
    | CreateReservedStream
    | JoinStreamCreation
    | UpdateStream
    | TruncateStream
    | ScaleStream
    | SealStream
    | DeleteStream
    | Heartbeat
)
