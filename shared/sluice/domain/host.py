"""Where a segment store listens: to connect to it, and its identity in ZooKeeper and the journal."""

import msgspec

from sluice.addresses import address_of


class Host(msgspec.Struct, frozen=True, order=True):
    """Address and port exactly as it registered itself.

    Two spellings of one machine are two hosts (segment-store-cluster A2).
    """

    address: str
    port: int

    def __str__(self) -> str:
        return address_of(self.address, self.port)
