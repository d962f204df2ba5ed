"""What makes the states of a back-up fit each other, whatever moment each partition was taken at.

The ends of all partitions are learned by one question, but not at one moment. So one partition may hold a record that
was decided on what another one had not yet, or not any more. Only two things span partitions, and each has a rule that
makes any cut right:

- a resource brings its scope along: where that is not in the back-up it is made anew;
- the reader group says which streams it holds back: one that lacks it as a subscriber gets it, another one loses it.
"""

from collections.abc import MutableMapping
from typing import Any

from sluice.domain.ids import StreamId
from sluice.domain.names import scope_aggregate
from sluice.domain.reader_group.state import GroupState, ReaderGroup
from sluice.domain.scope.state import Scope
from sluice.domain.stream.state import Stream, Subscriber
from sluice.domain.table.state import Table

States = MutableMapping[str, Any]
"""The states of all partitions by the names of their aggregates; what is changed is set anew."""


def repair(states: States, creation_id: str, now: int) -> list[str]:
    """Make the states fit each other; what was done, in words. `now` in epoch ms."""
    return [*_bring_scopes(states, creation_id, now), *_settle_subscribers(states, now)]


def _bring_scopes(states: States, creation_id: str, now: int) -> list[str]:
    scopes = {state.id.scope for state in states.values() if isinstance(state, Stream | ReaderGroup | Table)}
    missing = [scope for scope in sorted(scopes) if scope_aggregate(scope) not in states]
    for scope in missing:
        states[scope_aggregate(scope)] = Scope(scope, creation_id, now)
    return [f"scope {scope} is made anew for what is in it" for scope in missing]


def _settle_subscribers(states: States, now: int) -> list[str]:
    groups = {s.subscriber: s for s in states.values() if isinstance(s, ReaderGroup) and _may_hold_back(s)}
    return [*_add_missing(states, groups, now), *_remove_strangers(states, groups)]


def _add_missing(states: States, groups: dict[str, ReaderGroup], now: int) -> list[str]:
    """A group whose workflow still runs subscribes, or leaves, by itself."""
    done = []
    for name, group in groups.items():
        if group.state is not GroupState.ACTIVE or group.workflow is not None:
            continue
        for scoped in group.config.starts:
            aggregate = StreamId.of(scoped).aggregate
            stream = states.get(aggregate)
            if not isinstance(stream, Stream):
                continue
            known = stream.subscribers.get(name)
            if known is None or known.group_id != group.config.id:
                added = Subscriber(group.config.id, group.config.generation, now)
                stream.subscribers = {**stream.subscribers, name: added}
                done.append(f"stream {scoped} is held back by reader group {name}")
            elif known.generation != group.config.generation:
                known.generation = group.config.generation
            states[aggregate] = stream
    return done


def _remove_strangers(states: States, groups: dict[str, ReaderGroup]) -> list[str]:
    done = []
    for aggregate, stream in states.items():
        if not isinstance(stream, Stream) or not stream.subscribers:
            continue
        kept = {name: s for name, s in stream.subscribers.items() if _is_of(groups.get(name), stream, s)}
        gone = sorted(stream.subscribers.keys() - kept.keys())
        done += [f"stream {stream.id} is not held back by reader group {name} any more" for name in gone]
        if len(kept) < len(stream.subscribers):
            stream.subscribers = kept
            states[aggregate] = stream
    return done


def _may_hold_back(group: ReaderGroup) -> bool:
    """One whose workflow runs may still have to leave streams, and does."""
    return group.config.subscribes() or group.workflow is not None


def _is_of(group: ReaderGroup | None, stream: Stream, subscriber: Subscriber) -> bool:
    if group is None or group.config.id != subscriber.group_id:
        return False
    return group.workflow is not None or str(stream.id) in group.config.starts
