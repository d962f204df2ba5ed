"""Conversations that no client would have: broken HTTP/2, gRPC and HTTP/1.1, the same for the same dice.

Each is what one connection sends. Most begin as real ones do, so that they get past the first look at them.
"""

import random
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress

from api_gateway.app import RULES
from api_gateway.pravega.server import INTERFACE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED = 0x1, 0x4, 0x8
MAX_ANSWER = 1 << 20
HANG_S = 0.3
"""How long an answer is waited for; a conversation that gets none is left open for so long."""

Conversation = Callable[[random.Random], bytes]

_RPCS = [method.name for method in INTERFACE.methods]
_PATHS = [operation.split(" ", 1) for operation in RULES]
_NAMES = ("sc", "st", "..", "%2e%2e", "a" * 300, "_system", "\u00e9", "a%2Fb", "0", "-1", "null", "%00", "a;b", "${x}")


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def header(name: bytes, value: bytes) -> bytes:
    """A literal of HPACK that is not indexed."""
    return b"\x00" + _length(len(name)) + name + _length(len(value)) + value


def _length(number: int) -> bytes:
    if number < 127:
        return bytes((number,))
    found, number = b"\x7f", number - 127
    while number >= 128:
        found, number = found + bytes((number % 128 + 128,)), number // 128
    return found + bytes((number,))


def credentials(dice: random.Random) -> bytes:
    """A value of `authorization` that proves nothing."""
    user = dice.choice(("admin", "alice", "", "\u00fc", "a" * dice.randrange(2000)))
    word = dice.choice(("", "1111_aaaa", "x" * dice.randrange(5000), "::"))
    return dice.choice(
        (
            b"Basic " + b64encode(f"{user}:{word}".encode()),
            b"Basic " + dice.randbytes(dice.randrange(100)).replace(b"\r", b"").replace(b"\n", b""),
            b"Bearer " + b".".join(b64encode(dice.randbytes(dice.randrange(200))) for _ in range(dice.randrange(5))),
            b"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
            b"basic x",
            b"Basic",
            b"",
            b"Other " + b"x" * dice.randrange(20_000),
        )
    )


# HTTP/2 and gRPC.


def grpc_call(rpc: bytes, *headers: tuple[bytes, bytes]) -> bytes:
    """One right call, with an empty message and whatever headers."""
    block = _call_headers(b"/" + INTERFACE.full_name.encode() + b"/" + rpc)
    block += b"".join(header(*each) for each in headers)
    sent = frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, bytes(5))
    return PREFACE + frame(SETTINGS, 0, 0) + sent


def _call_headers(path: bytes) -> bytes:
    return b"".join(
        (
            header(b":method", b"POST"),
            header(b":scheme", b"http"),
            header(b":path", path),
            header(b":authority", b"gateway"),
            header(b"te", b"trailers"),
            header(b"content-type", b"application/grpc"),
        )
    )


def request_headers(dice: random.Random, path: bytes) -> bytes:
    block = _call_headers(path)
    if dice.random() < 0.7:
        block += header(b"authorization", credentials(dice))
    if dice.random() < 0.2:
        block += header(b"grpc-timeout", dice.choice((b"1n", b"99999999H", b"-1S", b"x", b"")))
    if dice.random() < 0.2:
        block += header(b"grpc-encoding", dice.choice((b"gzip", b"deflate", b"br", b"identity", b"\xff")))
    if dice.random() < 0.2:
        block += header(b"x-bin" if dice.random() < 0.5 else b"traceparent", dice.randbytes(dice.randrange(100)))
    return block


def method_path(dice: random.Random) -> bytes:
    if dice.random() < 0.8:
        return f"/{INTERFACE.full_name}/{dice.choice(_RPCS)}".encode()
    return dice.choice(
        (
            b"/grpc.health.v1.Health/Watch",
            b"/grpc.health.v1.Health/Check",
            b"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            b"/",
            b"/a/b/c",
            b"/" + b"x" * dice.randrange(5000),
        )
    )


