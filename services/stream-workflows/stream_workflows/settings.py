"""The settings of stream-workflows."""

from sluice.settings import Count, CountOrZero, PolicySettings, Seconds


class WorkflowSettings(PolicySettings):
    """`max_steps` bounds the steps of workflows that are carried out at once, `max_open` the requests taken and not yet
    acknowledged.

    `…_interval_s` is how long a periodic job waits between two rounds: watermarks, dropping those that no reader needs,
    the segment stores' reports of load, cuts sampled for retention, and changes that concern retention. Of the reports
    that were passed on, up to `report_keep_bytes` stay where the segment stores put them.

    What is done to streams is counted, and reported every `statistics_s`.

    With `decides_policies` scaling and retention are decided here, while no other member of the group does.

    `crash_at` names a point at which the process kills itself, once it passes there; for tests of recovery.
    """

    max_steps: Count = 256
    max_open: Count = 10_000
    store_timeout_s: Seconds = 20.0
    watermark_interval_s: Seconds = 10.0
    mark_interval_s: Seconds = 60.0
    report_interval_s: Seconds = 1.0
    report_keep_bytes: CountOrZero = 1024 * 1024
    sample_interval_s: Seconds = 60.0
    change_interval_s: Seconds = 1.0
    statistics_s: Seconds = 5.0
    decides_policies: bool = False
    crash_at: str = ""
