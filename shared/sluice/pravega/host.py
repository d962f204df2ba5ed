"""A segment store's published address: where to connect, and its identity in the container map."""

import msgspec

from sluice.addresses import address_of


class Host(msgspec.Struct, frozen=True, order=True):
    """Address and port exactly as the segment store published them; `endpoint_id` is empty for segment stores.

    Two spellings of one machine are two hosts (segment-store-cluster A2).
    """

    address: str
    port: int
    endpoint_id: str = ""

    def __str__(self) -> str:
        return address_of(self.address, self.port)
