"""The process that writes into the stream, for one node.

The client of PyPI keeps Python's lock while it waits for a segment store, threads or not. In the node's own process
nothing would renew locks meanwhile; so it has a process to itself, which ends with the node: by the kernel's signal if
the node is killed, by the end of its input otherwise.

Batches that wait are written together and share a flush. After an error the process ends: what the client still holds
must not be written later.

Concurrency: one thread. Run as `python -m distributed_ingest.writer_process PARENT CONTROLLER SCOPE STREAM`.
"""

import ctypes
import os
import select
import signal
import sys
import time
from typing import Any, BinaryIO

import msgspec

from distributed_ingest.frames import LENGTH, Answer, Batch, frame

_TOGETHER_BYTES = 4 * 1024 * 1024
_INFLIGHT_EVENTS = 20_000
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Write what comes until the input ends."""
    parent, controller, scope, stream = sys.argv[1:]
    _end_with(int(parent))
    # The node is who decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given, answers = os.fdopen(0, "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    # Whatever the client prints, from its first moment on, does not get between the answers.
    os.dup2(2, 1)
    import pravega_client

    # The client takes credentials and authorities from the environment, as Pravega has it.
    has_credentials = "pravega_client_auth_method" in os.environ
    manager = pravega_client.StreamManager(controller, has_credentials, controller.startswith("tls://"))
    writer = manager.create_writer(scope, stream, _INFLIGHT_EVENTS)
    while batches := _waiting(given):
        answered = _write(writer, batches)
        for answer in answered:
            _send(answers, frame(answer))
        if any(answer.last for answer in answered):
            # Without the client's destructors, which would flush.
            os._exit(1)


def _write(writer: Any, batches: list[Batch]) -> list[Answer]:
    answers = []
    try:
        for batch in batches:
            if time.clock_gettime(time.CLOCK_BOOTTIME) > batch.until_s:
                answers.append(Answer("its turn came after the lock of its sender may have run out"))
                continue
            for data, key in batch.events:
                writer.write_event_bytes(data, key)
            answers.append(Answer())
        writer.flush()
    except BaseException as error:  # noqa: BLE001 - a panic of the client is one; sent to the node, then the end
        reason = f"{type(error).__name__}: {error}"[:2000]
        return [Answer(reason, last=True) for _ in batches]
    return answers


def _waiting(given: BinaryIO) -> list[Batch]:
    """Return the next batch, with those that have come meanwhile; none at the end of the input."""
    batches: list[Batch] = []
    size = 0
    while not batches or (size < _TOGETHER_BYTES and select.select([given], [], [], 0)[0]):
        head = _read(given, LENGTH.size)
        if not head:
            break
        (length,) = LENGTH.unpack(head)
        batches.append(msgspec.msgpack.decode(_read(given, length), type=Batch))
        size += length
    return batches


def _read(given: BinaryIO, count: int) -> bytes:
    """Return so many bytes; none if the input ends before."""
    data = bytearray()
    while len(data) < count:
        piece = given.read(count - len(data))
        if not piece:
            return b""
        data += piece
    return bytes(data)


def _send(answers: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[answers.write(view) :]


def _end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that happens."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        sys.exit("the node has ended")


if __name__ == "__main__":
    main()
