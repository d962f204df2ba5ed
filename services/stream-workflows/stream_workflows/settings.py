"""The settings of stream-workflows."""

from sluice.settings import ServiceSettings


class WorkflowSettings(ServiceSettings):
    """`max_handlers` bounds the keys worked on at once, `max_open` the requests taken and not yet accepted.

    `crash_at` names a point at which the process kills itself, once it passes there; for tests of recovery.
    """

    max_handlers: int = 256
    max_open: int = 10_000
    store_timeout_s: float = 20.0
    crash_at: str = ""
