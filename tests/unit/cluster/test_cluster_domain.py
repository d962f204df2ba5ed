"""The cluster: assignments of containers, and members."""

from collections import Counter
from itertools import permutations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.domain_log import Log

from sluice.domain.cluster.commands import DrainStore, Heartbeat, RebalanceContainers, UndrainStore
from sluice.domain.cluster.decide import (
    assign,
    assignment_wait_ms,
    decide_assignment,
    decide_departures,
    decide_drain,
    decide_heartbeat,
    decide_rebalance,
    decide_takeover,
    decide_undrain,
    moves,
)
from sluice.domain.cluster.events import ContainersAssigned, MemberLeft, StoreDrained
from sluice.domain.cluster.state import CLUSTER, SILENCES_KEPT_MS, Cluster, Silence, cluster_of, uncovered
from sluice.domain.decision import Context, Decision, Reply, refusal
from sluice.domain.events import Event
from sluice.domain.host import Host
from sluice.domain.status import Status
from sluice.outages import Outage, in_words, outages

HOSTS = [Host(f"10.0.0.{n}", 12345 + p) for n in range(1, 5) for p in range(2)]
A, B, C = HOSTS[0], HOSTS[2], HOSTS[4]
NOW = 1_700_000_000_000

counts = st.integers(min_value=1, max_value=40)
hosts = st.sets(st.sampled_from(HOSTS), min_size=1)
present = st.dictionaries(st.integers(0, 45), st.sampled_from(HOSTS))


class View(Log):
    """A view in which these events have come true."""

    def __init__(self, *events: Event) -> None:
        super().__init__()
        self.fold(*events)


def at(ms: int) -> Context:
    return Context(now=NOW + ms)


def assigned(containers: dict[int, Host], *alive: Host, ms: int = 0) -> ContainersAssigned:
    return ContainersAssigned(containers=containers, hosts=alive, at=NOW + ms)


def fewest_given_up(count: int, alive: set[Host], before: dict[int, Host]) -> int:
    """How many containers living hosts must give up at least, by trying every way of who may keep one more."""
    kept = Counter(before[c] for c in range(count) if before.get(c) in alive)
    floor, more = divmod(count, len(alive))
    surplus = sorted((kept[host] for host in alive), reverse=True)
    return sum(max(0, load - floor - (1 if rank < more else 0)) for rank, load in enumerate(surplus))


@given(counts, hosts, present)
def test_assign_covers_every_container_once_and_evenly(count: int, alive: set[Host], before: dict[int, Host]) -> None:
    after = assign(count, alive, before)
    assert sorted(after) == list(range(count))
    loads = Counter(after.values())
    assert set(loads) <= alive
    assert max(loads[h] for h in alive) - min(loads[h] for h in alive) <= 1


@given(counts, hosts, present)
def test_assign_takes_from_the_living_no_more_than_balance_needs(
    count: int, alive: set[Host], before: dict[int, Host]
) -> None:
    after = assign(count, alive, before)
    given_up = sum(1 for c in range(count) if before.get(c) in alive and after[c] != before[c])
    assert given_up == fewest_given_up(count, alive, before)


@given(counts, hosts, present, st.randoms(use_true_random=False))
def test_assign_depends_on_nothing_but_its_inputs(count: int, alive: set[Host], before: dict[int, Host], r) -> None:  # type: ignore[no-untyped-def]
    shuffled, mixed = list(alive), list(before.items())
    r.shuffle(shuffled)
    r.shuffle(mixed)
    assert assign(count, shuffled, dict(mixed)) == assign(count, sorted(alive), before)


loads = st.dictionaries(st.integers(0, 45), st.integers(0, 10**9))


@given(counts, hosts, present, loads)
def test_assign_by_load_is_stable_and_leaves_no_move_that_is_worth_it(
    count: int, alive: set[Host], before: dict[int, Host], load: dict[int, int]
) -> None:
    after = assign(count, alive, before, load)
    assert sorted(after) == list(range(count)) and set(after.values()) <= alive
    assert assign(count, alive, after, load) == after
    total = sum(load.get(c, 0) for c in range(count))
    weight = {c: load.get(c, 0) * count + total if total else 1 for c in range(count)}
    of_host = {host: sum(w for c, w in weight.items() if after[c] == host) for host in alive}
    gap = max(of_host.values()) - min(of_host.values())
    busiest = [c for c in range(count) if of_host[after[c]] == max(of_host.values())]
    assert gap == 0 or any(4 * weight[c] > 3 * gap for c in busiest)


