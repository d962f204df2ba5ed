"""A real OpenSearch or Elasticsearch of the tests' own, on free ports of the loopback, that can be killed and frozen.

The server comes through Maven, once per state folder. It refuses to run as root, so root runs it as another user, from
a copy that this one can read.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from support.ports import free_ports
from support.processes import stands_still
from support.wait import eventually

from sluice_local import java, stamp
from sluice_local.home import HOST
from sluice_local.settings import LocalSettings

HERE = Path(__file__).parent / "search"
STARTS_S = 120.0
_UNPRIVILEGED = 65534
_OPTIONS = (
    *("-Xms256m", "-Xmx256m", "-Xss1m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"),
    *("-Djna.nosys=true", "-Dio.netty.noUnsafe=true", "-Dio.netty.noKeySetOptimization=true"),
    *("-Dio.netty.allocator.numDirectArenas=0", "-Dlog4j.shutdownHookEnabled=false", "-Dlog4j2.disable.jmx=true"),
    *("-Djava.locale.providers=SPI,COMPAT", "-Djava.security.manager=allow"),
)


@dataclass(frozen=True)
class Product:
    """What differs between the two. `name`: of its URLs, files and packages; `options`: how its options begin."""

    name: str
    options: str
    main: str


OPENSEARCH = Product("opensearch", "-Dopensearch", "bootstrap.OpenSearch")
ELASTICSEARCH = Product("elasticsearch", "-Des", "bootstrap.Elasticsearch")


class NotFetched(Exception):
    """Maven could not fetch the server."""


class SearchServer:
    """One server with one node."""

    def __init__(self, product: Product, folder: Path, home: Path) -> None:
        self._product, self._folder, self._home = product, folder, home
        self.port, self._transport_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("config/jvm.options.d", "data", "logs", "tmp"):
            (folder / name).mkdir(parents=True)
        shutil.copy(HERE / "server.yml", folder / "config" / f"{product.name}.yml")
        shutil.copy(HERE / "log4j2.properties", folder / "config")
        self._user = _UNPRIVILEGED if os.getuid() == 0 else None
        if self._user is not None:
            # Elasticsearch makes the folders of its home that are not there.
            for each in (home, folder, *folder.rglob("*")):
                os.chown(each, self._user, self._user)
        self.start()

    @property
    def url(self) -> str:
        return f"{self._product.name}://{HOST}:{self.port}"

    def start(self) -> None:
        """Start the server on what it has stored, and wait until it answers."""
        folder, options, package = self._folder, self._product.options, f"org.{self._product.name}"
        threads = f"{package}.secure_sm.SecuredForkJoinWorkerThreadFactory"
        command = [
            java.executable(),
            *_OPTIONS,
            f"-Djava.util.concurrent.ForkJoinPool.common.threadFactory={threads}",
            *(f"-Djava.io.tmpdir={folder}/tmp", f"-Djna.tmpdir={folder}/tmp"),
            *(f"{options}.path.home={self._home}", f"{options}.path.conf={folder}/config"),
            *(f"{options}.distribution.type=zip", f"{options}.bundled_jdk=false"),
            *("-cp", f"{self._home}/lib/*", f"{package}.{self._product.main}"),
        ]
        variables = {"HTTP_PORT": str(self.port), "TRANSPORT_PORT": str(self._transport_port), "RUN_DIR": str(folder)}
        variables["LIBFFI_TMPDIR"] = f"{folder}/tmp"
        with (folder / "output.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._home,
                env={**os.environ, **variables},
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )
        eventually(self._answers, STARTS_S, f"{self._product.name} answers")

    def kill(self) -> None:
        """End the server at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def freeze(self) -> None:
        """Have the server stand still; it does on return."""
        assert self._process is not None
        process = self._process
        process.send_signal(signal.SIGSTOP)
        eventually(lambda: stands_still(process.pid), 60, f"{self._product.name} stands still")

    def thaw(self) -> None:
        """Have a frozen server go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"{self._product.name} has ended: {(self._folder / 'output.log').read_text()[-4000:]}")
        url = f"http://{HOST}:{self.port}/_cluster/health?wait_for_status=yellow&timeout=1s"
        return httpx.get(url, timeout=5).status_code == 200


@contextmanager
def private_search(product: Product) -> Iterator[SearchServer]:
    """A server that ends with the block. Raises NotFetched."""
    fetched = _fetched(product.name)
    folder = Path(tempfile.mkdtemp(prefix=f"sluice-{product.name}-"))
    folder.chmod(0o755)
    try:
        home = folder / "home"
        shutil.copytree(fetched, home)
        if (own := HERE / product.name).is_dir():
            shutil.copytree(own, home, dirs_exist_ok=True)
        server = SearchServer(product, folder / "run", home)
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fetched(name: str) -> Path:
    """Fetch the server, if it is not there; return its folder."""
    folder, description = LocalSettings().jars_dir / name, HERE / f"{name}.xml"
    value = stamp.digest([description])
    if not stamp.is_current(folder / ".stamp", value):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = ["mvn", "-q", "-B", "-f", str(description), "package", f"-Dunpack.to={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode:
            raise NotFetched(done.stdout[-2000:])
        stamp.set_current(folder / ".stamp", value)
    (home,) = folder.glob(f"{name}-*")
    return home
