"""The process that writes, with a twin of the client in it: what is acknowledged is stored, and it never hangs on."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from distributed_ingest.records import Event
from distributed_ingest.sink import SinkError
from distributed_ingest.stream_sink import StreamSink
from harness import eventually_async

MORE_THAN_A_PIPE_HOLDS = 1 << 20
Stored = Callable[[], list[str]]

CLIENT = '''
"""Stores events in a file when they are flushed; some events say what shall go wrong."""
import os, pathlib, sys, time

FILE = pathlib.Path(os.environ["TWIN_FILE"])

class Panic(BaseException):
    pass

class Writer:
    def __init__(self, name):
        self.name, self.held = name, []

    def write_event_bytes(self, data, key):
        if data == b"refuse":
            raise ValueError("refused")
        if data == b"panic":
            raise Panic("the client is broken")
        if data == b"die":
            sys.stderr.write("so long\\n")
            os._exit(3)
        if data == b"hang":
            FILE.with_suffix(".hangs").touch()
            time.sleep(3600)
        print("chatter on stdout")
        self.held.append(f"{self.name} {key} {data.decode()}\\n")

    def flush(self):
        with FILE.open("a") as file:
            file.writelines(self.held)
        self.held.clear()

class StreamManager:
    def __init__(self, uri, auth, tls):
        self.uri = uri

    def create_writer(self, scope, stream, inflight):
        return Writer(f"{self.uri} {scope}/{stream}")
'''


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stored:
    (tmp_path / "pravega_client.py").write_text(CLIENT)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    file = tmp_path / "stored"
    monkeypatch.setenv("TWIN_FILE", str(file))
    file.touch()
    return lambda: file.read_text().splitlines()


@pytest.fixture
async def sink(stored: object) -> AsyncIterator[StreamSink]:
    sink = StreamSink("tcp://here", "demo", "lines", answer_s=20)
    yield sink
    await sink.close()


def events(*texts: str) -> list[Event]:
    return [Event(text.encode(), "k") for text in texts]


def writers(of: int) -> list[int]:
    """The processes that write for a node, as the kernel has them."""
    children = [int(pid) for task in Path(f"/proc/{of}/task").glob("*/children") for pid in task.read_text().split()]
    return [pid for pid in children if b"distributed_ingest.writer_process" in _proc(pid, "cmdline").split(b"\0")]


def ended(pid: int) -> bool:
    return _proc(pid, "stat").rpartition(b")")[2].split()[:1] in ([], [b"Z"])


def _proc(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


async def test_what_is_acknowledged_is_stored_in_order(sink: StreamSink, stored: Stored) -> None:
    await asyncio.gather(*(sink.write(events(f"{n}a", f"{n}b"), 20) for n in range(50)))
    assert stored() == [f"tcp://here demo/lines k {n}{part}" for n in range(50) for part in "ab"]
    await sink.write([Event(b"x" * 3_000_000, None)], 20)
    assert stored()[-1].startswith("tcp://here demo/lines None xxx")
    assert len(writers(os.getpid())) == 1
    await sink.close()
    assert writers(os.getpid()) == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [("refuse", "ValueError: refused"), ("panic", "Panic: the client is broken"), ("die", "so long")],
)
async def test_after_an_error_there_is_a_new_process(sink: StreamSink, stored: Stored, bad: str, reason: str) -> None:
    await sink.write(events("one"), 20)
    with pytest.raises(SinkError, match=reason):
        await sink.write(events("two", bad), 20)
    await sink.write(events("three"), 20)
    assert [line.rpartition(" ")[2] for line in stored()] == ["one", "three"]


async def test_no_answer_ends_the_process(stored: Stored) -> None:
    sink = StreamSink("tcp://here", "demo", "lines", answer_s=1)
    with pytest.raises(SinkError, match="has not answered for 1 s"):
        await sink.write(events("hang"), 20)
    await eventually_async(lambda: not writers(os.getpid()), 20, "the process has ended")
    sink.answer_s = 20
    await sink.write(events("on"), 20)
    assert [line.rpartition(" ")[2] for line in stored()] == ["on"]
    await sink.close()


async def test_no_answer_ends_the_process_although_the_write_was_cancelled(stored: Stored, tmp_path: Path) -> None:
    """Its lock is lost, so the task that wrote is cancelled; what hangs must not be written after the next holder's."""
    sink = StreamSink("tcp://here", "demo", "lines", answer_s=20)
    await sink.write(events("one"), 20)
    (writer,) = writers(os.getpid())
    sink.answer_s = 1
    writing = asyncio.create_task(sink.write(events("hang"), 20))
    await eventually_async((tmp_path / "stored.hangs").exists, 20, "it is under way")
    writing.cancel()
    await asyncio.wait((writing,))
    await eventually_async(lambda: ended(writer), 20, "it has ended all the same")
    await sink.close()


async def test_a_new_process_is_not_ended_for_the_silence_of_the_one_before(sink: StreamSink, stored: Stored) -> None:
    await sink.write(events("one"), 20)
    (first,) = writers(os.getpid())
    with pytest.raises(SinkError):
        await sink.write(events("die"), 20)
    await sink.write(events("two"), 20)
    (second,) = writers(os.getpid())
    os.kill(second, signal.SIGSTOP)
    ahead = asyncio.create_task(sink.write(events("x" * MORE_THAN_A_PIPE_HOLDS), 20))
    await asyncio.sleep(0)
    sink.answer_s = 0.01
    with pytest.raises(SinkError, match=r"has not answered for 0\.01 s"):
        await sink.write(events("in line behind another"), 20)
    os.kill(second, signal.SIGCONT)
    await ahead
    assert first != second and writers(os.getpid()) == [second]


async def test_what_the_client_prints_as_it_begins_is_no_answer(
    sink: StreamSink, stored: Stored, tmp_path: Path
) -> None:
    (tmp_path / "pravega_client.py").write_text(f'import os\nos.write(1, b"hello from the client")\n{CLIENT}')
    await sink.write(events("one"), 20)
    assert [line.rpartition(" ")[2] for line in stored()] == ["one"]


async def test_what_comes_after_its_time_is_not_written(sink: StreamSink, stored: Stored) -> None:
    with pytest.raises(SinkError, match="its turn came after the lock"):
        await sink.write(events("late"), -1)
    assert stored() == []


async def test_the_process_ends_with_the_node(tmp_path: Path, stored: Stored) -> None:
    """The node is killed while the client waits for a segment store: then the end of the input says nothing to it."""
    program = (
        "import asyncio\n"
        "from distributed_ingest.records import Event\n"
        "from distributed_ingest.stream_sink import StreamSink\n"
        "asyncio.run(StreamSink('tcp://here', 'demo', 'lines').write([Event(b'hang', None)], 60))\n"
    )
    node = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    (writer,) = await eventually_async(lambda: writers(node.pid), 20, "the process that writes runs")
    node.kill()
    await node.wait()
    await eventually_async(lambda: ended(writer), 20, "it has ended too")