def test_a_container_with_all_the_load_is_left_alone() -> None:
    assert Counter(assign(4, [A, B], {0: A, 1: A, 2: B, 3: B}, {0: 10**6}).values()) == {A: 1, B: 3}
    assert assign(4, [A, B], {0: A, 1: A, 2: B, 3: B}, {0: 10**6})[0] == A, "it is cheaper to move the other one"
    assert assign(4, [A, B, C], {0: A, 1: A, 2: A, 3: A}, {0: 9, 1: 9, 2: 9}) == {0: A, 1: C, 2: B, 3: A}


def test_a_store_that_is_drained_runs_nothing_while_another_one_is_there() -> None:
    view = View(assigned({0: A, 1: B, 2: A, 3: B}, A, B))
    assert decide_drain(view, DrainStore(C), at(1)).reply == refusal(
        Status.PRECONDITION_FAILED, f"no segment store is registered as {C}"
    )
    drained = decide_drain(view, DrainStore(A), at(1))
    assert drained == Decision((StoreDrained(A, NOW + 1),), Reply(Status.SUCCESS))
    view.fold(*drained.events)
    assert decide_drain(view, DrainStore(A), at(1)) == Decision((), Reply(Status.SUCCESS))
    assert decide_drain(view, DrainStore(B), at(1)).reply == refusal(
        Status.PRECONDITION_FAILED, "no other segment store is there"
    )
    assert decide_assignment(view, 4, [A, B], {}, 10_000, at(9_999)) == Decision(), "the interval is kept"
    moved = decide_assignment(view, 4, [A, B], {}, 10_000, at(10_000))
    assert moved == Decision((assigned(dict.fromkeys(range(4), B), A, B, ms=10_000),))
    view.fold(*moved.events)
    alone = decide_assignment(view, 4, [A], {}, 0, at(20_000))
    assert alone == Decision((assigned(dict.fromkeys(range(4), A), A, ms=20_000),)), "none is worse than a drained one"
    view.fold(*decide_undrain(view, UndrainStore(A), at(30_000)).events)
    back = decide_assignment(view, 4, [A, B], {}, 0, at(30_000))
    assert back == Decision((assigned({0: B, 1: B, 2: A, 3: A}, A, B, ms=30_000),))
    assert decide_undrain(view, UndrainStore(A), at(40_000)) == Decision((), Reply(Status.SUCCESS))


def test_containers_are_spread_by_the_load_that_was_measured_last() -> None:
    view = View(assigned({0: A, 1: A, 2: B, 3: B}, A, B))
    view.fold(*decide_rebalance(view, RebalanceContainers({0: 500, 1: 500}), at(1)).events)
    event = decide_assignment(view, 4, [A, B], {}, 10_000, at(10_000)).events[0]
    assert isinstance(event, ContainersAssigned)
    assert event.containers[0] != event.containers[1]
    assert Counter(event.containers.values()) == {A: 2, B: 2}


def test_the_least_moves_are_the_least_of_all_ways() -> None:
    before = {0: A, 1: A, 2: A, 3: A, 4: B}
    balanced = [
        way
        for way in set(permutations([A, A, B, B, C, C], 5))
        if max(Counter(way).values()) - min(Counter(way).values()) <= 1 and set(way) == {A, B, C}
    ]
    least = min(sum(before[c] != host for c, host in enumerate(way)) for way in balanced)
    assert moves(before, assign(5, [A, B, C], before)) == least == 2


def test_uncovered() -> None:
    assert uncovered(Cluster(containers={0: A, 2: A}), 4) == (1, 3)


def test_first_assignment_does_not_wait() -> None:
    decision = decide_assignment(View(), 4, [B, A, B], {}, 10_000, at(0))
    event = assigned({0: A, 2: A, 1: B, 3: B}, A, B)
    assert decision == Decision((event,))


def test_first_assignment_goes_on_from_what_was_found() -> None:
    decision = decide_assignment(View(), 2, [A, B], {0: B, 1: C}, 10_000, at(0))
    assert decision == Decision((assigned({0: B, 1: A}, A, B),))
    view = View(assigned({0: A, 1: B}, A, B))
    assert decide_assignment(view, 2, [A, B], {0: B, 1: A}, 0, at(1)) == Decision()


@pytest.mark.parametrize(("ms", "decided"), [(0, False), (9_999, False), (10_000, True), (60_000, True)])
def test_later_assignments_keep_their_distance(ms: int, decided: bool) -> None:
    view = View(assigned({0: A, 1: A}, A))
    decision = decide_assignment(view, 2, [B], {}, 10_000, at(ms))
    assert decision == (Decision((assigned({0: B, 1: B}, B, ms=ms),)) if decided else Decision())


