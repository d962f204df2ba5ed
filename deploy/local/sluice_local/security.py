"""What a secured system adds to its parts: TLS, passwords, and who segment stores are to the gateway.

All of it is in one folder, such as `sluice security init` writes; it is made before the first start and kept. Secrets
stay in that folder: settings of parts name its files, and no command line holds one. The bookie has neither TLS nor
passwords: only the segment stores of this machine talk to it.

What clients connect to, gateways and segment stores, shows the certificate of a site instead, if the folder has one.

Each function gives nothing, or empty values, for a system that is not secured.
"""

from typing import NamedTuple

from sluice.security.folder import USERS, File, init
from sluice.security.watched import SecurityConfigError
from sluice_local.errors import LocalError
from sluice_local.home import HOST
from sluice_local.settings import LocalSettings

Properties = dict[str, str | int | bool]
_SCRAM = "SCRAM-SHA-512"


class Shown(NamedTuple):
    """Files in PEM: what clients are shown, and the authority by which they verify it."""

    certificate: str = ""
    key: str = ""
    authority: str = ""


SITE = Shown("site.pem", "site.key", "site-ca.pem")
_MADE = Shown(File.CERTIFICATE, File.KEY, File.AUTHORITY)


def make_once(settings: LocalSettings) -> None:
    """Make the folder, if it is not there. Raises LocalError."""
    if settings.secure and not (settings.security_dir / File.ACCOUNTS).exists():
        try:
            init(settings.security_dir)
        except SecurityConfigError as error:
            raise LocalError(str(error)) from error


def how_to_connect(settings: LocalSettings) -> str:
    """What clients have to be given, in lines for people."""
    if not settings.secure:
        return ""
    folder, of_clients = settings.security_dir, shown(settings).authority
    controller = f"tls://{settings.published(settings.grpc_port)}"
    return (
        f"\n  clients              {controller}; authority {of_clients}"
        f"\n  users                {', '.join(USERS)}; passwords in {folder}/<user>.password"
        "\n  command line         "
        f"export SLUICE_API=https://{settings.published(settings.rest_port)} SLUICE_CONTROLLER={controller}"
        f" SLUICE_CA={of_clients} SLUICE_USER=admin SLUICE_PASSWORD_FILE={folder}/admin.password"
        f" SLUICE_KAFKA_CONF={kafka_client(settings)}"
        "\n  README.md            has it for each client"
    )


def authority(settings: LocalSettings) -> str:
    """The file with the authority that certificates are of, but a site's."""
    return str(settings.security_dir / File.AUTHORITY) if settings.secure else ""


def shown(settings: LocalSettings) -> Shown:
    """The site's, if its certificate is there."""
    if not settings.secure:
        return Shown()
    folder = settings.security_dir
    is_of_site = (folder / SITE.certificate).exists()
    return Shown(*(str(folder / name) for name in (SITE if is_of_site else _MADE)))


def kafka_client(settings: LocalSettings) -> str:
    """The file with what clients of the embedded Kafka are configured with."""
    return str(settings.security_dir / File.KAFKA_CLIENT) if settings.secure else ""


def token_key(settings: LocalSettings) -> str:
    """The file with the key that tokens for segment stores are signed with."""
    return str(settings.security_dir / File.TOKEN_KEY) if settings.secure else ""


def redis_password(settings: LocalSettings) -> str:
    """The file with the embedded Redis's password."""
    return str(settings.security_dir / File.REDIS_PASSWORD) if settings.secure else ""


def zookeeper_authority(settings: LocalSettings) -> str:
    """The file with the authority of the embedded ZooKeeper's certificate."""
    return authority(settings) if settings.zookeeper is None else ""


def kafka_properties(settings: LocalSettings, broker: str, controller: str) -> Properties:
    """TLS and a password for clients, a certificate for the controller inside; in the place of what is open."""
    if not settings.secure:
        return {}
    return {
        "inter.broker.listener.name": "SASL_SSL",
        "listeners": f"SASL_SSL://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"SASL_SSL://{broker}",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SSL",
        "sasl.enabled.mechanisms": _SCRAM,
        "sasl.mechanism.inter.broker.protocol": _SCRAM,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(settings.security_dir / File.PAIR),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority(settings),
        "listener.name.controller.ssl.client.auth": "required",
    }


def kafka_options(settings: LocalSettings) -> tuple[str, ...]:
    """Who the broker is to itself."""
    file = settings.security_dir / File.KAFKA_BROKER
    return (f"-Djava.security.auth.login.config={file}",) if settings.secure else ()


def kafka_format_arguments(settings: LocalSettings) -> tuple[str, ...]:
    """The first user, for the tool that formats the broker's folder: it reads arguments from the file."""
    return (f"@{settings.security_dir / File.KAFKA_FORMAT}",) if settings.secure else ()


