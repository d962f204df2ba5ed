"""Each property of Pravega's controller: the setting that it becomes, the one value it may have, or why it is unneeded.

A rule says which; `translation.py` applies it. Names are without `controller.`; the old one counts more than the new,
as in the original (security 6.1, background-and-other-workflows 10).
"""

from collections.abc import Callable
from dataclasses import dataclass

AUTH, TLS, STORE_TLS, ZOOKEEPER_TLS = (
    "security.auth.enable",
    "security.tls.enable",
    "segmentstore.connect.channel.tls",
    "zk.connect.security.enable",
)
CERTIFICATE, KEY_STORE = "security.tls.server.certificate.location", "security.tls.server.keyStore.location"
KEY_STORE_PASSWORD = "security.tls.server.keyStore.pwd.location"

ON, OFF = ("true", "yes", "1"), ("false", "no", "0")
"""How the original writes a truth value, in small letters."""

Convert = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Kept:
    """It becomes the setting `SLUICE_…`. `convert` raises ValueError.

    If `on` names a switch, only while that is on. A setting `of_gateway` is one that other services have as well, for
    something else.
    """

    setting: str
    convert: Convert = str
    on: str = ""
    of_gateway: bool = False
    is_secret: bool = False
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Fixed:
    """It must have one of these values, in small letters; another is a mistake, or needs what Sluice does not do."""

    values: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Unneeded:
    """Whatever it is changes nothing that clients see."""

    why: str


def truth(text: str) -> str:
    if (word := text.lower()) not in (*ON, *OFF):
        raise ValueError("it must be true or false")
    return str(word in ON).lower()


def times(factor: float, most: int | None = None) -> Convert:
    """A number in another unit; it may be at most `most`."""

    def convert(text: str) -> str:
        try:
            number = int(text)
        except ValueError:
            raise ValueError("it must be a whole number") from None
        if most is not None and number > most:
            raise ValueError(f"it must be at most {most}")
        return f"{number * factor:.15g}"

    return convert


def _shortest_lease(text: str) -> str:
    return f"{min(10.0, float(times(0.001)(text))):.15g}"


def _protocols(text: str) -> str:
    return text.replace(" ", "")


_NO_THREADS = Unneeded("there is no pool of threads of that kind")
_NO_BUCKETS = Unneeded("work is dealt out by partition")
_ZOOKEEPER_RETRIES = Unneeded("ZooKeeper is tried until it is back")