def message(dice: random.Random) -> bytes:
    """A message of gRPC, and its frame of five bytes, which may say something else."""
    body = dice.choice(
        (
            b"",
            b"\x0a\x02sc",
            b"\x0a\x08\x0a\x02sc\x12\x02st",
            dice.randbytes(dice.randrange(300)),
            b"\x0a\xff\xff\xff\xff\x0f",
            b"\x0a" * 500,
        )
    )
    said = len(body) if dice.random() < 0.8 else dice.choice((0, 2**32 - 1, len(body) + 1, 5 << 20))
    return dice.choice((b"\x00", b"\x00", b"\x00", b"\x01", b"\x07")) + said.to_bytes(4, "big") + body


def calls(dice: random.Random) -> bytes:
    """Requests that are nearly right."""
    sent = PREFACE + frame(SETTINGS, 0, 0)
    for stream in range(1, 2 * dice.randrange(1, 30), 2):
        sent += frame(HEADERS, END_HEADERS, stream, request_headers(dice, method_path(dice)))
        if dice.random() < 0.9:
            sent += frame(DATA, dice.choice((END_STREAM, END_STREAM, 0)), stream, message(dice))
        if dice.random() < 0.2:
            sent += frame(RST_STREAM, 0, stream, dice.randbytes(4))
    return sent


def frames(dice: random.Random) -> bytes:
    """Frames of any kind, of right and wrong sizes, on any stream."""
    sent = PREFACE + (frame(SETTINGS, 0, 0) if dice.random() < 0.8 else b"")
    for _ in range(dice.randrange(1, 40)):
        kind = dice.choice((*range(10), dice.randrange(256)))
        stream = dice.choice((0, 1, 2, 3, dice.randrange(2**31), 2**31 - 1))
        sent += frame(kind, dice.randrange(256), stream, dice.randbytes(dice.choice((0, 4, 5, 8, dice.randrange(200)))))
    return sent


def header_blocks(dice: random.Random) -> bytes:
    """Compressed headers that are none, or never end."""
    block = request_headers(dice, method_path(dice))
    broken = dice.choice(
        (
            b"\xff" * dice.randrange(1, 100),
            block[: dice.randrange(len(block))],
            b"\x40\x7f\xff\xff\xff\xff\xff\x0f",
            b"\x3f\xff\xff\xff\xff\x0f" + block,
            block + header(b"x" * dice.randrange(1, 3000), b"y" * dice.randrange(20_000)),
            block + b"".join(header(b":path", b"/x") for _ in range(50)),
            bytes(dice.choice(block) if dice.random() < 0.1 else byte for byte in block),
        )
    )
    if dice.random() < 0.5:
        return PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS | END_STREAM, 1, broken)
    pieces = b"".join(frame(CONTINUATION, 0, 1, header(b"x", b"y" * 50)) for _ in range(dice.randrange(1, 500)))
    return PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, block) + pieces


def floods(dice: random.Random) -> bytes:
    """Much of what costs the server more than the client."""
    many = dice.randrange(100, 2000)
    block = request_headers(dice, method_path(dice))
    if len(block) > 2000:
        block = _call_headers(b"/a/b")
    flood = dice.choice(
        (
            frame(PING, 0, 0, b"12345678") * many,
            frame(SETTINGS, 0, 0, b"\x00\x04\x00\x00\x00\x00") * many,
            frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 3,
            frame(PRIORITY, 0, 1, b"\x00\x00\x00\x03\x10") * many,
            b"".join(
                frame(HEADERS, END_HEADERS, s, block) + frame(RST_STREAM, 0, s, b"\x00\x00\x00\x08")
                for s in range(1, many, 2)
            ),
            b"".join(frame(HEADERS, END_HEADERS, s, block) for s in range(1, many, 2)),
            frame(SETTINGS, 0, 0, b"\x00\x04\x00\x00\x00\x00")
            + b"".join(
                frame(HEADERS, END_HEADERS, s, block) + frame(DATA, END_STREAM, s, message(dice))
                for s in range(1, 99, 2)
            ),
        )
    )
    return PREFACE + frame(SETTINGS, 0, 0) + flood


