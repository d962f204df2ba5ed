"""cluster-manager is not ready while a topic has settings with which Kafka removes what is needed."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from support.wait import eventually_async

from cluster_manager import topic_settings

DEADLINE_S = 30.0


async def test_settings_that_may_not_be_show_until_they_are_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    away = KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN, "away"))
    answers: list[list[str] | Exception] = [["one"], away, []]

    def look(_client: object) -> list[str]:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        seen.append(shown())
        return answer

    def shown() -> str | None:
        check = runtime.checks.get("topic settings")
        return check() if check is not None else "not looked yet"

    async def at_once(work: Any, *arguments: Any) -> Any:
        return work(*arguments)

    seen: list[str | None] = []
    runtime: Any = SimpleNamespace(checks={}, settings=SimpleNamespace(kafka_client=dict))
    monkeypatch.setattr(topic_settings, "unfit_settings", look)
    monkeypatch.setattr(asyncio, "to_thread", at_once)
    watching = asyncio.ensure_future(topic_settings.watch_topic_settings(runtime))
    try:
        await eventually_async(lambda: shown() is None, DEADLINE_S, "it is ready")
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    assert seen[:2] == ["not looked yet", "one"], "what was found stays while nothing is known"
