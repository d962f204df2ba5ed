"""Which of the free tasks a node begins with, so that all of them together take each once. Pure functions."""

from collections.abc import Sequence

from sluice_coordination.task_board import NodeEntry


def shares(nodes: Sequence[NodeEntry], me: NodeEntry, tasks: int, seed: int) -> tuple[list[int], list[int]]:
    """Return which of so many tasks are a node's, and all the others, each in the order to take them.

    All workers of all nodes stand in a ring, those of a node side by side, and so do the tasks, at equal distances. The
    tasks in front of its workers are the node's. The seed turns the ring, so that of few tasks not always the same
    nodes get one; who sees the same tasks and nodes uses the same. A node that is not in the list counts as its last.
    The others begin behind the node's own first one, so that not all nodes begin with the same.
    """
    listed = nodes if any(node.token == me.token for node in nodes) else (*nodes, me)
    total, before = sum(node.workers for node in listed), 0
    for node in listed:
        if node.token == me.token:
            break
        before += node.workers
    if not tasks or not me.workers:
        return [], list(range(tasks))
    # In units of one worker / tasks, to be exact.
    first, last, turn = before * tasks, (before + me.workers) * tasks, seed % (total * tasks)
    own = [number for number in range(tasks) if first <= (number * total + turn) % (total * tasks) < last]
    start = own[0] if own else tasks * before // total
    mine = frozenset(own)
    return own, [number for number in (*range(start, tasks), *range(start)) if number not in mine]
