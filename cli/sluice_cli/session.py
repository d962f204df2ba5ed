"""What every command is given: where Sluice is, how to print, and the connections, opened when first used."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sluice_cli.output import Output

if TYPE_CHECKING:
    from sluice_cli.api import Answer, Api
    from sluice_cli.records.source import Source

DEFAULT_API = "http://127.0.0.1:10080"
DEFAULT_KAFKA = "127.0.0.1:9092"
API_VARIABLE = "SLUICE_API"
KAFKA_VARIABLE = "SLUICE_KAFKA_BOOTSTRAP"


def open_api(base: str) -> Api:
    """A connection to an api-gateway."""
    from sluice_cli.api import Api

    def waiting() -> None:
        sys.stderr.write(f"Still waiting for {base}. Ctrl-C ends the waiting, but not the requested operation.\n")
        sys.stderr.flush()

    return Api(base, waiting=waiting)


def open_source(bootstrap: str) -> Source:
    """A reader of Kafka's topics. Raises UnreachableError, UsageError."""
    from sluice_cli.records.kafka import KafkaSource

    return KafkaSource(bootstrap)


def api_address() -> str:
    """Where the API is unless the command line names another one."""
    return os.environ.get(API_VARIABLE) or DEFAULT_API


@dataclass
class Session:
    """One run of one command. `api` is a URL, `kafka` Kafka's bootstrap servers."""

    api: str
    kafka: str
    json: bool

    @cached_property
    def out(self) -> Output:
        return Output(json=self.json)

    @cached_property
    def rest(self) -> Api:
        return open_api(self.api)

    @cached_property
    def records(self) -> Source:
        return open_source(self.kafka)

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def show(self, document: Any, draw: Callable[[Output, Any], None]) -> None:
        """Print one document: as JSON, or as `draw` has it for users."""
        if self.json:
            self.out.document(document)
        else:
            draw(self.out, document)

    def items(
        self,
        items: Iterable[Any],
        columns: Sequence[str],
        row: Callable[[Any], Sequence[object]],
        *,
        empty: str,
    ) -> None:
        """Print a list: one JSON array, or a table for users."""
        found = list(items)
        if self.json:
            self.out.document(found)
        else:
            self.out.table(columns, (row(item) for item in found), empty=empty)

    def done(self, sentence: str, answer: Answer) -> None:
        """Say that a change was made: the answer's body with the id of the request, or a sentence."""
        if self.json:
            body = answer.body if isinstance(answer.body, dict) else {}
            self.out.document({"request": answer.request, **body})
        else:
            traced = f"  (request {answer.request})" if answer.request else ""
            self.out.text(f"{sentence}{traced}")

    def close(self) -> None:
        """Close what was opened."""
        for name in ("rest", "records"):
            opened = self.__dict__.get(name)
            if opened is not None:
                opened.__exit__(None, None, None)
