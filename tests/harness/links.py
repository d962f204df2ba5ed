"""Links: the networks between processes of a test's system, which can be cut, made one-way, slow or lossy.

A client reaches a server by a relay that has two addresses of its own in 127.0.0.0/8: it listens on one with the
server's port, and calls the server from the other. So each packet says which link it is on and which way it goes, and
where the kernel lets us (root, or `unshare --map-root-user --net`), it drops them: no refusal, no reset, retries that
come ever later, as on a network that breaks. Elsewhere the relay keeps back what would be lost. It alone makes slow.

Concurrency: two calls must not overlap.
"""

import multiprocessing
import random
import subprocess
from collections.abc import Collection, Iterable

from harness.relay import Link, Way, run

_ANSWERS_S = 60.0


GONE = Way(loss=1.0)
SLOW = Way(delay_s=0.25, bytes_per_s=100_000)
LOSSY = Way(loss=0.1)


class Links:
    """All links of a system. Addresses are drawn at random: no two systems share any.

    Where the kernel `drops_packets` it does, if it may.
    """

    def __init__(self, *, drops_packets: bool = True) -> None:
        self.all: list[Link] = []
        self._net = f"127.{random.randint(64, 254)}.{random.randint(0, 254)}"
        self._table = "links_" + self._net.replace(".", "_")
        self._drops_packets = drops_packets

    def add(self, client: str, server: str, port: int, target_port: int) -> Link:
        """A link that listens at once, at the port that the server has for others."""
        if not self.all:
            self._start()
        number = 2 * len(self.all) + 1
        link = Link(client, server, f"{self._net}.{number}", f"{self._net}.{number + 1}", port, target_port)
        self._send(link)
        self.all.append(link)
        return link

    def set(self, senders: Collection[str], receivers: Collection[str], way: Way) -> None:
        """Have everything from these processes to those go this way from now on. Raises ValueError if no link is."""
        there = [link for link in self.all if link.client in senders and link.server in receivers]
        back = [link for link in self.all if link.server in senders and link.client in receivers]
        if not there and not back:
            raise ValueError(f"no link from {sorted(senders)} to {sorted(receivers)}")
        for link in there:
            link.to_server = way
        for link in back:
            link.to_client = way
        for link in {*there, *back}:
            self._send(link)
        if self._drops_packets:
            self._drop((which, way.loss) for link in self.all for which, way in link.packets() if way.loss)

    def close(self) -> None:
        """The relay ends, and what was on its way is lost."""
        if not self.all:
            return
        self._relay.kill()
        self._relay.join()
        self._to_relay.close()
        if self._drops_packets:
            self._drop(())

    def _start(self) -> None:
        self._drops_packets = self._drops_packets and _nft(
            f"add table ip {self._table}\ndelete table ip {self._table}\n"
        )
        # Not a copy of this process, which has threads.
        spawn = multiprocessing.get_context("spawn")
        self._to_relay, theirs = spawn.Pipe()
        options = {"drops_packets": self._drops_packets}
        self._relay = spawn.Process(target=run, args=(theirs,), kwargs=options, name="links", daemon=True)
        self._relay.start()
        theirs.close()

    def _send(self, link: Link) -> None:
        self._to_relay.send(link)
        assert self._to_relay.poll(_ANSWERS_S), "the relay does not answer"
        assert self._to_relay.recv() == link.address

    def _drop(self, lossy: Iterable[tuple[str, float]]) -> None:
        """Have the kernel drop of these packets so many, and none of others."""
        rules = "".join(f"  {which} numgen random mod 1000 <= {loss * 1000 - 1:.0f} drop\n" for which, loss in lossy)
        table = f"table ip {self._table}"
        chain = f"{table} {{\n chain on_arrival {{\n  type filter hook input priority 0;\n{rules} }}\n}}\n"
        assert _nft(f"add {table}\ndelete {table}\n{chain if rules else ''}"), "nft does not take the rules any more"


def _nft(commands: str) -> bool:
    """Whether the kernel took them; without nft, or the right to, it does not."""
    try:
        done = subprocess.run(["nft", "-f", "-"], input=commands, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0