def zoo_cfg(settings: LocalSettings) -> Properties:
    """TLS in the place of the open port; clients show no certificate."""
    if not settings.secure:
        return {}
    return {
        "secureClientPort": settings.zookeeper_port,
        "secureClientPortAddress": HOST,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(settings.security_dir / File.PAIR),
        "ssl.trustStore.location": authority(settings),
        "ssl.clientAuth": "none",
    }


def zookeeper_client_options(settings: LocalSettings) -> tuple[str, ...]:
    """For a Java program whose client of ZooKeeper has no settings of its own."""
    if not (trusted := zookeeper_authority(settings)):
        return ()
    return (
        "-Dzookeeper.client.secure=true",
        "-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
        f"-Dzookeeper.ssl.trustStore.location={trusted}",
    )


def redis_conf(settings: LocalSettings) -> str:
    """The password. The server that comes inside the wheel was built without TLS."""
    return f'include "{settings.security_dir / File.REDIS}"\n' if settings.secure else ""


def store_properties(settings: LocalSettings) -> Properties:
    """TLS to clients, to ZooKeeper and to the gateway, and the verification of tokens."""
    if not settings.secure:
        return {}
    folder, of_clients, controller = settings.security_dir, shown(settings), "autoScale.controller.connect"
    server, zookeeper = "pravegaservice.security.tls", "pravegaservice.zk.connect.security"
    return {
        f"{server}.enable": True,
        f"{server}.server.certificate.location": of_clients.certificate,
        f"{server}.server.privateKey.location": of_clients.key,
        # Of its REST interface, which is off; it does not start without.
        f"{server}.server.keyStore.location": str(folder / File.KEY_STORE),
        f"{server}.server.keyStore.pwd.location": str(folder / File.KEY_STORE_PASSWORD),
        f"{server}.certificate.autoReload.enable": True,
        f"{zookeeper}.enable": settings.zookeeper is None,
        f"{zookeeper}.tls.trustStore.location": str(folder / File.TRUST_STORE),
        f"{zookeeper}.tls.trustStore.pwd.location": str(folder / File.TRUST_STORE_PASSWORD),
        f"{controller}.uri": f"tls://{settings.published(settings.grpc_port)}",
        f"{controller}.security.tls.enable": True,
        f"{controller}.security.tls.truststore.location": of_clients.authority,
        f"{controller}.security.auth.enable": True,
    }


def store_options(settings: LocalSettings) -> tuple[str, ...]:
    """The signing key, and who the store is to the gateway: Java reads these arguments from the file."""
    return (f"@{settings.security_dir / File.SEGMENT_STORE}",) if settings.secure else ()


def store_loggers(settings: LocalSettings) -> tuple[str, ...]:
    """What logs all settings of a segment store, the signing key included."""
    return ("io.pravega.segmentstore.server.host.ServiceStarter",) if settings.secure else ()


def service_environment(settings: LocalSettings) -> dict[str, str]:
    """For every service: what it shows where it listens, and how it connects to the others.

    Of what is embedded that is said in an open system, too: the environment may have what the user of a secured one
    exported for the command line.
    """
    tls, environment = str(settings.secure).lower(), {}
    if settings.secure:
        environment["SLUICE_TLS_CERTIFICATE"] = str(settings.security_dir / File.CERTIFICATE)
        environment["SLUICE_TLS_KEY"] = str(settings.security_dir / File.KEY)
    if settings.secure or settings.segment_stores:
        environment["SLUICE_STORE_TLS"] = tls
        environment["SLUICE_STORE_TLS_AUTHORITIES"] = shown(settings).authority
        environment["SLUICE_TOKEN_KEY_FILE"] = token_key(settings)
    if settings.zookeeper is None:
        environment |= {"SLUICE_ZOOKEEPER_TLS": tls, "SLUICE_ZOOKEEPER_TLS_AUTHORITIES": authority(settings)}
    if settings.kafka_bootstrap is None:
        environment["SLUICE_KAFKA_CONF"] = kafka_client(settings)
    if settings.redis_url is None:
        environment["SLUICE_REDIS_PASSWORD_FILE"] = redis_password(settings)
    return environment


def gateway_environment(settings: LocalSettings) -> dict[str, str]:
    """For the gateway: what it shows to clients, and who may call."""
    if not settings.secure:
        return {}
    return {
        "SLUICE_TLS_CERTIFICATE": shown(settings).certificate,
        "SLUICE_TLS_KEY": shown(settings).key,
        "SLUICE_AUTH_ENABLED": "true",
        "SLUICE_AUTH_ACCOUNTS": str(settings.security_dir / File.ACCOUNTS),
    }
