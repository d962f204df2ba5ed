"""Where a server listens: on addresses of both families, as far as the machine has them. Functions without state."""

import socket
from contextlib import ExitStack

from sluice.addresses import EVERYWHERE, LOOPBACK


def listening_addresses(host: str) -> tuple[str, ...]:
    """The addresses of a host; of `localhost` and `::` those of both families that the machine has.

    Raises OSError for a name without any.
    """
    if host == LOOPBACK:
        return tuple(filter(_is_here, ("127.0.0.1", "::1"))) or ("127.0.0.1",)
    if host == EVERYWHERE and not _is_here(host):
        return ("0.0.0.0",)
    return tuple(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)))


def listen(host: str, *ports: int) -> list[socket.socket]:
    """Sockets that listen on these ports, each at all addresses of the host. Raises OSError if one is taken.

    Port 0 leaves it to the system: at all addresses the one that it takes at the first.
    """
    with ExitStack() as bound:
        sockets: list[socket.socket] = []
        for wanted in ports:
            port = wanted
            for address in listening_addresses(host):
                sockets.append(bound.enter_context(_listen(address, port)))
                port = sockets[-1].getsockname()[1]
        bound.pop_all()
    return sockets


def _listen(address: str, port: int) -> socket.socket:
    both = address == EVERYWHERE and socket.has_dualstack_ipv6()
    return socket.create_server((address, port), family=_family(address), dualstack_ipv6=both)


def _is_here(address: str) -> bool:
    try:
        with socket.socket(_family(address)) as tried:
            tried.bind((address, 0))
    except OSError:
        return False
    return True


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
