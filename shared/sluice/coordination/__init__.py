"""Work shared among processes that meet only in documents with versions: locks, a leader, a node list, a task board.

Nobody calls anybody. Every decision is a write on the version of a document that was seen, so that of two who decide at
once one is told. See `docs/coordination.md`; each module says why it is as it is.
"""

from sluice.coordination.board import Board, NodeEntry, SourceState
from sluice.coordination.document import Document, Version
from sluice.coordination.errors import (
    BoardFullError,
    ConflictError,
    CoordinationError,
    LockLostError,
    StoreFailedError,
    StoreHeldError,
    StoreUnavailableError,
    TaskCancelledError,
    TaskFailedError,
    TaskTimedOutError,
    TaskVanishedError,
    UnknownFunctionError,
)
from sluice.coordination.functions import Functions, TaskContext
from sluice.coordination.futures import TaskFuture
from sluice.coordination.lease import LeaseSettings
from sluice.coordination.lock import Leader, Lock
from sluice.coordination.node import Node, NodeSettings
from sluice.coordination.sources import PartitionedSource, SingleSource, Situation, Source, Window, WindowSource
from sluice.coordination.store import DocumentStore, open_store
from sluice.coordination.task import Task
from sluice.coordination.tenure import Leases, Tenure

__all__ = [
    "Board",
    "BoardFullError",
    "ConflictError",
    "CoordinationError",
    "Document",
    "DocumentStore",
    "Functions",
    "Leader",
    "LeaseSettings",
    "Leases",
    "Lock",
    "LockLostError",
    "Node",
    "NodeEntry",
    "NodeSettings",
    "PartitionedSource",
    "SingleSource",
    "Situation",
    "Source",
    "SourceState",
    "StoreFailedError",
    "StoreHeldError",
    "StoreUnavailableError",
    "Task",
    "TaskCancelledError",
    "TaskContext",
    "TaskFailedError",
    "TaskFuture",
    "TaskTimedOutError",
    "TaskVanishedError",
    "Tenure",
    "UnknownFunctionError",
    "Version",
    "Window",
    "WindowSource",
    "open_store",
]
