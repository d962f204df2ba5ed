"""What a service does with files that are replaced while it runs."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.wait import SOON_S, eventually_async

from sluice.process import Process
from sluice.security.watched import SecurityConfigError, Watched, keep_watching
from sluice.settings import ServiceSettings

LOOK_S = 0.005


def number(content: bytes) -> int:
    """What these tests make of a file."""
    try:
        return int(content)
    except ValueError:
        raise SecurityConfigError("it is no number") from None


@pytest.fixture
async def process() -> AsyncIterator[Process]:
    """A service that follows its files."""
    process = Process("service", ServiceSettings())
    following = asyncio.create_task(keep_watching(process.watched, LOOK_S))
    yield process
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following


async def test_a_service_takes_the_new_version_of_a_file(process: Process, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    watched = Watched("the number", [file], number)
    process.watch(watched)
    file.write_text("2", encoding="utf-8-sig")
    await eventually_async(lambda: watched.current == 2, SOON_S, "the new number is in use")
    assert process.degraded["the number"]() is None


async def test_a_service_is_degraded_while_a_new_version_is_refused(process: Process, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    watched = Watched("the number", [file], number)
    process.watch(watched)
    file.write_text("two")
    await eventually_async(process.degraded["the number"], SOON_S, "the service is degraded")
    assert process.degraded["the number"]() == "an older version is in use: it is no number"
    assert watched.current == 1
    file.write_text("3")
    await eventually_async(lambda: watched.current == 3, SOON_S, "the next number is in use")
    assert process.degraded["the number"]() is None


async def test_a_file_that_fails_in_an_unexpected_way_ends_no_watching(process: Process, tmp_path: Path) -> None:
    strange, other = tmp_path / "strange", tmp_path / "other"
    strange.write_text('{"k": 1}')
    other.write_text("1")
    first = Watched("the document", [strange], lambda content: json.loads(content)["k"])
    second = Watched("the number", [other], number)
    process.watch(first)
    process.watch(second)
    strange.write_text("{}")
    other.write_text("2")
    await eventually_async(lambda: second.current == 2, SOON_S, "the other file is still looked at")
    assert process.degraded["the document"]() == "an older version is in use: unexpected: KeyError"
    strange.write_text('{"k": 3}')
    await eventually_async(lambda: first.current == 3, SOON_S, "the next version is in use")
