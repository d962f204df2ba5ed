"""The names and times that all examples share, so that they describe one deployment and one day.

A shop: the stream `shop/orders`, read by the reader group `billing`, and the key-value table `prices`.
"""

from uuid import NAMESPACE_DNS, uuid5

from sluice.domain.segment import segment_id
from sluice.domain.transaction_ids import first_of_range, transaction_id

SCOPE = "shop"
STREAM = "orders"
MARK = "_MARKorders"
GROUP = "billing"
TABLE = "prices"
SUBSCRIBER = f"{SCOPE}/{GROUP}"
GROUP_ID = "6d1f7e5c-0a52-4c3e-9b0e-2f6a0c9d4e11"
WRITER = "checkout-3"

GATEWAY = "api-gateway/api-gateway-0"
WORKFLOWS = "stream-workflows/stream-workflows-0"
TRANSACTIONS = "txn-manager/txn-manager-0"
CLUSTER = "cluster-manager/cluster-manager-0"
SPARK = "retention-spark/retention-spark-0"

START = 1_767_603_600_000
"""2026-01-05T09:00:00Z in epoch ms."""

EAST = ("segment-store-0.sluice.svc", 12345)
WEST = ("segment-store-1.sluice.svc", 12345)

FIRST = segment_id(0, 0)
SECOND = segment_id(0, 1)
UPPER_LEFT = segment_id(1, 2)
UPPER_RIGHT = segment_id(1, 3)


def at(seconds: float) -> int:
    """So many seconds into the day of the examples, in epoch ms."""
    return START + round(seconds * 1000)


def request_id(number: int) -> str:
    """The id that the gateway gave its request of this number."""
    return f"8c1d54a0e7-{number:x}"


SCOPE_CREATION = request_id(1)
CREATION = request_id(3)
"""The request that created the stream: its id is the stream's creation id."""
GROUP_CREATION = request_id(4)
TABLE_CREATION = request_id(5)

_SENT = "{workflow}-b2d9f03a61-{number}"
SUBSCRIPTION = _SENT.format(workflow=f"create-reader-group-{GROUP_CREATION}", number=1)
"""Requests that workflows send are named after them."""
UNSUBSCRIPTION = _SENT.format(workflow=f"update-reader-group-{request_id(0x31)}", number=1)
SEAL_ABORT = _SENT.format(workflow=f"seal-stream-{request_id(0x34)}", number=1)
SEAL_IN_SCOPE = _SENT.format(workflow=f"delete-scope-recursive-{request_id(0x37)}", number=1)
LEASE_CHECK = "3a94e1c07d5f4f6d8b1b5d9c2e7f6a03"

SCOPES_PARTITION = "#4"
PARTITION = "#11"
"""Keys that name partitions: that of the scope, and another one."""
DELETION_POSITION = 5120
"""The offset behind the beginning of the scope's deletion, in the scope's partition."""

COMMITTED = transaction_id(1, request_id(0x21))
ABORTED = transaction_id(1, request_id(0x22))
ROLLED = transaction_id(0, request_id(0x20))
"""Opened before the scale and committed behind it."""
PREPARED = first_of_range(1, "c05be1f7a2")
"""The first of a range that was prepared."""


def topic_identity(name: str) -> str:
    """The topic's name with the id that Kafka gave it when it was created."""
    return f"{name}@{uuid5(NAMESPACE_DNS, name).hex}"