@pytest.mark.parametrize(("now", "wait"), [(0, 10_000), (4_000, 6_000), (10_000, 0), (20_000, 0), (-1, 0)])
def test_assignment_wait(now: int, wait: int) -> None:
    assert assignment_wait_ms(Cluster(containers={0: A}, assigned_at=NOW), 10_000, NOW + now) == wait


def test_nothing_is_decided_without_hosts_or_need() -> None:
    view = View(assigned({0: A, 1: B}, A, B))
    assert decide_assignment(view, 2, [], {}, 0, at(1)) == Decision()
    assert decide_assignment(view, 2, [B, A], {}, 0, at(1)) == Decision()


def test_a_host_without_containers_is_recorded_too() -> None:
    view = View(assigned({0: A}, A))
    decision = decide_assignment(view, 1, [A, B], {}, 0, at(1))
    assert decision == Decision((assigned({0: A}, A, B, ms=1),))


def test_containers_follow_the_count() -> None:
    view = View(assigned({0: A, 1: B}, A, B))
    (event,) = decide_assignment(view, 4, [A, B], {}, 0, at(1)).events
    assert isinstance(event, ContainersAssigned)
    assert event.containers == {0: A, 1: B, 2: A, 3: B}
    (event,) = decide_assignment(view, 1, [A, B], {}, 0, at(1)).events
    assert isinstance(event, ContainersAssigned)
    assert event.containers == {0: A}


def beat(instance: str, **endpoints: str) -> Heartbeat:
    return Heartbeat(service="api-gateway", instance=instance, endpoints=endpoints)


def test_members_come_change_and_go() -> None:
    view = View()
    joined = decide_heartbeat(view, beat("gw-1", grpc="10.0.0.9:9090"), at(1))
    view.fold(*joined.events)
    assert cluster_of(view).members["gw-1"].since == NOW + 1
    assert decide_heartbeat(view, beat("gw-1", grpc="10.0.0.9:9090"), at(2)) == Decision()
    view.fold(*decide_heartbeat(view, beat("gw-1", grpc="10.0.0.9:9091"), at(3)).events)
    assert cluster_of(view).members["gw-1"].endpoints == {"grpc": "10.0.0.9:9091"}
    departed = decide_departures(view, ["gw-1", "gw-2"], at(4))
    assert departed == Decision((MemberLeft(instance="gw-1", at=NOW + 4),))
    view.fold(*departed.events)
    assert cluster_of(view).members == {}
    assert decide_departures(view, ["gw-1"], at(5)) == Decision()


def test_a_member_that_was_started_anew_is_there_since_then() -> None:
    def started(ms: int) -> Heartbeat:
        return msgspec.structs.replace(beat("gw-1"), started_at=NOW + ms)

    view = View(*decide_heartbeat(View(), started(1), at(3)).events)
    assert cluster_of(view).members["gw-1"].since == NOW + 1
    assert decide_heartbeat(view, started(1), at(4)) == Decision(), "each start is recorded once"
    view.fold(*decide_heartbeat(view, started(50), at(52)).events)
    assert cluster_of(view).members["gw-1"].since == NOW + 50
    assert decide_heartbeat(view, started(1), at(53)) == Decision(), "a late heartbeat of the process before"


def test_a_member_that_ends_leaves_and_a_late_end_of_the_process_before_does_nothing() -> None:
    def leaving(ms: int) -> Heartbeat:
        return msgspec.structs.replace(beat("gw-1"), started_at=NOW + ms, leaving=True)

    started = msgspec.structs.replace(beat("gw-1"), started_at=NOW + 50)
    assert decide_heartbeat(View(), leaving(1), at(3)) == Decision(), "it never was a member"
    view = View(*decide_heartbeat(View(), started, at(51)).events)
    assert decide_heartbeat(view, leaving(1), at(53)) == Decision()
    assert decide_heartbeat(view, leaving(50), at(54)) == Decision((MemberLeft(instance="gw-1", at=NOW + 54),))


