"""The settings of txn-manager."""

from sluice.domain.transaction.decide import Limits
from sluice.settings import ServiceSettings
from txn_manager.demand import PreparedLimits
from txn_manager.wheel.redis_access import redis_in_words


class TxnSettings(ServiceSettings):
    """`max_handlers` bounds the keys worked on at once, and likewise the commits and aborts that run; `max_open` the
    requests taken and not yet accepted.

    Of a stream, at most `max_open_transactions` are open and `max_waiting_commits` wait to be committed, `batch` of
    them at once.

    Of transactions that are prepared before clients open them: at most `max_prepared_transactions` of a stream and
    `max_prepared_in_all` of the streams that an instance looks after, else as many as a stream opens in
    `prepared_horizon_s`; discarded when it opens none for `prepared_idle_s`. 0 as a maximum prepares none.

    Timers of leases: looked at every `tick_s`, due `grace_s` after the lease has run out; an instance that has claimed
    one and has not dealt with it after `claim_s` loses it to the others.

    Statistics: reported every `statistics_s`, kept in at most `statistics_max_windows` windows of all streams together.

    `redis_password_file` is a file with the password of the user in `redis_url`; a change counts without a restart.

    `crash_at` names a point at which the process kills itself, once it passes there; for tests of recovery.
    """

    max_handlers: int = 256
    max_open: int = 20_000
    store_timeout_s: float = 20.0
    tick_s: float = 1.0
    grace_s: float = 2.0
    claim_s: float = 10.0
    max_open_transactions: int = Limits().open
    max_waiting_commits: int = Limits().waiting_commits
    batch: int = 100
    max_prepared_transactions: int = PreparedLimits().per_stream
    max_prepared_in_all: int = PreparedLimits().total
    prepared_horizon_s: float = PreparedLimits().horizon_s
    prepared_idle_s: float = PreparedLimits().idle_s
    statistics_s: float = 5.0
    statistics_max_windows: int = 200_000
    redis_password_file: str = ""
    crash_at: str = ""

    def security(self) -> dict[str, str]:
        """See ServiceSettings."""
        return {**super().security(), "redis": redis_in_words(self.redis_url.get_secret_value())}

    @property
    def prepared_limits(self) -> PreparedLimits:
        return PreparedLimits(
            per_stream=self.max_prepared_transactions,
            total=self.max_prepared_in_all,
            horizon_s=self.prepared_horizon_s,
            idle_s=self.prepared_idle_s,
        )
