"""Scaling under a client that writes and reads on: the package `pravega`, through scale after scale."""

import asyncio
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from math import inf

import pytest
from support.controller import Controller, controller, info, unique
from support.effort import effort
from support.pravega import check_exactly_once, manager, read_all
from support.writer import WriterProcess

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb

pytestmark = pytest.mark.integration

SCALES, DEADLINE_S = effort(50, 20), 120.0


def scale(gateway: Controller, scope: str, split: bool) -> None:
    """Split the lowest segment in two, or merge the two lowest, and wait until that is done."""
    segments = gateway.segments(scope, "st")
    low, middle, high = segments[0][1], segments[0][2], segments[1][2]
    half = (low + middle) / 2
    seals = [segments[0][0]] if split else [segments[0][0], segments[1][0]]
    ranges = [(low, half), (half, middle)] if split else [(low, high)]
    request = pb.ScaleRequest(
        streamInfo=info(scope, "st"),
        sealedSegments=seals,
        newKeyRanges=[pb.ScaleRequest.KeyRangeEntry(start=start, end=end) for start, end in ranges],
    )
    begun = gateway.call("scale", request)
    assert begun.status == pb.ScaleResponse.STARTED
    question = pb.ScaleStatusRequest(streamInfo=info(scope, "st"), epoch=begun.epoch)
    eventually(
        lambda: gateway.call("checkScale", question).status == pb.ScaleStatusResponse.SUCCESS, 60, "the scale is done"
    )


async def test_a_writer_and_a_reader_go_on_through_scale_after_scale(system: System) -> None:
    scope, streams = unique("scaling"), manager(system.grpc_address)
    with controller(system.grpc_address) as gateway:
        assert gateway.create_scope(scope) == "SUCCESS"
        assert gateway.create_stream(scope, "st", 2) == "SUCCESS"
        written: dict[str, int] = {}
        with ExitStack() as stack:
            begin = partial(WriterProcess, system.grpc_address, scope, "st")
            writers = [stack.enter_context(begin(name)) for name in ("a", "b")]
            eventually(lambda: all(w.acknowledged > 0 for w in writers), 60, "both write")
            group = streams.create_reader_group("rg", scope, "st")
            reading = asyncio.create_task(read_all(group, lambda: sum(written.values()) or inf, 2 * DEADLINE_S))
            for _, split in zip(range(SCALES), cycle((True, False)), strict=False):
                await asyncio.to_thread(scale, gateway, scope, split)
            assert all(w.running for w in writers), "a writer has failed"
            for writer in writers:
                writer.stop()
            counts = {w.name: await asyncio.to_thread(w.finish, DEADLINE_S) for w in writers}
            # A reader that has them all waits for one more.
            written |= counts | {"last": 1}
            with begin("last", 1) as last:
                await asyncio.to_thread(last.finish, DEADLINE_S)
            check_exactly_once(await reading, written)
            streams.delete_reader_group("rg", scope)
        request = pb.GetEpochSegmentsRequest(streamInfo=info(scope, "st"), epoch=SCALES)
        assert len(gateway.call("getEpochSegments", request).segmentRanges) == 2
