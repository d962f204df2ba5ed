"""The images of Kafka, ZooKeeper and Redis, made from what the clone has: its jars, its wheels, this machine's Java.

An image's tag is a digest of what it is made from; one that is there is used again. Blocking; one process at a time.
"""

import logging
import subprocess
import tarfile
import tempfile
import time
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, cast

import msgspec
from testcontainers.core.docker_client import DockerClient

from containers.rootfs import RootFs, add_text
from sluice_local import java, kafka, redis, zookeeper
from sluice_local.settings import LocalSettings

log = logging.getLogger(__name__)

REPOSITORY = "sluice-contract"
BACKING = frozenset(f"{REPOSITORY}/{name}" for name in ("kafka", "zookeeper", "redis"))
NO_ENGINE = 3
"""The exit code of a run without a container engine."""
SERVER_PROPERTIES = "/etc/kafka.properties"
ZOO_CFG = "/etc/zoo.cfg"
REDIS_CONF = "/etc/redis.conf"
CLUSTER_ID = "c2x1aWNlLWNvbnRyYWN0cw"
KAFKA_PORT, KAFKA_OUTSIDE_PORT, ZOOKEEPER_PORT, REDIS_PORT = 9092, 9094, 2181, 6379

_JAVA_OPTIONS = ("-XX:+UseSerialGC", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_NOT_FOR_RUNNING = ("src.zip", "ct.sym", "*.a", "libawt*", "libfontmanager*", "libjsound*", "libsplashscreen*")
_LOADED = ("java", "net", "nio", "zip", "jimage", "verify", "management", "management_ext", "extnet")
_ZOOKEEPER_JARS = (
    "zookeeper-*.jar", "slf4j-api-*.jar", "logback-*.jar", "commons-lang-2.*.jar", "snappy-java-*.jar",
    "metrics-core-*.jar", "netty-[bchrt]*-4.*.jar",
)  # fmt: skip
_JAVA_ANSWERS_S = 30.0
_STEP_S = 600
"""The engine says nothing while a step of a build goes on: files are copied, Java formats a folder."""


class Recipe(msgspec.Struct, frozen=True):
    """An image: its name, the Dockerfile that puts it together, and the files beside that."""

    name: str
    dockerfile: str
    root: RootFs

    @property
    def tag(self) -> str:
        """The image's name with a digest of what it is made from."""
        made_from = f"{self.dockerfile}\n{self.root.describe()}"
        return f"{REPOSITORY}/{self.name}:{blake2b(made_from.encode(), digest_size=8).hexdigest()}"


def built(recipe: Recipe, scratch: Path) -> str:
    """The tag of the recipe's image, which is built unless it is there; `scratch` takes some 300 MB meanwhile."""
    client = cast(Any, DockerClient().client)
    tag = recipe.tag
    if client.images.list(name=tag):
        return tag
    began = time.monotonic()
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=scratch) as context:
        _write_context(recipe, context)
        context.seek(0)
        client.images.build(fileobj=context, custom_context=True, tag=tag, rm=True, forcerm=True, timeout=_STEP_S)
    log.info("image %s built in %.1f s", tag, time.monotonic() - began)
    return tag


def _write_context(recipe: Recipe, into: IO[bytes]) -> None:
    with tarfile.open(fileobj=into, mode="w", dereference=True) as context:
        add_text(context, "Dockerfile", f"FROM scratch\nCOPY root /\n{recipe.dockerfile}")
        recipe.root.write(context, "root")


def kafka_image(settings: LocalSettings) -> Recipe:
    """One broker that is its own controller, formatted already; its addresses are given on the command line."""
    root, home = _java_runtime()
    root.folder(settings.jars_dir / "kafka", "/jars")
    properties = kafka.server_properties(settings) | {
        "listeners": f"PLAINTEXT://:{KAFKA_PORT},OUTSIDE://:{KAFKA_OUTSIDE_PORT},CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{KAFKA_PORT},OUTSIDE://127.0.0.1:{KAFKA_OUTSIDE_PORT}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "log.dirs": "/data",
    }
    root.text(SERVER_PROPERTIES, java.properties(properties))
    run = [f"{home}/bin/java", *_JAVA_OPTIONS, "-Xmx256m", "-cp", "/jars/*"]
    format_it = [
        *run,
        "kafka.tools.StorageTool",
        "format",
        f"--cluster-id={CLUSTER_ID}",
        f"--config={SERVER_PROPERTIES}",
    ]
    lines = (f"RUN {_json(format_it)}", f"ENTRYPOINT {_json([*run, 'kafka.Kafka', SERVER_PROPERTIES])}")
    return Recipe("kafka", "\n".join(lines), root)


def zookeeper_image(settings: LocalSettings) -> Recipe:
    """One server."""
    root, home = _java_runtime()
    for pattern in _ZOOKEEPER_JARS:
        for jar in (settings.jars_dir / "data-plane").glob(pattern):
            root.file(jar, f"/jars/{jar.name}")
    configuration = zookeeper.zoo_cfg(settings) | {
        "dataDir": "/data",
        "clientPort": ZOOKEEPER_PORT,
        "clientPortAddress": "0.0.0.0",
    }
    root.text(ZOO_CFG, java.properties(configuration))
    root.text("/etc/logback.xml", java.logback())
    root.writable("/data")
    run = [f"{home}/bin/java", *_JAVA_OPTIONS, "-Xmx96m", "-Dlogback.configurationFile=/etc/logback.xml"]
    run += ["-Dzookeeper.jmx.log4j.disable=true", "-cp", "/jars/*"]
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    return Recipe("zookeeper", f"ENTRYPOINT {_json([*run, main, ZOO_CFG])}", root)


def redis_image(settings: LocalSettings) -> Recipe:
    """The server that comes inside a wheel."""
    root, server = RootFs(), redis.server_binary()
    root.file(server, "/redis-server")
    root.libraries([server])
    root.writable("/data")
    root.text(REDIS_CONF, 'bind 0.0.0.0\nprotected-mode no\ndir "/data"\nsave ""\nmaxmemory 64mb\n')
    return Recipe("redis", f"ENTRYPOINT {_json(['/redis-server', REDIS_CONF])}", root)


def _java_runtime() -> tuple[RootFs, Path]:
    """This machine's Java without what only development and screens need, at its own path, which is returned too."""
    command = (java.executable(), "-XshowSettings:properties", "-version")
    shown = subprocess.run(command, capture_output=True, text=True, timeout=_JAVA_ANSWERS_S, check=True).stderr
    home = Path(next(line.partition("=")[2].strip() for line in shown.splitlines() if "java.home =" in line))
    root = RootFs()
    root.file(home / "bin" / "java", f"{home}/bin/java")
    root.folder(home / "lib", f"{home}/lib", _NOT_FOR_RUNNING)
    root.folder(home / "conf", f"{home}/conf")
    loaded = [home / "lib" / f"lib{name}.so" for name in _LOADED]
    root.libraries([home / "bin" / "java", home / "lib" / "server" / "libjvm.so", *loaded])
    root.writable("/tmp")
    return root, home


def _json(words: list[str]) -> str:
    return msgspec.json.encode(words).decode()
