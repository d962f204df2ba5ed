"""The Spark session of the driver: bounded in memory, without pages of its own, everything it writes in one folder.

One session per process; its JVM ends with the process, and without it the process has nothing more to do.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from retention_spark.settings import SparkSettings
from sluice.addresses import bracketed
from sluice.kafka_config.java import java_options
from sluice.security.watched import SecurityConfigError

# Spark searches the text of an interrupted batch's error by a recursion as deep as the text is long.
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:MaxMetaspaceSize=384m -Xss8m"
LOOK_S = 1.0
REPLACED_S = 60.0
"""A master that knows the application, and has room, gives it another executor for one that it has lost."""
_HOST = "spark.driver.host"
_ON_THIS_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    _HOST: "127.0.0.1",
    # Hadoop's own way starts a program or two for each file it writes, unless it has its native library.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_PROTECTION = ("spark.authenticate", "spark.network.crypto.enabled")
_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
_ENVIRONMENT = """\
# A signal to the process group is for the driver, which then ends this program in order.
trap '' TERM
"""
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d{HH:mm:ss.SSS} %-5p %c{1} %m%n%ex{short}
logger.busy.name = org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor
logger.busy.level = error
logger.lag.name = org.apache.spark.sql.execution.streaming.state.StateStoreCoordinator
logger.lag.level = error
logger.client.name = org.apache.kafka.clients.NetworkClient
logger.client.level = error
"""


def open_session(name: str, settings: SparkSettings) -> SparkSession:
    """Start the JVM; blocking, takes some seconds. Raises as `configuration`.

    PySpark has the copy of this process run Python before the JVM begins, which may hang: see `sluice.child_process`.
    So a service needs a deadline for it.
    """
    # Otherwise workers run under whatever `python3` is, and end without saying why.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Each thread of the JVM that allocates would get 64 MiB of addresses of its own, which it hardly gives back.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    os.environ["SPARK_CONF_DIR"] = str(_configured(settings.spark_local / "conf"))
    builder = SparkSession.builder.appName(name).master(settings.spark_master)
    for key, value in configuration(settings).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def works_here(settings: SparkSettings) -> bool:
    """Whether batches run in this process's JVM, not in executors."""
    return settings.spark_master.startswith("local")


def wait_for_end(session: SparkSession) -> str:
    """Wait until the session serves no more, and return why; blocking.

    The JVM of one whose application the master has removed lives on, and its queries fail for ever. So does that of one
    which the master has forgotten: it gets no executors any more.
    """
    context = session.sparkContext
    jvm = context._gateway.proc  # type: ignore[union-attr] # noqa: SLF001 - there is no public way
    had_executors_at: float | None = None
    while (code := jvm.poll()) is None:
        with suppress(Py4JError):  # the JVM ends just now
            spark = context._jsc.sc()  # noqa: SLF001 - there is no public way
            if spark.isStopped():
                return "Spark has stopped: its master has ended the application"
            if spark.isLocal() or spark.getExecutorIds().size():
                had_executors_at = time.monotonic()
            elif had_executors_at is not None and time.monotonic() - had_executors_at > REPLACED_S:
                return f"Spark has lost all executors, and got none for {REPLACED_S:g} s"
        time.sleep(LOOK_S)
    return f"Spark's JVM has ended with status {code}"


def _configured(folder: Path) -> Path:
    """The folder of settings that only files can hold, written anew."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spark-env.sh").write_text(_ENVIRONMENT)
    (folder / "log4j2.properties").write_text(_LOG4J)
    return folder.absolute()


def configuration(settings: SparkSettings) -> dict[str, str]:
    """Spark's configuration; what the settings say explicitly comes last.

    Raises SecurityConfigError, and KafkaConfError for settings of Kafka that cannot be used.
    """
    is_here = works_here(settings)
    if not is_here:
        _check_protected(settings)
    jars = ",".join(sorted(str(jar.absolute()) for jar in settings.spark_jars.glob("*.jar")))
    local = str(settings.spark_local.absolute())
    found = {
        "spark.jars": jars,
        "spark.driver.extraClassPath": f"{settings.spark_jars.absolute()}/*",
        "spark.driver.memory": settings.spark_memory,
        "spark.driver.extraJavaOptions": f"{_JAVA} -Djava.io.tmpdir={local}",
        "spark.local.dir": local,
        "spark.sql.warehouse.dir": f"{local}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark stores what its pages would show, pages or not.
        "spark.ui.liveUpdate.period": "-1",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(settings.spark_state_partitions),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{_ROCKSDB}.changelogCheckpointing.enabled": "true",
        # One bound for all stores of the process, instead of one for each.
        f"{_ROCKSDB}.boundedMemoryUsage": "true",
        f"{_ROCKSDB}.maxMemoryUsageMB": "64",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.metricsEnabled": "false",
        # How soon a query that has found nothing to do says so: until then it is not known to be at work.
        "spark.sql.streaming.noDataProgressEventInterval": "1000",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **(_ON_THIS_MACHINE if is_here else {}),
        **settings.spark_conf,
    }
    if _HOST in found:
        # Kubernetes says an address of IPv6 without the brackets that Spark wants.
        found[_HOST] = bracketed(found[_HOST])
    return found


def _check_protected(settings: SparkSettings) -> None:
    """A task that reads Kafka takes what is secret of its client over the network to an executor."""
    has_secrets = any(name.startswith(("sasl.", "ssl.key")) for name in java_options(settings.given_kafka_conf()))
    if has_secrets and any(settings.spark_conf.get(name, "").lower() != "true" for name in _PROTECTION):
        raise SecurityConfigError(
            f"SLUICE_SPARK_CONF must set {' and '.join(_PROTECTION)} to true: otherwise what SLUICE_KAFKA_CONF has of "
            f"passwords and keys crosses the network to executors in clear"
        )
