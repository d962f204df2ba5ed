"""Addresses as text: `host:port`, an IPv6 address in brackets. Everything writes and reads them here. Pure."""

LOOPBACK = "localhost"
"""To listen on: the addresses that only this machine reaches."""
EVERYWHERE = "::"
"""To listen on: all addresses."""


def address_of(host: str, port: int) -> str:
    """The text of an address; the host may have its brackets already."""
    return f"{bracketed(host)}:{port}"


def host_and_port(text: str) -> tuple[str, int]:
    """The host, without brackets, and the port of an address. Raises ValueError, without the text, for what is none."""
    host, colon, port = text.rpartition(":")
    is_split = colon and (":" not in host or host != bare(host))
    if not is_split or not port.removeprefix("-").isdecimal():
        raise ValueError("no address: it must be HOST:PORT, an IPv6 address in brackets")
    return bare(host), int(port)


def bracketed(host: str) -> str:
    """A host as it stands before a colon and a port."""
    return f"[{host}]" if ":" in host and host == bare(host) else host


def bare(host: str) -> str:
    """A host without brackets."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host
