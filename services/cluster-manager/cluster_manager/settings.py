"""The settings of the cluster manager, from the environment with the prefix SLUICE_."""

import ssl
from datetime import timedelta

from pydantic import Field

from sluice.domain.cluster.commands import HEARTBEAT_S
from sluice.security.contexts import ClientTls
from sluice.security.tls import tls_in_words, watched_client
from sluice.security.watched import SecurityConfigError, Watched, watched_password
from sluice.settings import ServiceSettings


class ClusterManagerSettings(ServiceSettings):
    """`container_count` must be that of every segment store; times in seconds.

    No caller waits for this service, so records of the journal gather for `journal_gather_ms` before it fetches them.
    `rebalance_interval_s` is the least time between two assignments of containers. Stores that come or go count when
    they have done so for `settle_s`.
    A service instance without a heartbeat for `member_timeout_s` is gone; one that ends in order says so itself.

    Of a partition of the journal a snapshot is made behind `snapshot_records` new records, or behind
    `snapshot_min_records` once the last one is `snapshot_interval_s` old; whether one is due is looked at every
    `snapshot_look_s`. The process that makes it is ended after `snapshot_timeout_s`. Records younger than
    `journal_keep` are never trimmed: `7d`, `12:00:00`, or ISO 8601 as in `PT20S`.

    With `zookeeper_tls` ZooKeeper is reached with TLS; files are PEM, and without authorities those of the machine
    count. Authorities may be in JKS or PKCS#12, too; the password of the latter is in a file. `zookeeper_user` logs in
    with SASL, by the password in `zookeeper_password_file`.
    """

    journal_gather_ms: int = Field(default=250, ge=0, le=1000)
    settle_s: float = Field(default=0.5, ge=0)
    rebalance_interval_s: float = Field(default=10.0, ge=0)
    member_timeout_s: float = Field(default=150.0, gt=HEARTBEAT_S)
    zookeeper_session_timeout_s: float = Field(default=10.0, gt=0)
    zookeeper_call_timeout_s: float = Field(default=5.0, gt=0)
    zookeeper_tls: bool = False
    zookeeper_tls_authorities: str = ""
    zookeeper_tls_authorities_password_file: str = ""
    zookeeper_tls_check_host: bool = True
    zookeeper_tls_certificate: str = ""
    zookeeper_tls_key: str = ""
    zookeeper_user: str = ""
    zookeeper_password_file: str = ""
    snapshot_records: int = Field(default=100_000, ge=1)
    snapshot_min_records: int = Field(default=10_000, ge=1)
    snapshot_interval_s: float = Field(default=3600.0, gt=0)
    snapshot_look_s: float = Field(default=10.0, gt=0)
    snapshot_timeout_s: float = Field(default=900.0, gt=0)
    journal_keep: timedelta = Field(default=timedelta(days=7), ge=timedelta(0))

    def security(self) -> dict[str, str]:
        """See ServiceSettings."""
        tls = tls_in_words(self.zookeeper_tls, self.zookeeper_tls_check_host)
        return {**super().security(), "zookeeper": f"{tls}, SASL" if self.zookeeper_user else tls}

    def zookeeper_client_tls(self) -> Watched[ssl.SSLContext] | None:
        """The context of connections to ZooKeeper; None without TLS. Raises SecurityConfigError."""
        tls = ClientTls(
            "SLUICE_ZOOKEEPER_TLS",
            self.zookeeper_tls_authorities,
            self.zookeeper_tls_check_host,
            self.zookeeper_tls_certificate,
            self.zookeeper_tls_key,
            self.zookeeper_tls_authorities_password_file,
        )
        return watched_client("ZooKeeper", self.zookeeper_tls, tls)

    def zookeeper_password(self) -> Watched[str] | None:
        """The password of the user; None without one. Raises SecurityConfigError."""
        if bool(self.zookeeper_user) != bool(self.zookeeper_password_file):
            raise SecurityConfigError("SLUICE_ZOOKEEPER_USER and SLUICE_ZOOKEEPER_PASSWORD_FILE go together")
        if not self.zookeeper_user:
            return None
        return watched_password("password of ZooKeeper", self.zookeeper_password_file)