def test_a_container_is_out_from_its_first_silence_to_the_last_answer_that_was_missed() -> None:
    def hears(instance: str, *unresponsive: int, ms: int, started: int = 0) -> None:
        said = Heartbeat(instance, instance, {}, started_at=NOW + started, unresponsive=unresponsive)
        view.fold(*decide_heartbeat(view, said, at(ms)).events)

    view = View(assigned({0: A, 1: A, 2: B}, A, B))
    hears("a", ms=1)
    assert outages(cluster_of(view), 3) == {}
    hears("a", 0, 1, ms=5)
    hears("b", 1, ms=9)
    assert decide_heartbeat(view, Heartbeat("b", "b", {}, NOW, unresponsive=(1,)), at(10)) == Decision(), "no news"
    assert outages(cluster_of(view), 3) == {
        0: Outage(NOW + 5, A, False, ("a",)),
        1: Outage(NOW + 5, A, False, ("a", "b")),
    }
    view.fold(assigned({0: B, 1: B, 2: B}, B, ms=11))
    hears("a", 1, 2, ms=12)
    found = outages(cluster_of(view), 4)
    assert found == {
        1: Outage(NOW + 5, A, True, ("a", "b")), 2: Outage(NOW + 12, B, False, ("a",)), 3: Outage(NOW + 11, None),
    }  # fmt: skip
    assert in_words(found) == {
        1: f"container 1 has not answered a, b since 2023-11-14T22:13:20Z, when segment store {A} went",
        2: f"container 2 of segment store {B} has not answered a since 2023-11-14T22:13:20Z",
        3: "no segment store runs container 3",
    }
    view.fold(assigned({}, ms=13))
    assert outages(cluster_of(view), 4) == {
        0: Outage(NOW + 13, None), 1: found[1], 2: Outage(NOW + 12, B, True, ("a",)), 3: Outage(NOW + 13, None),
    }, "the last store went, and is still named where it was missed"  # fmt: skip
    view.fold(assigned({0: B, 1: B, 2: B}, B, ms=14), MemberLeft(instance="a", at=NOW + 14))
    hears("b", ms=15)
    assert outages(cluster_of(view), 3) == {}


def test_silences_that_ended_are_remembered_for_an_hour() -> None:
    def hears(*unresponsive: int, ms: int) -> None:
        said = Heartbeat("a", "a", {}, started_at=NOW, unresponsive=unresponsive)
        view.fold(*decide_heartbeat(view, said, at(ms)).events)

    view = View(assigned({0: A, 1: A}, A))
    hears(ms=1)
    hears(0, 1, ms=5)
    hears(1, ms=8)
    hears(ms=9)
    ended = (Silence(0, NOW + 5, NOW + 8), Silence(1, NOW + 5, NOW + 9))
    assert cluster_of(view).silences == ended
    hears(1, ms=20)
    view.fold(MemberLeft(instance="a", at=NOW + 8 + SILENCES_KEPT_MS))
    assert cluster_of(view).silences == (ended[1], Silence(1, NOW + 20, NOW + 8 + SILENCES_KEPT_MS))


def test_the_store_of_an_outage_is_the_one_that_ran_the_container_when_it_began() -> None:
    """A member that was started anew knows only the store that has the container by now."""
    first, later = (Heartbeat("a", instance, {}, unresponsive=(0,)) for instance in ("b", "a"))
    view = View(assigned({0: A}, A), *decide_heartbeat(View(), first, at(5)).events)
    view.fold(assigned({0: B}, B, ms=6), *decide_heartbeat(View(), later, at(9)).events)
    assert outages(cluster_of(view), 1) == {0: Outage(NOW + 5, A, True, ("a", "b"))}


def test_what_a_process_before_missed_is_not_said_of_the_one_that_was_started_anew() -> None:
    late = Heartbeat("a", "a", {}, started_at=NOW + 1, unresponsive=(0,))
    view = View(assigned({0: A}, A), *decide_heartbeat(View(), late, at(2)).events)
    assert outages(cluster_of(view), 1)
    anew = Heartbeat("a", "a", {}, started_at=NOW + 50)
    view.fold(*decide_heartbeat(view, anew, at(51)).events)
    assert not outages(cluster_of(view), 1)
    assert decide_heartbeat(view, late, at(52)) == Decision()


def test_members_and_containers_leave_each_other_alone() -> None:
    view = View(assigned({0: A}, A), *decide_heartbeat(View(), beat("gw-1"), at(0)).events)
    view.fold(assigned({0: B}, B, ms=7))
    state = cluster_of(view)
    assert (state.containers, state.hosts, state.assigned_at, set(state.members)) == ({0: B}, (B,), NOW + 7, {"gw-1"})


def test_taking_over_is_a_record_even_for_a_member() -> None:
    view = View(*decide_heartbeat(View(), beat("cm-1"), at(0)).events)
    (event,) = decide_takeover(beat("cm-1"), at(1)).events
    assert event.aggregate == CLUSTER
    view.fold(event)
    assert cluster_of(view).members["cm-1"].since == NOW + 1


def test_a_member_that_never_joined_may_leave() -> None:
    assert cluster_of(View(MemberLeft(instance="x", at=NOW))) == Cluster()
