"""`sluice dev` as clients of others use it: the one from PyPI, which knows nothing of us, writes and reads.

It runs in a process of its own: that client holds Python's lock while it waits.
"""

import json
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pravega_client
import pytest
from support import pravega
from support.controller import controller, unique
from support.wait import SOON_S, eventually

import sluice_dev

SCOPE = "demo"
EVENTS = 300
COMMAND = (sys.executable, "-m", "sluice_dev", "--grpc-port", "0", "--rest-port", "0", "--store-port", "0")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a `sluice dev` serves, which then ends in order and has left nothing behind."""
    folder = tmp_path_factory.mktemp("empty")
    environment = {"PYTHONPATH": str(Path(sluice_dev.__file__).parents[1]), "HOME": str(folder)}
    streams = ("--stream", f"{SCOPE}/orders:2", "--stream", f"{SCOPE}/once")
    quick = ("--load-interval", "0.5", "--cooldown", "0.5")
    with subprocess.Popen([*COMMAND, *streams, *quick], stdout=subprocess.PIPE, env=environment, cwd=folder) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], (), (), SOON_S)[0], "it is ready in time"
            yield json.loads(process.stdout.readline())["controller"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(SOON_S) == 0
        finally:
            process.kill()
    assert list(folder.iterdir()) == []


async def test_what_was_written_is_read_once_by_a_reader_group(address: str) -> None:
    streams = pravega.manager(address)
    writers = {name: pravega.WriterThread(streams, SCOPE, "orders", name, EVENTS) for name in ("a", "b")}
    for writer in writers.values():
        writer.start()
    group = streams.create_reader_group(unique("group"), SCOPE, "orders")
    events = await pravega.read(group, 2 * EVENTS, SOON_S)
    for writer in writers.values():
        writer.finish(SOON_S)
    pravega.check_exactly_once(events, dict.fromkeys(writers, EVENTS))


async def test_only_what_was_committed_is_read(address: str) -> None:
    streams = pravega.manager(address)
    writer = streams.create_transaction_writer(SCOPE, "once", 1)
    for number in range(5):
        transaction = writer.begin_txn()
        transaction.write_event(f"w:{number}", "key")
        if number % 2:
            transaction.abort()
        else:
            transaction.commit()
    group = streams.create_reader_group(unique("group"), SCOPE, "once")
    assert await pravega.read(group, 3, SOON_S) == ["w:0", "w:2", "w:4"]


async def test_a_stream_is_split_while_much_is_written_and_merged_when_that_ends(address: str) -> None:
    streams = pravega.manager(address)
    often = pravega_client.StreamScalingPolicy.auto_scaling_policy_by_event_rate(1, 2, 1)
    streams.create_stream_with_policy(SCOPE, "scaled", often)
    writer = pravega.WriterThread(streams, SCOPE, "scaled", "w")
    with controller(address) as gateway:

        def segments() -> int:
            return len(gateway.segments(SCOPE, "scaled"))

        writer.start()
        eventually(lambda: segments() > 1, SOON_S, "the segment is split")
        writer.stop()
        writer.finish(SOON_S)
        eventually(lambda: segments() == 1, SOON_S, "the segments are merged")
    group = streams.create_reader_group(unique("group"), SCOPE, "scaled")
    events = await pravega.read(group, writer.acknowledged, SOON_S)
    pravega.check_exactly_once(events, {"w": writer.acknowledged})
