"""A standalone cluster of Spark as processes of a private system: a master and two workers."""

import json
import shutil
from pathlib import Path

import httpx
import pyspark

from harness import System
from harness.system import claimed_ports
from sluice_local import jars, setup
from sluice_local.home import HOST
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from support.objects import ACCESS, Objects
from support.ports import free_ports

MASTER, WORKERS = "spark-master", ("spark-worker-0", "spark-worker-1")
CORES = 2
"""Of each worker, and of a driver unless it is given others: as many executors of one core."""
_SPARK_HOME = Path(pyspark.__file__).parent


class SparkCluster:
    """Adds one to a system. Two drivers have room in it beside each other."""

    def __init__(self, system: System, cores: int = CORES) -> None:
        self._system = system
        self._cores = cores
        port, page, *others = free_ports(6, claimed_ports(system.settings))
        self._page = f"http://{HOST}:{page}/json/"
        self._url = f"spark://{HOST}:{port}"
        self._add(MASTER, "master.Master", (port, page))
        for index, name in enumerate(WORKERS):
            folder = system.settings.data_dir / name
            sized = ("--cores", str(CORES), "--memory", "2g", "--work-dir", str(folder), self._url)
            self._add(name, "worker.Worker", (others[2 * index], others[2 * index + 1]), sized)

    def settings(self) -> dict[str, str]:
        """The variables of a driver that works on it."""
        jars = self._jars()
        conf = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.cores.max": str(self._cores),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.extraClassPath": f"{jars}/*",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss8m",
            "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
            "spark.sql.streaming.checkpointFileManagerClass": (
                "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
            ),
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
        return {
            "SLUICE_SPARK_MASTER": self._url,
            "SLUICE_SPARK_CONF": json.dumps(conf),
            "SLUICE_SPARK_JARS": str(jars),
        }

    def executors(self) -> int:
        """How many the master has given to drivers."""
        return int(httpx.get(self._page).json()["coresused"])

    def workers(self) -> int:
        """How many the master has."""
        return sum(worker["state"] == "ALIVE" for worker in httpx.get(self._page).json()["workers"])

    def _jars(self) -> Path:
        """Those for Kafka and those for an object store."""
        folder, fetched = self._system.settings.home / "spark-jars", self._system.settings.jars_dir
        jars.fetch_besides(jars.OBJECT_STORE, fetched, setup.say)
        for program in ("spark", jars.OBJECT_STORE):
            shutil.copytree(fetched / program, folder, dirs_exist_ok=True)
        return folder

    def _add(self, name: str, main: str, ports: tuple[int, int], arguments: tuple[str, ...] = ()) -> None:
        folder = self._system.settings.data_dir / name
        listens = ("--host", HOST, "--port", str(ports[0]), "--webui-port", str(ports[1]))
        recovery = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={folder}/recovery"
        self._system.add(
            Part(
                name=name,
                command=(f"{_SPARK_HOME}/bin/spark-class", f"org.apache.spark.deploy.{main}", *listens, *arguments),
                folder=folder,
                log=self._system.settings.logs_dir / f"{name}.log",
                address=self._url,
                claims=tuple(PortClaim(port, name, "chosen") for port in ports),
                probe=Probe(ProbeKind.TCP, ports[0]),
                stop_rank=StopRank.STORE,
                environment={
                    "SPARK_HOME": str(_SPARK_HOME),
                    "SPARK_LOCAL_IP": HOST,
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC {recovery}",
                },
            )
        )


def files_in(objects: Objects) -> dict[str, str]:
    """The variables of a driver that keeps its files in a bucket."""
    return {
        "SLUICE_SPARK_CHECKPOINTS": f"s3a://{objects.bucket}/checkpoints",
        "SLUICE_SPARK_HISTORY": f"s3a://{objects.bucket}/history",
        "SLUICE_ARCHIVE": f"s3a://{objects.bucket}/archive",
        "AWS_ENDPOINT_URL": objects.endpoint,
        **ACCESS,
    }
