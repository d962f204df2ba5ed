"""The board of a topology: the documents under one prefix, looked at all at once.

`<topology>/leader` and `<topology>/node/<token>` are locks, `<topology>/nodes` lists the nodes, `<topology>/task/<id>`
are tasks that callers submitted, `<topology>/source/<name>` says which tasks a source has at present, and
`<topology>/part/<name>/<key>` are those tasks. A part that its source's document does not name is *withdrawn*: no node
takes it, the one that runs it stops, and it is removed. So a leader that was frozen and puts a part on the board late
does no harm: the source's document is written conditionally and says that it is over.

Concurrency: belongs to one event loop. A view is what was there at one moment; whatever is done about it is conditional
on the versions in it.
"""

import logging
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

import msgspec

from sluice_coordination.document import Body, Document, check_id
from sluice_coordination.errors import ConflictError, CoordinationError, StoreFailedError, TaskBoardFullError
from sluice_coordination.functions import Json
from sluice_coordination.held_lock import HeldLock, Leases
from sluice_coordination.lease import RELEASED
from sluice_coordination.task import Entry, Outcome, Task, done_fields, entry_of, new_body

log = logging.getLogger(__name__)
T = TypeVar("T")

_ATTEMPTS = 10


class NodeEntry(msgspec.Struct, frozen=True):
    """A node as the list has it. `token` is its name, `workers` how many tasks it runs at a time."""

    token: str
    workers: int


class SourceState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the document of a source holds: the tasks it has at present, by key, and whether it has none any more.

    `position` is what its kind needs to go on.
    """

    tasks: dict[str, Task] = {}
    position: Json = None
    complete: bool = False


class NodeList(msgspec.Struct, frozen=True):
    """The document `<topology>/nodes`."""

    nodes: tuple[NodeEntry, ...] = ()


class View:
    """What one look has shown. `requested_at` is when the node requested it, by the process's own clock."""

    def __init__(self, topology: str, documents: dict[str, Document], requested_at: float) -> None:
        self.documents = documents
        self.requested_at = requested_at
        self._topology = topology
        self.nodes: tuple[NodeEntry, ...] = _read(documents.get(f"{topology}/nodes"), NodeList, NodeList()).nodes
        self.sources: dict[str, SourceState] = {
            id.removeprefix(f"{topology}/source/"): _read(document, SourceState, SourceState())
            for id, document in self._under("source/")
        }
        self.submitted = dict(_entries(self._under("task/")))
        self.parts = dict(_entries(self._under("part/")))

    def of_source(self, name: str) -> dict[str, Entry]:
        """Return the tasks on the board that belong to a source, withdrawn ones too, by key."""
        start = f"{self._topology}/part/{name}/"
        return {id.removeprefix(start): entry for id, entry in self.parts.items() if id.startswith(start)}

    def is_current(self, id: str) -> bool:
        """Whether the task is still to be done."""
        entry = self.submitted.get(id) or self.parts.get(id)
        if entry is None or entry.done:
            return False
        if id in self.submitted:
            return True
        source, _, key = id.removeprefix(f"{self._topology}/part/").partition("/")
        state = self.sources.get(source)
        return state is not None and key in state.tasks

    def outstanding(self) -> list[Entry]:
        """Return the tasks that are to be done, those that a node runs right now too, in the order of ids."""
        entries = {**self.parts, **self.submitted}
        return [entry for id, entry in sorted(entries.items()) if self.is_current(id)]

    def holder(self, id: str) -> str | None:
        """Return who the document says holds the task, None if there is no such task."""
        entry = self.submitted.get(id) or self.parts.get(id)
        return None if entry is None else entry.holder

    def _under(self, kind: str) -> list[tuple[str, Document]]:
        start = f"{self._topology}/{kind}"
        return [(id, document) for id, document in self.documents.items() if id.startswith(start)]


