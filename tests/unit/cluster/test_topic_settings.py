"""cluster-manager is not ready while a topic has settings with which Kafka removes what is needed.

It is degraded while one acknowledges what too few replicas have.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from support.wait import eventually_async

from cluster_manager import topic_settings
from sluice.kafka.topics import JOURNAL, TOPICS, PresentSettings

DEADLINE_S = 60.0
IN_SYNC = {"min.insync.replicas": "2"}
FIT: PresentSettings = {topic.name: {**topic.config(), **IN_SYNC} for topic in TOPICS}
AWAY = KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN, "away"))
Shown = tuple[str | None, str | None]


async def shown_by(monkeypatch: pytest.MonkeyPatch, *answers: PresentSettings | Exception) -> list[Shown]:
    """What is shown as not ready and as degraded before each of the answers is there, until all is well."""
    seen: list[Shown] = []
    left = list(answers)

    def look(_client: object) -> PresentSettings:
        seen.append(shown())
        answer = left.pop(0) if left else FIT
        if isinstance(answer, Exception):
            raise answer
        return answer

    def shown() -> Shown:
        checks = runtime.checks.get("topic settings"), runtime.degraded.get("in-sync replicas")
        not_ready, degraded = (check() if check is not None else "not looked yet" for check in checks)
        return not_ready, degraded

    async def at_once(work: Any, *arguments: Any) -> Any:
        return work(*arguments)

    settings = SimpleNamespace(kafka_client=dict, kafka_replication=3)
    runtime: Any = SimpleNamespace(checks={}, degraded={}, settings=settings)
    monkeypatch.setattr(topic_settings, "present_settings", look)
    monkeypatch.setattr(asyncio, "to_thread", at_once)
    watching = asyncio.ensure_future(topic_settings.watch_topic_settings(runtime))
    try:
        await eventually_async(lambda: not left and shown() == (None, None), DEADLINE_S, "all is well")
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    return seen


async def test_settings_that_may_not_be_show_until_they_are_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    removing = {**FIT, JOURNAL.name: {**JOURNAL.config(), **IN_SYNC, "retention.ms": "1"}}
    one = "sluice.journal has retention.ms=1, and must have -1"
    seen = await shown_by(monkeypatch, removing, AWAY)
    assert seen[0] == ("not looked yet", "not looked yet")
    assert seen[1:] == [(one, None), (one, None)], "what was found stays while nothing is known"


async def test_a_topic_that_too_few_replicas_acknowledge_blocks_no_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a restore makes without --replication."""
    early = {**FIT, JOURNAL.name: {**JOURNAL.config(), "min.insync.replicas": "1"}}
    seen = await shown_by(monkeypatch, early)
    assert seen[1:] == [(None, "min.insync.replicas is less than 2: sluice.journal")]
