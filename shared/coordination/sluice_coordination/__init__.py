"""Work shared among processes that meet only in documents with versions: locks, semaphores, a leader, nodes, tasks.

No node calls another. Every decision is a write on the version of a document that was seen, so that of two nodes that
decide at once one gets a conflict. See `docs/coordination.md`; each module says why it is as it is.
"""

from sluice_coordination.document import Document, Version
from sluice_coordination.errors import (
    ConflictError,
    CoordinationError,
    LockLostError,
    StoreFailedError,
    StoreHeldError,
    StoreUnavailableError,
    TaskBoardFullError,
    TaskCancelledError,
    TaskFailedError,
    TaskTimedOutError,
    TaskVanishedError,
    UnknownFunctionError,
)
from sluice_coordination.functions import Functions, TaskContext
from sluice_coordination.futures import TaskFuture
from sluice_coordination.held_lock import HeldLock, Leases
from sluice_coordination.lease import LeaseSettings
from sluice_coordination.lock import Leader, Lock
from sluice_coordination.node import Node, NodeSettings
from sluice_coordination.semaphore import Semaphore
from sluice_coordination.sources import PartitionedSource, SingleSource, Situation, Source, Window, WindowSource
from sluice_coordination.status import Status, status_of, statuses
from sluice_coordination.store import DocumentStore, open_store
from sluice_coordination.task import Task
from sluice_coordination.task_board import NodeEntry, SourceState, TaskBoard

__all__ = [
    "ConflictError",
    "CoordinationError",
    "Document",
    "DocumentStore",
    "Functions",
    "HeldLock",
    "Leader",
    "LeaseSettings",
    "Leases",
    "Lock",
    "LockLostError",
    "Node",
    "NodeEntry",
    "NodeSettings",
    "PartitionedSource",
    "Semaphore",
    "SingleSource",
    "Situation",
    "Source",
    "SourceState",
    "Status",
    "StoreFailedError",
    "StoreHeldError",
    "StoreUnavailableError",
    "Task",
    "TaskBoard",
    "TaskBoardFullError",
    "TaskCancelledError",
    "TaskContext",
    "TaskFailedError",
    "TaskFuture",
    "TaskTimedOutError",
    "TaskVanishedError",
    "UnknownFunctionError",
    "Version",
    "Window",
    "WindowSource",
    "open_store",
    "status_of",
    "statuses",
]
