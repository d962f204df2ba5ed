"""Invariants of what is stored: committed events once, together, in order; aborted ones nowhere; nothing left over."""

from collections.abc import Iterable

from simulation.txn.clients import EVENT, Clients, Written
from simulation.txn.model import Model, Txn
from simulation.txn.plant import Plant
from simulation.violation import Violation

MARK = "#transaction."


def check(plant: Plant, clients: Clients) -> None:
    """To be called when nothing is under way any more."""
    model = plant.auditor.model
    _commits_in_order(model)
    if (left := left_over(plant)) is not None:
        raise Violation(left)
    found = _runs(plant)
    for id, written in clients.written.items():
        state = model.txns[written.key].state
        runs = found.pop(written.number, [])
        if state != "COMMITTED":
            if runs:
                raise Violation(f"{id} is {state}, but its events are in {[name for name, _ in runs]}")
            continue
        _committed_once(written, runs)
    if found:
        raise Violation(f"events without a transaction: {found}")
    _merged_in_order(plant)
    _deleted_empty(plant)


def _commits_in_order(model: Model) -> None:
    for key, decided in model.committing.items():
        done = model.committed.get(key, [])
        if done != decided[: len(done)]:
            raise Violation(f"{key}: commits were decided in the order {decided}, done in {done}")


def left_over(plant: Plant) -> str | None:
    """A segment of an aborted transaction, of one that never came about, or one that was skipped and never deleted.

    One of a committed transaction is at least empty: created late it stays for good, because a real segment store must
    not have to delete what it has just merged.
    """
    known = _known(plant)
    for name in plant.auditor.model.skipped - plant.stores.deleted.keys():
        return f"{name} was skipped, and is left over"
    for name, segment in plant.stores.segments.items():
        id = name.partition(MARK)[2]
        txn = known.get(id)
        number = int(name.rpartition("/")[2].partition(".")[0]) if id else -1
        is_its_own = txn is not None and number in txn.numbers
        if id and not is_its_own:
            return f"{name} is left over of no transaction"
        if txn is not None and txn.state == "ABORTED":
            return f"{name} is left over of {txn}"
        if id and segment.length and txn is not None and txn.state == "COMMITTED":
            return f"{name} is left over, and not empty"
    return None


def _known(plant: Plant) -> dict[str, Txn]:
    """All transactions, by the digits in the names of their segments."""
    return {id.replace("-", ""): txn for (_, _, id), txn in plant.auditor.model.txns.items()}


def _deleted_empty(plant: Plant) -> None:
    """Of a transaction that was committed only empty segments are deleted."""
    known = _known(plant)
    for name, size in plant.stores.deleted.items():
        txn = known.get(name.partition(MARK)[2])
        if size and txn is not None and txn.state == "COMMITTED":
            raise Violation(f"{name} was deleted with {size} bytes of {txn}")


def _runs(plant: Plant) -> dict[int, list[tuple[str, list[bytes]]]]:
    """For each transaction's number the runs of its events: in which segment, and which."""
    found: dict[int, list[tuple[str, list[bytes]]]] = {}
    for name, content in plant.stores.everything().items():
        if MARK in name:
            continue
        before = -1
        for event in _events(name, content):
            number = int(event[:6])
            runs = found.setdefault(number, [])
            if number != before or not runs:
                runs.append((name, []))
            runs[-1][1].append(event)
            before = number
    return found


def _events(name: str, content: bytes) -> Iterable[bytes]:
    if len(content) % EVENT:
        raise Violation(f"{name} has torn events")
    return (content[i : i + EVENT] for i in range(0, len(content), EVENT))


def _committed_once(written: Written, runs: list[tuple[str, list[bytes]]]) -> None:
    wanted = sorted(events for events in written.events.values())
    if sorted(events for _, events in runs) != wanted:
        raise Violation(f"{written.id} has written {wanted}, in the stream is {runs}")
    for name, events in runs:
        segment_number = int(name.rpartition("/")[2].partition(".")[0])
        if events != written.events.get(segment_number):
            raise Violation(f"{written.id}: {events} went to {name}")


def _merged_in_order(plant: Plant) -> None:
    """In each target the merges stand in the order in which their commits were decided."""
    model = plant.auditor.model
    ranks = {(*key, id): rank for key, decided in model.committing.items() for rank, id in enumerate(decided)}
    last: dict[str, int] = {}
    seen: set[str] = set()
    for target, source, size in plant.stores.merges:
        if not size:
            # Created once more by a process that was late: merged or not, there is nothing in it.
            continue
        if source in seen:
            raise Violation(f"{source} was merged twice")
        seen.add(source)
        scope, stream, _ = source.split("/")
        digits = source.partition(MARK)[2]
        id = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        rank = ranks.get((scope, stream, id))
        if rank is None:
            raise Violation(f"{source} was merged, but never committed")
        if rank < last.get(target, -1):
            raise Violation(f"{source} was merged into {target} behind a later commit")
        last[target] = rank
