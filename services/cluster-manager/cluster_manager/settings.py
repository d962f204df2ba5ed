"""The settings of the cluster manager, from the environment with the prefix SLUICE_."""

from pydantic import Field

from sluice.settings import ServiceSettings


class ClusterManagerSettings(ServiceSettings):
    """`container_count` must be that of every segment store; times in seconds.

    No caller waits for this service, so records of the journal gather for `journal_gather_ms` before it fetches them.
    `rebalance_interval_s` is the least time between two assignments of containers. Stores that come or go count when
    they have done so for `settle_s`.
    A service instance without a heartbeat for `member_timeout_s` is gone.
    """

    container_count: int = Field(default=4, ge=1)
    journal_gather_ms: int = Field(default=100, ge=0, le=1000)
    settle_s: float = Field(default=0.5, ge=0)
    rebalance_interval_s: float = Field(default=10.0, ge=0)
    member_timeout_s: float = Field(default=5.0, gt=0)
    zookeeper_session_timeout_s: float = Field(default=10.0, gt=0)
    zookeeper_call_timeout_s: float = Field(default=5.0, gt=0)
