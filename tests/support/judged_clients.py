"""Clients that do whatever comes to streams, on several gateways, and write down what they did and were answered.

What they write is a history for the judge (`tests/judge`): one JSON object a line. Few streams are in play at a time,
so that clients meet; after some operations the next ones take their place, so that each has a short history. All
chance comes from `random`. Belongs to one event loop: a call's time is taken before anything of it is sent, a return's
when the answer is there.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TextIO

from sluice.controller_api import controller_pb2 as pb
from support.controller import info, segment_id

Call = Callable[[str, Any], Awaitable[Any]]
"""Makes an RPC on one gateway. Raises RefusedError."""

LEASE_MS = 600_000
MAX_SEGMENTS = 4


class RefusedError(Exception):
    """The call ended with a status of gRPC; "" as its name: nothing came back at all."""

    def __init__(self, code: str, details: str = "") -> None:
        super().__init__(code, details)
        self.code = code
        self.details = details

    @property
    def is_answer(self) -> bool:
        """Whether it says how the stream is, and not that something failed."""
        return self.code == "NOT_FOUND" or "being created" in self.details or "stream is SEAL" in self.details


Range = tuple[int, float, float]


@dataclass
class Played:
    """A stream in play, with what the clients have learned of it; they tell each other."""

    scope: str
    name: str
    epochs: dict[int, list[Range]] = field(default_factory=dict)
    segments: list[Range] = field(default_factory=list)
    transactions: list[tuple[int, int]] = field(default_factory=list)
    is_sealed: bool = False
    is_gone: bool = True

    @property
    def info(self) -> pb.StreamInfo:
        return info(self.scope, self.name)


Facts = dict[str, Any]


class Clients:
    """`gateways` by name. `now` is a clock that never stands still. A round has `streams` streams for `per_round`
    operations, or until `max_unknown` of them have ended in a way that is not known. Its scope's name begins with
    `prefix`.
    """

    def __init__(
        self,
        gateways: Mapping[str, Call],
        history: TextIO,
        random: Random,
        now: Callable[[], int],
        *,
        streams: int = 3,
        per_round: int = 360,
        max_unknown: int = 8,
        prefix: str = "judged",
    ) -> None:
        self.operations = 0
        self.unknown = 0
        self.random = random
        self._gateways = dict(gateways)
        self._history = history
        self._now = now
        self._streams = streams
        self._per_round = per_round
        self._max_unknown = max_unknown
        self._prefix = prefix
        self._rounds = 0
        self._left = 0
        self._unknown_left = 0
        self._in_play: list[Played] = []
        self._opening = asyncio.Lock()

    async def run(self, clients: int, operations: int, pause: Callable[[], Awaitable[None]] | None = None) -> None:
        """So many clients make so many operations together; each calls `pause` between its own."""
        until = self.operations + operations

        async def one(number: int) -> None:
            while self.operations < until:
                async with self._opening:
                    if self._left <= 0 or self._unknown_left <= 0:
                        await self._next_round()
                await self._do(number)
                if pause is not None:
                    await pause()

        await asyncio.gather(*(one(number) for number in range(clients)))

    async def _next_round(self) -> None:
        self._rounds += 1
        scope = f"{self._prefix}-{self._rounds}"
        self._left, self._unknown_left = self._per_round, self._max_unknown
        while True:
            try:
                await self._any_gateway()[1]("createScope", pb.ScopeInfo(scope=scope))
                break
            except RefusedError:
                await asyncio.sleep(0.2)
        self._in_play = [Played(scope, f"s{number}") for number in range(self._streams)]

    def _any_gateway(self) -> tuple[str, Call]:
        return self.random.choice(list(self._gateways.items()))

    async def _do(self, client: int) -> None:
        stream = self.random.choice(self._in_play)
        kinds = _CREATING if stream.is_gone else _SEALED if stream.is_sealed else _ACTIVE
        operation = self.random.choices(list(kinds), list(kinds.values()))[0](self, stream)
        if operation is None:
            return
        facts, rpc, request, read = operation
        gateway, call = self._any_gateway()
        self._left -= 1
        record = {"client": client, "gateway": gateway, "stream": f"{stream.scope}/{stream.name}", **facts}
        record["call"] = self._now()
        try:
            record |= read(await call(rpc, request))
        except RefusedError as error:
            record |= _status_of(facts["op"], error)
        finally:
            # Also when this client is cancelled: what it has begun may go on.
            if "status" in record:
                record["return"] = self._now()
            self._record(stream, record)

    def _record(self, stream: Played, record: Facts) -> None:
        if record["op"] == "list":
            record["among"] = [f"{stream.scope}/s{number}" for number in range(self._streams)]
        if "return" not in record:
            self.unknown += 1
            self._unknown_left -= 1
        self._learn(stream, record)
        self.operations += 1
        self._history.write(json.dumps(record) + "\n")

    def _learn(self, stream: Played, record: Facts) -> None:
        """So that what comes next has something to do with what is there."""
        kind, status = record["op"], record.get("status")
        if kind in ("segments", "epoch") and status == "OK" and record["segments"]:
            found = [(id, low, high) for id, low, high in record["segments"]]
            if kind == "segments":
                stream.segments = found
            stream.epochs[max(id >> 32 for id, _, _ in found)] = found
        elif kind == "open" and status == "OK":
            stream.transactions.append(record.pop("halves"))
        elif kind == "seal" and status == "SUCCESS":
            stream.is_sealed = True
        elif kind in ("create", "delete"):
            stream.is_gone = status == "STREAM_NOT_FOUND" or (kind == "delete" and status == "SUCCESS")
            stream.is_sealed = stream.is_sealed and not stream.is_gone and kind != "create"
        if stream.is_gone:
            stream.is_sealed, stream.transactions = False, stream.transactions[-3:]


Made = tuple[Facts, str, Any, Callable[[Any], Facts]]
"""What the history says of it, the RPC, its request, and what the answer means."""


def _ranges(response: Any) -> list[list[Any]]:
    return [[each.segmentId.segmentId, each.minKey, each.maxKey] for each in response.segmentRanges]


def _named(response: Any, field_name: str = "status") -> Facts:
    enum = response.DESCRIPTOR.fields_by_name[field_name].enum_type
    return {"status": enum.values_by_number[getattr(response, field_name)].name}


def _segments(response: Any) -> Facts:
    return {"status": "OK", "segments": _ranges(response)}


def _exists(_clients: Clients, stream: Played) -> Made:
    return {"op": "exists"}, "checkStreamExists", stream.info, lambda a: {"status": str(a.exists).lower()}


def _configuration(_clients: Clients, stream: Played) -> Made:
    def read(answer: pb.StreamConfig) -> Facts:
        return {"status": "OK", "config": f"{answer.scalingPolicy.minNumSegments} {' '.join(answer.tags.tag)}"}

    return {"op": "configuration"}, "getStreamConfiguration", stream.info, read


def _current(_clients: Clients, stream: Played) -> Made:
    return {"op": "segments"}, "getCurrentSegments", stream.info, _segments


def _epoch(clients: Clients, stream: Played) -> Made:
    epoch = clients.random.randint(0, max(stream.epochs, default=0) + 1)
    request = pb.GetEpochSegmentsRequest(streamInfo=stream.info, epoch=epoch)
    return {"op": "epoch", "epoch": epoch}, "getEpochSegments", request, _segments


def _head(_clients: Clients, stream: Played) -> Made:
    def read(answer: pb.SegmentsAtTime) -> Facts:
        return {"status": "OK", "cut": [each.segmentId.segmentId for each in answer.segments]}

    return {"op": "head"}, "getSegments", pb.GetSegmentsRequest(streamInfo=stream.info), read


def _is_current(clients: Clients, stream: Played) -> Made | None:
    if not stream.epochs:
        return None
    segment = clients.random.choice(clients.random.choice(list(stream.epochs.values())))[0]
    request = segment_id(stream.scope, stream.name, segment)
    facts = {"op": "is-current", "segment": segment}
    return facts, "isSegmentValid", request, lambda a: {"status": str(a.response).lower()}


def _check_scale(clients: Clients, stream: Played) -> Made:
    epoch = max(0, max(stream.epochs, default=0) - clients.random.choice((0, 0, 1, 2)))
    request = pb.ScaleStatusRequest(streamInfo=stream.info, epoch=epoch)
    return {"op": "check-scale", "epoch": epoch}, "checkScale", request, _named


def _list(_clients: Clients, stream: Played) -> Made:
    def read(answer: pb.StreamsInScopeResponse) -> Facts:
        return {"status": "OK", "found": [f"{each.scope}/{each.stream}" for each in answer.streams]}

    request = pb.StreamsInScopeRequest(scope=pb.ScopeInfo(scope=stream.scope))
    return {"op": "list"}, "listStreamsInScope", request, read


def _configured(clients: Clients, stream: Played, kind: str, rpc: str) -> Made:
    minimum, tag = clients.random.randint(1, 2), f"t{clients.operations}"
    policy = pb.ScalingPolicy(minNumSegments=minimum)
    request = pb.StreamConfig(streamInfo=stream.info, scalingPolicy=policy, tags=pb.Tags(tag=[tag]))
    return {"op": kind, "config": f"{minimum} {tag}", "minimum": minimum}, rpc, request, _named


def _create(clients: Clients, stream: Played) -> Made:
    return _configured(clients, stream, "create", "createStream")


def _update(clients: Clients, stream: Played) -> Made:
    return _configured(clients, stream, "update", "updateStream")


def _scale(clients: Clients, stream: Played) -> Made | None:
    """Split a segment, or merge two that lie side by side."""
    if not stream.segments:
        return None
    segments = sorted(stream.segments, key=lambda each: each[1])
    at = clients.random.randrange(len(segments))
    if len(segments) >= MAX_SEGMENTS or (at + 1 < len(segments) and clients.random.random() < 0.5):
        at = min(at, len(segments) - 2)
        old = segments[at : at + 2]
        new = [(old[0][1], old[1][2])]
    else:
        old = [segments[at]]
        middle = (old[0][1] + old[0][2]) / 2
        new = [(old[0][1], middle), (middle, old[0][2])]
    request = pb.ScaleRequest(streamInfo=stream.info, sealedSegments=[each[0] for each in old], scaleTimestamp=1)
    for low, high in new:
        request.newKeyRanges.add(start=low, end=high)

    def read(answer: pb.ScaleResponse) -> Facts:
        created = [[each.segmentId.segmentId, each.minKey, each.maxKey] for each in answer.segments]
        return {**_named(answer), "epoch": answer.epoch, "segments": created}

    return {"op": "scale", "seals": [each[0] for each in old], "ranges": new}, "scale", request, read


def _truncate(clients: Clients, stream: Played) -> Made | None:
    if not stream.epochs:
        return None
    cut = [each[0] for each in clients.random.choice(list(stream.epochs.values()))]
    request = pb.StreamCut(streamInfo=stream.info, cut=dict.fromkeys(cut, 0))
    return {"op": "truncate", "cut": cut}, "truncateStream", request, _named


def _seal(_clients: Clients, stream: Played) -> Made:
    return {"op": "seal"}, "sealStream", stream.info, _named


def _delete(_clients: Clients, stream: Played) -> Made:
    return {"op": "delete"}, "deleteStream", stream.info, _named


def _open(_clients: Clients, stream: Played) -> Made:
    def read(answer: pb.CreateTxnResponse) -> Facts:
        high, low = answer.txnId.highBits, answer.txnId.lowBits
        segments = [[each.segmentId.segmentId, each.minKey, each.maxKey] for each in answer.activeSegments]
        facts = {"status": "OK", "txn": f"{high}.{low}", "epoch": high >> 32, "segments": segments}
        return {**facts, "halves": (high, low)}

    return {"op": "open"}, "createTransaction", pb.CreateTxnRequest(streamInfo=stream.info, lease=LEASE_MS), read


def _on_transaction(kind: str, rpc: str, field_name: str) -> Callable[[Clients, Played], Made | None]:
    def make(clients: Clients, stream: Played) -> Made | None:
        if not stream.transactions:
            return None
        high, low = clients.random.choice(stream.transactions[-4:])
        id = pb.TxnId(highBits=high, lowBits=low)
        request: Any = pb.TxnRequest(streamInfo=stream.info, txnId=id)
        if kind == "ping":
            request = pb.PingTxnRequest(streamInfo=stream.info, txnId=id, lease=LEASE_MS)
        return {"op": kind, "txn": f"{high}.{low}"}, rpc, request, lambda a: _named(a, field_name)

    return make


_ACTIVE: dict[Callable[[Clients, Played], Made | None], float] = {
    _exists: 4,
    _configuration: 10,
    _current: 12,
    _epoch: 4,
    _head: 5,
    _is_current: 4,
    _check_scale: 4,
    _list: 3,
    _on_transaction("state", "checkTransactionState", "state"): 8,
    _on_transaction("ping", "pingTransaction", "status"): 2,
    _on_transaction("commit", "commitTransaction", "status"): 5,
    _on_transaction("abort", "abortTransaction", "status"): 2,
    _open: 6,
    _update: 6,
    _scale: 6,
    _truncate: 3,
    _create: 1,
    _seal: 1,
    _delete: 0.5,
}
"""How often each operation is made, beside the others."""

_SEALED = {**_ACTIVE, _delete: 12}
_CREATING = {**_ACTIVE, _create: 40, _delete: 3}

_KNOWN_ENDS = {
    "NOT_FOUND": ("configuration", "segments", "is-current", "head", "epoch", "open"),
    "INTERNAL": ("segments", "is-current"),
}


def _status_of(kind: str, error: RefusedError) -> Facts:
    """Nothing if it is not known what became of the operation."""
    if kind == "open" and "stream is SEAL" in error.details:
        return {"status": "STREAM_SEALED"}
    if kind in _KNOWN_ENDS.get(error.code, ()) and ("being created" in error.details) == (error.code == "INTERNAL"):
        return {"status": error.code}
    return {}
