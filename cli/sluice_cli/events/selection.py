"""What of a stream is read: from where on, and the segments of which routing key.

An event does not have its key with it: by key means the segments that the key's events go to, in each epoch the one
whose range holds it. Ranges are those of the API, which knows them for segments of the past, too.
"""

from functools import cached_property
from operator import itemgetter

from sluice.domain.segment import epoch_of, parse_segment_name, segment_name
from sluice.pravega.event_routing import key_position, segment_at
from sluice_cli.errors import UsageError
from sluice_cli.events.reading import tail
from sluice_cli.session import Session
from sluice_cli.units import cut_of, scoped, segment_text
from sluice_client import Client, Start, find_start, start_at

HEAD, TAIL = "head", "tail"


class Selection:
    """Of one stream; `begin` is `head`, `tail` or a cut. Raises UsageError."""

    def __init__(self, session: Session, stream: str, begin: str, key: str | None) -> None:
        self.scope, self.stream = scoped(stream)
        self._session = session
        self._begin = begin
        self._cut = {} if begin in (HEAD, TAIL) else cut_of([begin])
        self._key = key
        self._ranges: dict[int, list[tuple[float, int]]] = {}

    async def start(self, client: Client) -> Start:
        """Where reading begins. Raises ClientError, SegmentStoreError, CommandError."""
        if self._begin == HEAD:
            return await find_start(client.controller, self.scope, self.stream)
        if self._begin == TAIL:
            return await tail(client, self.scope, self.stream)
        ids = {int(segment): offset for segment, offset in self._cut.items()}
        for id in ids:
            if all(id != known for _, known in self._ranges_of(epoch_of(id))):
                raise UsageError(
                    f"stream {self.scope}/{self.stream} has no segment {segment_text(id)}",
                    "`sluice stream segments SCOPE/STREAM --epoch N` shows those of an epoch",
                )
        # A segment that the cut has not reached is read when those before it have been.
        positions = {segment_name(self.scope, self.stream, id): at for id, at in ids.items() if at >= 0}
        return await start_at(client.controller, positions)

    def wanted(self, segment: str) -> bool:
        """Whether a segment, by its qualified name, is one to read. Raises CommandError."""
        if self._key is None:
            return True
        id = parse_segment_name(segment)[2]
        ranges = [(high, str(known)) for high, known in self._ranges_of(epoch_of(id))]
        return segment_at(self._position, ranges) == str(id)

    @cached_property
    def _position(self) -> float:
        return key_position(self._key or "")

    def _ranges_of(self, epoch: int) -> list[tuple[float, int]]:
        """The segments of an epoch, each behind the upper end of its range."""
        from sluice_cli.api import path_of

        if epoch not in self._ranges:
            path = path_of("scopes", self.scope, "streams", self.stream, "segments")
            found = ((one["high"], one["id"]) for one in self._session.rest.pages(path, epoch=epoch))
            self._ranges[epoch] = sorted(found, key=itemgetter(0))
        return self._ranges[epoch]
