"""The settings of txn-manager."""

from pydantic import Field

from sluice.domain.transaction.decide import Limits
from sluice.settings import Count, CountOrZero, Seconds, SecondsOrZero, ServiceSettings
from txn_manager.demand import PreparedLimits
from txn_manager.wheel.redis_access import redis_in_words


class TxnSettings(ServiceSettings):
    """`max_steps` bounds the steps of commits that are carried out at once, and likewise those of aborts, and of opens
    for which none is prepared; `max_open` the requests taken and not yet acknowledged.

    Of a stream, at most `max_open_transactions` are open and `max_waiting_commits` wait to be committed, `batch` of
    them at once. A lease lasts `min_lease_s` to `max_lease_s`; pings extend it up to `max_transaction_life_s` after the
    open, or 1000 times the first lease if that is less. All instances must be given the same.

    Of transactions that are prepared before clients open them: at most `max_prepared_transactions` of a stream and
    `max_prepared_in_all` of the streams that an instance looks after, else as many as a stream opens in
    `prepared_horizon_s`. What is too many is discarded every `prepared_idle_s`, and all of a stream that opened none in
    that time. 0 as a maximum prepares none.

    Timers of leases: looked at every `tick_s`, due `grace_s` after the lease has run out.

    Statistics: reported every `statistics_s`, kept in at most `statistics_max_windows` windows of all streams together;
    0: none are kept, and no process is needed for it.

    `redis_password_file` is a file with the password of the user in `redis_url`; a change counts without a restart.

    `crash_at` names a point at which the process kills itself, once it passes there; for tests of recovery.
    """

    max_steps: Count = 256
    max_open: Count = 20_000
    store_timeout_s: Seconds = 20.0
    tick_s: Seconds = 1.0
    grace_s: SecondsOrZero = 2.0
    max_open_transactions: Count = Limits().open
    max_waiting_commits: Count = Limits().waiting_commits
    min_lease_s: float = Field(default=Limits().min_lease_ms / 1000, ge=1, le=10)
    max_lease_s: float = Field(default=Limits().max_lease_ms / 1000, ge=10, le=30 * 24 * 3600)
    max_transaction_life_s: Seconds = Limits().max_life_ms / 1000
    batch: Count = 100
    max_prepared_transactions: CountOrZero = PreparedLimits().per_stream
    max_prepared_in_all: CountOrZero = PreparedLimits().total
    prepared_horizon_s: Seconds = PreparedLimits().horizon_s
    prepared_idle_s: Seconds = PreparedLimits().idle_s
    statistics_s: Seconds = 5.0
    statistics_max_windows: CountOrZero = 200_000
    redis_password_file: str = ""
    crash_at: str = ""

    def security(self) -> dict[str, str]:
        """See ServiceSettings."""
        return {**super().security(), "redis": redis_in_words(self.redis_url.get_secret_value())}

    @property
    def limits(self) -> Limits:
        return Limits(
            open=self.max_open_transactions,
            waiting_commits=self.max_waiting_commits,
            min_lease_ms=int(self.min_lease_s * 1000),
            max_lease_ms=int(self.max_lease_s * 1000),
            max_life_ms=int(self.max_transaction_life_s * 1000),
        )

    @property
    def prepared_limits(self) -> PreparedLimits:
        return PreparedLimits(
            per_stream=self.max_prepared_transactions,
            total=self.max_prepared_in_all,
            horizon_s=self.prepared_horizon_s,
            idle_s=self.prepared_idle_s,
        )
