"""Which of the free tasks a node begins with, so that all of them together take each once. Pure functions."""

from collections.abc import Iterator, Sequence

from sluice_coordination.task_board import NodeEntry


class Share:
    """Numbers of tasks; `start` is where the node's share begins."""

    def __init__(self, numbers: Sequence[int], start: int) -> None:
        self._numbers = tuple(numbers)
        self._known = frozenset(numbers)
        self.start = start

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, number: object) -> bool:
        return number in self._known


def own_share(nodes: Sequence[NodeEntry], me: NodeEntry, tasks: int, seed: int) -> Share:
    """Return which of so many tasks are a node's.

    All workers of all nodes stand in a ring, those of a node side by side, and so do the tasks, at equal distances. The
    tasks in front of its workers are the node's. The seed turns the ring, so that of few tasks not always the same
    nodes get one; who sees the same tasks and nodes uses the same. A node that is not in the list counts as its last.
    """
    listed = nodes if any(node.token == me.token for node in nodes) else (*nodes, me)
    total, before = sum(node.workers for node in listed), 0
    for node in listed:
        if node.token == me.token:
            break
        before += node.workers
    if not tasks or not me.workers:
        return Share((), 0)
    # In units of one worker / tasks, to be exact.
    first, last, turn = before * tasks, (before + me.workers) * tasks, seed % (total * tasks)
    numbers = [number for number in range(tasks) if first <= (number * total + turn) % (total * tasks) < last]
    start = tasks * before // total
    return Share(numbers, numbers[0] if numbers else start)
