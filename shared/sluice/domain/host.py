"""The address of a segment store. Two spellings of one machine are two hosts (segment-store-cluster A2)."""

import msgspec

from sluice.addresses import address_of


class Host(msgspec.Struct, frozen=True, order=True):
    """Where a segment store listens, exactly as it registered itself."""

    address: str
    port: int

    def __str__(self) -> str:
        return address_of(self.address, self.port)
