"""`sluice dev` as clients of others use it: the one from PyPI, which knows nothing of us, writes and reads.

It runs in a process of its own: that client holds Python's lock while it waits.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sluice_dev
from support import pravega
from support.controller import unique
from support.wait import SOON_S

SCOPE = "demo"
EVENTS = 300
COMMAND = (sys.executable, "-m", "sluice_dev", "--grpc-port", "0", "--rest-port", "0", "--store-port", "0")


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a `sluice dev` serves, which then ends in order and has left nothing behind."""
    folder = tmp_path_factory.mktemp("empty")
    environment = {"PYTHONPATH": str(Path(sluice_dev.__file__).parents[1]), "HOME": str(folder)}
    streams = ("--stream", f"{SCOPE}/orders:2", "--stream", f"{SCOPE}/once")
    with subprocess.Popen([*COMMAND, *streams], stdout=subprocess.PIPE, env=environment, cwd=folder) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["controller"]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(SOON_S) == 0
    assert list(folder.iterdir()) == []


async def test_what_was_written_is_read_once_by_a_reader_group(controller: str) -> None:
    streams = pravega.manager(controller)
    writers = {name: pravega.WriterThread(streams, SCOPE, "orders", name, EVENTS) for name in ("a", "b")}
    for writer in writers.values():
        writer.start()
    group = streams.create_reader_group(unique("group"), SCOPE, "orders")
    events = await pravega.read_all(group, 2 * EVENTS, SOON_S)
    for writer in writers.values():
        writer.finish(SOON_S)
    pravega.check_exactly_once(events, dict.fromkeys(writers, EVENTS))


async def test_only_what_was_committed_is_read(controller: str) -> None:
    streams = pravega.manager(controller)
    writer = streams.create_transaction_writer(SCOPE, "once", 1)
    for number in range(4):
        transaction = writer.begin_txn()
        transaction.write_event(f"w:{number}", "key")
        if number % 2:
            transaction.abort()
        else:
            transaction.commit()
    group = streams.create_reader_group(unique("group"), SCOPE, "once")
    assert await pravega.read_all(group, 2, SOON_S) == ["w:0", "w:2"]
