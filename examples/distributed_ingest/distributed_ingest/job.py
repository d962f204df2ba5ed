"""What a job is: a source, a stream, and how records are cut and keyed; the same for all nodes that take part.

Its documents are `ingest/<name>/job`, with the settings of the node that came first beside the definition, the board
under `ingest/<name>/board/`, positions under `ingest/<name>/progress/`, and the sum of what was written in
`ingest/<name>/totals`. A process that brings another definition for the same name is refused: positions mean something
only together with it. One that brings nothing but the name begins with what the document says.
"""

import hashlib
import logging
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from distributed_ingest.patience import tried
from distributed_ingest.records import RecordForm
from sluice_cli.errors import RefusedError, UsageError
from sluice_coordination import ConflictError, DocumentStore, StoreUnavailableError

log = logging.getLogger(__name__)

ROOT = "ingest"
Kind = Literal["folder", "s3", "kafka", "rabbitmq", "http", "http-listener", "syslog", "tcp", "udp"]
Settings = Mapping[str, str]
"""How a node reads, not what: by the names of options. No secret is among them."""
PAUSES_S = (0.25, 0.5, 1.0)
_SETTINGS = "settings"
_NAME = re.compile(r"[A-Za-z0-9._~-]{1,200}")


class Definition(msgspec.Struct, frozen=True):
    """What all nodes of a job agree on. `origins`: the folder, the bucket, the topic, the URLs, or the address."""

    kind: Kind
    origins: tuple[str, ...]
    stream: str
    records: RecordForm
    key: str
    options: dict[str, str] = {}

    def name(self) -> str:
        """Return the name of a job that was given none: what is repeated in the same words goes on."""
        digest = hashlib.sha256(msgspec.json.encode((self.kind, self.origins))).hexdigest()[:8]
        return re.sub(r"[^A-Za-z0-9._~-]", "-", f"{self.kind}-{self.stream}-{digest}")


class Job(msgspec.Struct, frozen=True):
    """A job by its name."""

    name: str
    definition: Definition

    @property
    def board(self) -> str:
        """The topology of its nodes."""
        return f"{ROOT}/{self.name}/board"

    @property
    def totals(self) -> str:
        """The document with the sum of what was written."""
        return f"{ROOT}/{self.name}/totals"

    def progress(self, part: str = "") -> str:
        """The document with the position of a part; without one the prefix of all."""
        return f"{ROOT}/{self.name}/progress/{part}"


def checked_name(name: str) -> str:
    """Return the name of a job. Raises UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a job", "use letters, digits and ._~-")
    return name


async def stored(store: DocumentStore, name: str) -> tuple[Job, Settings]:
    """Return a job as it was begun. Raises RefusedError if there is none, CoordinationError."""
    found = await store.get(f"{ROOT}/{name}/job")
    if found is None:
        raise RefusedError(
            f"there is no job {name} in this store", "`sluice ingest status --store URL` lists those of a store"
        )
    settings = msgspec.convert(found.body.get(_SETTINGS, {}), dict[str, str])
    return Job(name, msgspec.convert(found.body, Definition)), settings


async def register(store: DocumentStore, job: Job, settings: Settings) -> None:
    """Note what the job is, or find that it is that. Raises RefusedError if it is something else, CoordinationError.

    A store that gives no answer is called again a few times: an index that another node has just made is not ready yet.
    """
    await tried(
        lambda: _register(store, job, settings),
        StoreUnavailableError,
        PAUSES_S,
        lambda error: log.debug("not yet: %s", error),
    )


async def _register(store: DocumentStore, job: Job, settings: Settings) -> None:
    id, body = f"{ROOT}/{job.name}/job", msgspec.json.decode(msgspec.json.encode(job.definition))
    found = await store.get(id)
    if found is None:
        try:
            await store.put(id, {**body, _SETTINGS: dict(settings)}, None)
            return
        except ConflictError:
            found = await store.get(id)
    if found is not None and {**found.body, _SETTINGS: None} != {**body, _SETTINGS: None}:
        keys = sorted(
            key for key in {**found.body, **body}.keys() - {_SETTINGS} if found.body.get(key) != body.get(key)
        )
        there = ", ".join(f"{key} {_text(found.body.get(key))}" for key in keys)
        here = ", ".join(f"{key} {_text(body.get(key))}" for key in keys)
        raise RefusedError(
            f"the job {job.name} is another one: it has {there}; this command has {here}",
            f"give this one a name of its own (--name), or forget the other with `sluice ingest reset {job.name}`",
        )


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