def noise(dice: random.Random) -> bytes:
    """Bytes, or a conversation of which some are others."""
    if dice.random() < 0.3:
        return dice.randbytes(dice.randrange(1, 3000))
    sent = bytearray(dice.choice((calls, frames, header_blocks))(dice))
    for _ in range(dice.randrange(1, 20)):
        sent[dice.randrange(len(sent))] = dice.randrange(256)
    return bytes(sent[: dice.randrange(1, len(sent) + 1)])


GRPC: tuple[Conversation, ...] = (calls, calls, frames, header_blocks, floods, noise)

# HTTP/1.1.


def http_calls(dice: random.Random) -> bytes:
    """Calls of both interfaces without right credentials, some with bodies that are none."""
    sent = b""
    for _ in range(dice.randrange(1, 5)):
        method, path = dice.choice(_PATHS)
        if dice.random() < 0.1:
            method = dice.choice(("TRACE", "CONNECT", "PATCH", "X" * 50, "OPTIONS"))
        while "{" in path:
            path = path[: path.index("{")] + dice.choice(_NAMES) + path[path.index("}") + 1 :]
        query = dice.choice(("", "", "?limit=-1", "?after=%ff", "?limit=" + "9" * 500, "?x=" + "y" * 3000))
        body = dice.choice((b"", b"{}", b"[" * 5000, b'{"scaling": 1e999}', b'{"a": "\\ud800"}', b"\xff"))
        lines = [f"{method} {path}{query} HTTP/1.1".encode(), b"Host: gateway", b"Authorization: " + credentials(dice)]
        if dice.random() < 0.7:
            lines.append(b"Content-Type: " + dice.choice((b"application/json", b"text/plain", b"\xff")))
        lines.append(b"Content-Length: " + str(len(body) + dice.choice((0, 0, 0, 1, -1, 10**12))).encode())
        sent += b"\r\n".join(lines) + b"\r\n\r\n" + body
    return sent


def http_noise(dice: random.Random) -> bytes:
    return dice.choice(
        (
            dice.randbytes(dice.randrange(1, 2000)),
            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * dice.randrange(5000),
            b"GET /" + b"x" * dice.randrange(100_000) + b" HTTP/1.1\r\n\r\n",
            b"POST /v1/scopes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\nx",
            b"POST /v1/scopes HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"GET /v1/scopes HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            b"GET http://169.254.169.254/ HTTP/1.1\r\nHost: x\r\n\r\n",
            PREFACE + frame(SETTINGS, 0, 0),
        )
    )


HTTP: tuple[Conversation, ...] = (http_calls, http_calls, http_noise)


def converse(address: tuple[str, int], sent: bytes) -> bytes:
    """What the server answers before it hangs up, or is silent for a while."""
    found = b""
    with suppress(OSError), socket.create_connection(address, timeout=5) as connection:
        connection.settimeout(HANG_S)
        with suppress(OSError):
            connection.sendall(sent)
        while len(found) < MAX_ANSWER and (piece := connection.recv(65536)):
            found += piece
    return found


class Attack:
    """Threads that have conversations with a server until it is stopped. As a context it goes on inside.

    `answers(answer)` is given each answer, and raises AssertionError for one that should not be.
    """

    def __init__(
        self, targets: dict[tuple[str, int], tuple[Conversation, ...]], seed: int, answers: Callable[[bytes], None]
    ) -> None:
        self.conversations = 0
        self.wrong: list[str] = []
        self._answers = answers
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(address, one, random.Random(f"{seed} {number}")), daemon=True)
            for number, (address, one) in enumerate(_each(targets))
        ]

    def __enter__(self) -> "Attack":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self, address: tuple[str, int], conversation: Conversation, dice: random.Random) -> None:
        while not self._stopped.is_set():
            seed = dice.getrandbits(32)
            try:
                self._answers(converse(address, conversation(random.Random(seed))))
            except AssertionError as error:
                self.wrong.append(f"{conversation.__name__}(random.Random({seed})): {error}")
            self.conversations += 1
            # One that is refused at once is not to take all of the machine.
            time.sleep(0.001)


def _each(
    targets: dict[tuple[str, int], tuple[Conversation, ...]],
) -> Iterator[tuple[tuple[str, int], Conversation]]:
    for address, conversations in targets.items():
        for conversation in conversations:
            yield address, conversation
