"""The program of the demonstration: a stream that is written to and scales by itself, transactions, a reader group.

A loud phase, in which the stream's segments are far above their target, is followed by a silent one, and so on; so it
splits and merges. It begins with as few segments as its policy allows: what a demonstration before has split would
split no more. Events and transactions go through the client of PyPI. That client keeps its reader groups to itself, so
the group that the page shows is created as Java's client does, and so is a scale. Ends with its input.

The client's calls keep Python's lock while they wait, so each activity is a process of its own.
Run as `python -m api_gateway.console.demonstration HOST:PORT`.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import grpc

from api_gateway.console.demonstration import CLIENT, READINGS, SCOPE
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub

TARGET_EVENTS_PER_S = 12
SEGMENTS = 2
LOUD_EVENTS_PER_S = 160
"""Halves of the stream have more than five times their target, which stores report after two minutes; quarters less.

Segment stores report a segment that nothing is written to once that has lasted as long as they are set to.
"""

PAYMENTS, GROUP = "payments", "display"

_LOUD_S, _SILENT_S = 180.0, 300.0
_TICK_S, _CAUGHT_UP_S = 0.25, 1.0
_TRANSACTION_S = 2.0
_ABORTED_OF = 6
_CALL_S = 60.0
_DAY_MS = 24 * 3600 * 1000


def main() -> None:
    """Run until the input ends, or until one of the activities fails."""
    os.nice(5)
    address, *named = sys.argv[1:]
    # No requirement of the gateway: where it is missing, no demonstration is offered (`why_not`).
    client = import_module(CLIENT)
    streams = client.StreamManager(f"tcp://{address}", False, False)
    if named:
        _do(_ACTIVITIES[named[0]], streams)
    _make(client, streams)
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        controller = ControllerServiceStub(channel)
        _merge_all(controller)
        _make_group(controller)
    program = (sys.executable, "-m", "api_gateway.console.demonstration", address)
    processes = [subprocess.Popen((*program, name), stdin=subprocess.PIPE) for name in _ACTIVITIES]
    ended = threading.Event()
    for process in processes:
        threading.Thread(target=_wait_for_end, args=(process, ended), daemon=True).start()
    threading.Thread(target=_wait_for_input, args=(ended,), daemon=True).start()
    ended.wait()
    failed = any(process.poll() for process in processes)
    for process in processes:
        process.stdin.close()  # type: ignore[union-attr]
    for process in processes:
        process.wait()
    os._exit(int(failed))


def _do(activity: "Activity", streams: Any) -> NoReturn:
    """One activity, until the input ends; what it fails with is printed."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def act() -> None:
        try:
            activity(streams, ended)
        except BaseException as error:  # noqa: BLE001 - a panic of the client is one; it is said, then the end
            failures.append(error)
            ended.set()

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    threading.Thread(target=_wait_for_input, args=(ended,), daemon=True).start()
    ended.wait()
    thread.join(2.0)
    if failures:
        print(f"{type(failures[0]).__name__}: {failures[0]}", file=sys.stderr, flush=True)
    # Without the client's destructors, which would wait for what cannot be written.
    os._exit(int(bool(failures)))


def _wait_for_end(process: "subprocess.Popen[bytes]", ended: threading.Event) -> None:
    process.wait()
    ended.set()


def _make(client: Any, streams: Any) -> None:
    """The scope and its streams, unless a demonstration before has made them."""
    streams.create_scope(SCOPE)
    scaling = client.StreamScalingPolicy.auto_scaling_policy_by_event_rate(TARGET_EVENTS_PER_S, 2, SEGMENTS)
    retention = client.StreamRetentionPolicy.by_time(_DAY_MS)
    streams.create_stream_with_policy(*READINGS, scaling, retention, ["demonstration"])
    fixed = client.StreamScalingPolicy.fixed_scaling_policy(2)
    streams.create_stream_with_policy(SCOPE, PAYMENTS, fixed, retention, ["demonstration"])


