"""A client of any language that writes, commits and reads in a process of its own, and how long each was silent."""

import time
from collections import defaultdict
from collections.abc import Sequence

from harness import eventually
from support.client_peer import KEYS
from support.controller import Controller, unique
from support.scaling import scale_to
from support.writing_process import WritingProcess, longest_silence, program

KINDS = ("wrote", "committed", "read")
GOES_ON_S = 120.0


class ClientProcess(WritingProcess):
    """Goes on until `ends_exactly_once`, on a stream of its own. `command` is a program that prints as `ClientPeer`."""

    def __init__(self, gateway: Controller, name: str, command: Sequence[str]) -> None:
        """`gateway` is there now and at the end; the command gets the scope and the stream behind its arguments."""
        self._gateway = gateway
        self._stream = unique(name), "st"
        assert gateway.create_scope(self._stream[0]) == "SUCCESS"
        assert gateway.create_stream(*self._stream, 2) == "SUCCESS"
        self._said: dict[str, list[str]] = defaultdict(list)
        self._at: dict[str, list[float]] = defaultdict(list)
        super().__init__(name, [*command, *self._stream])

    def receive(self, line: str) -> None:
        kind, _, what = line.strip().partition(" ")
        self._at[kind].append(time.monotonic())
        self._said[kind].append(what)

    def progress(self) -> str:
        return ", ".join(f"{kind} {len(self._said[kind])}" for kind in KINDS)

    def goes_on(self) -> None:
        """It writes, commits and reads more."""
        before = {kind: len(self._said[kind]) for kind in KINDS}

        def is_beyond() -> bool:
            return all(len(self._said[kind]) > before[kind] + 5 for kind in KINDS)

        eventually(is_beyond, GOES_ON_S, f"{self.name} goes on after {before}")

    def scale(self, gateway: Controller, segments: int) -> None:
        """Replace all segments, so that it needs a controller to go on."""
        scale_to(gateway, *self._stream, segments, GOES_ON_S)

    def silences(self, since: float = 0.0) -> dict[str, float]:
        """The longest time between two acknowledgements of a kind, in seconds, which ended behind a monotonic time."""
        return {kind: longest_silence(self._at[kind], since) for kind in KINDS}

    def ends_exactly_once(self) -> None:
        """It ends; all that was acknowledged was read once, in the order of its keys, and nothing else."""
        self.stop()
        eventually(lambda: self._said["ended"], GOES_ON_S, f"{self.name} has written all")
        assert self._gateway.seal(*self._stream) == "SUCCESS"
        self.wait(GOES_ON_S)
        read = self._said["read"]
        assert sorted(read) == sorted(f"{kind}/{what}" for kind in KINDS[:2] for what in self._said[kind])
        by_key: dict[tuple[str, int], list[int]] = defaultdict(list)
        for kind, _, number in (event.partition("/") for event in read):
            by_key[kind, int(number) % KEYS].append(int(number))
        assert all(numbers == sorted(numbers) for numbers in by_key.values())


def our_client(address: str) -> list[str]:
    """The command of our own client."""
    return program("client_peer", address)
