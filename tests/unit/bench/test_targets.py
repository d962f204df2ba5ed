"""Which targets of a run count as met, and which are printed as missed."""

from bench import calls, floors, targets
from bench.figures import CallCpu, CpuTimes, Figures, Idle, Measured, Report
from bench.targets import Row

PARTS = {part: Figures(1, 1.0, 2.0) for part in floors.PARTS}


def ms(p50: float) -> Figures:
    return Figures(10, p50, p50 * 2)


def row_of(name: str, report: Report) -> Row:
    return next(row for row in targets.rows(report) if row.call == name)


def run(name: str, ours: Figures, theirs: Figures | None = None, cpu: CpuTimes | None = None) -> Report:
    peer = Measured({name: theirs}) if theirs is not None else None
    return Report(Measured({name: ours}, parts=PARTS, cpu=cpu), peer)


def commit_cpu(services: float, kafka: float, store: float) -> CpuTimes:
    """Without the client's own time, which no target counts."""
    us = {"api-gateway": services / 2, "txn-manager": services / 2, "Kafka": kafka, "store and bookie": store}
    return CpuTimes({calls.COMMIT_TXN: CallCpu(100, {**us, "load generator": 99_000.0})}, {})


def test_a_call_has_to_reach_its_ratio_and_its_floor() -> None:
    both = row_of(calls.CREATE_STREAM, run(calls.CREATE_STREAM, ms(7), ms(84)))
    too_far_from_floor = row_of(calls.CREATE_STREAM, run(calls.CREATE_STREAM, ms(10), ms(200)))
    too_small_a_ratio = row_of(calls.CREATE_STREAM, run(calls.CREATE_STREAM, ms(7), ms(70)))
    assert (both.floor_ms, both.of_floor, both.met) == (5.0, 7 / 5, True)
    assert too_far_from_floor.met is False and too_small_a_ratio.met is False
    assert "measured 2.00 times the floor" in targets.missed([too_far_from_floor])[0]
    assert "measured 10.00×" in targets.missed([too_small_a_ratio])[0]


def test_without_the_real_controller_only_the_floor_is_judged() -> None:
    near, far = run(calls.WHOLE_EMPTY, ms(14)), run(calls.WHOLE_EMPTY, ms(15))
    assert row_of(calls.WHOLE_EMPTY, near).met is None
    assert row_of(calls.WHOLE_EMPTY, far).met is False
    assert "ratio" not in "".join(targets.missed(targets.rows(near)))


def test_a_tail_is_held_against_the_real_controllers_and_a_limit() -> None:
    good, slow = Figures(100, 1.0, 20.0), Figures(100, 1.0, 21.0)
    theirs = Figures(100, 40.0, 20.0)
    assert row_of(calls.PING_TXN, run(calls.PING_TXN, good, theirs)).met is True
    assert targets.missed([row_of(calls.PING_TXN, run(calls.PING_TXN, slow, theirs))]) == [
        "pingTransaction: target p99 ≤ its, measured 21.0 ms, the real controller 20.0",
        "pingTransaction: target p99 ≤ 20 ms, measured 21.0 ms",
    ]


def test_a_call_that_failed_has_missed_all_its_targets() -> None:
    failed = targets.rows(run(calls.WHOLE_ONE, Figures(failed="UNKNOWN: ..."), ms(50)))
    assert len(targets.missed(failed)) == 2


def test_committed_transactions_may_be_slow_where_a_fifth_of_the_cpu_is_ours() -> None:
    ours, theirs = Figures(10, per_s=100.0), Figures(10, per_s=90.0)

    def met(cpu: CpuTimes | None) -> bool | None:
        return row_of(calls.COMMITTED_ONE, run(calls.COMMITTED_ONE, ours, theirs, cpu)).met

    assert met(commit_cpu(services=1000, kafka=1000, store=3000)) is True
    assert met(commit_cpu(services=2000, kafka=1000, store=3000)) is False
    assert met(None) is False


def test_cpu_time_of_services_and_kafka_is_held_against_its_target() -> None:
    name = f"CPU, services + Kafka: {calls.COMMIT_TXN}"
    within, over = commit_cpu(1000, 1000, 9000), commit_cpu(1500, 700, 0)
    assert row_of(name, run(calls.COMMIT_TXN, ms(5), cpu=within)).met is True
    assert row_of(name, run(calls.COMMIT_TXN, ms(5), cpu=over)).met is False


def test_an_idle_system_is_judged_by_each_group_and_its_busiest_topics() -> None:
    percent = {"Python services": 2.9, "retention-spark": 16.0, "Kafka": 6.0}
    idle = Idle(300.0, percent, {"sluice.requests.cluster": 48.0, "sluice.journal": 4.0}, 0.5)
    misses = targets.missed(targets.rows(Report(idle=idle)))
    assert misses == [
        "idle: retention-spark: target ≤ 5% of a core, measured 16.0%",
        "idle: records to a topic: target ≤ 4/min, measured sluice.requests.cluster 48",
    ]