class TaskBoard:
    """The documents of one topology. A view is refused beyond the store's limit, a submission beyond `max_tasks`."""

    def __init__(self, leases: Leases, topology: str, max_tasks: int = 2_000) -> None:
        self.leases = leases
        self.topology = check_id(topology)
        self.max_tasks = max_tasks
        self._tasks_seen = 0

    def id(self, *path: str) -> str:
        """Return the id of a document of the topology; raise ValueError if it is not one."""
        return check_id("/".join((self.topology, *path)))

    async def look(self) -> View:
        """Return all there is, and take note of the locks in it. Raises StoreUnavailableError, StoreFailedError."""
        requested_at = self.leases.clock.now()
        documents = await self.leases.store.under(f"{self.topology}/")
        view = View(self.topology, documents, requested_at)
        locks = {self.id("leader"), *view.submitted, *view.parts, *(self.id("node", each.token) for each in view.nodes)}
        locks |= {id for id in documents if id.startswith(self.id("node") + "/")}
        for id in locks:
            self.leases.sightings.note(id, documents.get(id))
        self.leases.sightings.record_plain(self.id("nodes"), documents.get(self.id("nodes")))
        known, start = {*locks, self.id("nodes")}, f"{self.topology}/"
        self.leases.sightings.forget(lambda each: each in known or not each.startswith(start))
        self._tasks_seen = len(view.submitted)
        return view

    async def submit(self, key: str, task: Task) -> Entry:
        """Put a task on the board, if there is none with that key; return the one that stands there, which may be done.

        Raises TaskBoardFullError, StoreUnavailableError, StoreFailedError; ValueError for a key, and if what stands
        there is no task; TypeError for arguments that cannot be.
        """
        if self._tasks_seen >= self.max_tasks:
            raise TaskBoardFullError(f"{self.topology}: {self.max_tasks}")
        id, store = self.id("task", key), self.leases.store
        body = new_body(task, creation_id=uuid.uuid4().hex)
        for _ in range(_ATTEMPTS):
            try:
                found: Document | None = Document(body, await store.put(id, body, None))
                self._tasks_seen += 1
            except ConflictError:
                found = await store.get(id)
            if found is not None:
                return entry_of(id, found)
        raise CoordinationError(f"{id} comes and goes faster than it can be submitted")

    async def put_new(self, id: str, task: Task) -> None:
        """Put a task on the board, unless there is one under that id already."""
        with suppress(ConflictError):
            await self.leases.store.put(id, new_body(task), None)

    def is_free(self, entry: Entry) -> bool:
        """Whether the task can be taken, as far as this process has seen."""
        return not entry.done and self.leases.sightings.is_free(entry.id, entry.document)

    async def take(self, entry: Entry) -> HeldLock | None:
        """Take a task; None if another node was faster. Raises StoreUnavailableError, StoreFailedError."""
        return await self.leases.take(entry.id, entry.document)

    async def cancel(self, id: str, creation_id: str) -> bool:
        """Have a task count as done, whichever node runs it; return False if it was done already, or is gone.

        It is gone, too, if another one has been submitted under its key since.

        The node that runs it stops when it next looks or renews. Raises StoreUnavailableError, StoreFailedError.
        """
        store = self.leases.store
        for _ in range(_ATTEMPTS):
            found = await store.get(id)
            if found is None or (entry := entry_of(id, found)).done or entry.creation_id != creation_id:
                return False
            ended: Body = {"holder": "", "expire": RELEASED, **done_fields(Outcome(cancelled=True))}
            try:
                await store.put(id, {**found.body, **ended}, found.version)
            except ConflictError:
                continue
            return True
        raise CoordinationError(f"{id} changes faster than it can be cancelled")

    async def replace(self, entry: Entry, body: Body) -> None:
        """Write the task's document anew, unless it has changed since the view."""
        with suppress(ConflictError):
            await self.leases.store.put(entry.id, body, entry.document.version)

    async def remove(self, id: str, document: Document) -> None:
        """Remove a document, unless it has changed since the view."""
        with suppress(ConflictError):
            await self.leases.store.delete(id, document.version)


def _read(document: Document | None, kind: type[T], missing: T) -> T:
    if document is None:
        return missing
    try:
        return msgspec.convert(document.body, kind)
    except msgspec.ValidationError as error:
        raise StoreFailedError(f"not {kind.__name__}: {error}") from error


def _entries(documents: Iterable[tuple[str, Document]]) -> Iterable[tuple[str, Entry]]:
    for id, document in documents:
        try:
            yield id, entry_of(id, document)
        except ValueError as error:
            log.warning("not a task", extra={"document": id, "error": str(error)})
