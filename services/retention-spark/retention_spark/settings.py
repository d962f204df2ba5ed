"""The settings of retention-spark, from the environment with the prefix SLUICE_."""

from pathlib import Path

from pydantic import Field

from sluice.settings import PolicySettings


class SparkSettings(PolicySettings):
    """`spark_jars` is the folder of the jars that Spark needs for Kafka; sizes as Java writes them ("512m").

    `spark_checkpoints` and `spark_history` are folders on any file system that Spark knows; of the history
    `spark_history_days` are kept. What is remembered of a stream is saved in Kafka `spark_save_s` after it has changed,
    or at once if something is requested for it. `spark_conf` is more of Spark's own configuration, for a master that is
    not this machine.
    `spark_buckets` is how many groups the keys of each query are divided into, `spark_state_partitions` how many parts
    its state.
    `…_trigger_s` is how long a query waits between the beginnings of two batches while there are reports, and how often
    it looks for some while there are none; then a batch comes every `spark_idle_s`, or when a stream's time has come.

    With an `archive` the query that writes it looks for something to write every `archive_trigger_s`, takes at most
    `archive_batch_records` at once, and joins small files every `archive_join_s`.

    `crash_at` names a point at which the process kills itself, once it passes there, or gets another signal
    (`point:SIGSTOP`); for tests of recovery.
    """

    spark_master: str = "local[2]"
    spark_jars: Path = Path("jars")
    spark_memory: str = "512m"
    spark_local: Path = Path("local")
    spark_checkpoints: str = "checkpoints"
    spark_history: str = "history"
    spark_save_s: float = Field(default=600.0, gt=0)
    spark_history_days: int = Field(default=90, ge=1)
    spark_conf: dict[str, str] = Field(default={})
    spark_buckets: int = Field(default=32, ge=1)
    spark_state_partitions: int = Field(default=2, ge=1)
    spark_batch_records: int = Field(default=20_000, ge=1)
    spark_idle_s: float = Field(default=30.0, ge=0, le=45)
    scale_trigger_s: float = Field(default=1.0, ge=0)
    retention_trigger_s: float = Field(default=5.0, ge=0)
    archive_trigger_s: float = Field(default=30.0, ge=1, le=45)
    archive_batch_records: int = Field(default=200_000, ge=1)
    archive_join_s: float = Field(default=3600.0, gt=0)
    crash_at: str = ""