def _merge_all(controller: ControllerServiceStub) -> None:
    """Scale the stream to its least, if it has more segments and nothing else scales it. Raises grpc.RpcError."""
    stream = pb.StreamInfo(scope=READINGS.scope, stream=READINGS.name)
    found = controller.getCurrentSegments(stream, timeout=_CALL_S).segmentRanges
    if len(found) <= SEGMENTS:
        return
    scale = pb.ScaleRequest(
        streamInfo=stream,
        sealedSegments=[one.segmentId.segmentId for one in found],
        newKeyRanges=[
            pb.ScaleRequest.KeyRangeEntry(start=part / SEGMENTS, end=(part + 1) / SEGMENTS) for part in range(SEGMENTS)
        ],
        scaleTimestamp=time.time_ns() // 1_000_000,
    )
    controller.scale(scale, timeout=_CALL_S)


def _make_group(controller: ControllerServiceStub) -> None:
    """The reader group; one that is there already stays. Raises grpc.RpcError, RuntimeError."""
    stream = pb.StreamInfo(scope=READINGS.scope, stream=READINGS.name)
    group = pb.ReaderGroupConfiguration(
        scope=SCOPE,
        readerGroupName=GROUP,
        groupRefreshTimeMillis=3_000,
        automaticCheckpointIntervalMillis=30_000,
        maxOutstandingCheckpointRequest=3,
        readerGroupId=str(uuid.uuid4()),
        startingStreamCuts=[pb.StreamCut(streamInfo=stream, cut={})],
    )
    reply = controller.createReaderGroup(group, timeout=_CALL_S)
    if reply.status != pb.CreateReaderGroupResponse.SUCCESS:
        raise RuntimeError(f"the reader group is not created: {pb.CreateReaderGroupResponse.Status.Name(reply.status)}")


def _wait_for_input(ended: threading.Event) -> None:
    while sys.stdin.buffer.read(1):
        pass
    ended.set()


def _write(streams: Any, ended: threading.Event) -> None:
    writer = streams.create_writer(*READINGS, 1_000)
    began, last, number = time.monotonic(), 0.0, 0
    while not ended.wait(_TICK_S):
        now = time.monotonic() - began
        # What a scale held up for longer is not made up for: that would heat up the new segments.
        since_last, last = min(now - last, _CAUGHT_UP_S), now
        if now % (_LOUD_S + _SILENT_S) >= _LOUD_S:
            continue
        for _ in range(round(since_last * LOUD_EVENTS_PER_S)):
            number += 1
            writer.write_event(f'{{"sensor":{number % 50},"value":{number % 97}}}', f"sensor-{number % 50}")
        writer.flush()


def _transact(streams: Any, ended: threading.Event) -> None:
    writer = streams.create_transaction_writer(SCOPE, PAYMENTS, os.getpid())
    number = 0
    while not ended.wait(_TRANSACTION_S):
        number += 1
        transaction = writer.begin_txn()
        for part in range(3):
            transaction.write_event(f'{{"payment":{number},"part":{part}}}', f"customer-{number % 9}")
        if number % _ABORTED_OF == 0:
            # The client cannot flush a transaction, and an abort does not wait for its events: so they have time.
            ended.wait(_TRANSACTION_S)
            transaction.abort()
        else:
            transaction.commit()


def _read(streams: Any, ended: threading.Event) -> None:
    group = streams.create_reader_group(f"{GROUP}-{os.getpid()}", *READINGS)
    asyncio.run(_display(group, ended))


async def _display(group: Any, ended: threading.Event) -> None:
    reader = group.create_reader(f"reader-{os.getpid()}")
    while not ended.is_set():
        try:
            async with asyncio.timeout(1.0):
                part = await reader.get_segment_slice_async()
        except TimeoutError:
            continue
        for _ in part:
            pass
        reader.release_segment(part)
    reader.reader_offline()


Activity = Callable[[Any, threading.Event], None]
_ACTIVITIES: dict[str, Activity] = {"write": _write, "transact": _transact, "read": _read}


if __name__ == "__main__":
    main()