RULES: dict[str, tuple[str, Kept | Fixed | Unneeded]] = {
    "cluster.name": ("service.cluster", Kept("cluster_name")),
    "container.count": ("containerCount", Kept("container_count")),
    "zk.connect.uri": ("zkURL", Kept("zookeeper")),
    "zk.connect.session.timeout.milliseconds": (
        "sessionTimeoutMillis",
        Kept("zookeeper_session_timeout_s", times(0.001)),
    ),
    "zk.connect.retries.interval.milliseconds": ("zk.retryIntervalMillis", _ZOOKEEPER_RETRIES),
    "zk.connect.retries.count.max": ("maxRetries", _ZOOKEEPER_RETRIES),
    ZOOKEEPER_TLS: ("secureConnection", Kept("zookeeper_tls", truth)),
    "zk.connect.security.tls.trustStore.location": (
        "zk.tlsTrustStoreFile",
        Kept("zookeeper_tls_authorities", on=ZOOKEEPER_TLS),
    ),
    "zk.connect.security.tls.trustStore.pwd.location": (
        "zk.tlsTrustStorePasswordFile",
        Kept("zookeeper_tls_authorities_password_file", on=ZOOKEEPER_TLS),
    ),
    "service.rpc.listener.port": ("service.port", Kept("grpc_port")),
    "service.rpc.published.host.nameOrIp": ("service.publishedRPCHost", Kept("grpc_published_host")),
    "service.rpc.published.port": ("service.publishedRPCPort", Kept("grpc_published_port")),
    "service.rest.listener.host.ip": (
        "service.restIp",
        Kept("host", of_gateway=True, remark="REST and gRPC listen on one address: gRPC does on this one, too"),
    ),
    "service.rest.listener.port": ("service.restPort", Kept("health_port", of_gateway=True)),
    AUTH: ("auth.enabled", Kept("auth_enabled", truth)),
    "security.pwdAuthHandler.accountsDb.location": ("auth.userPasswordFile", Kept("auth_accounts", on=AUTH)),
    "security.auth.delegationToken.signingKey.basis": (
        "auth.tokenSigningKey",
        Kept("token_key", on=AUTH, is_secret=True),
    ),
    "security.auth.delegationToken.ttl.seconds": ("auth.accessTokenTtlSeconds", Kept("token_ttl_s", times(1))),
    "security.auth.readerGroupStreams.writesWithReadPermissions.enable": (
        "",
        Kept("auth_reader_groups_with_read", truth),
    ),
    TLS: (
        "auth.tlsEnabled",
        Fixed((*ON, *OFF), "it must be true or false, and has the settings of TLS below it count or not"),
    ),
    "security.tls.protocolVersion": ("", Kept("tls_protocols", _protocols, on=TLS)),
    CERTIFICATE: ("auth.tlsCertFile", Kept("tls_certificate", on=TLS, remark="gRPC and REST show it")),
    "security.tls.server.privateKey.location": ("auth.tlsKeyFile", Kept("tls_key", on=TLS)),
    KEY_STORE: ("rest.tlsKeyStoreFile", Unneeded("REST shows the certificate of gRPC, which has to be the same")),
    KEY_STORE_PASSWORD: ("rest.tlsKeyStorePasswordFile", Unneeded("it opens the key store, to compare certificates")),
    STORE_TLS: ("auth.segmentStoreTlsEnabled", Kept("store_tls", truth)),
    "security.tls.trustStore.location": (
        "auth.tlsTrustStore",
        Kept(
            "store_tls_authorities",
            on=STORE_TLS,
            remark="names of segment stores are verified, which the original does not; "
            "SLUICE_STORE_TLS_CHECK_HOST=false has it as there",
        ),
    ),
    "segmentstore.connect.channel.timeoutSeconds": ("", Kept("store_timeout_s", times(1))),
    "hostMonitor.enable": (
        "hostMonitorEnabled",
        Fixed(ON, "which store runs which container is always decided here"),
    ),
    "segmentstore.connect.host.nameOrIp": ("service.hostIp", Unneeded("it counts only without host monitor")),
    "segmentstore.connect.port": ("service.hostPort", Unneeded("it counts only without host monitor")),
    "rebalance.interval.seconds.min": ("minRebalanceIntervalSeconds", Kept("rebalance_interval_s", times(1))),
    "transaction.lease.count.min": (
        "transaction.minLeaseValue",
        Kept("min_lease_s", _shortest_lease, remark="of more than 10 s: leases of 10 s are taken all the same"),
    ),
    "transaction.lease.count.max": (
        "transaction.maxLeaseValue",
        Kept("max_lease_s", times(0.001, 30 * 24 * 3600 * 1000)),
    ),
    "transaction.execution.timeBound.days": ("", Kept("max_transaction_life_s", times(86400))),
    "transaction.ttl.hours": (
        "transaction.ttlHours",
        Unneeded("ended transactions are remembered for two days at least, or until 50,000 newer ones have ended"),
    ),
    "listCompletedTxn.max.records": ("", Unneeded("the newest 500 are listed")),
    "retention.frequency.minutes": ("retention.frequencyMinutes", Kept("retention_pause_s", times(60))),
    "retention.bucket.count": ("retention.bucketCount", _NO_BUCKETS),
    "retention.thread.count": ("retention.threadCount", _NO_THREADS),
    "watermarking.frequency.seconds": ("watermarking.frequencySeconds", Kept("watermark_interval_s", times(1))),
    "watermarking.bucket.count": ("watermarking.bucketCount", _NO_BUCKETS),
    "watermarking.thread.count": ("watermarking.threadCount", _NO_THREADS),
    "scale.request.stream.name": (
        "scale.streamName",
        Fixed(("_requeststream",), "the stores' reports of load are read from _system/_requeststream"),
    ),
    "scale.request.readerGroup.name": (
        "scale.ReaderGroup",
        Unneeded("reports of load are read without a reader group"),
    ),
    "service.asyncTaskPool.size": ("service.asyncTaskPoolSize", _NO_THREADS),
    "request.replyWithStackTraceOnError.enable": (
        "replyWithStackTraceOnError",
        Unneeded("a refusal says its reason in sluice-reason, and never has a stack trace"),
    ),
    "request.tracing.enable": ("requestTracingEnabled", Unneeded("SLUICE_OTLP_ENDPOINT switches traces on")),
    "dumpStackOnShutdown.enable": ("dumpStackOnShutdown", Unneeded("there is no Java stack")),
    "pravegaTables.enable": ("usePravegaTables", Unneeded("metadata stand in the journal")),
    "health.frequency.seconds": ("", Unneeded("health is looked at when it is asked for")),
}
