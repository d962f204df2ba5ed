"""The third query: the journal, and the reports that decisions follow from, into the archive.

It has no state and no timers, so a batch comes only when there is something to archive: an idle system has none, and
looks for the ends of three topics once in `archive_trigger_s`.
"""

from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from retention_spark.archive_sink import ArchiveSink, contents
from retention_spark.checkpoint_compatibility import FORMAT, Fit, UnfitError, claim
from retention_spark.query import source_options
from retention_spark.settings import SparkSettings
from retention_spark.topic_ends import ends_reader
from sluice.kafka.topic_ids import topic_ids
from sluice.kafka.topics import JOURNAL, RETENTION, SCALE
from sluice.kafka_config import clients

NAME = "archive"
TOPICS = (JOURNAL.name, SCALE.name, RETENTION.name)
_TIMEOUT_S = 10.0


def archived_ids(settings: SparkSettings) -> dict[str, str]:
    """The ids of the topics that are archived. Raises KafkaException."""
    return topic_ids(AdminClient(clients.admin(settings.kafka_client())), TOPICS, _TIMEOUT_S)


def checkpoint_of(settings: SparkSettings, journal: str) -> str:
    """The folder of the checkpoint: one for each journal; `journal` is the id of that topic."""
    return f"{settings.spark_checkpoints.rstrip('/')}/{NAME}-{journal}"


def start_archive(session: SparkSession, settings: SparkSettings) -> StreamingQuery:
    """Begin where the checkpoint ends; a new one begins where the topics do.

    A journal that was made anew has another id: another checkpoint, and another folder of the archive. Another archive
    is unfit: it would begin in the middle, and the journal would be trimmed. So is another topic of reports, of which
    the first ones would be left out. Raises KafkaException, UnfitError.
    """
    ids = archived_ids(settings)
    checkpoint = checkpoint_of(settings, ids[JOURNAL.name])
    facts: dict[str, str | int] = {
        "archive": settings.archive.rstrip("/"),
        "partitions": settings.partitions,
        **{f"topic id of {topic.name}": ids[topic.name] for topic in (SCALE, RETENTION)},
    }
    try:
        claim(session, checkpoint, Fit(FORMAT, facts), ends_reader(settings.kafka_client()))
    except UnfitError as error:
        if error.fact != "archive":
            raise
        raise UnfitError(f"{error} (if the archive is to be elsewhere, copy its files there before)") from error
    options = {
        **source_options(",".join(TOPICS), settings),
        "maxOffsetsPerTrigger": str(settings.archive_batch_records),
        # What is no longer there cannot be archived any more: that must not pass in silence.
        "failOnDataLoss": "true",
    }
    return (
        contents(session.readStream.format("kafka").options(**options).load())
        .writeStream.queryName(NAME)
        .foreachBatch(ArchiveSink(settings, ids).write)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime=f"{round(settings.archive_trigger_s * 1000)} milliseconds")
        .start()
    )
